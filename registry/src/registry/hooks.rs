//! Where hooks, the runtime and the approval service are registered.

use std::sync::Arc;

use codemode_client::CodeRuntime;

use crate::error::RegistryError;
use crate::pipeline::{
    ApprovalService, AroundLayer, DispatchLogHook, Guard, PostExecute, PreExecute, ResultObserver,
};
use crate::present::{AssemblyListener, Section, ToolProvider};
use crate::registry::Registry;
use crate::store::{ChangeListener, Registration, ScopeId, Slot};

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
