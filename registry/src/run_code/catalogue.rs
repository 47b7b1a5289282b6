//! The second global of programs where the SDK shows a catalogue: finds tools and gives their declarations.
//!
//! Its calls reach no tool: they are answered from the surface that the model was shown, and not logged.

use std::sync::Arc;

use codemode_client::{BindingError, Namespace};
use codemode_sdk::Language;
use serde::Deserialize;

use crate::present::Surface;

/// The global, as the SDK's text names it.
const GLOBAL: &str = "catalog";
/// Tools that a search gives where it does not say how many, and at most.
const FOUND_DEFAULT: usize = 20;
const FOUND_MAX: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Describe {
    names: Vec<String>,
}

/// The namespace, if the surface's SDK is a catalogue.
pub(super) fn namespace(surface: &Arc<Surface>) -> Option<Namespace> {
    let language: Language = *surface.language().as_ref().ok()?;
    // Without a budget there is no catalogue, and no need to render anything to know it.
    surface.settings().sdk_token_budget?;
    if !surface.sdk().is_catalogue(language) {
        return None;
    }
    let (searched, described) = (Arc::clone(surface.sdk()), Arc::clone(surface.sdk()));
    let namespace = Namespace::new(GLOBAL)
        .typed("search", move |asked: Search, _| {
            let found = searched.search(&asked.query, asked.limit.unwrap_or(FOUND_DEFAULT).min(FOUND_MAX));
            async move { Ok::<_, BindingError>(found.to_value()) }
        })
        .typed("describe", move |asked: Describe, _| {
            let names: Vec<&str> = asked.names.iter().map(String::as_str).collect();
            let found = described.describe(&names, language);
            async move { Ok::<_, BindingError>(found.to_value()) }
        });
    Some(namespace)
}
