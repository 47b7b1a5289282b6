//! JSON values as the registry reads them: lossless, and without a limit of depth.
//!
//! [`Json`] is a tree that is parsed, walked, written and dropped without recursion, so a value of any depth is safe.
//! Texts that say something a double or an object cannot hold without loss are refused by [`Json::parse`]. Values
//! travel as [`JsonText`]; a tree exists only while somebody looks inside.

mod number;
mod parse;
mod string;
mod write;

use std::fmt;

use codemode_client::JsonText;

pub use number::Number;
pub use parse::{LossFault, Lossy};
pub use string::JsonString;
pub(crate) use write::{push_member, quote};

/// One JSON value.
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A finite double that is not negative zero.
    Number(Number),
    /// Any sequence of UTF-16 units, half surrogates included.
    String(JsonString),
    /// Items in order.
    Array(Vec<Self>),
    /// Members in order.
    Object(Object),
}

/// Members of an object, in the order in which they were written, each name once.
#[derive(Default)]
pub struct Object {
    members: Vec<(JsonString, Json)>,
    /// Positions in `members`, sorted by name; only kept for objects that are too large to search through.
    index: Vec<u32>,
}

/// Objects of up to this many members are searched one by one.
const LINEAR_MEMBERS_MAX: usize = 8;

impl Object {
    /// Takes members in order. Gives the position of the second of two members with one name as an error.
    pub(crate) fn from_members(members: Vec<(JsonString, Json)>) -> Result<Self, usize> {
        if members.len() <= LINEAR_MEMBERS_MAX {
            for (position, (name, _)) in members.iter().enumerate() {
                if members[..position].iter().any(|(other, _)| other == name) {
                    return Err(position);
                }
            }
            return Ok(Self { members, index: Vec::new() });
        }
        let count = u32::try_from(members.len()).map_err(|_| members.len() - 1)?;
        let mut index: Vec<u32> = (0..count).collect();
        index.sort_by(|a, b| members[*a as usize].0.cmp(&members[*b as usize].0));
        for pair in index.windows(2) {
            if members[pair[0] as usize].0 == members[pair[1] as usize].0 {
                return Err(pair[0].max(pair[1]) as usize);
            }
        }
        Ok(Self { members, index })
    }

    /// The value of the member `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        if self.index.is_empty() {
            return self.members.iter().find(|(own, _)| own == name).map(|(_, value)| value);
        }
        let found =
            self.index.binary_search_by(|at| self.members[*at as usize].0.as_bytes().cmp(name.as_bytes()));
        found.ok().map(|at| &self.members[self.index[at] as usize].1)
    }

    /// Members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&JsonString, &Json)> {
        self.members.iter().map(|(name, value)| (name, value))
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl Json {
    /// Reads one lossless JSON text.
    ///
    /// # Errors
    /// [`Lossy`]: not JSON, or JSON that says what a double or an object cannot hold; with the path.
    pub fn parse(text: &str) -> Result<Self, Lossy> {
        parse::parse(text)
    }

    /// The text, without white space.
    #[must_use]
    pub fn to_text(&self) -> JsonText {
        let text = self.to_string();
        JsonText::parse(text).unwrap_or_else(|_| JsonText::null())
    }

    /// The value in lines of two spaces of indentation, at most ten; what is nested deeper is written without spaces.
    #[must_use]
    pub fn to_pretty(&self) -> String {
        write::pretty(self)
    }

    /// The members, if it is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The items, if it is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The string, if it is one without half surrogates.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(string) => string.as_str(),
            _ => None,
        }
    }

    /// The value of the member `name`, if it is an object that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.get(name)
    }

    /// Whether both are the same scalar; containers are never the same.
    #[must_use]
    pub fn same_scalar(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a.value() == b.value(),
            (Self::String(a), Self::String(b)) => a == b,
            _ => false,
        }
    }

    /// Levels of nesting; a scalar has none.
    #[must_use]
    pub fn depth(&self) -> usize {
        let mut deepest = 0;
        let mut open = vec![(self, 0)];
        while let Some((value, depth)) = open.pop() {
            deepest = deepest.max(depth);
            match value {
                Self::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
                Self::Object(object) => open.extend(object.iter().map(|(_, item)| (item, depth + 1))),
                _ => {}
            }
        }
        deepest
    }

    /// Moves what it holds to `into`, so that it can be dropped without recursion.
    fn unload(&mut self, into: &mut Vec<Self>) {
        match self {
            Self::Array(items) => into.append(items),
            Self::Object(object) => {
                into.extend(std::mem::take(&mut object.members).into_iter().map(|member| member.1))
            }
            _ => {}
        }
    }
}

impl Drop for Json {
    fn drop(&mut self) {
        let mut rest = Vec::new();
        self.unload(&mut rest);
        while let Some(mut value) = rest.pop() {
            value.unload(&mut rest);
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&write::compact(self))
    }
}

/// Bytes of a text that a `Debug` form shows; values are not for logs.
const DEBUG_BYTES_MAX: usize = 200;

impl fmt::Debug for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_string();
        formatter.write_str(&text[..text.floor_char_boundary(DEBUG_BYTES_MAX)])
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.members.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests;
