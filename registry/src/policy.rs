//! Policies that need no code: rules that allow, deny or ask, by scope, tool and argument.
//!
//! The first rule that fits a call decides; where none does, the call is allowed. A denial by rule is final: hooks never
//! see the call. Start reading at [`Policy::decide`].

mod glob;

use serde::{Deserialize, Serialize};

pub use glob::Glob;

use crate::json::Json;
use crate::tool::Arguments;

/// What a rule does with the calls that fit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Lets them pass to the hooks.
    Allow,
    /// Refuses them.
    Deny,
    /// Has a person decide.
    Ask,
}

/// A condition on one argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentPattern {
    /// JSON pointer into the arguments: `/path`, `/options/0`.
    pub pointer: String,
    /// What the value must be: a string as it is, anything else as compact JSON. A value that is not there fits nothing.
    pub matches: Glob,
}

/// One rule. It fits a call if all its parts do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What it does.
    pub effect: Effect,
    /// Names of tools, any of them.
    pub tools: Vec<Glob>,
    /// Conditions on arguments, all of them.
    #[serde(default)]
    pub arguments: Vec<ArgumentPattern>,
    /// Label of the caller's scope or of one above it. Without one the rule is everybody's.
    #[serde(default)]
    pub scope: Option<Glob>,
    /// What the model, or the person who is asked, is told.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Rules in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Policy {
    /// The first that fits decides.
    pub rules: Vec<Rule>,
}

impl Policy {
    /// The rule that decides on a call.
    #[must_use]
    pub fn decide<'a>(
        &'a self,
        tool: &str,
        arguments: &Arguments,
        scope_labels: &[&str],
    ) -> Option<&'a Rule> {
        self.rules.iter().find(|rule| rule.fits(tool, arguments, scope_labels))
    }
}

impl Rule {
    fn fits(&self, tool: &str, arguments: &Arguments, scope_labels: &[&str]) -> bool {
        let in_scope = |scope: &Glob| scope_labels.iter().any(|label| scope.matches(label));
        self.tools.iter().any(|glob| glob.matches(tool))
            && self.scope.as_ref().is_none_or(in_scope)
            && self.arguments.iter().all(|pattern| pattern.fits(arguments.value()))
    }
}

impl ArgumentPattern {
    pub(crate) fn fits(&self, arguments: &Json) -> bool {
        let text = match at_pointer(arguments, &self.pointer) {
            None => return false,
            Some(Json::String(text)) => text.to_text_lossy().into_owned(),
            Some(other) => other.to_string(),
        };
        self.matches.matches(&text)
    }
}

/// The value that a JSON pointer (RFC 6901) leads to.
fn at_pointer<'a>(value: &'a Json, pointer: &str) -> Option<&'a Json> {
    if pointer.is_empty() {
        return Some(value);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(value, |value, token| {
        let token = token.replace("~1", "/").replace("~0", "~");
        match value {
            Json::Object(object) => object.get(&token),
            Json::Array(items) => items.get(token.parse::<usize>().ok()?),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests;
