//! Strings of UTF-16 units, held as UTF-8 that may have half surrogates in it.

use std::borrow::Cow;
use std::fmt;

/// A JSON string: any sequence of UTF-16 units. Half surrogates are held as three bytes, as UTF-8 would if it had them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonString(Box<[u8]>);

/// A piece of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Text without half surrogates.
    Text(&'a str),
    /// A half surrogate.
    Half(u16),
}

impl JsonString {
    /// Takes bytes made by `push_unit` and plain text only.
    pub(super) fn from_generalized(bytes: Vec<u8>) -> Self {
        Self(bytes.into_boxed_slice())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, if no half surrogate is in it.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The text, with U+FFFD for half surrogates.
    #[must_use]
    pub fn to_text_lossy(&self) -> Cow<'_, str> {
        if let Some(text) = self.as_str() {
            return Cow::Borrowed(text);
        }
        let mut text = String::with_capacity(self.0.len());
        for piece in self.pieces() {
            match piece {
                Piece::Text(run) => text.push_str(run),
                Piece::Half(_) => text.push(char::REPLACEMENT_CHARACTER),
            }
        }
        Cow::Owned(text)
    }

    /// The string in pieces, in order.
    pub(crate) fn pieces(&self) -> Pieces<'_> {
        Pieces { rest: &self.0 }
    }
}

/// Iterator over [`Piece`]s.
pub(crate) struct Pieces<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match std::str::from_utf8(self.rest) {
            Ok(text) => {
                self.rest = &[];
                Some(Piece::Text(text))
            }
            Err(fault) if fault.valid_up_to() > 0 => {
                let (text, rest) = self.rest.split_at(fault.valid_up_to());
                self.rest = rest;
                std::str::from_utf8(text).ok().map(Piece::Text)
            }
            Err(_) => {
                let (half, rest) = self.rest.split_at_checked(3)?;
                self.rest = rest;
                Some(Piece::Half(
                    (u16::from(half[0] & 0x0f) << 12)
                        | (u16::from(half[1] & 0x3f) << 6)
                        | u16::from(half[2] & 0x3f),
                ))
            }
        }
    }
}

/// Appends one half surrogate in three bytes.
pub(super) fn push_half(bytes: &mut Vec<u8>, unit: u16) {
    let [high, low] = unit.to_be_bytes();
    bytes.extend([0xe0 | (high >> 4), 0x80 | ((high & 0x0f) << 2) | (low >> 6), 0x80 | (low & 0x3f)]);
}

impl From<&str> for JsonString {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl PartialEq<str> for JsonString {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other.as_bytes()
    }
}

impl fmt::Debug for JsonString {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_text_lossy(), formatter)
    }
}
