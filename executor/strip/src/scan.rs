//! Reading between the nodes of the tree: trivia, line terminators, places. Never decides what a token means.

/// Whether a character ends a line in ECMAScript.
pub(crate) const fn is_line_terminator(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Whether a character is white space in ECMAScript, line terminators aside.
fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\u{b}' | '\u{c}' | ' ' | '\u{a0}' | '\u{feff}')
        || (!c.is_ascii() && c.is_whitespace())
}

/// Offset of the first byte at or after `from` that is neither white space nor comment; the text's length if none is.
pub(crate) fn skip_trivia(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let Some(rest) = text.get(at..) else { return text.len() };
        let Some(c) = rest.chars().next() else { return at };
        if is_space(c) || is_line_terminator(c) {
            at += c.len_utf8();
        } else if rest.starts_with("//") {
            at += rest.find(is_line_terminator).unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.get(2..).and_then(|body| body.find("*/")).map_or(rest.len(), |end| end + 4);
        } else {
            return at;
        }
    }
}

/// The byte at an offset; 0 past the end.
pub(crate) fn byte(text: &str, at: usize) -> u8 {
    text.as_bytes().get(at).copied().unwrap_or(0)
}

/// Length of the identifier-like word of ASCII letters at an offset.
pub(crate) fn word(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

/// Whether a range holds a line terminator.
pub(crate) fn has_line_break(text: &str, from: usize, to: usize) -> bool {
    text.get(from..to).is_some_and(|slice| slice.contains(is_line_terminator))
}

/// Line and UTF-16 column of a byte offset, each from 1. An offset past the end is the end.
pub(crate) fn place(text: &str, offset: usize) -> (u32, u32) {
    let (mut line, mut column) = (1u32, 1u32);
    let mut previous = '\0';
    for (at, c) in text.char_indices() {
        if at >= offset {
            break;
        }
        if c == '\n' && previous == '\r' {
            // One line end of two characters.
        } else if is_line_terminator(c) {
            line = line.saturating_add(1);
            column = 1;
        } else {
            column = column.saturating_add(if c.len_utf16() == 2 { 2 } else { 1 });
        }
        previous = c;
    }
    (line, column)
}

/// The text as blanks: one space for each UTF-16 unit, line terminators kept.
pub(crate) fn push_blanks(text: &str, into: &mut String) {
    for c in text.chars() {
        if is_line_terminator(c) {
            into.push(c);
        } else {
            into.push(' ');
            if c.len_utf16() == 2 {
                into.push(' ');
            }
        }
    }
}
