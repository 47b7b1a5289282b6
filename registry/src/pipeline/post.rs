//! The fourth stage: hooks review what a call came to.

use std::sync::Arc;

use codemode_client::JsonText;

use crate::hook::{HookError, guarded_async};
use crate::pipeline::{Call, PostDecision, PostVerdict, body};
use crate::registry::Registry;
use crate::tool::{CallResult, Content, ToolError};

/// What a block without feedback says.
const BLOCKED: &str = "the tool result was blocked by policy";

/// Has the hooks review the result and does what they decide.
pub(super) async fn review(registry: &Registry, call: &Arc<Call>, result: CallResult) -> CallResult {
    let verdict = match waterfall(registry, call, &result).await {
        Ok(verdict) => verdict,
        Err(error) => return CallResult::failed(error.into()),
    };
    let reviewed = apply(registry, call, result, verdict);
    // An abort while the hooks ran takes a value away, as one before did.
    if !reviewed.is_error() && call.signal().is_aborted() {
        return reviewed.into_failed(ToolError::aborted(call.body_started()));
    }
    reviewed
}

async fn waterfall(
    registry: &Registry,
    call: &Arc<Call>,
    result: &CallResult,
) -> Result<PostVerdict, HookError> {
    let mut verdict = PostVerdict::default();
    for hook in registry.snapshot().hooks(call.scope(), |layer| &layer.post) {
        verdict = guarded_async(hook.review(call, result, verdict)).await?;
    }
    Ok(verdict)
}

fn apply(registry: &Registry, call: &Call, mut result: CallResult, verdict: PostVerdict) -> CallResult {
    match verdict.decision {
        PostDecision::Block { feedback } => CallResult {
            contexts: verdict.contexts,
            ..CallResult::failed(ToolError::plain(feedback_text(&feedback)))
        },
        PostDecision::Accept { content, value } => {
            result.contexts.extend(verdict.contexts);
            match (content, value) {
                (None, None) => result,
                (Some(content), None) => CallResult { content, ..result },
                (None, Some(value)) => replaced(registry, call, result, value),
                (Some(_), Some(_)) => result.into_failed(ToolError::plain(
                    "post-execute policy must replace content or value, not both",
                )),
            }
        }
    }
}

fn replaced(registry: &Registry, call: &Call, result: CallResult, value: JsonText) -> CallResult {
    if result.is_error() {
        return result
            .into_failed(ToolError::plain("post-execute policy cannot replace the value of a failed call"));
    }
    let live = registry.surface(call.scope());
    match registry.resolve(&live, call.surface(), call.name()) {
        None => result.into_failed(ToolError::unknown_tool(call.name())),
        Some(tool) => {
            let concludes_turn = result.concludes_turn();
            CallResult { contexts: result.contexts, ..body::checked(&tool, call, value, concludes_turn) }
        }
    }
}

fn feedback_text(feedback: &[Content]) -> String {
    let text = feedback.iter().map(Content::to_feedback).collect::<Vec<_>>().join("\n");
    if text.is_empty() { BLOCKED.to_owned() } else { text }
}
