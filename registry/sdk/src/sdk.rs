//! One set of tools, as a model is shown it and as its programs find it: text, names, catalogue, from one value.
//!
//! An [`Sdk`] never changes. What it says of a tool is worked out when it is asked for, kept beside the tool, and
//! carried over by [`Sdk::rebuilt`] to the next set as long as the tool's content stays what it was.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::catalogue::{self, Described, Found};
use crate::example;
use crate::language::Language;
use crate::signature::{ContentKey, KeyHasher, ToolSignature};
use crate::{RUN_CODE, python, typescript};

/// How an SDK is to be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SdkOptions {
    /// The size of the text, in tokens as [`BYTES_PER_TOKEN`] estimates them, up to which all declarations are in it.
    /// A larger set is shown as a catalogue, shortened until it fits; even a budget of 0 leaves the instructions, and
    /// declarations that are shorter than any catalogue are shown anyway. None means that all are always shown.
    pub token_budget: Option<usize>,
}

/// UTF-8 bytes that are counted as one token. The rule of thumb of model vendors for English text and code is four
/// characters a token; other scripts have more bytes a character and more tokens a character, so bytes are counted.
pub const BYTES_PER_TOKEN: usize = 4;

/// Tokens that a text is estimated to take.
#[must_use]
pub const fn estimated_tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_PER_TOKEN)
}

/// A set of tools for programs.
#[derive(Clone)]
pub struct Sdk {
    /// Sorted by name in UTF-16 units, each name once, without `run_code`.
    tools: Vec<Arc<Tool>>,
    options: SdkOptions,
    key: ContentKey,
    typescript: OnceLock<Shown>,
    python: OnceLock<Shown>,
}

/// A tool and what is worked out of it alone.
struct Tool {
    signature: ToolSignature,
    typescript: OnceLock<typescript::Declarations>,
    python: OnceLock<python::Declarations>,
}

/// What an SDK is in one language.
#[derive(Clone)]
struct Shown {
    text: String,
    is_catalogue: bool,
    /// The names that were given to each tool's types.
    names: Vec<Vec<String>>,
}

impl Tool {
    fn typescript(&self) -> &typescript::Declarations {
        self.typescript.get_or_init(|| typescript::declarations(&self.signature))
    }

    fn python(&self) -> &python::Declarations {
        self.python.get_or_init(|| python::declarations(&self.signature))
    }
}

impl Sdk {
    /// An SDK of these tools, in whatever order they come. `run_code` is left out; of tools of one name, one stays,
    /// the same one in any order.
    #[must_use]
    pub fn build(tools: &[ToolSignature], options: SdkOptions) -> Self {
        Self::from_known(&HashMap::new(), tools, options)
    }

    /// Like [`Sdk::build`], but what is worked out in this SDK for tools that are in both is not worked out again.
    #[must_use]
    pub fn rebuilt(&self, tools: &[ToolSignature], options: SdkOptions) -> Self {
        let known = self.tools.iter().map(|tool| (tool.signature.key(), tool)).collect();
        Self::from_known(&known, tools, options)
    }

    fn from_known(
        known: &HashMap<ContentKey, &Arc<Tool>>,
        tools: &[ToolSignature],
        options: SdkOptions,
    ) -> Self {
        let sorted = sorted(tools);
        let key = key_of(&sorted, options);
        let tool = |signature: &ToolSignature| {
            let new = || {
                let signature = signature.clone();
                Arc::new(Tool { signature, typescript: OnceLock::new(), python: OnceLock::new() })
            };
            known.get(&signature.key()).map_or_else(new, |tool| Arc::clone(tool))
        };
        let tools = sorted.into_iter().map(tool).collect();
        Self { tools, options, key, typescript: OnceLock::new(), python: OnceLock::new() }
    }

    /// The key that [`Sdk::build`] would give: what to look for before building.
    #[must_use]
    pub fn key_of(tools: &[ToolSignature], options: SdkOptions) -> ContentKey {
        key_of(&sorted(tools), options)
    }

    /// The key of everything that this SDK says. Equal keys, equal bytes.
    #[must_use]
    pub const fn key(&self) -> ContentKey {
        self.key
    }

    /// The whole section for a prompt: instructions, and a fence with declarations or, beyond the budget, a catalogue.
    #[must_use]
    pub fn text(&self, language: Language) -> &str {
        &self.shown(language).text
    }

    /// Tokens that [`Sdk::text`] is estimated to take.
    #[must_use]
    pub fn estimated_tokens(&self, language: Language) -> usize {
        estimated_tokens(self.text(language))
    }

    /// Whether the text is a catalogue: then programs are to find a second global, `catalog`, with the functions
    /// `search` and `describe` that [`Sdk::search`] and [`Sdk::describe`] answer. It is a global of its own, so no tool's
    /// name is taken.
    #[must_use]
    pub fn is_catalogue(&self, language: Language) -> bool {
        self.shown(language).is_catalogue
    }

    /// The names that programs can call, sorted by UTF-16 units: exactly those that the text declares or describes.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tools.iter().map(|tool| tool.signature.name())
    }

    /// What `catalog.search({query, limit?})` answers: tools that have words of the query in their names, descriptions
    /// or argument names, best first. An empty query finds all, by name.
    #[must_use]
    pub fn search(&self, query: &str, limit: usize) -> Found {
        catalogue::search(&self.signatures(), query, limit)
    }

    /// What `catalog.describe({names})` answers: the declarations of these tools, each once, as they would stand in the
    /// full text.
    #[must_use]
    pub fn describe(&self, names: &[&str], language: Language) -> Described {
        let mut places = Vec::new();
        let mut unknown = Vec::new();
        for name in names {
            match self.place(name) {
                Some(place) => places.push(place),
                None => unknown.push((*name).to_owned()),
            }
        }
        places.sort_unstable();
        places.dedup();
        let given = &self.shown(language).names;
        let named = |place: &usize| (&self.tools[*place], given[*place].as_slice());
        let declarations = match language {
            _ if places.is_empty() => String::new(),
            Language::TypeScript => typescript::section::described(
                places.iter().map(named).map(|(tool, names)| (tool.typescript(), names)),
            ),
            Language::Python => python::section::described(
                places.iter().map(named).map(|(tool, names)| (tool.python(), names)),
            ),
        };
        Described { declarations, unknown }
    }

    /// A complete program that calls a tool with small arguments that its types accept. None if there is no such tool
    /// or no such arguments.
    #[must_use]
    pub fn example(&self, name: &str, language: Language) -> Option<String> {
        let tool = &self.tools[self.place(name)?].signature;
        example::program(tool, language)
    }

    fn signatures(&self) -> Vec<&ToolSignature> {
        self.tools.iter().map(|tool| &tool.signature).collect()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.tools.binary_search_by(|tool| by_units(tool.signature.name(), name)).ok()
    }

    fn shown(&self, language: Language) -> &Shown {
        match language {
            Language::TypeScript => self.typescript.get_or_init(|| self.show_typescript()),
            Language::Python => self.python.get_or_init(|| self.show_python()),
        }
    }

    fn show_typescript(&self) -> Shown {
        let names = typescript::section::named(self.tools.iter().map(|tool| tool.typescript()));
        let example = self.first_example(Language::TypeScript);
        let tools = self.tools.iter().map(|tool| tool.typescript()).zip(names.iter().map(Vec::as_slice));
        let text = typescript::section::section(tools, example.as_deref());
        self.within_budget(text, names, |catalogue| {
            typescript::section::catalogued(catalogue, example.as_deref())
        })
    }

    fn show_python(&self) -> Shown {
        let tool_names: Vec<_> = self.names().collect();
        let names = python::section::named(self.tools.iter().map(|tool| tool.python()), &tool_names);
        let example = self.first_example(Language::Python);
        let tools = self.tools.iter().map(|tool| tool.python()).zip(names.iter().map(Vec::as_slice));
        let text = python::section::section(tools, example.as_deref());
        self.within_budget(text, names, |catalogue| {
            python::section::catalogued(catalogue, example.as_deref())
        })
    }

    /// The first tool with a plain name and small arguments shows how a call is written.
    fn first_example(&self, language: Language) -> Option<String> {
        let is_plain = |tool: &&ToolSignature| python::is_method(tool.name());
        let few = self.signatures().into_iter().filter(is_plain).take(EXAMPLES_TRIED);
        let examples = few.filter_map(|tool| example::program(tool, language));
        examples.into_iter().find(|example| example.len() <= EXAMPLE_BYTES_MAX)
    }

    fn within_budget(&self, text: String, names: Vec<Vec<String>>, around: impl Fn(&str) -> String) -> Shown {
        let budget = self.options.token_budget.unwrap_or(usize::MAX);
        if estimated_tokens(&text) <= budget {
            return Shown { text, is_catalogue: false, names };
        }
        let room = budget.saturating_mul(BYTES_PER_TOKEN).saturating_sub(around("").len());
        let catalogue = around(&catalogue::shown(&self.signatures(), room));
        // Of a few tools, the declarations are shorter than what it takes to find them.
        if catalogue.len() < text.len() {
            Shown { text: catalogue, is_catalogue: true, names }
        } else {
            Shown { text, is_catalogue: false, names }
        }
    }
}

/// How many tools are looked at for one that makes a good example.
const EXAMPLES_TRIED: usize = 20;
/// What is longer does not show how a call is written.
const EXAMPLE_BYTES_MAX: usize = 300;

impl fmt::Debug for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sdk")
            .field("key", &self.key)
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}

/// The order of names: by UTF-16 units, as ECMAScript compares strings.
fn by_units(one: &str, other: &str) -> Ordering {
    one.encode_utf16().cmp(other.encode_utf16())
}

fn sorted(tools: &[ToolSignature]) -> Vec<&ToolSignature> {
    let mut sorted: Vec<_> = tools.iter().filter(|tool| tool.name() != RUN_CODE).collect();
    sorted.sort_by(|one, other| by_units(one.name(), other.name()).then(one.key().cmp(&other.key())));
    sorted.dedup_by(|later, earlier| later.name() == earlier.name());
    sorted
}

fn key_of(sorted: &[&ToolSignature], options: SdkOptions) -> ContentKey {
    let mut hasher = KeyHasher::default();
    hasher.text(&format!("{options:?}"));
    sorted.iter().for_each(|tool| hasher.key(tool.key()));
    hasher.finish()
}
