//! All that one scope is shown, as one immutable value.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::present::{Languages, Listing, Mode, SdkLanguage};
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
    /// Language of the runtime, if there is one.
    runtime_language: Option<String>,
    language: Option<Arc<dyn SdkLanguage>>,
    transport: Option<Arc<Tool>>,
    sdk: OnceLock<Arc<str>>,
    listings: OnceLock<Vec<Listing>>,
}

impl Surface {
    pub(crate) fn of(state: &State, scope: ScopeId, languages: &Languages, registry: &WeakRegistry) -> Self {
        let declared = state.layers_of(scope).filter_map(|layer| layer.mode.map(|(_, mode)| mode)).last();
        let mode = declared.unwrap_or(state.settings.mode);
        let runtime_language = state.runtime.as_ref().map(|(_, runtime)| runtime.language().to_owned());
        let language = languages.get(runtime_language.as_deref());
        let transport = mode.has_transport().then(|| run_code::transport(language.as_deref(), registry.clone()));
        Self {
            revision: state.revision,
            scope,
            mode,
            settings: Arc::clone(&state.settings),
            tools: visible_tools(state, scope),
            runtime_language,
            language,
            transport,
            sdk: OnceLock::new(),
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

    pub(crate) fn runtime_language(&self) -> Option<&str> {
        self.runtime_language.as_deref()
    }

    pub(crate) const fn language(&self) -> Option<&Arc<dyn SdkLanguage>> {
        self.language.as_ref()
    }

    /// The SDK text; rendered once. Empty where the language has no renderer.
    #[must_use]
    pub fn sdk(&self) -> Arc<str> {
        let render = || self.language.as_ref().map_or_else(|| "".into(), |language| language.sdk(self.tools.values()));
        Arc::clone(self.sdk.get_or_init(render))
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
