//! What an agent loop needs of the registry: who calls, and the native calls of one step.
//!
//! The loop itself, its model and its turns are the harness's.

pub(crate) mod record;
mod step;

use std::sync::Arc;

use codemode_events::SessionLog;

pub use step::{ModelCall, StepEnd, StepOutcome, append_contexts, run_step};

use crate::store::ScopeId;

#[derive(Debug)]
struct Inner {
    id: Arc<str>,
    scope: ScopeId,
    log: Option<SessionLog>,
}

/// Somebody on whose behalf calls are made. Clones are the same agent.
#[derive(Clone, Debug)]
pub struct Agent(Arc<Inner>);

impl Agent {
    /// An agent that sees what a scope sees, and whose calls nobody writes down.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>, scope: ScopeId) -> Self {
        Self(Arc::new(Inner { id: id.into(), scope, log: None }))
    }

    /// The same agent with a session's log.
    #[must_use]
    pub fn with_log(self, log: SessionLog) -> Self {
        Self(Arc::new(Inner { id: Arc::clone(&self.0.id), scope: self.0.scope, log: Some(log) }))
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Its scope.
    #[must_use]
    pub fn scope(&self) -> ScopeId {
        self.0.scope
    }

    /// Its session's log.
    #[must_use]
    pub fn log(&self) -> Option<&SessionLog> {
        self.0.log.as_ref()
    }
}
