//! The author's shorthand: parameters as a map in which each says whether it is required, compiled to a JSON Schema.
//!
//! `{"path": {"type": "string", "required": true}}` becomes an open object schema with `path` required. The shorthand is
//! stricter than JSON Schema: an object says whether it is open, and an unknown key is an error.

use crate::json::{Json, Object, push_member, quote};
use crate::schema::step;

/// Why a shorthand was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid parameters: {}", violations.join("; "))]
pub struct AuthorFault {
    /// Everything that is wrong, with its path.
    pub violations: Vec<String>,
}

/// Keys that a node of the shorthand may have.
const KEYS: [&str; 12] = [
    "type",
    "oneOf",
    "properties",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "description",
    "title",
    "default",
    "examples",
    "required",
];

/// Compiles a map of parameters. The root stays open: models may send more than was asked for.
///
/// # Errors
/// [`AuthorFault`] with every violation.
pub fn compile_author(parameters: &Json) -> Result<String, AuthorFault> {
    let mut author = Author { violations: Vec::new() };
    let mut out = String::new();
    match parameters.as_object() {
        Some(members) => {
            out.push_str("{\"type\":\"object\"");
            author.members(members, "parameters", &mut out);
            out.push('}');
        }
        None => author.violations.push("`parameters` must be an object".to_owned()),
    }
    if author.violations.is_empty() { Ok(out) } else { Err(AuthorFault { violations: author.violations }) }
}

struct Author {
    violations: Vec<String>,
}

impl Author {
    fn report(&mut self, path: &str, what: &str) {
        self.violations.push(format!("`{path}` {what}"));
    }

    /// `,"properties":{…},"required":[…]`
    fn members(&mut self, members: &Object, path: &str, out: &mut String) {
        out.push_str(",\"properties\":{");
        let mut required = Vec::new();
        for (position, (name, node)) in members.iter().enumerate() {
            let name = name.to_text_lossy();
            let mut path = path.to_owned();
            push_member(&mut path, &name);
            match node.get("required") {
                Some(Json::Bool(true)) => required.push(quote(&name)),
                None | Some(Json::Bool(false)) => {}
                Some(_) => self.report(&path, "has a `required` that is not a boolean"),
            }
            if position > 0 {
                out.push(',');
            }
            out.push_str(&quote(&name));
            out.push(':');
            self.node(node, &path, true, out);
        }
        out.push('}');
        if !required.is_empty() {
            out.push_str(&format!(",\"required\":[{}]", required.join(",")));
        }
    }

    fn node(&mut self, node: &Json, path: &str, is_member: bool, out: &mut String) {
        step(|| {
            let Some(node) = node.as_object() else {
                self.report(path, "must be an object");
                out.push_str("{}");
                return;
            };
            self.keys(node, path, is_member);
            let mut parts = Vec::new();
            for (name, value) in node.iter() {
                let name = name.to_text_lossy();
                let part = match &*name {
                    "required" | "properties" => continue,
                    "items" => self.child(value, &format!("{path}.items")),
                    "oneOf" => self.branches(value, path),
                    _ => value.to_string(),
                };
                parts.push(format!("{}:{part}", quote(&name)));
            }
            if node.get("type").is_none() && node.get("oneOf").is_none() {
                self.report(path, "has neither `type` nor `oneOf`");
            }
            let mut members = String::new();
            if node.get("type").and_then(Json::as_str) == Some("object") {
                if !matches!(node.get("additionalProperties"), Some(Json::Bool(_))) {
                    self.report(path, "must say `additionalProperties`: true or false");
                }
                match node.get("properties").map(Json::as_object) {
                    Some(Some(own)) => self.members(own, &format!("{path}.properties"), &mut members),
                    Some(None) => self.report(path, "has `properties` that are not an object"),
                    None => {}
                }
            }
            out.push('{');
            out.push_str(&parts.join(","));
            out.push_str(if parts.is_empty() { members.trim_start_matches(',') } else { &members });
            out.push('}');
        });
    }

    fn keys(&mut self, node: &Object, path: &str, is_member: bool) {
        for (name, _) in node.iter() {
            let name = name.to_text_lossy();
            if !KEYS.contains(&&*name) {
                self.report(path, &format!("has the unknown key `{name}`"));
            }
            if name == "required" && !is_member {
                self.report(path, "must not say `required`: it is no member of an object");
            }
        }
    }

    fn child(&mut self, node: &Json, path: &str) -> String {
        let mut out = String::new();
        self.node(node, path, false, &mut out);
        out
    }

    fn branches(&mut self, branches: &Json, path: &str) -> String {
        let branches = branches.as_array().unwrap_or_default();
        if branches.len() < 2 {
            self.report(path, "has a `oneOf` of fewer than two branches");
        }
        let compiled = branches
            .iter()
            .enumerate()
            .map(|(at, branch)| self.child(branch, &format!("{path}.oneOf[{at}]")));
        format!("[{}]", compiled.collect::<Vec<_>>().join(","))
    }
}
