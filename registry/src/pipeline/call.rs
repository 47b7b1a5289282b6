//! One call: who calls what with which arguments. The same immutable value for every stage.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use codemode_client::{AbortSignal, JsonText};

use crate::agent::Agent;
use crate::present::Surface;
use crate::signal::Signal;
use crate::store::ScopeId;
use crate::tool::Arguments;

/// Stands for one call and tells nothing of it. Tokens are equal if they are of one call.
#[derive(Clone)]
pub struct CallToken(Arc<()>);

impl CallToken {
    fn new() -> Self {
        Self(Arc::new(()))
    }
}

impl PartialEq for CallToken {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CallToken {}

impl fmt::Debug for CallToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CallToken")
    }
}

/// A call as it is asked for.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The call's id, unique in its session.
    pub call_id: String,
    /// The direct call that this one descends from. Absent: itself.
    pub root_call_id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The arguments as text.
    pub arguments: JsonText,
    /// Who calls. Absent: nobody in particular, with the tools of the deployment.
    pub agent: Option<Agent>,
    /// The composite call that makes this one.
    pub parent: Option<CallToken>,
    /// Ends it early.
    pub signal: Signal,
    /// What the caller was shown. Mode and policy are taken from there, and from the present state if absent.
    pub surface: Option<Arc<Surface>>,
    /// The arguments, where somebody has read them already.
    pub(crate) parsed: Option<Arguments>,
}

impl CallRequest {
    /// A direct call that nothing aborts.
    #[must_use]
    pub fn new(call_id: impl Into<String>, name: impl Into<String>, arguments: JsonText) -> Self {
        Self {
            call_id: call_id.into(),
            root_call_id: None,
            name: name.into(),
            arguments,
            agent: None,
            parent: None,
            signal: AbortSignal::new().into(),
            surface: None,
            parsed: None,
        }
    }

    /// Sets who calls.
    #[must_use]
    pub fn by(mut self, agent: Agent) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Sets what ends it early.
    #[must_use]
    pub fn with_signal(mut self, signal: impl Into<Signal>) -> Self {
        self.signal = signal.into();
        self
    }

    /// Sets what the caller was shown.
    #[must_use]
    pub fn with_surface(mut self, surface: Arc<Surface>) -> Self {
        self.surface = Some(surface);
        self
    }
}

/// One call.
#[derive(Debug)]
pub struct Call {
    pub(super) token: CallToken,
    pub(super) call_id: String,
    pub(super) root_call_id: String,
    pub(super) name: Arc<str>,
    pub(super) arguments: Option<Arguments>,
    pub(super) agent: Option<Agent>,
    pub(super) parent: Option<CallToken>,
    pub(super) signal: Signal,
    pub(super) surface: Arc<Surface>,
    pub(super) body_started: AtomicBool,
}

impl Call {
    pub(super) fn new(request: CallRequest, arguments: Option<Arguments>, surface: Arc<Surface>) -> Self {
        Self {
            token: CallToken::new(),
            root_call_id: request.root_call_id.unwrap_or_else(|| request.call_id.clone()),
            call_id: request.call_id,
            name: request.name.into(),
            arguments,
            agent: request.agent,
            parent: request.parent,
            signal: request.signal,
            surface,
            body_started: AtomicBool::new(false),
        }
    }

    /// Stands for this call, e.g. as parent of others.
    #[must_use]
    pub const fn token(&self) -> &CallToken {
        &self.token
    }

    /// The call's id.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The direct call it descends from; itself, if it is direct.
    #[must_use]
    pub fn root_call_id(&self) -> &str {
        &self.root_call_id
    }

    /// The tool's name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The arguments. Absent only where they were not lossless, which only observers get to see.
    #[must_use]
    pub const fn arguments(&self) -> Option<&Arguments> {
        self.arguments.as_ref()
    }

    /// Who calls.
    #[must_use]
    pub const fn agent(&self) -> Option<&Agent> {
        self.agent.as_ref()
    }

    /// The scope whose tools and hooks the call meets.
    #[must_use]
    pub fn scope(&self) -> ScopeId {
        self.agent.as_ref().map_or(ScopeId::ROOT, Agent::scope)
    }

    /// The composite call that makes this one.
    #[must_use]
    pub const fn parent(&self) -> Option<&CallToken> {
        self.parent.as_ref()
    }

    /// What ends it early.
    #[must_use]
    pub const fn signal(&self) -> &Signal {
        &self.signal
    }

    /// What the caller was shown.
    #[must_use]
    pub const fn surface(&self) -> &Arc<Surface> {
        &self.surface
    }

    /// Whether the body has been started.
    #[must_use]
    pub fn body_started(&self) -> bool {
        self.body_started.load(Ordering::Acquire)
    }
}
