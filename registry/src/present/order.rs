//! The configured order of the tool list.

use crate::error::list;
use crate::present::{AssemblyError, Listing};

/// Stands in an order for all tools that it does not list.
pub const REST_MARKER: &str = "<unlisted-tools>";

/// An order that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolOrderFault {
    /// No place for what is not listed.
    #[error("toolOrder must contain the rest entry `{REST_MARKER}`")]
    NoRest,
    /// A name, or the rest entry, has two places.
    #[error("toolOrder lists `{name}` more than once")]
    Duplicate {
        /// The name.
        name: String,
    },
}

/// Names in the order in which they are listed, and one place for all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOrder {
    before: Vec<String>,
    after: Vec<String>,
}

impl ToolOrder {
    /// Takes names, [`REST_MARKER`] among them.
    ///
    /// # Errors
    /// [`ToolOrderFault`].
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Result<Self, ToolOrderFault> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        for (position, name) in names.iter().enumerate() {
            if names[..position].contains(name) {
                return Err(ToolOrderFault::Duplicate { name: name.clone() });
            }
        }
        let marker = names.iter().position(|name| name == REST_MARKER).ok_or(ToolOrderFault::NoRest)?;
        Ok(Self { before: names[..marker].to_vec(), after: names[marker + 1..].to_vec() })
    }
}

/// Orders a list: fixed places first and last, the rest lexicographic between them. Equal names keep their order.
pub(crate) fn ordered(
    mut listings: Vec<Listing>,
    order: Option<&ToolOrder>,
) -> Result<Vec<Listing>, AssemblyError> {
    if listings.iter().any(|listing| &*listing.name == REST_MARKER) {
        return Err(AssemblyError::NamedLikeMarker);
    }
    listings.sort_by(|a, b| a.name.cmp(&b.name));
    let Some(order) = order else { return Ok(listings) };
    let has =
        |name: &&String| listings.binary_search_by(|listing| (*listing.name).cmp(name.as_str())).is_ok();
    let unknown: Vec<&String> = order.before.iter().chain(&order.after).filter(|name| !has(name)).collect();
    if !unknown.is_empty() {
        let known: Vec<&str> = listings.iter().map(|listing| &*listing.name).collect();
        return Err(AssemblyError::UnknownInOrder { unknown: list(&unknown), known: list(&known) });
    }
    let place = |listing: &Listing| {
        let at = |names: &[String]| names.iter().position(|name| **name == *listing.name);
        match (at(&order.before), at(&order.after)) {
            (Some(place), _) => (0, place),
            (None, None) => (1, 0),
            (None, Some(place)) => (2, place),
        }
    };
    listings.sort_by_key(place);
    Ok(listings)
}
