//! Schemas beyond the author subset: validated by a JSON Schema library that is given no way to load anything.

use std::error::Error;
use std::fmt::Write as _;

use boon::{Compiler, InstanceLocation, InstanceToken, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::{Map, Number, Value};

use crate::json::Json;
use crate::schema::path::Path;

/// Levels of nesting of a schema that is still compiled: the library takes time cubic in it.
const SCHEMA_DEPTH_MAX: usize = 256;
/// The library recurses: stack for what is not deep, for each level of a schema to be compiled, and for each level of a
/// value with each schema that can be applied to it, bytes. Twice what the development profile was seen to take.
const STACK_BASE: usize = 256 * 1024;
const STACK_SCHEMA_LEVEL: usize = 16 * 1024;
const STACK_VALUE_LEVEL: usize = 8 * 1024;
/// The most stack that a validation may need. It is mapped for as long as that takes, and touched as far as it is used.
const STACK_MAX: usize = 512 * 1024 * 1024;
/// Keywords that apply another schema to the same value. The library notices when it comes to the same schema again, so
/// it is never deeper at one value than there are schemas with such keywords.
const IN_PLACE: [&str; 11] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "dependentSchemas",
    "dependencies",
    "extends",
];
/// Violations that are told of one value; a union of hundreds of branches would fill a page.
const VIOLATIONS_MAX: usize = 20;
/// Where the schema is said to be; nothing is there.
const SCHEMA_URL: &str = "schema:///tool.json";

/// A compiled schema.
pub(super) struct Compiled {
    schemas: Schemas,
    root: SchemaIndex,
    /// How many schemas can at most be applied to one value, one inside the other.
    schemas_per_value: usize,
}

/// Refuses to load: a reference to elsewhere makes a schema that does not compile.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("references to other documents are never followed (`{url}`)").into())
    }
}

/// Compiles, or says why not.
pub(super) fn compile(schema: &Json) -> Result<Compiled, String> {
    let depth = schema.depth();
    if depth > SCHEMA_DEPTH_MAX {
        return Err(format!(
            "not validated: it is nested {depth} levels deep, at most {SCHEMA_DEPTH_MAX} can be"
        ));
    }
    let schemas_per_value = 1 + in_place(schema);
    let stack = STACK_BASE + depth * STACK_SCHEMA_LEVEL;
    let compiled = stacker::maybe_grow(stack, stack, || {
        crate::hook::guarded(|| {
            let mut compiler = Compiler::new();
            compiler.use_loader(Box::new(NoLoader));
            let mut schemas = Schemas::new();
            compiler.add_resource(SCHEMA_URL, to_serde(schema)).map_err(|error| error.to_string())?;
            let root = compiler.compile(SCHEMA_URL, &mut schemas).map_err(|error| error.to_string())?;
            Ok(Compiled { schemas, root, schemas_per_value })
        })
    });
    compiled.map_err(|reason| format!("not validated: it does not compile: {reason}"))
}

impl Compiled {
    /// Everything that is wrong with a value.
    pub(super) fn violations(&self, value: &Json, root: &Path) -> Vec<String> {
        let depth = value.depth();
        let steps = (depth + 1).saturating_mul(self.schemas_per_value);
        let stack = steps.saturating_mul(STACK_VALUE_LEVEL).saturating_add(STACK_BASE);
        if stack > STACK_MAX {
            return vec![format!(
                "{} is nested {depth} levels deep, too deep to be validated",
                root.quoted()
            )];
        }
        stacker::maybe_grow(stack, stack, || {
            let value = to_serde(value);
            let checked = crate::hook::guarded(|| {
                Ok(self
                    .schemas
                    .validate(&value, self.root)
                    .map_err(|error| leaves(&error, root))
                    .err()
                    .unwrap_or_default())
            });
            checked.unwrap_or_else(|panic| vec![format!("{} could not be validated: {panic}", root.quoted())])
        })
    }
}

/// How many objects of a schema have keywords that apply another schema to the same value.
fn in_place(schema: &Json) -> usize {
    let (mut count, mut open) = (0, vec![schema]);
    while let Some(node) = open.pop() {
        match node {
            Json::Array(items) => open.extend(items),
            Json::Object(object) => {
                count += usize::from(IN_PLACE.iter().any(|keyword| object.get(keyword).is_some()));
                open.extend(object.iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
    count
}

/// The violations at the ends of a tree of violations.
fn leaves(error: &ValidationError<'_, '_>, root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![error];
    while let Some(error) = open.pop() {
        if found.len() == VIOLATIONS_MAX {
            found.push("…".to_owned());
            break;
        }
        if error.causes.is_empty() {
            let mut text = located(&error.instance_location, root);
            // Writing to a string cannot fail.
            let _ = write!(text, " {}", error.kind);
            if !found.contains(&text) {
                found.push(text);
            }
        }
        open.extend(error.causes.iter().rev());
    }
    found
}

fn located(location: &InstanceLocation<'_>, root: &Path) -> String {
    let mut path = root.clone();
    for token in &location.tokens {
        match token {
            InstanceToken::Prop(name) => path.enter(name),
            InstanceToken::Item(position) => path.enter_item(*position),
        };
    }
    path.quoted()
}

/// The value as the library takes it. Half surrogates become U+FFFD, which is as long. Iterative.
pub(crate) fn to_serde(value: &Json) -> Value {
    enum Open<'a> {
        Array(std::slice::Iter<'a, Json>, Vec<Value>),
        Object(Box<dyn Iterator<Item = (String, &'a Json)> + 'a>, Map<String, Value>, String),
    }
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut next = value;
    loop {
        let mut done = match next {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => number_to_serde(number.as_str(), number.value()),
            Json::String(text) => Value::String(text.to_text_lossy().into_owned()),
            Json::Array(items) => {
                let mut items = items.iter();
                if let Some(first) = items.next() {
                    open.push(Open::Array(items, Vec::new()));
                    next = first;
                    continue;
                }
                Value::Array(Vec::new())
            }
            Json::Object(object) => {
                let mut members =
                    object.iter().map(|(name, value)| (name.to_text_lossy().into_owned(), value));
                if let Some((name, first)) = members.next() {
                    open.push(Open::Object(Box::new(members), Map::new(), name));
                    next = first;
                    continue;
                }
                Value::Object(Map::new())
            }
        };
        // Puts it into what is open, and closes what is complete.
        loop {
            match open.pop() {
                None => return done,
                Some(Open::Array(mut items, mut values)) => {
                    values.push(done);
                    if let Some(item) = items.next() {
                        open.push(Open::Array(items, values));
                        next = item;
                        break;
                    }
                    done = Value::Array(values);
                }
                Some(Open::Object(mut members, mut map, name)) => {
                    map.insert(name, done);
                    if let Some((name, item)) = members.next() {
                        open.push(Open::Object(members, map, name));
                        next = item;
                        break;
                    }
                    done = Value::Object(map);
                }
            }
        }
    }
}

fn number_to_serde(text: &str, value: f64) -> Value {
    let integer =
        text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok();
    integer.or_else(|| Number::from_f64(value)).map_or(Value::Null, Value::Number)
}
