//! The pause of something that is tried again and again. Owns how it grows.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// First pause.
const FIRST: Duration = Duration::from_millis(50);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(5);

/// A pause that doubles from 50 ms up to 5 s.
#[derive(Debug)]
pub(super) struct Pause(Duration);

impl Pause {
    pub(super) const fn new() -> Self {
        Self(FIRST)
    }

    /// It worked: the next pause is short again.
    pub(super) const fn reset(&mut self) {
        self.0 = FIRST;
    }

    /// Waits, but not beyond `stop`.
    pub(super) async fn wait(&mut self, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(self.0) => {}
        }
        self.0 = (self.0 * 2).min(LONGEST);
    }
}
