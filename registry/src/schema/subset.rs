//! Which schemas authors may write: a subset that says the same to every reader.

use crate::json::{Json, Object};
use crate::schema::path::Path;
use crate::schema::step;

/// A schema beyond the subset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported schema: {}", violations.join("; "))]
pub struct SchemaFault {
    /// Every independent violation, with its path.
    pub violations: Vec<String>,
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "null", "array", "object"];
const ANNOTATIONS: [&str; 4] = ["description", "title", "default", "examples"];

/// Whether a schema stays within the author subset.
///
/// # Errors
/// [`SchemaFault`] with every violation.
pub fn check_subset(schema: &Json) -> Result<(), SchemaFault> {
    let mut check = Subset { path: Path::root("schema"), violations: Vec::new() };
    check.node(schema);
    if check.violations.is_empty() { Ok(()) } else { Err(SchemaFault { violations: check.violations }) }
}

struct Subset {
    path: Path,
    violations: Vec<String>,
}

impl Subset {
    fn report(&mut self, what: impl AsRef<str>) {
        self.violations.push(format!("{} {}", self.path.quoted(), what.as_ref()));
    }

    fn node(&mut self, schema: &Json) {
        step(|| match schema {
            Json::Object(object) => self.object_node(object),
            _ => self.report("must be a schema object"),
        });
    }

    fn object_node(&mut self, schema: &Object) {
        self.annotations(schema);
        if let Some(branches) = schema.get("oneOf") {
            self.one_of(schema, branches);
            return;
        }
        let kind = self.kind(schema);
        for (name, value) in schema.iter() {
            let name = name.to_text_lossy();
            if ANNOTATIONS.contains(&&*name) {
                continue;
            }
            match (&*name, kind) {
                ("type", _) => {}
                ("enum", _) => self.enumeration(value, kind),
                ("const", _) => self.constant(schema, value, kind),
                ("properties", Some("object")) => self.properties(value),
                ("required", Some("object")) => self.required(schema, value),
                ("additionalProperties", Some("object")) if matches!(value, Json::Bool(_)) => {}
                ("additionalProperties", Some("object")) => {
                    self.report("additionalProperties must be a boolean")
                }
                ("items", Some("array")) => self.below("items", value),
                ("properties" | "required" | "additionalProperties" | "items", _) => {
                    self.report(format!("keyword \"{name}\" does not belong to this type"));
                }
                _ => self.report(format!("keyword \"{name}\" is not supported")),
            }
        }
    }

    fn below(&mut self, name: &str, schema: &Json) {
        let length = self.path.enter(name);
        self.node(schema);
        self.path.leave(length);
    }

    fn kind(&mut self, schema: &Object) -> Option<&'static str> {
        let Some(kind) = schema.get("type") else {
            let constrained =
                schema.iter().any(|(name, _)| name.as_str().is_none_or(|name| !ANNOTATIONS.contains(&name)));
            // Without anything it is the schema that every value fits.
            if constrained {
                self.report("has no \"type\"");
            }
            return None;
        };
        let known = kind.as_str().and_then(|kind| TYPES.iter().find(|known| **known == kind));
        match (kind, known) {
            (_, Some(known)) => Some(known),
            (Json::Array(_), None) => {
                self.report("has an array of types; use oneOf");
                None
            }
            _ => {
                self.report(format!("has the unknown type {kind}"));
                None
            }
        }
    }

    fn one_of(&mut self, schema: &Object, branches: &Json) {
        for (name, _) in schema.iter() {
            let name = name.to_text_lossy();
            if name != "oneOf" && !ANNOTATIONS.contains(&&*name) {
                self.report(format!("keyword \"{name}\" must not stand beside oneOf"));
            }
        }
        match branches.as_array() {
            Some(branches) if branches.len() >= 2 => {
                let length = self.path.enter("oneOf");
                for (position, branch) in branches.iter().enumerate() {
                    let length = self.path.enter_item(position);
                    self.node(branch);
                    self.path.leave(length);
                }
                self.path.leave(length);
            }
            _ => self.report("oneOf must have at least two branches"),
        }
    }

    fn properties(&mut self, properties: &Json) {
        let Some(properties) = properties.as_object() else {
            self.report("properties must be an object");
            return;
        };
        let length = self.path.enter("properties");
        for (name, schema) in properties.iter() {
            let name = name.to_text_lossy();
            let length = self.path.enter(&name);
            self.node(schema);
            self.path.leave(length);
        }
        self.path.leave(length);
    }

    fn required(&mut self, schema: &Object, required: &Json) {
        let Some(names) = required.as_array() else {
            self.report("required must be an array of names");
            return;
        };
        for name in names {
            let Json::String(text) = name else {
                self.report(format!("required names {name}, which is not a string"));
                continue;
            };
            let declared = schema.get("properties").and_then(Json::as_object);
            if !declared.is_some_and(|declared| declared.iter().any(|(own, _)| own == text)) {
                self.report(format!("required names {name}, which is not a declared property"));
            }
        }
    }

    fn enumeration(&mut self, values: &Json, kind: Option<&str>) {
        match values.as_array() {
            Some(values) if !values.is_empty() => {
                for value in values {
                    if !scalar_of(value, kind) {
                        self.report(format!("enum has {value}, which is no scalar of its type"));
                    }
                }
            }
            _ => self.report("enum must be an array that is not empty"),
        }
    }

    fn constant(&mut self, schema: &Object, value: &Json, kind: Option<&str>) {
        if !scalar_of(value, kind) {
            self.report(format!("const is {value}, which is no scalar of its type"));
        }
        let listed = schema.get("enum").and_then(Json::as_array);
        if listed.is_some_and(|listed| !listed.iter().any(|listed| listed.same_scalar(value))) {
            self.report(format!("const is {value}, which is not in enum"));
        }
    }

    fn annotations(&mut self, schema: &Object) {
        for name in ["description", "title"] {
            if schema.get(name).is_some_and(|value| !matches!(value, Json::String(_))) {
                self.report(format!("{name} must be a string"));
            }
        }
        if schema.get("examples").is_some_and(|value| value.as_array().is_none()) {
            self.report("examples must be an array");
        }
    }
}

/// Whether a value is a scalar of the type; without a known type any scalar will do.
fn scalar_of(value: &Json, kind: Option<&str>) -> bool {
    match value {
        Json::Array(_) | Json::Object(_) => false,
        Json::Null => kind.is_none_or(|kind| kind == "null"),
        Json::Bool(_) => kind.is_none_or(|kind| kind == "boolean"),
        Json::String(_) => kind.is_none_or(|kind| kind == "string"),
        Json::Number(number) => {
            kind.is_none_or(|kind| kind == "number" || (kind == "integer" && number.is_integer()))
        }
    }
}
