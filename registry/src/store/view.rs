//! Which tools a scope sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::store::{ScopeId, State, Tool};

/// The tools that `scope` sees, by name: what it inherits, less what is filtered on the way, and its own. None, if the
/// scope is gone.
pub(crate) fn visible_tools(state: &State, scope: ScopeId) -> BTreeMap<Arc<str>, Arc<Tool>> {
    let mut visible = BTreeMap::new();
    // Of a scope that is gone nobody knows any more what was hidden from it.
    if !state.layers.contains_key(&scope) {
        return visible;
    }
    for layer in state.layers_of(scope) {
        if !layer.restrictions.is_empty() {
            visible.retain(|name: &Arc<str>, _| {
                layer.restrictions.iter().all(|(_, filter)| filter.admits(name))
            });
        }
        visible.extend(layer.tools.iter().map(|(name, tool)| (Arc::clone(name), Arc::clone(tool))));
    }
    visible
}

/// The tools that `scope` inherits, before its own filters: what a filter may name.
pub(crate) fn inherited_tools(state: &State, scope: ScopeId) -> BTreeMap<Arc<str>, Arc<Tool>> {
    let parent = state.layers.get(&scope).and_then(|layer| layer.parent);
    parent.map(|parent| visible_tools(state, parent)).unwrap_or_default()
}
