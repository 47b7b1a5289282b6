//! What all RPCs share, and the order in which it ends.

use std::sync::Arc;
use std::time::Duration;

use codemode_client::CodeRuntime;
use codemode_events::EventStore;
use futures::future::join_all;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::live::Live;
use crate::config::{Config, Limits, StoreChoice};
use crate::error::RegistryError;
use crate::registry::Registry;
use crate::service::approvals::Approvals;
use crate::service::sessions::Sessions;
use crate::store::Registration;

/// Where programs run.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// What runs them; nothing: none can run.
    pub runtime: Option<Arc<dyn CodeRuntime>>,
    /// Addresses of executors, or `private`.
    pub executors: Vec<String>,
}

/// What all RPCs share.
#[derive(Debug)]
pub struct Context {
    pub(super) registry: Registry,
    pub(super) store: Arc<dyn EventStore>,
    pub(super) store_choice: StoreChoice,
    pub(super) programs: Programs,
    pub(super) sessions: Sessions,
    pub(super) approvals: Arc<Approvals>,
    pub(super) limits: Limits,
    pub(super) live: Arc<Live>,
    /// Streams of harnesses, and what must not end with an RPC.
    pub(super) tasks: TaskTracker,
    /// Nothing new is begun.
    pub(super) draining: CancellationToken,
    /// Streams end.
    pub(super) closing: CancellationToken,
    /// What is registered for as long as it serves.
    _held: Vec<Registration>,
}

impl Context {
    /// Puts it together.
    ///
    /// # Errors
    /// Settings that cannot be.
    pub fn new(
        config: &Config,
        live: impl FnOnce(Registry) -> Live,
        store: Arc<dyn EventStore>,
        programs: Programs,
    ) -> Result<Arc<Self>, RegistryError> {
        let registry = Registry::new(config.settings.clone())?;
        let approvals: Arc<Approvals> = Arc::default();
        let mut held = vec![registry.set_approvals(Arc::clone(&approvals) as _)?];
        if let Some(runtime) = &programs.runtime {
            held.push(registry.set_runtime(Arc::clone(runtime))?);
        }
        Ok(Arc::new(Self {
            sessions: Sessions::new(registry.clone(), Arc::clone(&store), config.limits.sessions_max),
            live: Arc::new(live(registry.clone())),
            registry,
            store,
            store_choice: config.store.clone(),
            programs,
            approvals,
            limits: config.limits.clone(),
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
            closing: CancellationToken::new(),
            _held: held,
        }))
    }

    /// The configuration, which can be read anew.
    #[must_use]
    pub const fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Ends everything in order: nothing new begins, calls may go on for `grace` or until `hurry`, then they are aborted
    /// and awaited; sessions are closed, and last the streams of harnesses end.
    pub async fn drain(&self, grace: Duration, hurry: impl Future<Output = ()>) {
        self.draining.cancel();
        let sessions = self.sessions.all();
        let idle = join_all(sessions.iter().map(|session| {
            session.tasks.close();
            session.tasks.wait()
        }));
        tokio::select! {
            _ = idle => {}
            () = tokio::time::sleep(grace) => {}
            () = hurry => {}
        }
        join_all(sessions.iter().map(|session| async {
            if let Err(status) = self.sessions.close(session.id(), "the registry is shutting down").await {
                tracing::warn!(
                    session = session.id(),
                    error = status.message(),
                    "a session was not closed in order"
                );
            }
        }))
        .await;
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        if let Some(runtime) = &self.programs.runtime {
            runtime.dispose().await;
        }
    }
}
