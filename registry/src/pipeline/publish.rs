//! The last stage: the tool's finalizer, then whoever watches.

use crate::hook::{guarded, guarded_async};
use crate::pipeline::Call;
use crate::registry::Registry;
use crate::store::Tool;
use crate::tool::CallResult;

/// Finalizes the result and tells the observers. Nothing changes it afterwards.
pub(super) async fn publish(
    registry: &Registry,
    call: &Call,
    tool: Option<&Tool>,
    result: CallResult,
) -> CallResult {
    let result = finalized(call, tool, result).await;
    for observer in registry.snapshot().hooks(call.scope(), |layer| &layer.observers) {
        let watched = guarded(|| {
            observer.on_result(call, &result);
            Ok(())
        });
        if let Err(fault) = watched {
            tracing::warn!(tool = %call.name(), %fault, "a result observer failed");
        }
    }
    result
}

async fn finalized(call: &Call, tool: Option<&Tool>, result: CallResult) -> CallResult {
    let finalizer = tool.and_then(|tool| tool.definition.finalizer.as_ref());
    // What was refused for its arguments has nothing that a finalizer could look at.
    let Some(finalizer) = finalizer.filter(|_| call.arguments().is_some()) else { return result };
    match guarded_async(finalizer.finalize(call, &result)).await {
        Ok(None) => result,
        Ok(Some(content)) => CallResult { content, ..result },
        Err(error) => result.into_failed(error.into()),
    }
}
