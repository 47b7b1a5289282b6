//! The first stage: the call is made, its arguments are read once, and what can never be carried out ends here.

use std::sync::Arc;

use crate::error::RUN_CODE;
use crate::pipeline::{Call, CallRequest, Flight, FlightState};
use crate::present::{Mode, collapse_refusal};
use crate::registry::Registry;
use crate::store::ScopeId;
use crate::tool::{Arguments, CallResult, ToolError};

/// Makes the call.
pub(crate) fn begin(registry: &Registry, request: CallRequest) -> Flight {
    let scope = request.agent.as_ref().map_or(ScopeId::ROOT, crate::agent::Agent::scope);
    let live = registry.surface(scope);
    let surface = request.surface.clone().unwrap_or_else(|| Arc::clone(&live));
    let parsed = request.parsed.clone().map_or_else(|| Arguments::parse(request.arguments.clone()), Ok);
    let (arguments, lossy) = match parsed {
        Ok(arguments) => (Some(arguments), None),
        Err(lossy) => (None, Some(lossy)),
    };
    let call = Arc::new(Call::new(request, arguments, surface));
    if let Some(lossy) = lossy {
        let error = format!("tool execution arguments must be losslessly JSON-serializable: {lossy}");
        return Flight {
            call,
            tool: None,
            state: FlightState::Final(CallResult::failed(ToolError::plain(error))),
        };
    }
    let tool = registry.resolve(&live, call.surface(), call.name());
    let aborted = call.signal().is_aborted();
    let collapsed = tool.is_some() && is_collapsed(&call);
    let error = match (&tool, aborted) {
        (_, true) => Some(ToolError::aborted(false)),
        (_, false) if collapsed => Some(collapse_refusal(&call)),
        _ => None,
    };
    let state = match (error, &tool) {
        (Some(error), _) => FlightState::Final(CallResult::failed(error)),
        (None, None) => FlightState::Settled(CallResult::failed(ToolError::unknown_tool(call.name()))),
        (None, Some(_)) => FlightState::Open,
    };
    // A collapsed call never reaches the tool, so the tool has no last word on it.
    let tool = tool.filter(|_| !collapsed || aborted);
    Flight { call, tool, state }
}

/// Whether a call is one that in `code` mode only a program may make.
pub(crate) fn is_collapsed(call: &Call) -> bool {
    call.surface().mode() == Mode::Code && call.parent().is_none() && &**call.name() != RUN_CODE
}
