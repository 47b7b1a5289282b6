//! What a tool is: its definition, its body, and what one call of it can come to.
//!
//! Knows nothing of stores, policies or modes. Start reading at [`ToolDefinition`].

mod arguments;
mod body;
mod content;
mod definition;
mod error;
mod output;
mod result;

pub use arguments::Arguments;
pub use body::{BodyError, CallContext, ToolBody, body_fn};
pub use content::{Content, ContextMessage, ContextSource, Image};
pub use definition::{
    ArgumentCheck, CallCard, Concurrency, DEFINITION_NAME_BYTES_MAX, DefinitionFault, Finalizer, Presenter,
    ToolDefinition,
};
pub use error::{ErrorCode, ErrorInfo, ToolError};
pub use output::{MetaProjector, OutputContract, RenderFault, Renderer, default_renderer};
pub use result::{CallResult, CallSuccess};
