//! The languages of programs: how tools are declared in them and how `run_code` speaks of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::error::list;
use crate::store::Tool;
use crate::tool::Arguments;

/// One language of programs.
pub trait SdkLanguage: fmt::Debug + Send + Sync {
    /// Its id, lower case, as runtimes give it: `typescript`.
    fn id(&self) -> &'static str;

    /// The text that declares the tools, in the order of their names, with the instructions that go before it. The same
    /// tools give the same bytes.
    fn sdk(&self, tools: std::collections::btree_map::Values<'_, Arc<str>, Arc<Tool>>) -> Arc<str>;

    /// The text of the section that says that only `run_code` may be called directly.
    fn code_only_rule(&self) -> String;

    /// The description of `run_code`; it names both arguments.
    fn run_code_description(&self) -> String;

    /// The description of its argument `code`.
    fn code_description(&self) -> String;

    /// A program that makes one call and returns its value.
    fn example(&self, tool: &str, arguments: &Arguments) -> String;
}

/// There is no `run_code` in the runtime's language.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no run_code schema flavor for language \"{language}\"; known languages: {known}")]
pub struct FlavorError {
    /// The runtime's language.
    pub language: String,
    /// Those there are.
    pub known: String,
}

pub(crate) fn flavor_error(language: &str, languages: &Languages) -> FlavorError {
    let known: Vec<&str> = languages.0.keys().copied().collect();
    FlavorError { language: language.to_owned(), known: list(&known) }
}

/// What a deployment without a runtime speaks of.
const DEFAULT_LANGUAGE: &str = "typescript";

/// Languages by id.
#[derive(Clone, Debug)]
pub(crate) struct Languages(BTreeMap<&'static str, Arc<dyn SdkLanguage>>);

impl Languages {
    pub(crate) fn new(languages: impl IntoIterator<Item = Arc<dyn SdkLanguage>>) -> Self {
        Self(languages.into_iter().map(|language| (language.id(), language)).collect())
    }

    /// The runtime's language, or the default one where there is no runtime.
    pub(crate) fn get(&self, runtime_language: Option<&str>) -> Option<Arc<dyn SdkLanguage>> {
        self.0.get(runtime_language.unwrap_or(DEFAULT_LANGUAGE)).cloned()
    }
}
