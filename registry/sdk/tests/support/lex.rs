//! Small readers of TypeScript and Python that know strings, comments and brackets, and nothing else: enough to tell
//! whether anything got out of the place it was written in.

/// What is left of a text when strings and comments are taken out: in their place `"` and nothing.
///
/// # Errors
///
/// What is wrong: something that does not end, a bracket without its partner, a character that has no business there.
pub(crate) fn typescript(text: &str) -> Result<String, String> {
    let mut rest = text;
    let mut code = String::new();
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("/*") {
            let end = after.find("*/").ok_or("a comment without end")?;
            if after[..end].contains(['\n', '\r', '\u{2028}', '\u{2029}']) {
                return Err("a comment of several lines".to_owned());
            }
            rest = &after[end + 2..];
        } else if rest.starts_with("//") {
            return Err("a line comment".to_owned());
        } else if c == '"' {
            rest = string(&rest[1..])?;
            code.push('"');
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    balanced(&code)?;
    Ok(code)
}

/// The same of Python.
///
/// # Errors
///
/// As [`typescript`].
pub(crate) fn python(text: &str) -> Result<String, String> {
    let mut rest = text;
    let mut code = String::new();
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\"\"\"") {
            let mut end = after;
            while !end.starts_with("\"\"\"") {
                let c = end.chars().next().ok_or("a docstring without end")?;
                if c == '\n' {
                    return Err("a docstring of several lines".to_owned());
                }
                end = &end[c.len_utf8()..];
                if c == '\\' {
                    end = &end[end.chars().next().map_or(0, char::len_utf8)..];
                }
            }
            rest = &end[3..];
            code.push('"');
        } else if c == '#' {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if c == '"' {
            rest = string(&rest[1..])?;
            code.push('"');
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    balanced(&code)?;
    Ok(code)
}

/// What follows a string whose first quote has been read.
fn string(text: &str) -> Result<&str, String> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok(&text[at + 1..]),
            '\\' => drop(chars.next()),
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => return Err("a line ends in a string".to_owned()),
            _ => {}
        }
    }
    Err("a string without end".to_owned())
}

fn balanced(code: &str) -> Result<(), String> {
    let mut open = Vec::new();
    for c in code.chars() {
        let partner = match c {
            '(' | '[' | '{' => {
                open.push(c);
                continue;
            }
            ')' => '(',
            ']' => '[',
            '}' => '{',
            '`' | '\'' | '\\' | '\0'..='\x09' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}' => {
                return Err(format!("{c:?} in code"));
            }
            _ => continue,
        };
        if open.pop() != Some(partner) {
            return Err(format!("{c} without {partner}"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} stay open")) }
}

/// The language and the body of each fence of a Markdown text, read as CommonMark reads them.
pub(crate) fn fences(markdown: &str) -> Vec<(String, String)> {
    let mut fences = Vec::new();
    let mut open: Option<(usize, String, String)> = None;
    for line in markdown.split('\n') {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match &mut open {
            Some((length, language, body)) => {
                if ticks >= *length && line.trim_start_matches('`').trim().is_empty() {
                    fences.push((std::mem::take(language), std::mem::take(body)));
                    open = None;
                } else {
                    body.push_str(line);
                    body.push('\n');
                }
            }
            None if ticks >= 3 => open = Some((ticks, line[ticks..].to_owned(), String::new())),
            None => {}
        }
    }
    assert!(open.is_none(), "a fence stays open");
    fences
}
