//! What is shown where declarations of all tools would be too long, and how programs find the rest.
//!
//! Everything here is decided by the tools alone: no learning, no clock, no order but that of names and scores.

use std::cmp::Reverse;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::signature::ToolSignature;
use crate::text;

/// How much of a description is shown beside a name, characters.
const SUMMARY_CHARS_MAX: usize = 100;
/// How many names of arguments a search looks at.
const ARGUMENTS_MAX: usize = 256;
/// How many words of a query count.
const QUERY_WORDS_MAX: usize = 32;
/// What ends a name's first part.
const SEPARATORS: [char; 6] = ['_', '-', '.', '/', ':', ' '];

/// The tools that a search has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The best of them, best first.
    pub tools: Vec<FoundTool>,
    /// How many there are in all.
    pub total: usize,
}

/// One tool that a search has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTool {
    /// The exact name.
    pub name: String,
    /// Its description on one line, shortened.
    pub description: String,
}

/// The declarations of some tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The text of the declarations; empty if no name is known.
    pub declarations: String,
    /// The names that no tool has, as they were given.
    pub unknown: Vec<String>,
}

impl Found {
    /// The value that the call gives: `{tools: [{name, description}], total}`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let tools: Vec<_> = self
            .tools
            .iter()
            .map(|tool| json!({ "name": tool.name, "description": tool.description }))
            .collect();
        json!({ "tools": tools, "total": self.total })
    }
}

impl Described {
    /// The value that the call gives: `{declarations, unknown}`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({ "declarations": self.declarations, "unknown": self.unknown })
    }
}

/// The tools that have words of the query, the more telling the place the earlier.
pub(crate) fn search(tools: &[&ToolSignature], query: &str, limit: usize) -> Found {
    let query = query.trim().to_lowercase();
    let words: Vec<_> = words(&query).take(QUERY_WORDS_MAX).collect();
    let mut scored: Vec<_> = tools
        .iter()
        .enumerate()
        .map(|(place, tool)| (Reverse(score(tool, &query, &words)), place))
        .filter(|(Reverse(score), _)| query.is_empty() || *score > 0)
        .collect();
    scored.sort_unstable();
    let found = |(_, place): &(Reverse<usize>, usize)| FoundTool {
        name: tools[*place].name().to_owned(),
        description: summary(tools[*place]),
    };
    Found { tools: scored.iter().take(limit).map(found).collect(), total: scored.len() }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn score(tool: &ToolSignature, query: &str, wanted: &[&str]) -> usize {
    let name = tool.name().to_lowercase();
    let description = tool.description().to_lowercase();
    let properties = tool.parameters().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let arguments: Vec<_> =
        properties.into_iter().flatten().take(ARGUMENTS_MAX).map(|(name, _)| name.to_lowercase()).collect();
    let word = |word: &&str| {
        let places = [
            (30, words(&name).any(|own| own == *word)),
            (10, name.contains(word)),
            (5, words(&description).any(|own| own == *word)),
            (3, arguments.iter().any(|argument| argument.contains(word))),
            (2, description.contains(word)),
        ];
        places.iter().filter(|(_, is_there)| *is_there).map(|(weight, _)| weight).sum::<usize>()
    };
    let exact = if name == query && !query.is_empty() { 1_000 } else { 0 };
    exact + wanted.iter().map(word).sum::<usize>()
}

fn summary(tool: &ToolSignature) -> String {
    text::shortened(&text::one_line(tool.description()), SUMMARY_CHARS_MAX)
}

/// The catalogue in at most about so many bytes: with descriptions, else names alone, else groups of names, else as
/// many groups as fit and a count of the rest.
pub(crate) fn shown(tools: &[&ToolSignature], bytes_max: usize) -> String {
    let head = format!("{} tools.", tools.len());
    let groups = groups(tools);
    let variants = [
        lines(tools.iter().map(|tool| described(tool)), bytes_max),
        lines(tools.iter().map(|tool| shown_name(tool.name())), bytes_max),
        lines(groups.iter().map(|(prefix, tools)| group(prefix, tools)), bytes_max),
    ];
    let whole = |body: &str| {
        text::fenced("text", &if body.is_empty() { head.clone() } else { format!("{head}\n{body}") })
    };
    let room = bytes_max.saturating_sub(whole("").len());
    let last = [cut(&groups, room), String::new()].map(Some);
    let candidates = variants.into_iter().chain(last).flatten().map(|body| whole(&body));
    // That there are tools at all is always said.
    candidates.into_iter().find(|text| text.len() <= bytes_max).unwrap_or_else(|| whole(""))
}

/// One line each; none as soon as they are too long together.
fn lines(lines: impl Iterator<Item = String>, bytes_max: usize) -> Option<String> {
    let mut text = String::new();
    for line in lines {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
        if text.len() > bytes_max {
            return None;
        }
    }
    Some(text)
}

fn described(tool: &ToolSignature) -> String {
    let (name, summary) = (shown_name(tool.name()), summary(tool));
    if summary.is_empty() { name } else { format!("{name}: {summary}") }
}

/// A name as it is, if nothing in it can be taken for anything else; quoted if not.
fn shown_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) { name.to_owned() } else { text::quoted(name) }
}

/// Tools by the first part of their names, in the order of names.
fn groups<'a>(tools: &[&'a ToolSignature]) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for tool in tools {
        let name = tool.name();
        let end = name.char_indices().skip(1).find(|(_, c)| SEPARATORS.contains(c));
        let prefix = end.map_or(name, |(at, c)| &name[..at + c.len_utf8()]);
        match groups.last_mut() {
            Some((last, names)) if *last == prefix => names.push(name),
            _ => groups.push((prefix, vec![name])),
        }
    }
    groups
}

fn group(prefix: &str, names: &[&str]) -> String {
    match names {
        [name] => shown_name(name),
        _ => format!("{}… ({} tools)", shown_name(prefix), names.len()),
    }
}

fn cut(groups: &[(&str, Vec<&str>)], bytes_max: usize) -> String {
    let mut text = String::new();
    let mut left: usize = groups.iter().map(|(_, names)| names.len()).sum();
    for (prefix, names) in groups {
        let line = group(prefix, names);
        // Room for the line that counts the rest.
        if text.len() + line.len() + 40 > bytes_max {
            break;
        }
        let _ = writeln!(text, "{line}");
        left -= names.len();
    }
    if text.is_empty() { text } else { format!("{text}and {left} more tools") }
}
