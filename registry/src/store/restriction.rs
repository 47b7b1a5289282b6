//! Filters that hide inherited tools from a scope and from what is below it.

use std::collections::BTreeSet;

/// Hides inherited tools. Names are kept as they were given; they meet the tools as these come and go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restriction {
    /// Only these, if given.
    pub allow: Option<BTreeSet<String>>,
    /// Not these.
    pub deny: BTreeSet<String>,
}

impl Restriction {
    /// Hides everything but these.
    #[must_use]
    pub fn allow<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { allow: Some(names.into_iter().map(str::to_owned).collect()), deny: BTreeSet::new() }
    }

    /// Hides these.
    #[must_use]
    pub fn deny<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { allow: None, deny: names.into_iter().map(str::to_owned).collect() }
    }

    /// Whether it hides nothing, whatever the tools are.
    #[must_use]
    pub fn is_no_op(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }

    /// Whether a tool of that name stays.
    #[must_use]
    pub fn admits(&self, name: &str) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.contains(name)) && !self.deny.contains(name)
    }

    /// All names it mentions.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.allow.iter().flatten().chain(&self.deny)
    }
}
