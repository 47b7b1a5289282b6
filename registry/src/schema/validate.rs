//! Values against schemas of the author subset, with the contract's wording.

use crate::json::{Json, Object};
use crate::schema::path::Path;
use crate::schema::step;

/// Everything that is wrong with a value. The schema must be of the subset.
pub(super) fn violations(schema: &Json, value: &Json, root: Path) -> Vec<String> {
    let mut validation = Validation { path: root, violations: Vec::new() };
    validation.node(schema, value);
    validation.violations
}

struct Validation {
    path: Path,
    violations: Vec<String>,
}

impl Validation {
    fn report(&mut self, what: impl AsRef<str>) {
        self.violations.push(format!("{} {}", self.path.quoted(), what.as_ref()));
    }

    fn node(&mut self, schema: &Json, value: &Json) {
        step(|| {
            let Some(schema) = schema.as_object() else { return };
            if let Some(branches) = schema.get("oneOf").and_then(Json::as_array) {
                self.one_of(branches, value);
                return;
            }
            let Some(kind) = schema.get("type").and_then(Json::as_str) else { return };
            if let Some(wanted) = mismatch(kind, value) {
                self.report(format!("must be {wanted}"));
                return;
            }
            match value {
                Json::Object(members) => self.members(schema, members),
                Json::Array(items) => self.items(schema, items),
                scalar => self.listed(schema, scalar),
            }
        });
    }

    fn one_of(&mut self, branches: &[Json], value: &Json) {
        let before = self.violations.len();
        let mut matched = 0;
        for branch in branches {
            self.node(branch, value);
            matched += usize::from(self.violations.len() == before);
            self.violations.truncate(before);
        }
        if matched != 1 {
            self.report(format!("must match exactly one oneOf branch (matched {matched})"));
        }
    }

    fn members(&mut self, schema: &Object, members: &Object) {
        let required = schema.get("required").and_then(Json::as_array).unwrap_or_default();
        for name in required.iter().filter_map(Json::as_str) {
            if members.get(name).is_none() {
                let path = self.path.quoted_member(name);
                self.violations.push(format!("missing required property {path}"));
            }
        }
        let declared = schema.get("properties").and_then(Json::as_object);
        let closed = matches!(schema.get("additionalProperties"), Some(Json::Bool(false)));
        for (name, value) in members.iter() {
            let shown = name.to_text_lossy();
            let schema = name.as_str().and_then(|name| declared?.get(name));
            if schema.is_none() && !closed {
                continue;
            }
            let length = self.path.enter(&shown);
            match schema {
                Some(schema) => self.node(schema, value),
                None => self.report("is not a declared property (additionalProperties: false)"),
            }
            self.path.leave(length);
        }
    }

    fn items(&mut self, schema: &Object, items: &[Json]) {
        let Some(schema) = schema.get("items") else { return };
        for (position, item) in items.iter().enumerate() {
            let length = self.path.enter_item(position);
            self.node(schema, item);
            self.path.leave(length);
        }
    }

    fn listed(&mut self, schema: &Object, scalar: &Json) {
        if let Some(constant) = schema.get("const")
            && !constant.same_scalar(scalar)
        {
            self.report(format!("must be {constant}"));
            return;
        }
        if let Some(values) = schema.get("enum")
            && !values.as_array().unwrap_or_default().iter().any(|value| value.same_scalar(scalar))
        {
            self.report(format!("must be one of {values}"));
        }
    }
}

/// What the type wants, if the value is not that.
fn mismatch(kind: &str, value: &Json) -> Option<&'static str> {
    let (fits, wanted) = match kind {
        "string" => (matches!(value, Json::String(_)), "a string"),
        "number" => (matches!(value, Json::Number(_)), "a number"),
        "integer" => (matches!(value, Json::Number(number) if number.is_integer()), "an integer"),
        "boolean" => (matches!(value, Json::Bool(_)), "a boolean"),
        "null" => (matches!(value, Json::Null), "null"),
        "array" => (matches!(value, Json::Array(_)), "an array"),
        _ => (matches!(value, Json::Object(_)), "an object"),
    };
    (!fits).then_some(wanted)
}
