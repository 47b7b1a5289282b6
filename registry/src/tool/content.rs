//! Content blocks: what of a result a model is shown.

use serde::{Deserialize, Serialize};

/// One block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image that is stored elsewhere.
    Image {
        /// Where, and what it is.
        attachment: Image,
    },
    /// A model's own reasoning.
    Reasoning {
        /// The text.
        text: String,
    },
}

/// An image by reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Its id in the harness's store of attachments.
    pub attachment_id: String,
    /// Media type: `image/png`.
    pub media_type: String,
    /// Size, bytes.
    pub bytes: u64,
    /// Width, pixels.
    pub width: u32,
    /// Height, pixels.
    pub height: u32,
}

impl Content {
    /// A block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text, if it is a block of text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image { .. } | Self::Reasoning { .. } => None,
        }
    }

    /// Whether it is an image.
    #[must_use]
    pub const fn is_image(&self) -> bool {
        matches!(self, Self::Image { .. })
    }

    /// What stands for the block where only text can.
    #[must_use]
    pub fn to_feedback(&self) -> &str {
        match self {
            Self::Text { text } => text,
            Self::Image { .. } => "[image content]",
            Self::Reasoning { .. } => "[reasoning content]",
        }
    }
}

/// Who adds a message to the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSource {
    /// What kind of source: `plugin`.
    pub kind: String,
    /// Its name.
    pub plugin: String,
}

/// A user message that a call adds after its step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextMessage {
    /// Who adds it.
    pub source: ContextSource,
    /// What it says.
    pub content: Vec<Content>,
}

impl ContextMessage {
    /// A message of a plugin's.
    #[must_use]
    pub fn from_plugin(plugin: impl Into<String>, content: Vec<Content>) -> Self {
        Self { source: ContextSource { kind: "plugin".to_owned(), plugin: plugin.into() }, content }
    }
}
