//! All that one scope is shown, as one immutable value.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use codemode_sdk::{Language, Sdk, SdkOptions, ToolSignature, UnknownLanguage};

use crate::present::{Listing, Mode, SdkCache, language_of};
use crate::registry::WeakRegistry;
use crate::run_code;
use crate::settings::Settings;
use crate::store::{ScopeId, State, Tool, visible_tools};

/// What one scope is shown: the tool list, the SDK text and the bindings of its programs all come from here.
pub struct Surface {
    revision: u64,
    scope: ScopeId,
    mode: Mode,
    settings: Arc<Settings>,
    tools: BTreeMap<Arc<str>, Arc<Tool>>,
    has_runtime: bool,
    language: Result<Language, UnknownLanguage>,
    transport: Option<Arc<Tool>>,
    scope_is_gone: bool,
    sdks: Arc<SdkCache>,
    sdk: OnceLock<Arc<Sdk>>,
    sdk_text: OnceLock<Arc<str>>,
    listings: OnceLock<Vec<Listing>>,
}

impl Surface {
    pub(crate) fn of(state: &State, scope: ScopeId, sdks: &Arc<SdkCache>, registry: &WeakRegistry) -> Self {
        let declared = state.layers_of(scope).filter_map(|layer| layer.mode.map(|(_, mode)| mode)).last();
        let mode = declared.unwrap_or(state.settings.mode);
        let language = language_of(state.runtime.as_ref().map(|(_, runtime)| runtime.language()));
        let spoken = language.as_ref().ok().copied();
        let transport = mode.has_transport().then(|| run_code::transport(spoken, registry.clone()));
        Self {
            revision: state.revision,
            scope,
            mode,
            settings: Arc::clone(&state.settings),
            tools: visible_tools(state, scope),
            scope_is_gone: !state.layers.contains_key(&scope),
            has_runtime: state.runtime.is_some(),
            language,
            transport,
            sdks: Arc::clone(sdks),
            sdk: OnceLock::new(),
            sdk_text: OnceLock::new(),
            listings: OnceLock::new(),
        }
    }

    /// The state it was made from; of two surfaces of a scope the newer one has the higher number.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The scope.
    #[must_use]
    pub const fn scope(&self) -> ScopeId {
        self.scope
    }

    /// The mode.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The deployment's settings as they were.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The tools that the scope sees, by name; `run_code` is never among them.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// The names of those tools: what a program can call.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.tools.keys()
    }

    /// One tool of the scope's, `run_code` excluded.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    pub(crate) const fn transport(&self) -> Option<&Arc<Tool>> {
        self.transport.as_ref()
    }

    pub(crate) const fn scope_is_gone(&self) -> bool {
        self.scope_is_gone
    }

    pub(crate) const fn has_runtime(&self) -> bool {
        self.has_runtime
    }

    /// The language of programs, or that nothing is known of it.
    ///
    /// # Errors
    /// The runtime's language has no SDK.
    pub const fn language(&self) -> &Result<Language, UnknownLanguage> {
        &self.language
    }

    /// The SDK of the tools; made when it is first asked for.
    #[must_use]
    pub fn sdk(&self) -> &Arc<Sdk> {
        self.sdk.get_or_init(|| {
            let signatures: Vec<ToolSignature> =
                self.tools.values().map(|tool| tool.signature().clone()).collect();
            let options = SdkOptions { token_budget: self.settings.sdk_token_budget };
            self.sdks.get(&signatures, options)
        })
    }

    /// The SDK's text. Empty where the language has none.
    #[must_use]
    pub fn sdk_text(&self) -> Arc<str> {
        let text = || self.language.as_ref().map_or("", |language| self.sdk().text(*language)).into();
        Arc::clone(self.sdk_text.get_or_init(text))
    }

    /// A program that makes one call of a tool; none if no small arguments fit it.
    pub(crate) fn example(&self, tool: &str) -> Option<String> {
        self.sdk().example(tool, *self.language.as_ref().ok()?)
    }

    /// What the mode lists, by name: tools, then `run_code`.
    pub(crate) fn listings(&self) -> &[Listing] {
        self.listings.get_or_init(|| {
            let tools = self.tools.values().filter(|_| self.mode.lists_tools());
            tools.chain(&self.transport).map(|tool| Listing::of(tool.definition())).collect()
        })
    }
}

impl fmt::Debug for Surface {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Surface")
            .field("revision", &self.revision)
            .field("scope", &self.scope)
            .field("mode", &self.mode)
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}
