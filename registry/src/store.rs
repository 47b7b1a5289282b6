//! What is registered where: tools, hooks, sections and modes, in scopes that inherit from one another.
//!
//! All of it is one immutable value behind an `Arc`. Readers take it as it is and hold nobody up; a writer changes it
//! in place, or a copy of it if a reader still has the old one. Nothing here calls a tool or a hook.

mod layer;
mod registration;
mod restriction;
mod view;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use codemode_client::CodeRuntime;
use codemode_sdk::ToolSignature;
use parking_lot::Mutex;

pub(crate) use layer::Layer;
pub(crate) use registration::Slot;
pub use registration::{Registration, Scope};
pub use restriction::Restriction;
pub(crate) use view::{inherited_tools, visible_tools};

use crate::error::RegistryError;
use crate::pipeline::ApprovalService;
use crate::settings::Settings;
use crate::tool::ToolDefinition;

/// Names a scope. Scopes inherit from their parents up to [`ScopeId::ROOT`], the deployment itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(u64);

impl ScopeId {
    /// The deployment: what is registered here is everybody's.
    pub const ROOT: Self = Self(0);
}

impl fmt::Display for ScopeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "scope {}", self.0)
    }
}

/// A registered tool.
#[derive(Debug)]
pub struct Tool {
    /// Names this registration; a tool of the same name registered later has another.
    pub(crate) id: u64,
    pub(crate) definition: ToolDefinition,
    /// What programs are told of it; made when it is first asked for.
    signature: OnceLock<ToolSignature>,
}

impl Tool {
    pub(crate) const fn new(id: u64, definition: ToolDefinition) -> Self {
        Self { id, definition, signature: OnceLock::new() }
    }

    pub(crate) fn signature(&self) -> &ToolSignature {
        self.signature.get_or_init(|| {
            let ToolDefinition { name, description, parameters, output, .. } = &self.definition;
            ToolSignature::new(name, description, Some(parameters.to_serde()), Some(output.schema.to_serde()))
        })
    }

    /// What its author says of it.
    #[must_use]
    pub const fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }
}

/// Everything that is registered, at one moment.
#[derive(Clone)]
pub(crate) struct State {
    /// Grows with each change.
    pub(crate) revision: u64,
    pub(crate) settings: Arc<Settings>,
    pub(crate) runtime: Option<(u64, Arc<dyn CodeRuntime>)>,
    pub(crate) approvals: Option<(u64, Arc<dyn ApprovalService>)>,
    pub(crate) layers: BTreeMap<ScopeId, Arc<Layer>>,
}

impl State {
    /// The scopes from the root down to `scope`; only the root if there is no such scope any more.
    pub(crate) fn chain(&self, scope: ScopeId) -> Vec<ScopeId> {
        let mut chain = Vec::new();
        let mut next = Some(scope);
        while let Some(scope) = next {
            let Some(layer) = self.layers.get(&scope) else { break };
            chain.push(scope);
            next = layer.parent;
        }
        if chain.last() != Some(&ScopeId::ROOT) {
            return vec![ScopeId::ROOT];
        }
        chain.reverse();
        chain
    }

    /// The layers from the root down to `scope`.
    pub(crate) fn layers_of(&self, scope: ScopeId) -> impl Iterator<Item = &Arc<Layer>> {
        self.chain(scope).into_iter().filter_map(|scope| self.layers.get(&scope))
    }

    /// The hooks of one kind along the chain, farthest first.
    pub(crate) fn hooks<T: ?Sized>(
        &self,
        scope: ScopeId,
        of: impl Fn(&Layer) -> &Vec<(u64, Arc<T>)>,
    ) -> Vec<Arc<T>> {
        let layers = self.layers_of(scope);
        layers
            .flat_map(|layer| of(layer).iter().map(|(_, hook)| Arc::clone(hook)).collect::<Vec<_>>())
            .collect()
    }
}

/// Called after each change of the tools of a scope; a failure or a panic takes the change back.
pub type ChangeListener = Arc<dyn Fn(ScopeId, &str) -> Result<(), String> + Send + Sync>;

/// The one place that holds the state.
pub(crate) struct Store {
    state: Mutex<Arc<State>>,
    listeners: Mutex<Vec<(u64, ChangeListener)>>,
    next_id: AtomicU64,
}

impl Store {
    pub(crate) fn new(settings: Settings) -> Arc<Self> {
        let state = State {
            revision: 0,
            settings: Arc::new(settings),
            runtime: None,
            approvals: None,
            layers: BTreeMap::from([(ScopeId::ROOT, Arc::default())]),
        };
        Arc::new(Self {
            state: Mutex::new(Arc::new(state)),
            listeners: Mutex::default(),
            next_id: AtomicU64::new(1),
        })
    }

    /// The state as it is now.
    pub(crate) fn snapshot(&self) -> Arc<State> {
        Arc::clone(&self.state.lock())
    }

    /// Changes the state. The closure must not change anything before it is sure of success.
    pub(crate) fn write<T, E>(&self, change: impl FnOnce(&mut State) -> Result<T, E>) -> Result<T, E> {
        let mut state = self.state.lock();
        let state = Arc::make_mut(&mut state);
        let done = change(state)?;
        state.revision += 1;
        Ok(done)
    }

    /// Changes the state in a way that cannot fail.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let Ok(changed) = self.write(|state| Ok::<_, std::convert::Infallible>(change(state)));
        changed
    }

    /// Changes one scope's layer.
    pub(crate) fn write_layer<T>(
        &self,
        scope: ScopeId,
        change: impl FnOnce(&mut Layer) -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        self.write(|state| {
            let layer = state.layers.get_mut(&scope).ok_or(RegistryError::UnknownScope { scope })?;
            change(Arc::make_mut(layer))
        })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn add_listener(&self, listener: ChangeListener) -> u64 {
        let id = self.next_id();
        self.listeners.lock().push((id, listener));
        id
    }

    pub(crate) fn remove_listener(&self, id: u64) {
        let mut listeners = self.listeners.lock();
        let removed = listeners.iter().position(|(own, _)| *own == id).map(|at| listeners.remove(at));
        drop(listeners);
        // Whatever its drop does happens without the lock.
        drop(removed);
    }

    /// Tells the listeners; the first failure is given back.
    pub(crate) fn notify(&self, scope: ScopeId, tool: &str) -> Result<(), String> {
        let listeners: Vec<ChangeListener> =
            self.listeners.lock().iter().map(|(_, listener)| Arc::clone(listener)).collect();
        listeners.iter().try_for_each(|listener| crate::hook::guarded(|| listener(scope, tool)))
    }

    pub(crate) fn add_scope(
        &self,
        parent: ScopeId,
        label: Option<Arc<str>>,
    ) -> Result<ScopeId, RegistryError> {
        let id = ScopeId(self.next_id());
        self.write(|state| {
            if !state.layers.contains_key(&parent) {
                return Err(RegistryError::UnknownScope { scope: parent });
            }
            let layer = Layer { parent: Some(parent), label, ..Layer::default() };
            state.layers.insert(id, Arc::new(layer));
            Ok(id)
        })
    }

    /// Removes a scope and what is below it, with everything registered there.
    pub(crate) fn remove_scope(&self, scope: ScopeId) {
        let removed = self.change(|state| {
            let (mut doomed, mut removed) = (vec![scope], Vec::new());
            while let Some(scope) = doomed.pop() {
                removed.extend(state.layers.remove(&scope));
                doomed.extend(
                    state.layers.iter().filter(|(_, layer)| layer.parent == Some(scope)).map(|(id, _)| *id),
                );
            }
            removed
        });
        // Whatever the drops of tools and hooks do happens without the lock.
        drop(removed);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.snapshot();
        formatter
            .debug_struct("Store")
            .field("revision", &state.revision)
            .field("scopes", &state.layers.len())
            .finish()
    }
}
