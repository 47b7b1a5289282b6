//! What a `$ref` means inside its own document. Never looks anywhere else: a remote reference stays unresolved.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A schema and the resource it belongs to: the nearest schema around it that has an `$id`, or the whole document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) schema: &'a Value,
    pub(super) base: &'a Value,
}

impl<'a> Place<'a> {
    /// A schema inside this one.
    pub(super) fn inner(self, schema: &'a Value) -> Self {
        Self { schema, base: if is_resource(schema) { schema } else { self.base } }
    }

    /// The address of the schema: equal for the same node of the document, and for no other.
    pub(super) fn address(self) -> usize {
        std::ptr::from_ref(self.schema).addr()
    }
}

/// Whether a schema has an identifier of its own, which references inside it are relative to.
fn is_resource(schema: &Value) -> bool {
    ["$id", "id"].iter().any(|key| matches!(schema.get(key), Some(Value::String(id)) if !id.starts_with('#')))
}

/// One document and the names it gives to its parts.
#[derive(Debug)]
pub(super) struct Document<'a> {
    root: &'a Value,
    /// Made when the first reference asks for it.
    names: Option<HashMap<&'a str, Place<'a>>>,
}

impl<'a> Document<'a> {
    pub(super) const fn new(root: &'a Value) -> Self {
        Self { root, names: None }
    }

    pub(super) const fn root(&self) -> Place<'a> {
        Place { schema: self.root, base: self.root }
    }

    /// Where a reference leads, from within a resource. None if it leads out of the document or to nothing.
    pub(super) fn resolve(&mut self, reference: &'a str, base: &'a Value) -> Option<Place<'a>> {
        let (resource, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let start = if resource.is_empty() || base.get("$id").and_then(Value::as_str) == Some(resource) {
            Place { schema: base, base }
        } else {
            self.named(resource)?
        };
        if fragment.is_empty() {
            return Some(start);
        }
        if fragment.starts_with('/') {
            let found = walk(start, fragment);
            // Many generators put an `$id` anywhere and still count from the document's root.
            return found.or_else(|| if resource.is_empty() { walk(self.root(), fragment) } else { None });
        }
        self.named(fragment)
    }

    fn named(&mut self, name: &str) -> Option<Place<'a>> {
        let root = self.root();
        self.names.get_or_insert_with(|| names_of(root)).get(name).copied()
    }
}

/// Follows a JSON pointer, in which a fragment's percent escapes may occur.
fn walk<'a>(start: Place<'a>, pointer: &str) -> Option<Place<'a>> {
    let mut place = start;
    for part in pointer.split('/').skip(1) {
        let key = percent_decoded(part)?.replace("~1", "/").replace("~0", "~");
        let next = match place.schema {
            Value::Object(members) => members.get(&key)?,
            Value::Array(items) => items.get(index(&key)?)?,
            _ => return None,
        };
        place = place.inner(next);
    }
    Some(place)
}

/// An index of an array as a JSON pointer writes it: digits, without zeros in front.
fn index(key: &str) -> Option<usize> {
    let digits = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
    if digits && (key == "0" || !key.starts_with('0')) { key.parse().ok() } else { None }
}

pub(super) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escape = text_of_hex(tail).filter(|_| *first == b'%');
        bytes.push(escape.unwrap_or(*first));
        rest = if escape.is_some() { tail.get(2..)? } else { tail };
    }
    String::from_utf8(bytes).ok()
}

fn text_of_hex(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

/// Every `$anchor`, `$dynamicAnchor` and `$id` of a document; the first of equal ones counts.
fn names_of(root: Place<'_>) -> HashMap<&str, Place<'_>> {
    let mut names = HashMap::new();
    let mut pending = vec![root];
    while let Some(place) = pending.pop() {
        match place.schema {
            Value::Object(members) => {
                for name in own_names(members) {
                    names.entry(name).or_insert(place);
                }
                pending.extend(members.values().rev().map(|value| place.inner(value)));
            }
            Value::Array(items) => pending.extend(items.iter().rev().map(|value| place.inner(value))),
            _ => {}
        }
    }
    names
}

fn own_names(members: &Map<String, Value>) -> impl Iterator<Item = &str> {
    ["$anchor", "$dynamicAnchor", "$id", "id"].into_iter().filter_map(|key| {
        let name = members.get(key)?.as_str()?;
        Some(name.trim_start_matches('#').trim_end_matches('#'))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_is_followed_through_its_escapes() {
        let root =
            json!({"$defs": {"a/b": 1, "m~n": 2, "sp ace": 3, "%": 4, "~1": 5, "": 6}, "list": [7, 8]});
        let mut document = Document::new(&root);
        let cases = [
            ("#/$defs/a~1b", Some(1)),
            ("#/$defs/m~0n", Some(2)),
            ("#/$defs/sp%20ace", Some(3)),
            ("#/$defs/%25", Some(4)),
            ("#/$defs/~01", Some(5)),
            ("#/$defs/", Some(6)),
            ("#/list/1", Some(8)),
            ("#/list/01", None),
            ("#/list/-", None),
            ("#/list/2", None),
            ("#/$defs/none/at/all", None),
            ("#nobody", None),
            ("http://127.0.0.1:9/x.json", None),
        ];
        for (reference, expected) in cases {
            let found = document.resolve(reference, &root).and_then(|place| place.schema.as_i64());
            assert_eq!(found, expected, "{reference}");
        }
    }
}
