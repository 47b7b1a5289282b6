//! How many runs there are: slots, and a queue in front of them that is bounded in length and in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// So many wait already.
    #[error("{0} runs wait for a slot already")]
    QueueFull(usize),
    /// None came free in time.
    #[error("no slot came free within {0:?}")]
    QueueTime(Duration),
}

/// The slots of one executor.
#[derive(Debug)]
pub struct Admission {
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    queued_max: usize,
    queue: Duration,
}

/// One run's slot; free again when dropped.
#[derive(Debug)]
pub struct Slot {
    _permit: OwnedSemaphorePermit,
}

impl Admission {
    /// `concurrent` slots; at most `queued_max` wait, each for at most `queue`.
    #[must_use]
    pub fn new(concurrent: usize, queued_max: usize, queue: Duration) -> Self {
        Self { slots: Arc::new(Semaphore::new(concurrent)), waiting: AtomicUsize::new(0), queued_max, queue }
    }

    /// Slots that are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.slots.available_permits()
    }

    /// Runs that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A slot, first come first served. Cancel-safe.
    ///
    /// # Errors
    /// The bounds of the queue.
    pub async fn acquire(&self) -> Result<Slot, Refused> {
        if let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            return Ok(Slot { _permit: permit });
        }
        let _place = Place::take(&self.waiting, self.queued_max)?;
        let acquired = tokio::time::timeout(self.queue, Arc::clone(&self.slots).acquire_owned()).await;
        // The semaphore is never closed.
        let permit = acquired.ok().and_then(Result::ok).ok_or(Refused::QueueTime(self.queue))?;
        Ok(Slot { _permit: permit })
    }
}

/// A place in the queue, given back when dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, max: usize) -> Result<Self, Refused> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(waiting);
        if before < max { Ok(place) } else { Err(Refused::QueueFull(before)) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_queue_is_bounded_in_time_and_length() {
        let queue = Duration::from_secs(10);
        let admission = Arc::new(Admission::new(1, 1, queue));
        let slot = admission.acquire().await.expect("free");
        let waits = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move { admission.acquire().await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(admission.waiting(), 1);
        assert_eq!(admission.acquire().await.map(drop), Err(Refused::QueueFull(1)));
        assert_eq!(waits.await.expect("join"), Err(Refused::QueueTime(queue)));
        assert_eq!(admission.waiting(), 0);
        drop(slot);
        assert_eq!(admission.free(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_the_slot_and_who_goes_away_leaves_no_place() {
        let admission = Arc::new(Admission::new(1, 2, Duration::from_secs(10)));
        let slot = admission.acquire().await.expect("free");
        let gone = tokio::time::timeout(Duration::from_millis(1), admission.acquire()).await;
        assert!(gone.is_err());
        assert_eq!(admission.waiting(), 0);
        let waits = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move { admission.acquire().await.map(drop) }
        });
        tokio::task::yield_now().await;
        drop(slot);
        assert_eq!(waits.await.expect("join"), Ok(()));
        assert_eq!(
            Admission::new(0, 0, Duration::ZERO).acquire().await.map(drop),
            Err(Refused::QueueFull(0))
        );
    }
}
