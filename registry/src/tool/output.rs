//! A tool's output contract: the schema of its value, and how a value is shown.

use std::fmt;
use std::sync::Arc;

use codemode_client::JsonText;

use crate::json::Json;
use crate::schema::Schema;
use crate::tool::{Arguments, Content};

/// A renderer or projector could not do its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RenderFault(pub String);

/// From arguments and value to what a model is shown. Pure; a panic is a fault of the tool's output.
pub type Renderer = Arc<dyn Fn(&Arguments, &Json) -> Result<Vec<Content>, RenderFault> + Send + Sync>;

/// From arguments and value to what a user interface is given beside the content. Not called for sub-calls.
pub type MetaProjector = Arc<dyn Fn(&Arguments, &Json) -> Result<JsonText, RenderFault> + Send + Sync>;

/// What a tool promises of its value.
#[derive(Clone)]
pub struct OutputContract {
    /// What values there are.
    pub schema: Schema,
    /// How they are shown.
    pub render: Renderer,
    /// What a user interface gets.
    pub meta: Option<MetaProjector>,
}

impl OutputContract {
    /// Values of that schema, shown by [`default_renderer`].
    #[must_use]
    pub fn new(schema: Schema) -> Self {
        Self { schema, render: default_renderer(), meta: None }
    }

    /// Shows values in another way.
    #[must_use]
    pub fn rendered_by(
        mut self,
        render: impl Fn(&Arguments, &Json) -> Result<Vec<Content>, RenderFault> + Send + Sync + 'static,
    ) -> Self {
        self.render = Arc::new(render);
        self
    }

    /// Gives user interfaces something of their own.
    #[must_use]
    pub fn with_meta(
        mut self,
        meta: impl Fn(&Arguments, &Json) -> Result<JsonText, RenderFault> + Send + Sync + 'static,
    ) -> Self {
        self.meta = Some(Arc::new(meta));
        self
    }
}

impl fmt::Debug for OutputContract {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OutputContract").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Shows a string as it is and anything else as indented JSON.
#[must_use]
pub fn default_renderer() -> Renderer {
    Arc::new(|_, value| {
        Ok(vec![Content::text(match value {
            Json::String(text) => text.to_text_lossy().into_owned(),
            other => other.to_pretty(),
        })])
    })
}
