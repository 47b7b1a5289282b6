//! Makes the graph as small as what it says: cuts references that go in a circle without any structure, drops what
//! says nothing, writes short definitions where they are referred to, and orders the others.

use serde_json::Value;

use super::{DefId, Kind, NodeId, Rest, Types};
use crate::text;

/// Up to how many bytes of JSON text a list of values is written where it is referred to.
const INLINE_BYTES_MAX: usize = 100;

pub(super) fn simplify(types: &mut Types<'_>, entries: &[Option<NodeId>]) {
    cut_circles(types);
    let roots: Vec<_> =
        entries.iter().flatten().copied().chain(types.defs.iter().map(|def| def.root)).collect();
    let order = post_order(types, &roots);
    types.loose.sort_unstable();
    for id in order {
        normalise(types, id);
    }
    inline(types);
    types.declared = declared(types, entries);
}

/// Every node below the roots once, children before parents.
fn post_order(types: &Types<'_>, roots: &[NodeId]) -> Vec<NodeId> {
    let mut seen = vec![false; types.nodes.len()];
    let mut order = Vec::with_capacity(types.nodes.len());
    let mut pending: Vec<_> = roots.iter().rev().copied().collect();
    while let Some(id) = pending.pop() {
        if !std::mem::replace(&mut seen[id.0 as usize], true) {
            order.push(id);
            pending.extend(types.children(id));
        }
    }
    order.reverse();
    order
}

/// A definition that is, or has as an alternative, itself: no value is ever decided by it.
fn cut_circles(types: &mut Types<'_>) {
    let mut state = vec![State::New; types.defs.len()];
    for start in 0..types.defs.len() {
        let mut path = vec![(start, None)];
        while let Some((def, edges)) = path.last_mut() {
            let def = *def;
            let edges = edges.get_or_insert_with(|| {
                state[def] = State::Open;
                bare_references(types, types.defs[def].root)
            });
            let Some((node, target)) = edges.pop() else {
                state[def] = State::Done;
                path.pop();
                continue;
            };
            match state[target.index()] {
                State::New => path.push((target.index(), None)),
                State::Done => {}
                State::Open => {
                    let node = types.node_mut(node);
                    node.kind = Kind::Unknown;
                    node.reason = Some("refers to itself".to_owned());
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

/// The references that a node consists of with nothing in between but alternatives, the last first.
fn bare_references(types: &Types<'_>, root: NodeId) -> Vec<(NodeId, DefId)> {
    let (mut found, mut pending) = (Vec::new(), vec![root]);
    while let Some(id) = pending.pop() {
        match &types.node(id).kind {
            Kind::Ref(def) => found.push((id, *def)),
            Kind::Union(parts) | Kind::All(parts) => pending.extend(parts.iter().rev()),
            _ => {}
        }
    }
    found.reverse();
    found
}

/// The children are normal already.
fn normalise(types: &mut Types<'_>, id: NodeId) {
    match &types.node(id).kind {
        Kind::All(parts) => {
            let parts = parts.clone();
            all_of(types, id, &parts);
        }
        Kind::Union(parts) => {
            let parts = parts.clone();
            let parts = if types.loose.binary_search(&id).is_ok() { distinct(types, parts) } else { parts };
            match parts.as_slice() {
                [part] => take(types, id, *part),
                _ => types.node_mut(id).kind = Kind::Union(parts),
            }
        }
        Kind::Object(object) => {
            if let Rest::Of(node) | Rest::Partly(node) = object.rest
                && matches!(types.node(node).kind, Kind::Json)
                && let Kind::Object(object) = &mut types.node_mut(id).kind
            {
                object.rest = Rest::Anything;
            }
        }
        _ => {}
    }
}

/// Of parts that hold at once, those that say something: every one of them alone is wide enough.
fn all_of(types: &mut Types<'_>, id: NodeId, parts: &[NodeId]) {
    let says = |part: &NodeId| !is_anything(types, *part);
    let mut kept: Vec<_> = parts.iter().copied().filter(says).collect();
    if kept.len() > 1 {
        let shaped: Vec<_> = kept.iter().copied().filter(|part| !is_bare(types, *part)).collect();
        kept = if shaped.is_empty() { kept[..1].to_vec() } else { shaped };
    }
    match kept.as_slice() {
        [] => match parts.first() {
            Some(part) => take(types, id, *part),
            None => types.node_mut(id).kind = Kind::Json,
        },
        [part] => take(types, id, *part),
        _ => types.node_mut(id).kind = Kind::All(kept),
    }
}

/// Makes a node what its only part is.
fn take(types: &mut Types<'_>, id: NodeId, part: NodeId) {
    let part = types.node(part).clone();
    let node = types.node_mut(id);
    node.kind = part.kind;
    node.description = node.description.or(part.description);
    node.reason = node.reason.take().or(part.reason);
    for hint in part.hints {
        if !node.hints.contains(&hint) {
            node.hints.push(hint);
        }
    }
}

fn is_anything(types: &Types<'_>, id: NodeId) -> bool {
    match &types.node(id).kind {
        Kind::Json | Kind::Unknown => true,
        Kind::Union(parts) => {
            parts.iter().any(|part| matches!(types.node(*part).kind, Kind::Json | Kind::Unknown))
        }
        _ => false,
    }
}

/// A type and no more.
fn is_bare(types: &Types<'_>, id: NodeId) -> bool {
    match &types.node(id).kind {
        Kind::String | Kind::Number | Kind::Integer | Kind::Boolean | Kind::Null | Kind::Array(None) => true,
        Kind::Object(object) => {
            object.fields.is_empty() && matches!(object.rest, Rest::Anything | Rest::Nothing)
        }
        _ => false,
    }
}

/// The alternatives without those that an earlier one says in the same word.
fn distinct(types: &Types<'_>, parts: Vec<NodeId>) -> Vec<NodeId> {
    let word = |id: NodeId| match types.node(id).kind {
        Kind::String => Some(0u8),
        Kind::Number => Some(1),
        Kind::Integer => Some(2),
        Kind::Boolean => Some(3),
        Kind::Null => Some(4),
        _ => None,
    };
    let words: Vec<_> = parts.iter().map(|part| word(*part)).collect();
    let is_new = |(index, _): &(usize, NodeId)| match words[*index] {
        None => true,
        Some(2) if words.contains(&Some(1)) => false,
        Some(word) => !words[..*index].contains(&Some(word)),
    };
    parts.iter().copied().enumerate().filter(is_new).map(|(_, part)| part).collect()
}

/// Puts short definitions, and those that are nothing but another one, in the place of references to them.
fn inline(types: &mut Types<'_>) {
    let ends: Vec<_> = {
        let mut ends: Vec<Option<usize>> = vec![None; types.defs.len()];
        for start in 0..types.defs.len() {
            let (mut at, mut trail) = (start, Vec::new());
            let end = loop {
                if let Some(end) = ends[at] {
                    break end;
                }
                trail.push(at);
                match types.node(types.defs[at].root).kind {
                    // No circle: those are cut.
                    Kind::Ref(next) => at = next.index(),
                    _ => break at,
                }
            };
            trail.into_iter().for_each(|def| ends[def] = Some(end));
        }
        ends.into_iter().flatten().collect()
    };
    for index in 0..types.defs.len() {
        types.defs[index].inline = is_short(types, types.defs[index].root);
    }
    for index in 0..types.nodes.len() {
        let id = NodeId(u32::try_from(index).expect("nodes are bounded"));
        let Kind::Ref(def) = types.node(id).kind else { continue };
        let end = ends[def.index()];
        if types.defs[end].inline {
            take(types, id, types.defs[end].root);
        } else {
            types.node_mut(id).kind = Kind::Ref(DefId(u32::try_from(end).expect("no more than nodes")));
        }
    }
}

fn is_short(types: &Types<'_>, id: NodeId) -> bool {
    match &types.node(id).kind {
        Kind::Json | Kind::Unknown | Kind::Never => true,
        Kind::Literals(values) => {
            let sizes = values.iter().map(|value: &&Value| text::compact(value, INLINE_BYTES_MAX));
            sizes
                .take(INLINE_BYTES_MAX)
                .try_fold(0, |sum, size| Some(sum + size?.len()))
                .is_some_and(|sum| sum <= INLINE_BYTES_MAX && values.len() <= INLINE_BYTES_MAX)
        }
        _ => is_bare(types, id),
    }
}

/// The definitions that something refers to, each after those it refers to as far as circles allow.
fn declared(types: &Types<'_>, entries: &[Option<NodeId>]) -> Vec<DefId> {
    // Every node has one parent, so none is met twice.
    let references = |root: NodeId| {
        let (mut refs, mut pending) = (Vec::new(), vec![root]);
        while let Some(id) = pending.pop() {
            match types.node(id).kind {
                Kind::Ref(def) => refs.push(def),
                _ => pending.extend(types.children(id).into_iter().rev()),
            }
        }
        refs.reverse();
        refs
    };
    let mut seen = vec![false; types.defs.len()];
    let mut order = Vec::new();
    for entry in entries.iter().flatten() {
        let mut path = vec![(None, references(*entry))];
        while let Some((def, edges)) = path.last_mut() {
            match edges.pop() {
                Some(next) if std::mem::replace(&mut seen[next.index()], true) => {}
                Some(next) => {
                    let edges = references(types.def(next).root);
                    path.push((Some(next), edges));
                }
                None => {
                    order.extend(*def);
                    path.pop();
                }
            }
        }
    }
    order
}
