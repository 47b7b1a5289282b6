//! What is registered in one scope.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::pipeline::{AroundLayer, DispatchLogHook, Guard, PostExecute, PreExecute, ResultObserver};
use crate::present::{AssemblyListener, Mode, Section, ToolProvider};
use crate::store::{Restriction, ScopeId, Slot, Tool};

/// Registered things of one kind, in order, each with its registration's id.
pub(crate) type Registered<T> = Vec<(u64, Arc<T>)>;

/// What was taken out of a layer, to be dropped where no lock is held.
pub(crate) type Removed = Option<Box<dyn Any + Send>>;

/// One scope's own registrations.
#[derive(Clone, Default)]
pub(crate) struct Layer {
    pub(crate) parent: Option<ScopeId>,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) tools: BTreeMap<Arc<str>, Arc<Tool>>,
    pub(crate) restrictions: Registered<Restriction>,
    pub(crate) mode: Option<(u64, Mode)>,
    pub(crate) sections: Registered<Section>,
    pub(crate) providers: Registered<dyn ToolProvider>,
    pub(crate) pre: Registered<dyn PreExecute>,
    pub(crate) guards: Registered<dyn Guard>,
    /// Grows when the last guard is removed: whoever goes through the guards then stops.
    pub(crate) guard_epoch: u64,
    pub(crate) around: Registered<dyn AroundLayer>,
    pub(crate) post: Registered<dyn PostExecute>,
    pub(crate) observers: Registered<dyn ResultObserver>,
    pub(crate) dispatch_log: Registered<dyn DispatchLogHook>,
    pub(crate) assembly: Registered<dyn AssemblyListener>,
}

impl Layer {
    /// Takes one registration out and gives it back: whatever its drop does must not happen under the store's lock.
    pub(crate) fn remove(&mut self, slot: &Slot, id: u64) -> Removed {
        fn without<T: ?Sized + Send + Sync + 'static>(registered: &mut Registered<T>, id: u64) -> Removed {
            let at = registered.iter().position(|(own, _)| *own == id)?;
            Some(Box::new(registered.remove(at).1))
        }
        match slot {
            Slot::Tool(name) => {
                let own = self.tools.get(name).is_some_and(|tool| tool.id == id);
                own.then(|| self.tools.remove(name)).map(|tool| Box::new(tool) as _)
            }
            Slot::Restriction => without(&mut self.restrictions, id),
            Slot::Mode => {
                self.mode = self.mode.take().filter(|(own, _)| *own != id);
                None
            }
            Slot::Section => without(&mut self.sections, id),
            Slot::Provider => without(&mut self.providers, id),
            Slot::Pre => without(&mut self.pre, id),
            Slot::Guard => {
                let removed = without(&mut self.guards, id);
                self.guard_epoch += u64::from(self.guards.is_empty());
                removed
            }
            Slot::Around => without(&mut self.around, id),
            Slot::Post => without(&mut self.post, id),
            Slot::Observer => without(&mut self.observers, id),
            Slot::DispatchLog => without(&mut self.dispatch_log, id),
            Slot::Assembly => without(&mut self.assembly, id),
            Slot::Runtime | Slot::Approvals | Slot::Listener => None,
        }
    }
}
