//! A program that shows how a tool is called, with arguments that fit as far as their types go.

use serde_json::{Map, Number, Value};

use crate::language::Language;
use crate::schema::{Kind, NodeId, Object, Rest, ToolTypes, Types};
use crate::signature::ToolSignature;
use crate::{python, text, typescript};

/// How many steps are tried before there is no example.
const STEPS_MAX: usize = 2_000;
/// How deep an example may be.
const DEPTH_MAX: usize = 12;

/// A complete program that calls a tool; none where no small arguments fit.
pub(crate) fn program(tool: &ToolSignature, language: Language) -> Option<String> {
    Some(call(tool.name(), &arguments(tool)?, language))
}

/// A program that calls a tool and returns what it gives.
fn call(name: &str, arguments: &Value, language: Language) -> String {
    let (is_plain, arguments) = match language {
        Language::TypeScript => (typescript::is_bare(name), arguments_text(arguments, language)),
        Language::Python => (python::is_method(name), arguments_text(arguments, language)),
    };
    let member = if is_plain { format!(".{name}") } else { format!("[{}]", text::quoted(name)) };
    let end = if language == Language::TypeScript { ";" } else { "" };
    format!("return await tools{member}({arguments}){end}")
}

/// A value as a literal of the language. Examples are not deep.
fn arguments_text(value: &Value, language: Language) -> String {
    let python = language == Language::Python;
    match value {
        Value::Null if python => "None".to_owned(),
        Value::Bool(value) if python => if *value { "True" } else { "False" }.to_owned(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| arguments_text(item, language)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let key = |name: &str| match name {
                _ if python => text::quoted(name),
                // Written plainly, it would be the object's prototype.
                "__proto__" => "[\"__proto__\"]".to_owned(),
                _ => typescript::property(name),
            };
            let pairs = members
                .iter()
                .map(|(name, value)| format!("{}: {}", key(name), arguments_text(value, language)));
            let (open, close) = if python { ("{", "}") } else { ("{ ", " }") };
            format!("{open}{}{close}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::String(value) => text::quoted(value),
        Value::Number(number) => text::number(number),
        _ => value.to_string(),
    }
}

/// Arguments for a call of a tool; none where no small ones fit.
fn arguments(tool: &ToolSignature) -> Option<Value> {
    let ToolTypes { types, parameters, .. } = ToolTypes::of(tool);
    let Some(parameters) = parameters else { return Some(Value::Object(Map::new())) };
    match types.target(parameters).kind {
        // Arguments are an object even where the schema does not say so.
        Kind::Json | Kind::Unknown => Some(Value::Object(Map::new())),
        _ => Search { types: &types, steps_left: STEPS_MAX }.value(parameters, 0),
    }
}

struct Search<'a, 't> {
    types: &'t Types<'a>,
    steps_left: usize,
}

impl<'a> Search<'a, '_> {
    fn value(&mut self, id: NodeId, depth: usize) -> Option<Value> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match &self.types.node(id).kind {
            Kind::Never => return None,
            Kind::Unknown | Kind::Json | Kind::Null => Value::Null,
            Kind::String => Value::String("text".to_owned()),
            Kind::Number | Kind::Integer => Value::Number(Number::from(1)),
            Kind::Boolean => Value::Bool(true),
            Kind::Literals(values) => {
                return values.iter().find(|value| is_scalar(value)).map(|value| (*value).clone());
            }
            Kind::Union(parts) => return parts.iter().find_map(|part| self.value(*part, depth + 1)),
            Kind::All(parts) => return self.all(parts, depth),
            Kind::Array(_) => Value::Array(Vec::new()),
            Kind::Tuple(tuple) => {
                let required = tuple.items.iter().take(tuple.required);
                Value::Array(required.map(|item| self.value(*item, depth + 1)).collect::<Option<_>>()?)
            }
            Kind::Object(object) => Value::Object(self.object(object, depth)?),
            Kind::Ref(def) => return self.value(self.types.def(*def).root, depth + 1),
        })
    }

    fn object(&mut self, object: &Object<'a>, depth: usize) -> Option<Map<String, Value>> {
        let mut members = Map::new();
        for field in object.fields.iter().filter(|field| field.required) {
            let value = match (&self.types.node(field.node).kind, &object.rest) {
                // What is described by nothing but its being required may be described by the rest.
                (Kind::Json, Rest::Of(rest)) => self.value(*rest, depth + 1)?,
                _ => self.value(field.node, depth + 1)?,
            };
            members.insert(field.name.to_owned(), value);
        }
        Some(members)
    }

    /// What each part needs, together, where none of them has a say in what another needs.
    fn all(&mut self, parts: &[NodeId], depth: usize) -> Option<Value> {
        let mut together = Map::new();
        for part in parts {
            if let Kind::Object(object) = &self.types.target(*part).kind
                && matches!(object.rest, Rest::Of(_) | Rest::Named(..))
            {
                return None;
            }
            let Value::Object(members) = self.value(*part, depth + 1)? else { return None };
            for (name, value) in members {
                if together.insert(name, value).is_some() {
                    return None;
                }
            }
        }
        Some(Value::Object(together))
    }
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}
