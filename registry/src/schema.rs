//! Schemas of arguments and values, and what breaks them.
//!
//! A schema that stays within the author subset is checked here, with messages of our own. Anything beyond is given to a
//! JSON Schema library, which never opens a connection; what that cannot compile is not validated, and says so.

mod author;
mod full;
mod path;
mod subset;
mod validate;

use std::fmt;
use std::sync::Arc;

use codemode_client::JsonText;

pub use author::{AuthorFault, compile_author};
pub use subset::{SchemaFault, check_subset};

use crate::json::{Json, Lossy};
use path::Path;

/// How values are held against a schema.
enum Check {
    /// By the author subset's rules.
    Subset,
    /// By the library.
    Full(full::Compiled),
    /// Not at all, for this reason.
    Nothing(String),
}

struct Inner {
    text: JsonText,
    tree: Json,
    check: Check,
}

/// A JSON Schema, ready to validate. Cheap to clone.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

impl Schema {
    /// Takes any JSON Schema. One that does not compile is kept and has a [`warning`](Self::warning).
    ///
    /// # Errors
    /// [`Lossy`]: the text is not lossless JSON.
    pub fn parse(text: &str) -> Result<Self, Lossy> {
        let tree = Json::parse(text)?;
        let check = match check_subset(&tree) {
            Ok(()) => Check::Subset,
            Err(_) => full::compile(&tree).map_or_else(Check::Nothing, Check::Full),
        };
        Ok(Self::new(tree, check))
    }

    /// Takes a schema that must stay within the author subset.
    ///
    /// # Errors
    /// [`SchemaFault`] with every violation there is; its code is `UNSUPPORTED_SCHEMA`.
    pub fn declared(text: &str) -> Result<Self, SchemaFault> {
        let tree = Json::parse(text).map_err(|lossy| SchemaFault { violations: vec![lossy.to_string()] })?;
        check_subset(&tree)?;
        Ok(Self::new(tree, Check::Subset))
    }

    /// The schema that every value fits.
    #[must_use]
    pub fn anything() -> Self {
        Self::new(Json::Object(crate::json::Object::default()), Check::Subset)
    }

    fn new(tree: Json, check: Check) -> Self {
        let text = tree.to_text();
        Self(Arc::new(Inner { text, tree, check }))
    }

    /// The schema as text.
    #[must_use]
    pub fn text(&self) -> &JsonText {
        &self.0.text
    }

    /// The schema as a value.
    #[must_use]
    pub fn tree(&self) -> &Json {
        &self.0.tree
    }

    /// The schema as the SDK takes it; the schema of anything says nothing.
    pub(crate) fn to_serde(&self) -> serde_json::Value {
        match &self.0.tree {
            Json::Object(object) if object.is_empty() => serde_json::Value::Null,
            tree => full::to_serde(tree),
        }
    }

    /// Why nothing is validated, if that is so.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        match &self.0.check {
            Check::Nothing(reason) => Some(reason),
            Check::Subset | Check::Full(_) => None,
        }
    }

    /// All that is wrong with a tool's value. Paths begin with `value`.
    #[must_use]
    pub fn violations_of_value(&self, value: &Json) -> Vec<String> {
        self.violations(value, Path::root("value"))
    }

    /// All that is wrong with arguments. Paths begin with the argument's name.
    #[must_use]
    pub fn violations_of_arguments(&self, value: &Json) -> Vec<String> {
        self.violations(value, Path::root(""))
    }

    fn violations(&self, value: &Json, root: Path) -> Vec<String> {
        match &self.0.check {
            Check::Subset => validate::violations(&self.0.tree, value, root),
            Check::Full(compiled) => compiled.violations(value, &root),
            Check::Nothing(_) => Vec::new(),
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Schema").field(&self.0.text).finish()
    }
}

/// Stack that must be left before a recursive step, bytes, and how much is added when it is not.
const STACK_RED_ZONE: usize = 64 * 1024;
const STACK_STEP: usize = 1024 * 1024;

/// Takes one step down a tree; the stack grows with the depth.
fn step<T>(call: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_RED_ZONE, STACK_STEP, call)
}

#[cfg(test)]
mod tests;
