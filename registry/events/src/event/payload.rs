//! The fields of each event. Ids are non-empty strings of whoever makes them; `seq` numbers are entries of this log.

use serde::{Deserialize, Serialize};

use crate::content::{AssistantMessage, ContentBlock, ErrorInfo, Source, TokenUsage, ToolMessage};
use crate::json::Json;

/// `turn/start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStart {
    /// The turn's id, the same in its `turn/end`.
    pub turn_id: String,
}

/// `turn/end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// The turn that ends.
    pub turn_id: String,
    /// How it ended.
    pub outcome: TurnOutcome,
    /// In words, for `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnOutcome {
    /// The model had no more calls, or a tool concluded the turn.
    Completed,
    /// Somebody aborted it.
    Aborted,
    /// The harness failed.
    Failed,
    /// The process ended while the turn was open; written when the session is resumed.
    Interrupted,
}

/// `step/start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepStart {
    /// The step's number in its turn, from 1.
    pub step: u32,
}

/// `step/end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepEnd {
    /// The step's number in its turn, from 1.
    pub step: u32,
}

/// What a model request has beside its messages, in canonical form: an empty system text and an empty list are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Model and sampling parameters, as the harness has them.
    pub config: Json,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The tool list in its order, each as the JSON the model is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Json>>,
}

/// Why a header was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeaderReason {
    /// It is the session's first.
    Initial,
    /// The first since the session was resumed, and different from the last one before.
    Resume,
    /// It differs from the one before.
    Change,
}

/// `request/header`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHeader {
    /// The header from now on.
    pub header: Header,
    /// Why it is logged.
    pub reason: HeaderReason,
}

/// `user/message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// What it says.
    pub content: Vec<ContentBlock>,
    /// Who says it.
    pub source: Source,
}

/// `assistant/message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantMessageEvent {
    /// What the model said.
    pub message: AssistantMessage,
    /// What the request cost, if the service told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// `tool/call`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The model's id of the call.
    pub call_id: String,
    /// The tool's name as the model gave it.
    pub name: String,
    /// The arguments; a JSON string holding the text where the model sent no JSON.
    pub arguments: Json,
}

/// `tool/result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The number of the `tool/call` it answers.
    pub call: u64,
    /// The answer as the model reads it.
    pub message: ToolMessage,
    /// Name and code, where the harness itself refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// For whoever presents the result; never shown to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

/// `tool/code-dispatch-start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeDispatchStart {
    /// The model's call at the root.
    pub root_call_id: String,
    /// The call whose program called: the root, or another sub-call of the same root.
    pub parent_call_id: String,
    /// The sub-call's id, `<parent>:code:<n>`.
    pub sub_call_id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, lossless.
    pub arguments: Json,
}

/// `tool/code-dispatch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeDispatch {
    /// As in the start.
    pub root_call_id: String,
    /// As in the start.
    pub parent_call_id: String,
    /// As in the start.
    pub sub_call_id: String,
    /// As in the start.
    pub name: String,
    /// As in the start.
    pub arguments: Json,
    /// Whether the call failed.
    pub is_error: bool,
    /// The rendered content, whole unless a hook put a preview in its place.
    pub content: Vec<ContentBlock>,
    /// Name and code, where the harness itself refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
}

/// `approval/asked`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAsked {
    /// The request's id, the same in its answer.
    pub approval_id: String,
    /// The call that waits, a sub-call's id included.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments to be approved.
    pub arguments: Json,
    /// Why somebody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `approval/answered`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAnswered {
    /// The request that is answered.
    pub approval_id: String,
    /// The answer.
    pub outcome: ApprovalOutcome,
}

/// What became of a request for approval. Only `allowed-once` lets the call proceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalOutcome {
    /// This one call may run.
    AllowedOnce,
    /// Refused.
    Rejected,
    /// Withdrawn before an answer came.
    Cancelled,
    /// Nobody can be asked.
    Unavailable,
}
