//! The body of a call, and the check of what it gives.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use codemode_client::{AbortSignal, JsonText};

use crate::hook::{guarded, guarded_async};
use crate::json::Json;
use crate::pipeline::{AroundRequest, Call};
use crate::registry::Registry;
use crate::store::Tool;
use crate::tool::{
    ArgumentCheck, Arguments, BodyError, CallContext, CallResult, CallSuccess, ErrorCode, ToolDefinition,
    ToolError,
};

/// How long a body has to end after its timeout, before its future is dropped.
const TIMEOUT_GRACE: Duration = Duration::from_secs(1);

/// Runs the body, if it is still there and still wanted.
pub(super) async fn run(registry: &Registry, request: AroundRequest) -> CallResult {
    let AroundRequest { call, signal } = request;
    let live = registry.surface(call.scope());
    let Some(tool) = registry.resolve(&live, call.surface(), call.name()) else {
        return CallResult::failed(ToolError::unknown_tool(call.name()));
    };
    let Some(arguments) = call.arguments().cloned() else {
        return CallResult::failed(ToolError::unknown_tool(call.name()));
    };
    if signal.is_aborted() || call.signal().is_aborted() {
        return CallResult::failed(ToolError::aborted(false));
    }
    if let Some(error) = argument_error(&tool.definition, &arguments) {
        return CallResult::failed(error);
    }
    let timeout = AbortSignal::new();
    let fused = signal.fused_with(call.signal()).fused(timeout.clone());
    let context = CallContext::new(Arc::clone(&call), fused.clone());
    call.body_started.store(true, Ordering::Release);
    let body = guarded_async(tool.definition.body.call(arguments.clone(), context.clone()));
    let done = match tool.definition.timeout {
        None => body.await,
        Some(limit) => with_timeout(&tool, limit, &timeout, body).await,
    };
    let extras = context.take_extras();
    let mut result = match done {
        Ok(_) if fused.is_aborted() => CallResult::failed(ToolError::aborted(true)),
        Ok(value) => checked(&tool, &call, value, extras.concludes_turn),
        Err(error) => CallResult::failed(error.0),
    };
    result.contexts = extras.contexts;
    result
}

fn argument_error(definition: &ToolDefinition, arguments: &Arguments) -> Option<ToolError> {
    if definition.argument_check == ArgumentCheck::Raw {
        return None;
    }
    let violations = definition.parameters.violations_of_arguments(arguments.value());
    (!violations.is_empty()).then(|| BodyError::invalid_args(&violations).0)
}

/// Awaits the body; after `limit` it is told to end, and after a grace it is dropped.
async fn with_timeout(
    tool: &Tool,
    limit: Duration,
    signal: &AbortSignal,
    body: impl Future<Output = Result<JsonText, BodyError>>,
) -> Result<JsonText, BodyError> {
    tokio::pin!(body);
    if let Ok(done) = tokio::time::timeout(limit, &mut body).await {
        return done;
    }
    let message = format!("tool \"{}\" timed out after {}ms", tool.name(), limit.as_millis());
    signal.abort(message.clone());
    // Whatever it still gives comes too late.
    let _ = tokio::time::timeout(TIMEOUT_GRACE, body).await;
    Err(ToolError::coded(ErrorCode::ToolTimeout, message).into())
}

/// Holds a value against the tool's output contract and renders it.
pub(super) fn checked(tool: &Tool, call: &Call, value: JsonText, concludes_turn: bool) -> CallResult {
    match try_checked(tool, call, &value) {
        Ok((content, meta)) => CallResult {
            outcome: Ok(CallSuccess { value, concludes_turn }),
            content,
            meta,
            contexts: Vec::new(),
        },
        Err(fault) => CallResult::failed(ToolError::coded(
            ErrorCode::InvalidToolOutput,
            format!("tool \"{}\" returned invalid output: {fault}", tool.name()),
        )),
    }
}

type Shown = (Vec<crate::tool::Content>, Option<JsonText>);

fn try_checked(tool: &Tool, call: &Call, value: &JsonText) -> Result<Shown, String> {
    let arguments = call.arguments().ok_or("the call has no arguments")?;
    let tree = Json::parse(value.as_str()).map_err(|lossy| lossy.to_string())?;
    let violations = tool.definition.output.schema.violations_of_value(&tree);
    if !violations.is_empty() {
        return Err(violations.join("; "));
    }
    let content = tool.definition.render(arguments, &tree)?;
    let project = tool.definition.output.meta.as_ref().filter(|_| call.parent().is_none());
    let meta =
        project.map(|project| guarded(|| project(arguments, &tree).map_err(|fault| fault.0))).transpose()?;
    if let Some(meta) = &meta {
        Json::parse(meta.as_str()).map_err(|lossy| format!("its presentation meta: {lossy}"))?;
    }
    Ok((content, meta))
}
