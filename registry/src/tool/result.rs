//! What a call came to.

use codemode_client::JsonText;

use crate::tool::{Content, ContextMessage, ErrorInfo, ToolError};

/// What a call came to. Immutable once it was published.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// The value, or the failure.
    pub outcome: Result<CallSuccess, ToolError>,
    /// What a model is shown. Of a failure: `Error: ` and the message, unless a stage replaced it.
    pub content: Vec<Content>,
    /// What a user interface is given beside the content. Never of a sub-call.
    pub meta: Option<JsonText>,
    /// Messages that the conversation gets after all results of the step.
    pub contexts: Vec<ContextMessage>,
}

/// The value of a call that succeeded. It lives as long as the call and is never stored.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSuccess {
    /// The canonical value.
    pub value: JsonText,
    /// Whether the turn ends after this step.
    pub concludes_turn: bool,
}

impl CallResult {
    /// A failure, with its message as content.
    #[must_use]
    pub fn failed(error: ToolError) -> Self {
        let content = vec![Content::text(format!("Error: {}", error.message))];
        Self { outcome: Err(error), content, meta: None, contexts: Vec::new() }
    }

    /// Replaces outcome and content by a failure; contexts stay.
    #[must_use]
    pub fn into_failed(self, error: ToolError) -> Self {
        Self { contexts: self.contexts, ..Self::failed(error) }
    }

    /// Whether it is a failure.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.outcome.is_err()
    }

    /// The failure, if it is one.
    #[must_use]
    pub fn error(&self) -> Option<&ToolError> {
        self.outcome.as_ref().err()
    }

    /// Name and code of the failure, if it has them.
    #[must_use]
    pub fn error_info(&self) -> Option<&ErrorInfo> {
        self.error()?.info.as_ref()
    }

    /// The value, if it succeeded.
    #[must_use]
    pub fn value(&self) -> Option<&JsonText> {
        self.outcome.as_ref().ok().map(|success| &success.value)
    }

    /// Whether it succeeded and ends the turn.
    #[must_use]
    pub fn concludes_turn(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|success| success.concludes_turn)
    }

    /// The text blocks of the content, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
    }
}
