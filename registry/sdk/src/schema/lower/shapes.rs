//! What `type` and the keywords that go with each type say.

use std::collections::HashSet;

use super::*;
use crate::schema::{Field, Object, Rest, Tuple};

impl<'a> Lowering<'a, '_> {
    /// What `const`, `enum`, `type` and the words beside it say; none if the schema has none of them.
    pub(super) fn own(&mut self, work: Work<'a>, schema: &'a Map<String, Value>) -> Option<Kind<'a>> {
        let literals = match (schema.get("const"), schema.get("enum")) {
            (Some(value), _) => Some(vec![value]),
            (None, Some(list)) => Some(list.as_array().into_iter().flatten().collect()),
            (None, None) => None,
        };
        let Some(literals) = literals else { return self.typed(work, schema) };
        let types = type_names(schema);
        let fitting: Vec<_> = literals.into_iter().filter(|value| fits(value, &types, schema)).collect();
        Some(if fitting.is_empty() {
            self.unknown(work.slot, "no value that is listed fits".to_owned())
        } else {
            Kind::Literals(fitting)
        })
    }

    fn typed(&mut self, work: Work<'a>, schema: &'a Map<String, Value>) -> Option<Kind<'a>> {
        let mut names = type_names(schema);
        if names.contains(&"number") {
            names.retain(|name| *name != "integer");
        }
        let is_said = schema.contains_key("type");
        match names.as_slice() {
            [] if is_said => Some(self.unknown(work.slot, "no type is given".to_owned())),
            [] => inferred(schema).map(|name| self.of_type(work, schema, name)),
            [name] => Some(self.of_type(work, schema, name)),
            _ => {
                let kinds: Vec<_> = names.iter().map(|name| self.of_type(work, schema, name)).collect();
                Some(Kind::Union(kinds.into_iter().map(|kind| self.types.add_kind(kind)).collect()))
            }
        }
    }

    fn of_type(&mut self, work: Work<'a>, schema: &'a Map<String, Value>, name: &str) -> Kind<'a> {
        match name {
            "string" => Kind::String,
            "number" => Kind::Number,
            "integer" => Kind::Integer,
            "boolean" => Kind::Boolean,
            "null" => Kind::Null,
            "array" => self.array(work, schema),
            "object" => self.object(work, schema),
            _ => {
                let shown = text::shortened(name, REFERENCE_CHARS_MAX);
                self.unknown(work.slot, format!("no type is called {}", text::quoted(&shown)))
            }
        }
    }

    fn array(&mut self, work: Work<'a>, schema: &'a Map<String, Value>) -> Kind<'a> {
        let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(first)), rest) => (first.as_slice(), rest),
            (_, Some(Value::Array(first))) => (first.as_slice(), schema.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        let count =
            |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
        let most = count("maxItems").unwrap_or(usize::MAX);
        if first.is_empty() && rest != Some(&Value::Bool(false)) {
            return Kind::Array(rest.map(|rest| self.child(work, rest)));
        }
        let shown = &first[..first.len().min(most)];
        let items: Vec<_> = shown.iter().map(|item| self.child(work, item)).collect();
        let rest = match rest {
            Some(Value::Bool(false)) => None,
            _ if most <= first.len() => None,
            Some(rest) => Some(self.child(work, rest)),
            None => Some(self.types.add_kind(Kind::Json)),
        };
        let required = count("minItems").unwrap_or(0).min(items.len());
        Kind::Tuple(Tuple { items, required, rest })
    }

    fn object(&mut self, work: Work<'a>, schema: &'a Map<String, Value>) -> Kind<'a> {
        let names =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let required: HashSet<_> = names.clone().collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut fields: Vec<_> = properties
            .into_iter()
            .flatten()
            .map(|(name, value)| Field {
                name,
                required: required.contains(name.as_str()),
                node: self.child(work, value),
            })
            .collect();
        // What has to be there and is not described is anything.
        let mut seen: HashSet<_> = fields.iter().map(|field| field.name).collect();
        for name in names {
            if seen.insert(name) {
                fields.push(Field { name, required: true, node: self.types.add_kind(Kind::Json) });
            }
        }
        let rest = self.rest(work, schema, fields.is_empty());
        Kind::Object(Object { fields, rest })
    }

    fn rest(&mut self, work: Work<'a>, schema: &'a Map<String, Value>, is_map: bool) -> Rest<'a> {
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let mut values: Vec<_> =
            patterns.into_iter().flat_map(Map::values).map(|value| self.child(work, value)).collect();
        let additional = schema.get("additionalProperties");
        if let Some(names) = is_map.then(|| self.names(work, schema)).flatten()
            && values.is_empty()
            && additional != Some(&Value::Bool(false))
        {
            let value = additional.unwrap_or(&Value::Bool(true));
            return Rest::Named(names, self.child(work, value));
        }
        match additional {
            Some(Value::Bool(false)) if values.is_empty() => Rest::Nothing,
            Some(Value::Bool(false)) => Rest::Of(self.one_of(values)),
            Some(value @ Value::Object(_)) => {
                values.push(self.child(work, value));
                Rest::Of(self.one_of(values))
            }
            _ if values.is_empty() => Rest::Anything,
            _ => Rest::Partly(self.one_of(values)),
        }
    }

    fn one_of(&mut self, mut values: Vec<NodeId>) -> NodeId {
        if values.len() == 1 {
            return values.remove(0);
        }
        let union = self.types.add_kind(Kind::Union(values));
        self.types.loose.push(union);
        union
    }

    /// The names that keys must have, where they are listed.
    fn names(&mut self, work: Work<'a>, schema: &'a Map<String, Value>) -> Option<Vec<&'a str>> {
        let names = schema.get("propertyNames")?;
        let names = match only(names, &REFERENCES).and_then(Value::as_str) {
            Some(reference) => self.target(reference, work.place.base)?.schema,
            None => names,
        };
        let names = names.get("enum")?.as_array()?;
        names.iter().map(Value::as_str).collect::<Option<Vec<_>>>().filter(|names| !names.is_empty())
    }
}

/// The types that a schema names, each once.
fn type_names(schema: &Map<String, Value>) -> Vec<&str> {
    let mut names = Vec::new();
    let listed = match schema.get("type") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(name) => std::slice::from_ref(name),
        None => &[],
    };
    for name in listed.iter().filter_map(Value::as_str) {
        if !names.contains(&name) && names.len() < TYPES_MAX {
            names.push(name);
        }
    }
    names
}

/// There are seven types; who names more than a few that are none is cut short.
const TYPES_MAX: usize = 16;

/// The type that is meant where only words that go with it are there.
fn inferred(schema: &Map<String, Value>) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|key| schema.contains_key(*key));
    let is_limited =
        matches!(schema.get("additionalProperties"), Some(Value::Object(_) | Value::Bool(false)));
    if is_limited || has(&["properties", "patternProperties"]) {
        Some("object")
    } else if has(&["items", "prefixItems"]) {
        Some("array")
    } else {
        None
    }
}

/// Whether a literal is of one of the types named beside it.
fn fits(value: &Value, types: &[&str], schema: &Map<String, Value>) -> bool {
    if types.is_empty() {
        return !schema.contains_key("type");
    }
    let is_whole = |number: &serde_json::Number| number.as_f64().is_some_and(|value| value.fract() == 0.0);
    types.iter().any(|name| match value {
        Value::Null => *name == "null" || schema.get("nullable") == Some(&Value::Bool(true)),
        Value::Bool(_) => *name == "boolean",
        Value::Number(number) => *name == "number" || (*name == "integer" && is_whole(number)),
        Value::String(_) => *name == "string",
        Value::Array(_) => *name == "array",
        Value::Object(_) => *name == "object",
    })
}
