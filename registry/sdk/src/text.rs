//! Text of others inside text of ours: what keeps a name or a description from being anything but data.

use std::fmt::Write as _;

/// Whether a character may change how the text around it is read by a person: the controls of C0, DEL and C1, and
/// those of bidirectional writing. Joiners and variation selectors stay, emoji need them.
const fn is_dangerous(c: char) -> bool {
    matches!(c, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}')
}

/// White space as ECMAScript's `\s` has it, which is Unicode's and the byte order mark.
fn is_space(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// A description on one line: runs of white space are one space, none at the ends, controls as escapes. Empty if
/// there is nothing to read.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if is_dangerous(c) {
                push_escape(&mut line, c);
            } else {
                line.push(c);
            }
        }
    }
    line
}

/// A description with what else there is to say behind it, on one line.
pub(crate) fn with_hints(description: Option<&str>, hints: &[String]) -> String {
    let described = one_line(description.unwrap_or_default());
    let hints: Vec<_> = hints.iter().map(|hint| one_line(hint)).collect();
    match (described.is_empty(), hints.is_empty()) {
        (_, true) => described,
        (true, false) => hints.join("; "),
        (false, false) => format!("{described} ({})", hints.join("; ")),
    }
}

/// The text up to a number of characters, with an ellipsis if that is not all.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
    }
}

/// A string literal of JSON, which TypeScript and Python read alike. What [`is_dangerous`] says, and what ends a line
/// in ECMAScript, is escaped too.
pub(crate) fn quoted(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            '\x08' => literal.push_str("\\b"),
            '\x0c' => literal.push_str("\\f"),
            '\u{2028}' | '\u{2029}' | '\u{feff}' => push_u_escape(&mut literal, c),
            c if is_dangerous(c) => push_u_escape(&mut literal, c),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

fn push_escape(into: &mut String, c: char) {
    if u32::from(c) < 0x100 {
        let _ = write!(into, "\\x{:02x}", u32::from(c));
    } else {
        push_u_escape(into, c);
    }
}

fn push_u_escape(into: &mut String, c: char) {
    let _ = write!(into, "\\u{:04x}", u32::from(c));
}

/// A Markdown fence that no run of backticks in the body can end.
pub(crate) fn fenced(language: &str, body: &str) -> String {
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.saturating_add(1).max(3));
    format!("{fence}{language}\n{body}\n{fence}\n")
}

/// A number as ECMAScript writes it; integers with all their digits.
pub(crate) fn number(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => float(value),
        _ => number.to_string(),
    }
}

fn float(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-6..1e21).contains(&size) {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    if size >= 1.0 { text.replacen('e', "e+", 1) } else { text }
}

/// JSON text on one line, if it is not longer than so many bytes; iterative, and gives up early.
pub(crate) fn compact(value: &serde_json::Value, bytes_max: usize) -> Option<String> {
    use serde_json::Value;
    enum Step<'a> {
        Value(&'a Value),
        Text(String),
    }
    let mut text = String::new();
    let mut steps = vec![Step::Value(value)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Text(piece) => text.push_str(&piece),
            Step::Value(Value::Null) => text.push_str("null"),
            Step::Value(Value::Bool(value)) => text.push_str(if *value { "true" } else { "false" }),
            Step::Value(Value::Number(value)) => text.push_str(&number(value)),
            Step::Value(Value::String(value)) => {
                text.push_str(&if value.len() > bytes_max { return None } else { quoted(value) });
            }
            Step::Value(Value::Array(items)) => {
                if items.len() > bytes_max {
                    return None;
                }
                steps.push(Step::Text("]".to_owned()));
                for (index, item) in items.iter().enumerate().rev() {
                    steps.push(Step::Value(item));
                    steps.push(Step::Text(if index == 0 { "[" } else { ", " }.to_owned()));
                }
                if items.is_empty() {
                    text.push('[');
                }
            }
            Step::Value(Value::Object(members)) => {
                if members.len() > bytes_max {
                    return None;
                }
                steps.push(Step::Text("}".to_owned()));
                for (index, (name, item)) in members.iter().enumerate().rev() {
                    steps.push(Step::Value(item));
                    let before = if index == 0 { "{" } else { ", " };
                    steps.push(Step::Text(format!("{before}{}: ", quoted(name))));
                }
                if members.is_empty() {
                    text.push('{');
                }
            }
        }
        if text.len() > bytes_max {
            return None;
        }
    }
    Some(text)
}
