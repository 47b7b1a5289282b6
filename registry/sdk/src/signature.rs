//! What is known of a tool, and the key of its content. Never reads a schema's meaning: `schema` does.

use std::fmt;
use std::mem;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A tool as its author describes it. Cheap to clone; its key was computed once, when it was made.
#[derive(Clone)]
pub struct ToolSignature {
    name: Arc<str>,
    description: Arc<str>,
    parameters: Option<Arc<Schema>>,
    output: Option<Arc<Schema>>,
    key: ContentKey,
}

impl ToolSignature {
    /// A tool. `parameters` and `output` are JSON Schemas of any dialect and any quality; none, and `null`, mean that
    /// nothing is said.
    #[must_use]
    pub fn new(name: &str, description: &str, parameters: Option<Value>, output: Option<Value>) -> Self {
        let parameters = parameters.filter(|schema| !schema.is_null());
        let output = output.filter(|schema| !schema.is_null());
        let mut hasher = KeyHasher::default();
        hasher.text(name);
        hasher.text(description);
        for schema in [&parameters, &output] {
            hasher.optional(schema.as_ref());
        }
        Self {
            name: name.into(),
            description: description.into(),
            parameters: parameters.map(|schema| Arc::new(Schema(schema))),
            output: output.map(|schema| Arc::new(Schema(schema))),
            key: hasher.finish(),
        }
    }

    /// The name, exactly as programs use it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the tool does, in its author's words.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The schema of the arguments.
    #[must_use]
    pub fn parameters(&self) -> Option<&Value> {
        self.parameters.as_deref().map(|schema| &schema.0)
    }

    /// The schema of the value that a call gives.
    #[must_use]
    pub fn output(&self) -> Option<&Value> {
        self.output.as_deref().map(|schema| &schema.0)
    }

    /// The key of everything above.
    #[must_use]
    pub const fn key(&self) -> ContentKey {
        self.key
    }
}

// By hand, since a derived one would recurse into schemas that may be very deep.
impl fmt::Debug for ToolSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSignature")
            .field("name", &self.name)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// A digest of content: equal content has equal keys in every process, and different content has different ones, also
/// where somebody tries to make them equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentKey([u8; 16]);

impl fmt::Display for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentKey({self})")
    }
}

/// SHA-256 over parts that carry their length, cut to 128 bits.
#[derive(Default)]
pub(crate) struct KeyHasher(Sha256);

impl KeyHasher {
    pub(crate) fn text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
    }

    pub(crate) fn key(&mut self, key: ContentKey) {
        self.0.update(key.0);
    }

    fn optional(&mut self, value: Option<&Value>) {
        match value {
            None => self.0.update(b"-"),
            Some(value) => self.value(value),
        }
    }

    /// Iterative: the value may be deeper than the stack.
    fn value(&mut self, value: &Value) {
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            match value {
                Value::Null => self.0.update(b"n"),
                Value::Bool(value) => self.0.update(if *value { b"t" } else { b"f" }),
                Value::Number(number) => self.tagged(b"#", &number.to_string()),
                Value::String(text) => self.tagged(b"s", text),
                Value::Array(items) => {
                    self.count(b"[", items.len());
                    pending.extend(items);
                }
                Value::Object(members) => {
                    self.count(b"{", members.len());
                    for (name, value) in members {
                        self.text(name);
                        pending.push(value);
                    }
                }
            }
        }
    }

    fn tagged(&mut self, tag: &[u8; 1], text: &str) {
        self.0.update(tag);
        self.text(text);
    }

    fn count(&mut self, tag: &[u8; 1], count: usize) {
        self.0.update(tag);
        self.0.update((count as u64).to_le_bytes());
    }

    pub(crate) fn finish(self) -> ContentKey {
        let digest = self.0.finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        ContentKey(key)
    }
}

/// A schema that can be dropped at any depth.
struct Schema(Value);

impl Drop for Schema {
    fn drop(&mut self) {
        let mut pending = vec![mem::take(&mut self.0)];
        while let Some(value) = pending.pop() {
            match value {
                Value::Array(items) => pending.extend(items),
                Value::Object(members) => pending.extend(members.into_iter().map(|(_, value)| value)),
                _ => {}
            }
        }
    }
}
