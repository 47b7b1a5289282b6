//! What happens to every call, direct or from a program, in this order:
//!
//! 1. create: token, arguments read once (`create`); collapse of direct calls in `code` mode; abort
//! 2. policy rules, pre-execute hooks, ask, guards (`policy`)
//! 3. around: a stack of tower layers (`around`), with the body in its middle (`body`)
//! 4. post-execute hooks (`post`), the tool's finalizer, observers (`publish`)
//!
//! [`Flight`] is one call on its way; each stage moves it on. Schedulers call the stages one by one, since only the third
//! may overlap with other calls; [`execute`] does all.

mod around;
mod body;
mod call;
mod create;
mod hooks;
mod policy;
mod post;
mod publish;

use std::sync::Arc;

pub use around::{AroundLayer, AroundRequest, AroundService};
pub use call::{Call, CallRequest, CallToken};
pub use hooks::{
    ApprovalOutcome, ApprovalRequest, ApprovalService, Decision, DispatchLogHook, Guard, PostDecision,
    PostExecute, PostVerdict, PreExecute, ResultObserver,
};

pub(crate) use create::begin;
#[cfg(feature = "service")]
pub(crate) use policy::approval_id;

use crate::registry::Registry;
use crate::store::Tool;
use crate::tool::CallResult;

/// One call on its way through the pipeline.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) call: Arc<Call>,
    /// The tool as it was when the call was made: its finalizer has the last word also if the tool is gone since.
    pub(crate) tool: Option<Arc<Tool>>,
    pub(crate) state: FlightState,
}

/// How far a call has come.
#[derive(Debug)]
pub(crate) enum FlightState {
    /// Nothing speaks against it so far.
    Open,
    /// It came to something; hooks still have a say.
    Settled(CallResult),
    /// It came to something that no post-execute hook sees.
    Final(CallResult),
}

impl Flight {
    /// Whether the next stage is the around stage.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.state, FlightState::Open)
    }
}

/// Takes a call through policy. Afterwards it is open, or it came to something.
pub(crate) async fn admit(registry: &Registry, flight: &mut Flight) {
    if flight.is_open()
        && let Some(state) = policy::decide(registry, &flight.call).await
    {
        flight.state = state;
    }
}

/// Runs the around stage and the body of an open call.
pub(crate) async fn dispatch(registry: &Registry, flight: &mut Flight) {
    if flight.is_open() {
        flight.state = around::run(registry, &flight.call).await;
    }
}

/// Has post-execute hooks, the finalizer and observers see what a call came to.
pub(crate) async fn commit(registry: &Registry, flight: Flight) -> CallResult {
    let Flight { call, tool, state } = flight;
    let result = match state {
        FlightState::Final(result) => result,
        FlightState::Settled(result) => post::review(registry, &call, result).await,
        // Unreachable by the schedulers; a call that nobody dispatched was not dispatched.
        FlightState::Open => CallResult::failed(crate::tool::ToolError::aborted(false)),
    };
    publish::publish(registry, &call, tool.as_deref(), result).await
}

/// Takes a call through all stages.
pub(crate) async fn execute(registry: &Registry, request: CallRequest) -> CallResult {
    let mut flight = begin(registry, request);
    admit(registry, &mut flight).await;
    dispatch(registry, &mut flight).await;
    commit(registry, flight).await
}
