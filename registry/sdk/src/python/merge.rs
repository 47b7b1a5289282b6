//! Objects that hold at once, as one object: Python has no type for "all of these".

use std::collections::HashMap;

use super::Writer;
use crate::schema::{Field, Kind, NodeId, Object, Rest};

/// How many fields are merged for one tool in all; beyond that a part stands for the whole.
pub(super) const FIELDS_MAX: usize = 1 << 18;
/// How many alternatives parts may have together.
const ALTERNATIVES_MAX: usize = 16;
/// How many references deep parts are looked for.
const DEPTH_MAX: usize = 64;

impl<'a> Writer<'a, '_> {
    /// The objects that a node is one of. None if it may be something else, or there are too many.
    pub(super) fn merged(&mut self, id: NodeId) -> Option<Vec<Object<'a>>> {
        self.alternatives(id, 0)
    }

    fn alternatives(&mut self, id: NodeId, depth: usize) -> Option<Vec<Object<'a>>> {
        if depth > DEPTH_MAX {
            return None;
        }
        let types = self.types;
        match &types.node(id).kind {
            Kind::Object(object) => {
                self.merges_left = self.merges_left.checked_sub(object.fields.len() + 1)?;
                Some(vec![object.clone()])
            }
            Kind::Ref(def) => self.alternatives(types.def(*def).root, depth + 1),
            Kind::Union(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(self.alternatives(*part, depth + 1)?);
                    if all.len() > ALTERNATIVES_MAX {
                        return None;
                    }
                }
                Some(all)
            }
            Kind::All(parts) => {
                let mut all: Option<Vec<Object<'a>>> = None;
                for part in parts {
                    let next = self.alternatives(*part, depth + 1)?;
                    all = Some(match all {
                        None => next,
                        Some(all) => self.product(&all, &next)?,
                    });
                }
                all
            }
            _ => None,
        }
    }

    fn product(&mut self, left: &[Object<'a>], right: &[Object<'a>]) -> Option<Vec<Object<'a>>> {
        if left.len() * right.len() > ALTERNATIVES_MAX {
            return None;
        }
        let mut all = Vec::new();
        for one in left {
            for other in right {
                self.merges_left = self.merges_left.checked_sub(one.fields.len() + other.fields.len())?;
                all.push(self.both(one, other));
            }
        }
        Some(all)
    }

    /// An object that is both; of two types for one field, the one that says more.
    fn both(&self, one: &Object<'a>, other: &Object<'a>) -> Object<'a> {
        let mut fields = one.fields.clone();
        let places: HashMap<_, _> =
            fields.iter().enumerate().map(|(place, field)| (field.name, place)).collect();
        for field in &other.fields {
            match places.get(field.name) {
                None => fields.push(*field),
                Some(place) => {
                    let known = fields[*place];
                    let node = if self.weight(field.node) > self.weight(known.node) {
                        field.node
                    } else {
                        known.node
                    };
                    fields[*place] = Field { required: known.required || field.required, node, ..known };
                }
            }
        }
        let rest =
            if matches!(one.rest, Rest::Nothing) && one.fields.is_empty() { &other.rest } else { &one.rest };
        let is_open = matches!(other.rest, Rest::Anything) || matches!(rest, Rest::Anything);
        Object { fields, rest: if is_open { Rest::Anything } else { rest.clone() } }
    }

    fn weight(&self, id: NodeId) -> u8 {
        match self.types.target(id).kind {
            Kind::Json | Kind::Unknown => 0,
            Kind::Literals(_) | Kind::Never => 2,
            _ => 1,
        }
    }
}
