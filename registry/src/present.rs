//! How tools are shown to a model: modes, the tool list, the prompt's sections.
//!
//! A [`Surface`] is all that one scope is shown, made from one state of the registry: mode, tools, SDK text, bindings of
//! programs. An [`Assembly`] is a surface as a model request needs it. Nothing here calls a tool.

mod assembly;
mod mode;
mod order;
mod refusal;
mod sdk;
mod section;
mod surface;

pub(crate) use assembly::assemble;
pub use assembly::{Assembly, AssemblyError, AssemblyListener, Listing, ToolProvider};
pub use mode::Mode;
pub use order::{REST_MARKER, ToolOrder, ToolOrderFault};
pub(crate) use refusal::collapse_refusal;
pub(crate) use sdk::{SdkCache, language_of};
pub use section::{CODE_ONLY_SECTION, RenderedSection, SDK_SECTION, Section};
pub use surface::Surface;
