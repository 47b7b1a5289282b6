//! What a model request is made of: the tool list and the sections of the system prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use codemode_events::Json;
use codemode_sdk::UnknownLanguage;
use serde::Serialize;
use serde::ser::SerializeStruct;

use crate::hook::{HookError, guarded, guarded_async};
use crate::present::order::{REST_MARKER, ordered};
use crate::present::section::{CODE_ONLY_ORDER, CODE_ONLY_RULE, SDK_ORDER};
use crate::present::{CODE_ONLY_SECTION, Mode, RenderedSection, SDK_SECTION, Section, Surface};
use crate::registry::Registry;
use crate::schema::Schema;
use crate::store::{ScopeId, State};
use crate::tool::ToolDefinition;

/// A tool as a model is told of it: nothing but this.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Its name.
    pub name: Arc<str>,
    /// What it does.
    pub description: Arc<str>,
    /// What arguments it takes.
    pub parameters: Schema,
}

impl Listing {
    pub(crate) fn of(definition: &ToolDefinition) -> Self {
        Self {
            name: Arc::clone(&definition.name),
            description: Arc::clone(&definition.description),
            parameters: definition.parameters.clone(),
        }
    }
}

impl Serialize for Listing {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Listing", 3)?;
        object.serialize_field("name", &*self.name)?;
        object.serialize_field("description", &*self.description)?;
        object.serialize_field("parameters", self.parameters.text())?;
        object.end()
    }
}

/// Why there is no assembly. No request may be made then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssemblyError {
    /// Programs could not run.
    #[error("mode \"{mode}\" requires a code runtime")]
    NoRuntime {
        /// The scope's mode.
        mode: Mode,
    },
    /// The tools cannot be declared in the language of programs.
    #[error("mode \"{mode}\": {unknown}")]
    NoRenderer {
        /// The scope's mode.
        mode: Mode,
        /// The runtime's language, and those there are.
        unknown: UnknownLanguage,
    },
    /// The order lists tools that are not there in this mode.
    #[error("toolOrder lists unregistered tool(s) {unknown}; known tools: {known}")]
    UnknownInOrder {
        /// Those tools.
        unknown: String,
        /// Those it could list.
        known: String,
    },
    /// A tool is named like the rest entry of orders.
    #[error("a tool must not be named `{REST_MARKER}`: that is the rest entry of toolOrder")]
    NamedLikeMarker,
    /// A section's text could not be made.
    #[error("section `{name}`: {fault}")]
    Section {
        /// The section.
        name: Arc<str>,
        /// What it said.
        fault: String,
    },
    /// A provider or a listener failed.
    #[error("prompt assembly failed: {0}")]
    Hook(#[from] HookError),
}

/// Lists tools that are carried out elsewhere.
pub trait ToolProvider: Send + Sync {
    /// The tools, for a scope. A panic fails the assembly.
    fn listings(&self, scope: ScopeId) -> Vec<Listing>;
}

/// Has the last word on an assembly. A waterfall: each is given what those before it made of it.
#[async_trait]
pub trait AssemblyListener: Send + Sync {
    /// Gives back what the request shall be made of; nothing is put back that it took out, and nothing sorted again.
    ///
    /// # Errors
    /// A failure fails the assembly.
    async fn assemble(&self, assembly: Assembly) -> Result<Assembly, HookError>;
}

/// What a model request is made of.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// The tool list, in order.
    pub tools: Vec<Listing>,
    /// The sections, in order.
    pub sections: Vec<RenderedSection>,
    /// What it was made from; calls that answer the request are made with it.
    pub surface: Arc<Surface>,
}

impl Assembly {
    /// The text of a section; `None` if it is not there.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&str> {
        self.sections.iter().find(|section| &*section.name == name).map(|section| &*section.text)
    }

    /// The system prompt: the sections that say something, with an empty line between them.
    #[must_use]
    pub fn system(&self) -> String {
        let texts = self.sections.iter().map(|section| &*section.text).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// System prompt and tool list as a request's header in the session log has them; what is empty is left out.
    #[must_use]
    pub fn header(&self) -> (Option<String>, Option<Vec<Json>>) {
        let system = Some(self.system()).filter(|text| !text.is_empty());
        // A listing is text, text and JSON: it has a JSON form.
        let tools: Vec<Json> = self.tools.iter().filter_map(|listing| Json::of(listing).ok()).collect();
        (system, Some(tools).filter(|tools| !tools.is_empty()))
    }
}

/// Makes the assembly of a scope.
pub(crate) async fn assemble(registry: &Registry, scope: ScopeId) -> Result<Assembly, AssemblyError> {
    let (state, surface) = registry.state_and_surface(scope);
    refuse_what_cannot_run(&surface)?;
    let mut listings = surface.listings().to_vec();
    for provider in state.hooks(scope, |layer| &layer.providers) {
        listings.extend(guarded(|| Ok(provider.listings(scope))).map_err(HookError)?);
    }
    let tools = ordered(listings, surface.settings().tool_order.as_ref())?;
    let sections = sections(&state, &surface)?;
    let mut assembly = Assembly { tools, sections, surface };
    for listener in state.hooks(scope, |layer| &layer.assembly) {
        assembly = guarded_async(listener.assemble(assembly)).await?;
    }
    Ok(assembly)
}

fn refuse_what_cannot_run(surface: &Surface) -> Result<(), AssemblyError> {
    let mode = surface.mode();
    if !mode.has_transport() {
        return Ok(());
    }
    match (surface.has_runtime(), surface.language()) {
        (false, _) => Err(AssemblyError::NoRuntime { mode }),
        (true, Err(unknown)) => Err(AssemblyError::NoRenderer { mode, unknown: unknown.clone() }),
        (true, Ok(_)) => Ok(()),
    }
}

fn sections(state: &State, surface: &Surface) -> Result<Vec<RenderedSection>, AssemblyError> {
    let registered = state.hooks(surface.scope(), |layer| &layer.sections);
    // The nearest scope's section of a name is the one that counts.
    let by_name: BTreeMap<Arc<str>, Arc<Section>> =
        registered.into_iter().map(|section| (Arc::clone(&section.name), section)).collect();
    let mut sections: Vec<RenderedSection> = own_sections(surface);
    sections.retain(|section| !by_name.contains_key(&section.name));
    for (name, section) in by_name {
        let text = guarded(|| Ok((section.text)()))
            .map_err(|fault| AssemblyError::Section { name: Arc::clone(&name), fault })?;
        sections.push(RenderedSection { name, order: section.order, text: text.into() });
    }
    sections.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
    Ok(sections)
}

/// The sections of Code Mode; none in native mode.
fn own_sections(surface: &Surface) -> Vec<RenderedSection> {
    if !surface.mode().has_transport() {
        return Vec::new();
    }
    let rule = if surface.mode() == Mode::Code { CODE_ONLY_RULE } else { "" };
    vec![
        RenderedSection { name: CODE_ONLY_SECTION.into(), order: CODE_ONLY_ORDER, text: rule.into() },
        RenderedSection { name: SDK_SECTION.into(), order: SDK_ORDER, text: surface.sdk_text() },
    ]
}
