//! JSON as text: values that the log keeps and never interprets.
//!
//! Arguments, content blocks and metadata come from programs, tools and models. Kept as the text they arrived in, they
//! survive whole: any depth, half surrogates as escapes, numbers no double can hold. Nothing here recurses.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value as text. Cloning shares the text; equality compares it byte for byte.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// Takes JSON text as it is, without white space around it.
    ///
    /// # Errors
    /// When the text is not exactly one JSON value.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        Ok(Self(RawValue::from_string(text.into())?.into()))
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    /// When the value cannot be said in JSON, e.g. a map whose keys are not strings.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        Ok(Self(serde_json::value::to_raw_value(value)?.into()))
    }

    /// A JSON string.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self::of(text).expect("every string can be said in JSON")
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        Self::of(value).expect("a JSON value can be said in JSON")
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self::from(&value)
    }
}

impl From<Box<RawValue>> for Json {
    fn from(value: Box<RawValue>) -> Self {
        Self(value.into())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.get())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}
