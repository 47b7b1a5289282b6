//! What a program comes to: its canonical value, how that is shown, and what a failure says.

use std::fmt::Write as _;

use codemode_client::{JsonText, Outcome, RuntimeError};

use crate::json::{Json, quote};
use crate::tool::{Content, ErrorCode, RenderFault, ToolError};

/// Schema of the canonical value.
pub(super) const SCHEMA: &str = concat!(
    "{\"type\":\"object\",\"properties\":{",
    "\"logs\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"result\":{}",
    "},\"required\":[\"logs\"],\"additionalProperties\":false}"
);

/// What a program without output is shown as.
const NO_OUTPUT: &str = "(run_code completed with no output)";

/// The canonical value of a program, or its failure.
pub(super) fn of_outcome(outcome: Outcome) -> Result<JsonText, ToolError> {
    if let Some(failure) = outcome.failure {
        let mut message = format!("code run failed ({}): {}", failure.kind, failure.message);
        if !outcome.logs.is_empty() {
            message.push_str("\nCaptured output:\n");
            message.push_str(&outcome.logs.join("\n"));
        }
        for hint in outcome.hints {
            // Writing to a string cannot fail.
            let _ = write!(message, "\nHint: {hint}");
        }
        return Err(ToolError::coded(ErrorCode::CodeRunFailed, message));
    }
    // Advice for the author goes where the author looks: to the end of the log.
    let hints = outcome.hints.iter().map(|hint| quote(&format!("hint: {hint}")));
    let logs: Vec<String> = outcome.logs.iter().map(|entry| quote(entry)).chain(hints).collect();
    let mut text = format!("{{\"logs\":[{}]", logs.join(","));
    if let Some(value) = outcome.value {
        text.push_str(",\"result\":");
        text.push_str(value.as_str());
    }
    text.push('}');
    JsonText::parse(text)
        .map_err(|error| ToolError::plain(format!("the runtime gave a broken value: {error}")))
}

/// What a runtime that gives no outcome is told of.
pub(super) fn of_rejection(error: &RuntimeError) -> ToolError {
    ToolError::plain(format!("the code runtime failed: {error}"))
}

/// Shows a canonical value: the log, then the result.
pub(super) fn render(value: &Json) -> Result<Vec<Content>, RenderFault> {
    let logs = value.get("logs").and_then(Json::as_array).unwrap_or_default();
    let printed = logs.iter().map(|entry| match entry {
        Json::String(text) => text.to_text_lossy().into_owned(),
        other => other.to_string(),
    });
    let printed = printed.collect::<Vec<_>>().join("\n");
    let returned = match value.get("result") {
        None => String::new(),
        Some(Json::String(text)) => text.to_text_lossy().into_owned(),
        Some(other) => other.to_pretty(),
    };
    let parts: Vec<String> = [printed, returned].into_iter().filter(|part| !part.is_empty()).collect();
    Ok(vec![Content::text(if parts.is_empty() { NO_OUTPUT.to_owned() } else { parts.join("\n") })])
}
