//! How a caller ends a run before its time: a cancellation token that carries a reason.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Ends runs as `abort`. Clones are handles of one signal; a signal that fired stays fired.
#[derive(Clone, Debug, Default)]
pub struct AbortSignal {
    token: CancellationToken,
    reason: Arc<OnceLock<String>>,
}

impl AbortSignal {
    /// The reason given where the token was cancelled without one.
    pub const DEFAULT_REASON: &'static str = "aborted by the caller";

    /// A signal that has not fired.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A signal that also fires, with [`Self::DEFAULT_REASON`], when `token` is cancelled.
    #[must_use]
    pub fn from_token(token: CancellationToken) -> Self {
        Self { token, reason: Arc::default() }
    }

    /// Fires. The reason becomes the failure's message, word for word; of several calls the first wins.
    pub fn abort(&self, reason: impl Into<String>) {
        // A reason that is already there belongs to the call that won.
        let _ = self.reason.set(reason.into());
        self.token.cancel();
    }

    /// The reason, once the signal has fired.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.token.is_cancelled().then(|| self.reason.get().map_or(Self::DEFAULT_REASON, String::as_str))
    }

    /// Waits until the signal fires and gives the reason. Cancel-safe.
    pub async fn aborted(&self) -> &str {
        self.token.cancelled().await;
        self.reason.get().map_or(Self::DEFAULT_REASON, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_wins_and_stays() {
        let signal = AbortSignal::new();
        assert_eq!(signal.reason(), None);
        let handle = signal.clone();
        handle.abort("first");
        handle.abort("second");
        assert_eq!(signal.reason(), Some("first"));
        assert_eq!(signal.aborted().await, "first");
    }

    #[tokio::test]
    async fn a_token_without_reason_gets_the_default_one() {
        let token = CancellationToken::new();
        let signal = AbortSignal::from_token(token.clone());
        token.cancel();
        assert_eq!(signal.aborted().await, AbortSignal::DEFAULT_REASON);
    }
}
