//! From what calls come to, to what the session log keeps of it.

use codemode_client::JsonText;
use codemode_events::{ContentBlock, ErrorInfo, Json, Source, ToolMessage, UserMessage};

use crate::tool::{CallResult, Content, ContextMessage};

/// A value as the log keeps it, byte for byte but for white space around it.
pub(crate) fn json(text: &JsonText) -> Json {
    // A text that was checked when it was made is JSON still.
    Json::parse(text.as_str().trim()).unwrap_or_else(|_| Json::string(text.as_str()))
}

/// Content as the log keeps it.
pub(crate) fn blocks(content: &[Content]) -> Vec<ContentBlock> {
    let block = |content: &Content| match Json::of(content) {
        Ok(json) => ContentBlock::new(json),
        Err(_) => ContentBlock::text(content.to_feedback()),
    };
    content.iter().map(block).collect()
}

/// Name and code of a failure, as the log keeps them.
pub(crate) fn error(result: &CallResult) -> Option<ErrorInfo> {
    result.error_info().map(|info| ErrorInfo { name: info.name.clone(), code: info.code.clone() })
}

/// The answer to a call, as the model reads it.
pub(crate) fn message(call_id: &str, name: &str, result: &CallResult) -> ToolMessage {
    ToolMessage {
        call_id: call_id.to_owned(),
        name: name.to_owned(),
        content: blocks(&result.content),
        is_error: result.is_error(),
    }
}

/// A context, as the message that it becomes.
pub(crate) fn user_message(context: &ContextMessage) -> UserMessage {
    let source = Source { kind: context.source.kind.clone(), plugin: Some(context.source.plugin.clone()) };
    UserMessage { content: blocks(&context.content), source }
}
