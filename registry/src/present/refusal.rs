//! What a direct call of a tool is told where only `run_code` may be called.

use crate::error::RUN_CODE;
use crate::json::quote;
use crate::pipeline::Call;
use crate::tool::{ErrorCode, ToolError};

/// Refuses with the way out: the same call as a program.
pub(crate) fn collapse_refusal(call: &Call) -> ToolError {
    let name = call.name();
    let mut message = format!(
        "unknown tool \"{name}\": only `{RUN_CODE}` can be called directly; call `{name}` inside a {RUN_CODE} program"
    );
    if let Some(program) = call.surface().example(name) {
        let description = format!("Call {name}");
        message.push_str(&format!(
            ", e.g. {RUN_CODE}({{\"code\": {}, \"description\": {}}})",
            quote(&program),
            quote(&description)
        ));
    }
    ToolError::coded(ErrorCode::UnknownTool, message)
}
