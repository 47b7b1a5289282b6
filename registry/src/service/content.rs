//! Content, values and contexts between JSON text on the wire and our own types.

use bytes::Bytes;
use codemode_client::JsonText;
use codemode_proto::registry_v1 as proto;

use crate::tool::{CallResult, Content, ContextMessage, ErrorInfo};

/// Blocks as they travel.
pub(super) fn to_json(content: &[Content]) -> Bytes {
    // Structs of strings and numbers can always be said in JSON.
    serde_json::to_vec(content).unwrap_or_default().into()
}

/// Blocks as they came.
pub(super) fn from_json(json: &[u8]) -> Result<Vec<Content>, String> {
    serde_json::from_slice(json)
        .map_err(|error| format!("the content is no JSON array of content blocks: {error}"))
}

/// A value as it came; whether it is lossless is the pipeline's to check.
pub(super) fn value(json: Bytes) -> Result<JsonText, String> {
    let text = String::from_utf8(json.into()).map_err(|_| "the value is not UTF-8".to_owned())?;
    JsonText::parse(text).map_err(|error| format!("the value is no JSON: {error}"))
}

/// Contexts as they came; those without a plugin are the harness's own.
pub(super) fn contexts(given: Vec<proto::Context>, harness: &str) -> Result<Vec<ContextMessage>, String> {
    let context = |context: proto::Context| {
        let plugin = if context.plugin.is_empty() { harness.to_owned() } else { context.plugin };
        Ok(ContextMessage::from_plugin(plugin, from_json(&context.content_json)?))
    };
    given.into_iter().map(context).collect()
}

/// Contexts as they travel.
pub(super) fn to_contexts(contexts: &[ContextMessage]) -> Vec<proto::Context> {
    let context = |context: &ContextMessage| proto::Context {
        plugin: context.source.plugin.clone(),
        content_json: to_json(&context.content),
    };
    contexts.iter().map(context).collect()
}

/// Name and code of a failure as they travel.
pub(super) fn to_info(info: &ErrorInfo) -> proto::ErrorInfo {
    proto::ErrorInfo { name: info.name.clone(), code: info.code.clone() }
}

/// What a call came to as it travels.
pub(super) fn to_result(call_id: &str, result: &CallResult) -> proto::CallResult {
    let outcome = match &result.outcome {
        Ok(success) => proto::call_result::Outcome::ValueJson(success.value.as_str().to_owned().into()),
        Err(error) => proto::call_result::Outcome::Failure(proto::CallFailure {
            message: error.message.clone(),
            info: error.info.as_ref().map(to_info),
        }),
    };
    proto::CallResult {
        call_id: call_id.to_owned(),
        outcome: Some(outcome),
        content_json: to_json(&result.content),
        meta_json: result.meta.as_ref().map(|meta| meta.as_str().to_owned().into()),
        contexts: to_contexts(&result.contexts),
        concludes_turn: result.concludes_turn(),
    }
}
