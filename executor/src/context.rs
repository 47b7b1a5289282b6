//! What every run shares: the configuration, the child processes, the slots, the metrics, and the two signals of a
//! shutdown.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::admission::Admission;
use crate::config::Config;
use crate::supervisor::Supervisor;
use crate::telemetry::Metrics;

/// The shared part of an executor.
#[derive(Debug)]
pub struct Context {
    /// What the operator decided.
    pub config: Config,
    /// Who makes processes.
    pub supervisor: Supervisor,
    /// Who may run.
    pub admission: Admission,
    /// What is counted.
    pub metrics: Metrics,
    /// The tasks of all runs.
    pub runs: TaskTracker,
    /// No run begins any more.
    pub draining: CancellationToken,
    /// Runs that have not ended end now, as `abort`.
    pub settle_now: CancellationToken,
    live: Mutex<HashSet<Uuid>>,
}

impl Context {
    /// A context in which runs can begin.
    #[must_use]
    pub fn new(config: Config, supervisor: Supervisor) -> Arc<Self> {
        let slots = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        let admission =
            Admission::new(slots(config.concurrent_runs_max), slots(config.queued_runs_max), config.queue);
        Arc::new(Self {
            config,
            supervisor,
            admission,
            metrics: Metrics::default(),
            runs: TaskTracker::new(),
            draining: CancellationToken::new(),
            settle_now: CancellationToken::new(),
            live: Mutex::default(),
        })
    }

    /// Reserves a run's id until the answer is dropped; `None` if a live run has it.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, id: Uuid) -> Option<ReservedId> {
        self.live.lock().insert(id).then(|| ReservedId { id, context: Arc::clone(self) })
    }

    /// Ends everything: no new runs; those that go on may do so for `grace` or until `hurry`; then they settle as
    /// `abort`. Returns when no child process is left.
    pub async fn drain(&self, grace: Duration, hurry: impl Future<Output = ()>) {
        self.draining.cancel();
        self.runs.close();
        tokio::select! {
            () = self.runs.wait() => {}
            () = tokio::time::sleep(grace) => {}
            () = hurry => {}
        }
        self.settle_now.cancel();
        self.runs.wait().await;
        self.supervisor.shutdown().await;
    }
}

/// A run's id that no other live run can have.
#[derive(Debug)]
pub struct ReservedId {
    id: Uuid,
    context: Arc<Context>,
}

impl Drop for ReservedId {
    fn drop(&mut self) {
        self.context.live.lock().remove(&self.id);
    }
}
