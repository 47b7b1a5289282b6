//! The arguments of one call: the text as it came and the tree it says, made once and shared by every stage.

use std::sync::Arc;

use codemode_client::JsonText;

use crate::json::{Json, Lossy};

/// Arguments of one call, the same value for every stage. Nobody can change them: a clone is the same value.
#[derive(Clone, Debug)]
pub struct Arguments {
    text: JsonText,
    tree: Arc<Json>,
}

impl Arguments {
    /// Takes a text that must be lossless.
    ///
    /// # Errors
    /// [`Lossy`], with the path.
    pub fn parse(text: JsonText) -> Result<Self, Lossy> {
        let tree = Arc::new(Json::parse(text.as_str())?);
        Ok(Self { text, tree })
    }

    /// The text, byte for byte as it came.
    #[must_use]
    pub const fn text(&self) -> &JsonText {
        &self.text
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &Json {
        &self.tree
    }
}
