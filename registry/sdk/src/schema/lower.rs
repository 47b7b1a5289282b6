//! From a schema to the graph of types: one node after the other from a list of what is still to be read, never by
//! recursion. Each schema is read once, however often it is referred to.

mod shapes;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::resolve::{Document, Place};
use super::{DEPTH_MAX, Def, DefId, Kind, NODES_MAX, NodeId, Types, hints, resolve};
use crate::text;

/// Keywords that say nothing about which values fit.
const ANNOTATIONS: [&str; 9] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "$schema",
    "deprecated",
    "readOnly",
    "writeOnly",
];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that `own` reads, and those that nothing does: a shortcut for most schemas.
const PLAIN: [&str; 8] =
    ["type", "description", "properties", "items", "required", "enum", "title", "default"];
/// How much of a reference that cannot be followed is shown, characters.
const REFERENCE_CHARS_MAX: usize = 80;

/// Adds a schema to the graph and answers where it begins. `label` names the schema as a whole, if it refers to itself.
pub(super) fn lower<'a>(types: &mut Types<'a>, schema: &'a Value, label: &'static str) -> NodeId {
    let entry = types.add_kind(Kind::Json);
    let document = Document::new(schema);
    let place = document.root();
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let is_ref_alone =
        ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|old| dialect.contains(old));
    let mut lowering = Lowering {
        types,
        document,
        entry,
        label,
        is_ref_alone,
        defs: HashMap::new(),
        targets: HashMap::new(),
        pending: vec![Work { slot: entry, place, depth: 0 }],
        found: Vec::new(),
    };
    while let Some(work) = lowering.pending.pop() {
        lowering.read(work);
        lowering.pending.extend(lowering.found.drain(..).rev());
    }
    match lowering.defs.get(&place.address()) {
        Some(def) => Kind::Ref(*def),
        None => return entry,
    }
    .add_to(types)
}

/// A schema that is still to be read, and the node that it will be.
#[derive(Clone, Copy, Debug)]
struct Work<'a> {
    slot: NodeId,
    place: Place<'a>,
    depth: u32,
}

struct Lowering<'a, 't> {
    types: &'t mut Types<'a>,
    document: Document<'a>,
    entry: NodeId,
    label: &'static str,
    /// Whether the dialect says that what stands beside a `$ref` does not count.
    is_ref_alone: bool,
    /// By the address of the schema that they are of.
    defs: HashMap<usize, DefId>,
    /// Where a chain of references that goes through this schema ends; none while it is followed, and if it is a circle.
    targets: HashMap<usize, Option<Place<'a>>>,
    pending: Vec<Work<'a>>,
    /// What the schema that is being read has brought up, in its order.
    found: Vec<Work<'a>>,
}

impl<'a> Kind<'a> {
    fn add_to(self, types: &mut Types<'a>) -> NodeId {
        types.add_kind(self)
    }
}

impl<'a> Lowering<'a, '_> {
    fn read(&mut self, work: Work<'a>) {
        let kind = if work.depth > DEPTH_MAX || self.types.nodes.len() >= NODES_MAX {
            self.unknown(work.slot, "nested too deeply to be shown".to_owned())
        } else {
            match work.place.schema {
                Value::Bool(true) => Kind::Json,
                Value::Bool(false) => Kind::Never,
                Value::Object(schema) => {
                    let node = self.types.node_mut(work.slot);
                    node.description = schema.get("description").and_then(Value::as_str);
                    node.hints = hints::hints(schema);
                    self.kind(work, schema)
                }
                _ => self.unknown(work.slot, "not a schema".to_owned()),
            }
        };
        self.types.node_mut(work.slot).kind = kind;
    }

    /// What a schema says in all: the parts that each keyword of weight gives, and null where it is `nullable`.
    fn kind(&mut self, work: Work<'a>, schema: &'a Map<String, Value>) -> Kind<'a> {
        if schema.keys().all(|key| PLAIN.contains(&key.as_str())) {
            return self.own(work, schema).unwrap_or_default();
        }
        let mut parts = Vec::new();
        if let Some(reference) = REFERENCES.iter().find_map(|key| schema.get(*key)) {
            parts.push(self.reference(work, reference));
            if self.is_ref_alone {
                return parts.remove(0);
            }
        }
        parts.extend(self.own(work, schema));
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = schema.get(keyword) {
                parts.push(self.union(work, branches, keyword == "oneOf"));
            }
        }
        if let Some(all) = schema.get("allOf") {
            let all = self.flattened(work, all, &["allOf"]);
            if parts.is_empty() {
                parts.push(Kind::All(all));
            } else {
                let mut ids: Vec<_> = parts.drain(..).map(|part| self.types.add_kind(part)).collect();
                ids.extend(all);
                parts.push(Kind::All(ids));
            }
        }
        let kind = match parts.len() {
            0 => Kind::Json,
            1 => parts.remove(0),
            _ => Kind::All(parts.into_iter().map(|part| self.types.add_kind(part)).collect()),
        };
        if schema.get("nullable") == Some(&Value::Bool(true)) { self.or_null(work.slot, kind) } else { kind }
    }

    fn or_null(&mut self, slot: NodeId, kind: Kind<'a>) -> Kind<'a> {
        match kind {
            Kind::Json | Kind::Unknown | Kind::Null => return kind,
            Kind::Literals(ref values) if values.iter().any(|value| value.is_null()) => return kind,
            _ => {}
        }
        self.types.loose.push(slot);
        Kind::Union(vec![self.types.add_kind(kind), self.types.add_kind(Kind::Null)])
    }

    fn union(&mut self, work: Work<'a>, branches: &'a Value, is_exact: bool) -> Kind<'a> {
        let branches = self.flattened(work, branches, &["anyOf", "oneOf"]);
        if branches.is_empty() {
            return self.unknown(work.slot, "no alternative is given".to_owned());
        }
        if is_exact {
            return Kind::Union(branches);
        }
        // The union may become a part of the slot's node: it is known by its own.
        let node = self.types.add_kind(Kind::Union(branches));
        self.types.loose.push(node);
        Kind::All(vec![node])
    }

    /// The schemas of a list, those of lists in that list that say nothing else among them.
    fn flattened(&mut self, work: Work<'a>, list: &'a Value, keywords: &[&str]) -> Vec<NodeId> {
        let places = |list: &'a Value, around: Place<'a>| {
            list.as_array().into_iter().flatten().rev().map(move |schema| around.inner(schema))
        };
        let mut pending: Vec<_> = places(list, work.place).collect();
        let mut children = Vec::new();
        while let Some(place) = pending.pop() {
            match only(place.schema, keywords) {
                Some(inner) => pending.extend(places(inner, place)),
                None => children.push(self.child(work, place.schema)),
            }
        }
        children
    }

    fn reference(&mut self, work: Work<'a>, reference: &'a Value) -> Kind<'a> {
        let Some(text) = reference.as_str() else {
            return self.unknown(work.slot, "`$ref` is not a string".to_owned());
        };
        let Some(place) = self.target(text, work.place.base) else {
            let shown = text::shortened(text, REFERENCE_CHARS_MAX);
            let why = if text.starts_with('#') { "leads nowhere" } else { "is not in this schema" };
            return self.unknown(work.slot, format!("$ref {shown} {why}"));
        };
        let next = DefId(u32::try_from(self.types.defs.len()).expect("no more than nodes"));
        let def = *self.defs.entry(place.address()).or_insert(next);
        if def == next {
            let is_entry = place.address() == self.document.root().address();
            let root = if is_entry { self.entry } else { self.types.add_kind(Kind::Json) };
            let label = if is_entry { self.label.to_owned() } else { label_of(text) };
            self.types.defs.push(Def { label, root, inline: false });
            if !is_entry {
                self.found.push(Work { slot: root, place, depth: 0 });
            }
        }
        Kind::Ref(def)
    }

    /// Where a reference leads in the end: through schemas that are nothing but references. None if it leads out of the
    /// document, to nothing, or in a circle.
    fn target(&mut self, reference: &'a str, base: &'a Value) -> Option<Place<'a>> {
        let (mut reference, mut base) = (reference, base);
        let mut trail = Vec::new();
        let end = loop {
            let Some(place) = self.document.resolve(reference, base) else { break None };
            if let Some(known) = self.targets.get(&place.address()) {
                break *known;
            }
            self.targets.insert(place.address(), None);
            trail.push(place.address());
            match only(place.schema, &REFERENCES).and_then(Value::as_str) {
                Some(next) => (reference, base) = (next, place.base),
                None => break Some(place),
            }
        };
        for address in trail {
            self.targets.insert(address, end);
        }
        end
    }

    /// A node for a schema inside the one that is being read.
    fn child(&mut self, work: Work<'a>, schema: &'a Value) -> NodeId {
        let slot = self.types.add_kind(Kind::Json);
        self.found.push(Work { slot, place: work.place.inner(schema), depth: work.depth + 1 });
        slot
    }

    fn unknown(&mut self, slot: NodeId, why: String) -> Kind<'a> {
        self.types.node_mut(slot).reason = Some(why);
        Kind::Unknown
    }
}

/// What a schema has under one of these keywords, if it has nothing else that says which values fit.
fn only<'a>(schema: &'a Value, keywords: &[&str]) -> Option<&'a Value> {
    let members = schema.as_object()?;
    let mut said = members.iter().filter(|(key, _)| !ANNOTATIONS.contains(&key.as_str()));
    let (key, value) = said.next()?;
    (said.next().is_none() && keywords.contains(&key.as_str())).then_some(value)
}

/// Parts of a pointer that name no schema.
const ON_THE_WAY: [&str; 9] = [
    "properties",
    "items",
    "prefixItems",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "$defs",
    "definitions",
];

/// The part of a reference that a person would call the definition by.
fn label_of(reference: &str) -> String {
    let fragment = reference.split_once('#').map_or(reference, |(_, fragment)| fragment);
    let is_name = |part: &&str| {
        !part.is_empty() && !part.bytes().all(|byte| byte.is_ascii_digit()) && !ON_THE_WAY.contains(part)
    };
    let part = fragment.split('/').rev().find(is_name).unwrap_or("Ref");
    resolve::percent_decoded(part)
        .map_or_else(|| "Ref".to_owned(), |part| part.replace("~1", "/").replace("~0", "~"))
}
