//! JSON values as text: checked to be one JSON value, then carried as they are.
//!
//! Nothing here builds a tree, so depth costs nothing and no number is rounded on the way. The lossless rules of the
//! contract (`proto/README.md`) are the executor's to enforce; here a text is only ever well-formed JSON.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A text that is not what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not one JSON value.
    #[error("not a JSON text")]
    Malformed(#[source] serde_json::Error),
    /// A Rust value has no JSON form, e.g. a map with keys that are not strings.
    #[error("value has no JSON form")]
    Unrepresentable(#[source] serde_json::Error),
    /// The JSON value does not have the shape of the type asked for.
    #[error("JSON value does not fit `{wanted}`")]
    Mismatch {
        /// The Rust type that was wanted.
        wanted: &'static str,
        /// What did not fit, with line and column.
        #[source]
        source: serde_json::Error,
    },
}

/// One JSON value as text, well-formed by construction.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(String);

/// Bytes of a text that its `Debug` form shows; values are not for logs.
const DEBUG_BYTES_MAX: usize = 200;

impl JsonText {
    /// Takes a text that must be one JSON value. Linear and iterative: depth is no matter.
    ///
    /// # Errors
    /// [`JsonError::Malformed`], naming line and column.
    pub fn parse(text: impl Into<String>) -> Result<Self, JsonError> {
        let text = text.into();
        serde_json::from_str::<&RawValue>(&text).map_err(JsonError::Malformed)?;
        Ok(Self(text))
    }

    /// The JSON form of a Rust value.
    ///
    /// # Errors
    /// [`JsonError::Unrepresentable`].
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        serde_json::to_string(value).map(Self).map_err(JsonError::Unrepresentable)
    }

    /// The value `null`.
    #[must_use]
    pub fn null() -> Self {
        Self("null".to_owned())
    }

    /// Reads the value into a Rust type. Types that nest deeper than 128 levels are refused, as serde_json does.
    ///
    /// # Errors
    /// [`JsonError::Mismatch`]; half surrogates (`"\ud800"`) fit no Rust string.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        serde_json::from_str(&self.0)
            .map_err(|source| JsonError::Mismatch { wanted: std::any::type_name::<T>(), source })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, owned.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }

    /// Bytes of the text.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a JSON text is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl From<Box<RawValue>> for JsonText {
    fn from(raw: Box<RawValue>) -> Self {
        Self(String::from(Box::<str>::from(raw)))
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.floor_char_boundary(DEBUG_BYTES_MAX);
        write!(formatter, "JsonText({}", &self.0[..shown])?;
        if shown < self.0.len() {
            write!(formatter, "… {} bytes", self.0.len())?;
        }
        formatter.write_str(")")
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Only from serde_json: other formats have no raw JSON.
impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_byte_for_byte() {
        for text in [
            "0",
            "-0",
            "1e400",
            r#""\ud800""#,
            r#"{"a":1,"a":2}"#,
            "9007199254740993",
            " [ 1 ] ",
            r#"{"__proto__":{}}"#,
        ] {
            assert_eq!(JsonText::parse(text).expect("well-formed").as_str(), text);
        }
    }

    #[test]
    fn what_is_not_one_json_value_is_refused() {
        for text in ["", "undefined", "NaN", "[1,]", "1 2", "{\"a\"}", "'a'", "\"\u{1}\""] {
            assert!(JsonText::parse(text).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn depth_costs_nothing() {
        let depth = 200_000;
        let text = "[".repeat(depth) + &"]".repeat(depth);
        let json = JsonText::parse(text.clone()).expect("well-formed");
        #[derive(Serialize, Deserialize)]
        struct Holder {
            value: JsonText,
        }
        let wrapped = JsonText::of(&Holder { value: json }).expect("has a form");
        let back: Holder = serde_json::from_str(wrapped.as_str()).expect("well-formed");
        assert_eq!(back.value.as_str(), text);
    }

    #[test]
    fn values_go_in_and_out() {
        let json = JsonText::of(&vec![Some(1), None]).expect("has a form");
        assert_eq!(json.as_str(), "[1,null]");
        assert_eq!(json.to::<Vec<Option<u8>>>().expect("fits"), vec![Some(1), None]);
        let error = json.to::<String>().expect_err("does not fit");
        assert!(error.to_string().contains("String"), "{error}");
    }

    #[test]
    fn debug_shows_little_of_a_long_text() {
        let json = JsonText::of(&"é".repeat(5_000)).expect("has a form");
        assert!(format!("{json:?}").len() < 260);
    }
}
