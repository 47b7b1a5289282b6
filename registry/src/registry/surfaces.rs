//! The surfaces that are kept between assemblies and calls.

use std::collections::HashMap;
use std::sync::Arc;

use crate::present::Surface;
use crate::store::{ScopeId, State};

/// Surfaces that are kept; when there are more, all are forgotten.
const SURFACES_MAX: usize = 1024;

/// The latest surface of each scope.
#[derive(Default)]
pub(super) struct Surfaces(HashMap<ScopeId, Arc<Surface>>);

impl Surfaces {
    pub(super) fn get(&self, scope: &ScopeId) -> Option<&Arc<Surface>> {
        self.0.get(scope)
    }

    /// Keeps a surface; gives back what is kept no longer.
    pub(super) fn put(&mut self, scope: ScopeId, surface: &Arc<Surface>, state: &State) -> Vec<Arc<Surface>> {
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
