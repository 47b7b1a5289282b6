//! What holds a registration in place: dropping it takes the registration back.

use std::sync::{Arc, Weak};

use crate::store::{ScopeId, Store};

/// Where a registration is kept.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Tool(Arc<str>),
    Restriction,
    Mode,
    Section,
    Provider,
    Pre,
    Guard,
    Around,
    Post,
    Observer,
    DispatchLog,
    Assembly,
    Runtime,
    Approvals,
    Listener,
}

/// Holds one registration; dropping it takes the registration back, [`keep`](Self::keep) leaves it for good.
#[derive(Debug)]
#[must_use = "dropping it takes the registration back"]
pub struct Registration {
    store: Weak<Store>,
    scope: ScopeId,
    slot: Slot,
    id: u64,
    warnings: Vec<String>,
}

impl Registration {
    pub(crate) fn new(store: &Arc<Store>, scope: ScopeId, slot: Slot, id: u64) -> Self {
        Self { store: Arc::downgrade(store), scope, slot, id, warnings: Vec::new() }
    }

    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }

    /// What is odd about what was registered, e.g. a schema that nothing can be validated against.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Leaves the registration in place for as long as its scope lives.
    pub fn keep(mut self) {
        self.store = Weak::new();
    }

    /// Takes the registration back.
    pub fn dispose(self) {}
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(store) = self.store.upgrade() else { return };
        let id = self.id;
        match &self.slot {
            Slot::Listener => store.remove_listener(id),
            // What is taken out is dropped here, after the lock is free again.
            Slot::Runtime => drop(store.change(|state| state.runtime.take_if(|(own, _)| *own == id))),
            Slot::Approvals => drop(store.change(|state| state.approvals.take_if(|(own, _)| *own == id))),
            slot => {
                // A scope that is gone took its registrations with it.
                drop(store.write_layer(self.scope, |layer| Ok(layer.remove(slot, id))));
                if let Slot::Tool(name) = slot
                    && let Err(fault) = store.notify(self.scope, name)
                {
                    tracing::warn!(tool = %name, %fault, "a listener failed on a removal");
                }
            }
        }
    }
}

/// Holds a scope; dropping it removes the scope, those below it, and everything registered in them.
#[derive(Debug)]
#[must_use = "dropping it removes the scope"]
pub struct Scope {
    store: Weak<Store>,
    id: ScopeId,
}

impl Scope {
    pub(crate) fn new(store: &Arc<Store>, id: ScopeId) -> Self {
        Self { store: Arc::downgrade(store), id }
    }

    /// Names the scope.
    #[must_use]
    pub const fn id(&self) -> ScopeId {
        self.id
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(store) = self.store.upgrade() {
            store.remove_scope(self.id);
        }
    }
}
