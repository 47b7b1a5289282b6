//! Content blocks and messages: what a model reads and writes, as far as the log has to know it.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// One content block: a JSON object with a `type`, e.g. `text`, `image` or `reasoning`.
///
/// The log keeps blocks as they are, those of kinds it does not know included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentBlock(Json);

#[derive(Serialize)]
struct TextOut<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Deserialize)]
struct Kind {
    r#type: String,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

impl ContentBlock {
    /// `{"type":"text","text":…}`.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self(Json::of(&TextOut { r#type: "text", text }).expect("a struct of strings can be said in JSON"))
    }

    /// A block of any kind, as it is.
    #[must_use]
    pub fn new(block: Json) -> Self {
        Self(block)
    }

    /// The block's JSON.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// Its `type`; none if it has none.
    #[must_use]
    pub fn kind(&self) -> Option<String> {
        serde_json::from_str::<Kind>(self.0.get()).ok().map(|kind| kind.r#type)
    }

    /// The text of a `text` block. None for other kinds, and for text that Rust strings cannot hold (half surrogates):
    /// then [`ContentBlock::json`] has it.
    #[must_use]
    pub fn as_text(&self) -> Option<String> {
        if self.kind()? != "text" {
            return None;
        }
        serde_json::from_str::<Text>(self.0.get()).ok().map(|block| block.text)
    }
}

/// Where a `user/message` came from: `{"kind":"user"}`, `{"kind":"plugin","plugin":"tools-code-mode"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// `user`, `plugin`, or a kind the harness names.
    pub kind: String,
    /// Which plugin, for `plugin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}

impl Source {
    /// A person, or whoever stands for one.
    #[must_use]
    pub fn user() -> Self {
        Self { kind: "user".to_owned(), plugin: None }
    }

    /// A part of the harness, by name.
    #[must_use]
    pub fn plugin(name: impl Into<String>) -> Self {
        Self { kind: "plugin".to_owned(), plugin: Some(name.into()) }
    }
}

/// A tool call as the model asked for it, inside an [`AssistantMessage`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallRequest {
    /// The model's id of the call.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments; a JSON string holding the text where the model sent no JSON.
    pub arguments: Json,
}

/// What the model said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, reasoning and so on, in order.
    pub content: Vec<ContentBlock>,
    /// The calls it asked for, in the model's order; left out when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallRequest>,
}

/// The answer to one tool call, as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolMessage {
    /// The model's id of the call it answers.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The rendered content.
    pub content: Vec<ContentBlock>,
    /// Whether the call failed.
    pub is_error: bool,
}

/// An error's machine-readable part; only errors of the harness itself carry one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// The error's class, e.g. `ToolArgsError`.
    pub name: String,
    /// Its code, e.g. `INVALID_ARGS`.
    pub code: String,
}

/// Tokens of one model request, as the model's service counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Tokens read anew.
    pub input_tokens: u64,
    /// Tokens read from the service's cache, on top of `input_tokens`.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}
