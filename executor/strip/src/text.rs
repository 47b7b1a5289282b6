//! What is no program text becomes blanks: byte order mark, shebang, the fence around one Markdown block. Lines and
//! columns stay; bytes may not, so all offsets are into the text made here.

use std::borrow::Cow;

use crate::refusal::Refusal;
use crate::scan;

/// The program without what surrounds it.
pub(crate) fn normalise(program: &str) -> Result<Cow<'_, str>, Refusal> {
    let mut text = Cow::Borrowed(program);
    if let Some(rest) = program.strip_prefix('\u{feff}') {
        text = Cow::Owned(format!(" {rest}"));
    }
    if let Some(unfenced) = unfence(&text) {
        text = Cow::Owned(unfenced);
    }
    if let Some(start) = shebang(&text) {
        text = Cow::Owned(without_shebang(&text, start)?);
    }
    Ok(text)
}

/// Offset of a shebang: on the first line, or on the first line of the block.
fn shebang(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    text.get(start..)?.starts_with("#!").then_some(start)
}

fn without_shebang(text: &str, start: usize) -> Result<String, Refusal> {
    let rest = text.get(start..).unwrap_or_default();
    let line = rest.split(scan::is_line_terminator).next().unwrap_or_default();
    if let Some(other) = ["sh", "bash", "zsh", "dash", "fish", "python", "python3", "perl", "ruby", "php"]
        .into_iter()
        .find(|name| line.split(['/', ' ']).any(|part| part == *name))
    {
        let message = format!(
            "the program must be TypeScript, and this is a script for `{other}`; write the body of an async TypeScript function"
        );
        return Err(Refusal::at(text, start, message));
    }
    let mut out = String::with_capacity(text.len());
    out.push_str(text.get(..start).unwrap_or_default());
    scan::push_blanks(line, &mut out);
    out.push_str(text.get(start + line.len()..).unwrap_or_default());
    Ok(out)
}

/// The text with its fence lines blanked, if the whole of it is one fenced block.
fn unfence(text: &str) -> Option<String> {
    let start = text.len() - text.trim_start().len();
    let body = text.trim();
    let fence = ["```", "~~~"].into_iter().find(|fence| body.starts_with(fence))?;
    let ticks = body.len() - body.trim_start_matches(fence.chars().next()?).len();
    let mark = body.get(..ticks)?;
    let first_end = body.find('\n')?;
    let language = body.get(ticks..first_end)?.trim();
    if !language.chars().all(|c| c.is_ascii_alphanumeric() || "-_+.".contains(c)) {
        return None;
    }
    let last_start = body.rfind('\n')? + 1;
    if last_start <= first_end || body.get(last_start..)?.trim() != mark {
        return None;
    }
    let inside = body.get(first_end..last_start)?;
    if inside.lines().any(|line| line.trim_start().starts_with(mark)) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    out.push_str(text.get(..start)?);
    scan::push_blanks(body.get(..first_end)?, &mut out);
    out.push_str(inside);
    scan::push_blanks(body.get(last_start..)?, &mut out);
    out.push_str(text.get(start + body.len()..)?);
    Some(out)
}
