//! Sections of the system prompt.

use std::fmt;
use std::sync::Arc;

/// Says that in `code` mode only `run_code` may be called directly.
pub const CODE_ONLY_SECTION: &str = "tools:code-only";
/// Declares the tools in the language of programs.
pub const SDK_SECTION: &str = "tools:sdk";
/// Before all guidance on single tools, which has orders from 100 to 199.
pub(crate) const CODE_ONLY_ORDER: i32 = 99;
/// After all guidance on single tools.
pub(crate) const SDK_ORDER: i32 = 199;

/// The text of that section; all that says how tools are reached.
pub(crate) const CODE_ONLY_RULE: &str = "Only `run_code` can be called directly. Every other tool that this prompt speaks \
    of is a function that a `run_code` program calls; a direct call of one is refused.";

/// A section as it is registered. In a scope it takes the place of an inherited one of the same name.
#[derive(Clone)]
pub struct Section {
    /// Its name.
    pub name: Arc<str>,
    /// Its place: lower comes first, equal ones by name.
    pub order: i32,
    /// Its text, made anew for each assembly. Text that does not change keeps a provider's cache warm.
    pub text: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Section {
    /// A section whose text never changes.
    #[must_use]
    pub fn fixed(name: impl Into<Arc<str>>, order: i32, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { name: name.into(), order, text: Arc::new(move || text.clone()) }
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Section")
            .field("name", &self.name)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}

/// A section as it stands in an assembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedSection {
    /// Its name.
    pub name: Arc<str>,
    /// Its place.
    pub order: i32,
    /// Its text; may be empty.
    pub text: Arc<str>,
}
