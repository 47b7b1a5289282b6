//! The registry itself: where tools and hooks are registered, prompts assembled and calls made.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use codemode_client::{CodeRuntime, JsonText};
use codemode_sdk::UnknownLanguage;
use parking_lot::Mutex;

use crate::error::{RUN_CODE, RegistryError};
use crate::hook::guarded;
use crate::pipeline::{
    ApprovalService, AroundLayer, CallRequest, DispatchLogHook, Guard, PostExecute, PreExecute,
    ResultObserver,
};
use crate::present::{
    Assembly, AssemblyError, AssemblyListener, Listing, Mode, SdkCache, Section, Surface, ToolProvider,
    language_of,
};
use crate::settings::Settings;
use crate::store::{
    ChangeListener, Layer, Registration, Restriction, Scope, ScopeId, Slot, State, Store, Tool,
    inherited_tools,
};
use crate::tool::{Arguments, CallCard, CallResult, ToolDefinition};
use crate::{pipeline, present, run_code};

/// Surfaces that are kept; when there are more, all are forgotten.
const SURFACES_MAX: usize = 1024;

/// The latest surface of each scope.
#[derive(Default)]
struct Surfaces(HashMap<ScopeId, Arc<Surface>>);

impl Surfaces {
    fn get(&self, scope: &ScopeId) -> Option<&Arc<Surface>> {
        self.0.get(scope)
    }

    /// Keeps a surface; gives back what is kept no longer.
    fn put(&mut self, scope: ScopeId, surface: &Arc<Surface>, state: &State) -> Vec<Arc<Surface>> {
        let full = self.0.len() >= SURFACES_MAX;
        let outlived = |scope: &ScopeId, _: &mut Arc<Surface>| full || !state.layers.contains_key(scope);
        let mut forgotten: Vec<_> = self.0.extract_if(outlived).map(|(_, surface)| surface).collect();
        // A slower maker of an older surface does not take the place of a newer one.
        if self.0.get(&scope).is_none_or(|kept| kept.revision() <= surface.revision()) {
            forgotten.extend(self.0.insert(scope, Arc::clone(surface)));
        }
        forgotten
    }
}

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

/// Registration of hooks. Each sees the calls and assemblies of its scope and of those below it.
///
/// All of them fail with [`RegistryError::UnknownScope`] alone.
impl Registry {
    /// Adds a section of the system prompt.
    ///
    /// # Errors
    /// The scope is gone.
    pub fn add_section(&self, scope: ScopeId, section: Section) -> Result<Registration, RegistryError> {
        self.add(scope, Slot::Section, Arc::new(section), |layer| &mut layer.sections)
    }

    /// Adds a source of tools that are carried out elsewhere.
    ///
    /// # Errors
    /// The scope is gone.
    pub fn add_provider(
        &self,
        scope: ScopeId,
        hook: Arc<dyn ToolProvider>,
    ) -> Result<Registration, RegistryError> {
        self.add(scope, Slot::Provider, hook, |layer| &mut layer.providers)
    }

    /// Adds a decision before calls.
    ///
    /// # Errors
    /// The scope is gone.
    pub fn add_pre_execute(
        &self,
        scope: ScopeId,
        hook: Arc<dyn PreExecute>,
    ) -> Result<Registration, RegistryError> {
        self.add(scope, Slot::Pre, hook, |layer| &mut layer.pre)
    }

    /// Adds a guard.
    ///
    /// # Errors
    /// The scope is gone.
    pub fn add_guard(&self, scope: ScopeId, hook: Arc<dyn Guard>) -> Result<Registration, RegistryError> {
        self.add(scope, Slot::Guard, hook, |layer| &mut layer.guards)
    }

    /// Adds a layer around bodies.
    ///
    /// # Errors
    /// The scope is gone.
    pub fn add_around(
        &self,
        scope: ScopeId,
        hook: Arc<dyn AroundLayer>,
    ) -> Result<Registration, RegistryError> {
        self.add(scope, Slot::Around, hook, |layer| &mut layer.around)
    }

    /// Adds a review of results.
    ///
    /// # Errors
    /// The scope is gone.
    pub fn add_post_execute(
        &self,
        scope: ScopeId,
        hook: Arc<dyn PostExecute>,
    ) -> Result<Registration, RegistryError> {
        self.add(scope, Slot::Post, hook, |layer| &mut layer.post)
    }

    /// Adds an observer of results.
    ///
    /// # Errors
    /// The scope is gone.
    pub fn add_observer(
        &self,
        scope: ScopeId,
        hook: Arc<dyn ResultObserver>,
    ) -> Result<Registration, RegistryError> {
        self.add(scope, Slot::Observer, hook, |layer| &mut layer.observers)
    }

    /// Adds a replacement of stored content of sub-calls.
    ///
    /// # Errors
    /// The scope is gone.
    pub fn add_dispatch_log(
        &self,
        scope: ScopeId,
        hook: Arc<dyn DispatchLogHook>,
    ) -> Result<Registration, RegistryError> {
        self.add(scope, Slot::DispatchLog, hook, |layer| &mut layer.dispatch_log)
    }

    /// Adds a last word on assemblies.
    ///
    /// # Errors
    /// The scope is gone.
    pub fn add_assembly_listener(
        &self,
        scope: ScopeId,
        hook: Arc<dyn AssemblyListener>,
    ) -> Result<Registration, RegistryError> {
        self.add(scope, Slot::Assembly, hook, |layer| &mut layer.assembly)
    }

    /// Adds a listener to changes of tools. A failure takes the change back.
    pub fn on_change(&self, listener: ChangeListener) -> Registration {
        let id = self.0.store.add_listener(listener);
        Registration::new(&self.0.store, ScopeId::ROOT, Slot::Listener, id)
    }

    /// Sets what runs programs.
    ///
    /// # Errors
    /// [`RegistryError::AlreadyRegistered`].
    pub fn set_runtime(&self, runtime: Arc<dyn CodeRuntime>) -> Result<Registration, RegistryError> {
        let id = self.0.store.next_id();
        self.0.store.write(|state| {
            if state.runtime.is_some() {
                return Err(RegistryError::AlreadyRegistered { what: "a code runtime" });
            }
            state.runtime = Some((id, runtime));
            Ok(())
        })?;
        Ok(Registration::new(&self.0.store, ScopeId::ROOT, Slot::Runtime, id))
    }

    /// Sets who is asked.
    ///
    /// # Errors
    /// [`RegistryError::AlreadyRegistered`].
    pub fn set_approvals(&self, service: Arc<dyn ApprovalService>) -> Result<Registration, RegistryError> {
        let id = self.0.store.next_id();
        self.0.store.write(|state| {
            if state.approvals.is_some() {
                return Err(RegistryError::AlreadyRegistered { what: "an approval service" });
            }
            state.approvals = Some((id, service));
            Ok(())
        })?;
        Ok(Registration::new(&self.0.store, ScopeId::ROOT, Slot::Approvals, id))
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
        if name == RUN_CODE { shown.transport().cloned() } else { live.tool(name).cloned() }
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
