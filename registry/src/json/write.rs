//! From tree to text, without recursion: compact, or in lines as a person reads it.

use std::fmt::Write as _;

use super::string::Piece;
use super::{Json, JsonString};

/// Containers at this depth and below have no lines of their own: their members would be indented by more than ten.
const PRETTY_DEPTH_END: usize = 5;
const INDENT: &str = "  ";

enum Rest<'a> {
    Items(std::slice::Iter<'a, Json>),
    Members(Box<dyn Iterator<Item = (&'a JsonString, &'a Json)> + 'a>),
}

struct Level<'a> {
    rest: Rest<'a>,
    /// Whether its members stand on lines of their own.
    lines: bool,
    first: bool,
}

pub(super) fn compact(value: &Json) -> String {
    write(value, 0)
}

pub(super) fn pretty(value: &Json) -> String {
    write(value, PRETTY_DEPTH_END)
}

fn write(value: &Json, lines_end: usize) -> String {
    let mut out = String::new();
    let mut open: Vec<Level<'_>> = Vec::new();
    begin(value, lines_end, &mut out, &mut open);
    while let Some(depth) = open.len().checked_sub(1) {
        let level = &mut open[depth];
        let next = match &mut level.rest {
            Rest::Items(items) => items.next().map(|item| (None, item)),
            Rest::Members(members) => members.next().map(|(name, item)| (Some(name), item)),
        };
        let lines = level.lines;
        let Some((name, item)) = next else {
            let close = if matches!(level.rest, Rest::Items(_)) { ']' } else { '}' };
            open.pop();
            if lines {
                new_line(&mut out, depth);
            }
            out.push(close);
            continue;
        };
        if !std::mem::take(&mut level.first) {
            out.push(',');
        }
        if lines {
            new_line(&mut out, depth + 1);
        }
        if let Some(name) = name {
            push_string(&mut out, name);
            out.push_str(if lines { ": " } else { ":" });
        }
        begin(item, lines_end, &mut out, &mut open);
    }
    out
}

/// Writes a scalar or an empty container whole, and opens any other.
fn begin<'a>(value: &'a Json, lines_end: usize, out: &mut String, open: &mut Vec<Level<'a>>) {
    let lines = open.len() < lines_end && open.last().is_none_or(|level| level.lines);
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(number) => out.push_str(number.as_str()),
        Json::String(string) => push_string(out, string),
        Json::Array(items) if items.is_empty() => out.push_str("[]"),
        Json::Object(object) if object.is_empty() => out.push_str("{}"),
        Json::Array(items) => {
            out.push('[');
            open.push(Level { rest: Rest::Items(items.iter()), lines, first: true });
        }
        Json::Object(object) => {
            out.push('{');
            open.push(Level { rest: Rest::Members(Box::new(object.iter())), lines, first: true });
        }
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str(INDENT);
    }
}

fn push_string(out: &mut String, string: &JsonString) {
    out.push('"');
    for piece in string.pieces() {
        match piece {
            Piece::Text(text) => push_escaped(out, text),
            // Writing to a string cannot fail.
            Piece::Half(unit) => drop(write!(out, "\\u{unit:04x}")),
        }
    }
    out.push('"');
}

fn push_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => drop(write!(out, "\\u{:04x}", u32::from(character))),
            other => out.push(other),
        }
    }
}

/// A text as a JSON string literal.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    push_escaped(&mut out, text);
    out.push('"');
    out
}

/// Appends a member's step to a path: `.name`, or `["odd name"]`.
pub(crate) fn push_member(path: &mut String, name: &str) {
    let plain = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    if plain {
        path.push('.');
        path.push_str(name);
    } else {
        path.push('[');
        path.push_str(&quote(name));
        path.push(']');
    }
}
