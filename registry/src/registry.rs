//! The registry itself: where tools and hooks are registered, prompts assembled and calls made.

mod hooks;
mod surfaces;

use std::fmt;
use std::sync::{Arc, Weak};

use codemode_client::JsonText;
use codemode_sdk::UnknownLanguage;
use parking_lot::Mutex;

use crate::error::{RUN_CODE, RegistryError};
use crate::hook::guarded;
use crate::pipeline::CallRequest;
use crate::present::{Assembly, AssemblyError, Listing, Mode, SdkCache, Surface, language_of};
use crate::registry::surfaces::Surfaces;
use crate::settings::Settings;
use crate::store::{
    Layer, Registration, Restriction, Scope, ScopeId, Slot, State, Store, Tool, inherited_tools,
};
use crate::tool::{Arguments, CallCard, CallResult, ToolDefinition};
use crate::{pipeline, present, run_code};

struct Inner {
    store: Arc<Store>,
    sdks: Arc<SdkCache>,
    surfaces: Mutex<Surfaces>,
}

/// A registry. Clones are handles of one.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

/// A handle that does not keep the registry alive.
#[derive(Clone)]
pub(crate) struct WeakRegistry(Weak<Inner>);

impl WeakRegistry {
    pub(crate) fn upgrade(&self) -> Option<Registry> {
        self.0.upgrade().map(Registry)
    }
}

impl Registry {
    /// A registry without tools.
    ///
    /// # Errors
    /// Settings that cannot be.
    pub fn new(settings: Settings) -> Result<Self, RegistryError> {
        settings.check()?;
        Ok(Self(Arc::new(Inner {
            store: Store::new(settings),
            sdks: Arc::default(),
            surfaces: Mutex::default(),
        })))
    }

    /// Opens a scope below another. The label is what policy rules know it by.
    ///
    /// # Errors
    /// [`RegistryError::UnknownScope`].
    pub fn open_scope(&self, parent: ScopeId, label: Option<&str>) -> Result<Scope, RegistryError> {
        let id = self.0.store.add_scope(parent, label.map(Into::into))?;
        Ok(Scope::new(&self.0.store, id))
    }

    /// Registers a tool.
    ///
    /// # Errors
    /// A definition that cannot be, a name that is taken or reserved, a listener that did not take it. Nothing was changed.
    pub fn register(
        &self,
        scope: ScopeId,
        definition: ToolDefinition,
    ) -> Result<Registration, RegistryError> {
        definition.check()?;
        if &*definition.name == RUN_CODE {
            return Err(RegistryError::ReservedName);
        }
        let warnings = definition.warnings();
        let store = &self.0.store;
        let id = store.next_id();
        let name = Arc::clone(&definition.name);
        let tool = Arc::new(Tool::new(id, definition));
        store.write_layer(scope, |layer| {
            if layer.tools.contains_key(&name) {
                return Err(RegistryError::DuplicateTool { tool: name.to_string() });
            }
            layer.tools.insert(Arc::clone(&name), tool);
            Ok(())
        })?;
        if let Err(reason) = store.notify(scope, &name) {
            // Without the guard, whose drop would tell the listeners again.
            drop(store.write_layer(scope, |layer| Ok(layer.remove(&Slot::Tool(Arc::clone(&name)), id)))?);
            return Err(RegistryError::ListenerFailed { tool: name.to_string(), reason });
        }
        Ok(Registration::new(store, scope, Slot::Tool(name), id).with_warnings(warnings))
    }

    /// Hides inherited tools from a scope and from those below it; what the scope itself registers stays.
    ///
    /// # Errors
    /// The deployment's own scope, a filter without effect, names that the scope does not inherit.
    pub fn restrict(&self, scope: ScopeId, restriction: Restriction) -> Result<Registration, RegistryError> {
        if scope == ScopeId::ROOT {
            return Err(RegistryError::RequiresScope { what: "restrict" });
        }
        if restriction.is_no_op() {
            return Err(RegistryError::EmptyRestriction);
        }
        if restriction.names().any(|name| name == RUN_CODE) {
            return Err(RegistryError::RestrictsTransport);
        }
        let known = inherited_tools(&self.snapshot(), scope);
        let unknown: Vec<String> =
            restriction.names().filter(|name| !known.contains_key(name.as_str())).cloned().collect();
        if !unknown.is_empty() {
            let known = known.keys().map(ToString::to_string).collect();
            return Err(RegistryError::RestrictsUnknown { unknown, known });
        }
        self.add(scope, Slot::Restriction, Arc::new(restriction), |layer| &mut layer.restrictions)
    }

    /// Sets how tools are presented to a scope and to those below it that do not say otherwise.
    ///
    /// # Errors
    /// The deployment's own scope, whose mode is a setting; a scope that has a mode.
    pub fn present_as(&self, scope: ScopeId, mode: Mode) -> Result<Registration, RegistryError> {
        if scope == ScopeId::ROOT {
            return Err(RegistryError::RequiresScope { what: "presentAs" });
        }
        let id = self.0.store.next_id();
        self.0.store.write_layer(scope, |layer| match layer.mode {
            Some((_, declared)) => Err(RegistryError::ModeConflict { wanted: mode, declared }),
            None => {
                layer.mode = Some((id, mode));
                Ok(())
            }
        })?;
        Ok(Registration::new(&self.0.store, scope, Slot::Mode, id))
    }

    fn add<T: ?Sized>(
        &self,
        scope: ScopeId,
        slot: Slot,
        registered: Arc<T>,
        place: impl FnOnce(&mut Layer) -> &mut Vec<(u64, Arc<T>)>,
    ) -> Result<Registration, RegistryError> {
        let id = self.0.store.next_id();
        self.0.store.write_layer(scope, |layer| {
            place(layer).push((id, registered));
            Ok(())
        })?;
        Ok(Registration::new(&self.0.store, scope, slot, id))
    }
}

/// What is done with it all.
impl Registry {
    /// The settings as they are now.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.snapshot().settings)
    }

    /// Replaces the settings. Mode and policy of a call are those of the assembly it answers: both change with the next one.
    ///
    /// # Errors
    /// Settings that cannot be; nothing was changed.
    pub fn reconfigure(&self, settings: Settings) -> Result<(), RegistryError> {
        settings.check()?;
        self.0.store.write(|state| {
            state.settings = Arc::new(settings);
            Ok(())
        })
    }

    /// All that a scope is shown, as it is now.
    #[must_use]
    pub fn surface(&self, scope: ScopeId) -> Arc<Surface> {
        self.state_and_surface(scope).1
    }

    /// What a model request of that scope is made of.
    ///
    /// # Errors
    /// [`AssemblyError`]; no request may be made then.
    pub async fn assemble(&self, scope: ScopeId) -> Result<Assembly, AssemblyError> {
        present::assemble(self, scope).await
    }

    /// `run_code` as a model is told of it, in the runtime's language.
    ///
    /// # Errors
    /// No wording in the runtime's language; [`UnknownLanguage::for_schema`] says so in words.
    pub fn run_code_listing(&self) -> Result<Listing, UnknownLanguage> {
        let language = language_of(self.snapshot().runtime.as_ref().map(|(_, runtime)| runtime.language()))?;
        Ok(Listing::of(run_code::transport(Some(language), self.downgrade()).definition()))
    }

    /// Makes a call and waits for what it comes to. A failure is part of the result.
    ///
    /// Dropping the future drops the body; a call that shall end in order is aborted by its signal and awaited.
    pub async fn execute(&self, request: CallRequest) -> CallResult {
        pipeline::execute(self, request).await
    }

    /// How a call is shown to a person, if its tool says so. A panic of its presenter is no card.
    #[must_use]
    pub fn card(&self, name: &str, scope: ScopeId, arguments: &JsonText) -> Option<CallCard> {
        let surface = self.surface(scope);
        let tool = self.resolve(&surface, &surface, name)?;
        let arguments = Arguments::parse(arguments.clone()).ok()?;
        let presenter = tool.definition().presenter.clone()?;
        guarded(|| Ok(presenter(&arguments))).ok().flatten()
    }

    /// Whether a call may overlap with others: only if its tool says a plain yes of these arguments.
    #[must_use]
    pub fn is_parallel(
        &self,
        surface: &Surface,
        name: &str,
        arguments: &Arguments,
        is_sub_call: bool,
    ) -> bool {
        let collapsed = surface.mode() == Mode::Code && !is_sub_call;
        let live = self.surface(surface.scope());
        !collapsed && live.tool(name).is_some_and(|tool| tool.definition().is_parallel(arguments))
    }

    pub(crate) fn downgrade(&self) -> WeakRegistry {
        WeakRegistry(Arc::downgrade(&self.0))
    }

    pub(crate) fn snapshot(&self) -> Arc<State> {
        self.0.store.snapshot()
    }

    /// The state and the surface that was made from it.
    pub(crate) fn state_and_surface(&self, scope: ScopeId) -> (Arc<State>, Arc<Surface>) {
        let state = self.snapshot();
        let kept = self.0.surfaces.lock().get(&scope).cloned();
        if let Some(surface) = kept.filter(|surface| surface.revision() == state.revision) {
            return (state, surface);
        }
        let surface = Arc::new(Surface::of(&state, scope, &self.0.sdks, &self.downgrade()));
        let forgotten = self.0.surfaces.lock().put(scope, &surface, &state);
        // Surfaces may hold the last of tools that are gone: these are dropped without the lock.
        drop(forgotten);
        (state, surface)
    }

    /// The tool that a call of that name reaches: `run_code` as the caller was shown it, anything else as it is now.
    pub(crate) fn resolve(&self, live: &Surface, shown: &Surface, name: &str) -> Option<Arc<Tool>> {
        if name != RUN_CODE {
            return live.tool(name).cloned();
        }
        shown.transport().filter(|_| !live.scope_is_gone()).cloned()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Registry").field(&self.0.store).finish()
    }
}

impl fmt::Debug for WeakRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WeakRegistry")
    }
}
