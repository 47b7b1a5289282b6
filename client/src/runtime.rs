//! The seam itself: what every implementation promises its callers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::abort::AbortSignal;
use crate::description::Description;
use crate::error::RuntimeError;
use crate::event::{RunEvent, RunObserver};
use crate::outcome::Outcome;
use crate::request::RunRequest;

/// Runs programs, each in a world of its own.
#[async_trait]
pub trait CodeRuntime: Send + Sync + fmt::Debug {
    /// Runs one program to its outcome, which exists only after everything of the run is gone.
    ///
    /// Dropping the future aborts the run and waits for nothing. Firing `host.abort` aborts it and waits for the outcome.
    /// Calls of bindings run concurrently; those still running when the run settles are cancelled.
    ///
    /// # Errors
    /// Misuse and unreachable services only; see [`RuntimeError`]. A program's failure is in the outcome.
    async fn run(&self, request: RunRequest, host: RunHost) -> Result<Outcome, RuntimeError>;

    /// Language of the programs, lower case: `typescript`. Informs, gates nothing.
    fn language(&self) -> &str;

    /// What separates a run from everything else: `process`. Informs, gates nothing.
    fn isolation(&self) -> &str;

    /// Engines, budgets, limits and sandbox layers as they are now.
    ///
    /// # Errors
    /// [`RuntimeError::Unavailable`] and its like.
    async fn describe(&self) -> Result<Description, RuntimeError>;

    /// Settles every live run as `abort` (`runtime disposed`), waits for them, and refuses all later ones. Idempotent.
    async fn dispose(&self);
}

/// The caller's side of one run: how to end it early, and who watches.
#[derive(Clone, Default)]
pub struct RunHost {
    /// Ends the run as `abort` with a reason.
    pub abort: AbortSignal,
    /// Watches the run.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// From the call of `run`, attempts and waiting included; then the run is aborted. Absent: the runtime's own, if any.
    pub deadline: Option<Duration>,
}

impl RunHost {
    /// A host that watches with `observer`.
    #[must_use]
    pub fn observed_by(observer: impl RunObserver + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)), ..Self::default() }
    }

    /// Sets the signal that aborts the run.
    #[must_use]
    pub fn with_abort(mut self, abort: AbortSignal) -> Self {
        self.abort = abort;
        self
    }

    /// Sets the deadline.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    pub(crate) fn notify(&self, event: RunEvent<'_>) {
        if let Some(observer) = &self.observer {
            observer.on_event(event);
        }
    }
}

impl fmt::Debug for RunHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RunHost")
            .field("abort", &self.abort)
            .field("observed", &self.observer.is_some())
            .field("deadline", &self.deadline)
            .finish()
    }
}
