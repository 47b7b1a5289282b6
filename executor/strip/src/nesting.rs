//! The parser, the tree's visitors and its destructor call themselves once for each level of nesting. Here is the
//! stack they run on, and the refusal of what would not fit.

use crate::refusal::Refusal;

/// Stack for one program, bytes; mapped for each and touched only as far as the program is deep.
pub(crate) const STACK_BYTES: usize = 256 * 1024 * 1024;

/// Deepest nesting of brackets. Far beyond what is written by hand or by models, far from what the stack holds.
pub(crate) const BRACKETS_MAX: usize = 2_000;

/// Runs a program's stations on a stack of [`STACK_BYTES`].
pub(crate) fn on_deep_stack<R>(work: impl FnOnce() -> R) -> R {
    stacker::grow(STACK_BYTES, work)
}

/// Refuses a text whose brackets are nested deeper than [`BRACKETS_MAX`].
pub(crate) fn check(text: &str) -> Result<(), Refusal> {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0, depth: 0, templates: Vec::new() };
    match scanner.too_deep() {
        Some(at) => Err(Refusal::at(
            text,
            at,
            format!("nested too deeply: more than {BRACKETS_MAX} brackets are open here; build the value step by step"),
        )),
        None => Ok(()),
    }
}

/// Counts open brackets outside of strings, comments and template text. It does not know regular expressions: what it
/// misjudges because of one is a line, or a template too much or too few.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    /// Depths at which a `}` goes back to template text.
    templates: Vec<usize>,
}

impl Scanner<'_> {
    fn too_deep(&mut self) -> Option<usize> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'(' | b'[' | b'{' => {
                    self.depth += 1;
                    if self.depth > BRACKETS_MAX {
                        return Some(self.at);
                    }
                }
                b'}' if self.templates.last() == Some(&self.depth) => {
                    self.templates.pop();
                    self.depth = self.depth.saturating_sub(1);
                    self.at += 1;
                    self.template();
                    continue;
                }
                b')' | b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                b'"' | b'\'' => self.string(byte),
                b'`' => {
                    self.at += 1;
                    self.template();
                    continue;
                }
                b'/' => self.comment(),
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    /// Stops on the closing quote, or at the end of the line.
    fn string(&mut self, quote: u8) {
        let start = self.at;
        while let Some(&byte) = self.bytes.get(self.at + 1) {
            match byte {
                b'\n' => return,
                b'\\' => self.at += 1,
                _ if byte == quote => {
                    self.at += 1;
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.at.max(start);
    }

    /// Stops after the closing back-tick, or after `${`.
    fn template(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'`' => return,
                b'\\' => self.at += 1,
                b'$' if self.bytes.get(self.at) == Some(&b'{') => {
                    self.at += 1;
                    self.depth += 1;
                    self.templates.push(self.depth);
                    return;
                }
                _ => {}
            }
        }
    }

    /// Stops on the last byte of a comment, if one starts here.
    fn comment(&mut self) {
        match self.bytes.get(self.at + 1) {
            Some(b'/') => {
                while self.bytes.get(self.at + 1).is_some_and(|byte| *byte != b'\n') {
                    self.at += 1;
                }
            }
            Some(b'*') => {
                self.at += 2;
                while self.at < self.bytes.len() {
                    if self.bytes.get(self.at..self.at + 2) == Some(b"*/") {
                        self.at += 1;
                        return;
                    }
                    self.at += 1;
                }
            }
            _ => {}
        }
    }
}

