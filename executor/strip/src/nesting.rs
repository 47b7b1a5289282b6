//! The parser, the tree's visitors and its destructor call themselves once for each level of nesting. Here is the
//! stack they run on, and the refusal of what would not fit.
//!
//! The scan below knows strings, comments and templates, not regular expressions: because of one it may misjudge the
//! rest of a line, or of a template. That is harmless: what it lets through too deep ends the stripping process, which
//! its owner starts again, and nothing near an ordinary program comes close to the limits.

use crate::refusal::Refusal;

/// Stack for one program, bytes; mapped for each and touched only as far as the program is deep.
const STACK_BYTES: usize = 256 * 1024 * 1024;

/// Deepest nesting of brackets.
const BRACKETS_MAX: usize = 2_000;

/// Most operators that nest to the right (`=>`, `<`, `**`) without a `;`, `,` or `}` between them.
const CHAIN_MAX: usize = 10_000;

/// Most `<` without anything that ends an operand between them: the parser tries each as type arguments, and each of
/// those again, so that its time grows with their third power.
const ANGLES_MAX: usize = 200;

/// Most `else` in a program: each nests in the one before it, and time grows with their second power.
const ELSES_MAX: usize = 4_000;

/// Most prefix operators (`!`, `-`, `typeof`) in front of one operand.
const PREFIXES_MAX: usize = 10_000;

/// Operators that are words and stand in front of their operand.
const PREFIX_WORDS: [&[u8]; 6] = [b"await", b"delete", b"new", b"typeof", b"void", b"yield"];

/// Runs a program's stations on a stack of [`STACK_BYTES`].
pub(crate) fn on_deep_stack<R>(work: impl FnOnce() -> R) -> R {
    stacker::grow(STACK_BYTES, work)
}

/// Refuses a text that is nested deeper than the stack may hold.
pub(crate) fn check(text: &str) -> Result<(), Refusal> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
        depth: 0,
        chain: 0,
        angles: 0,
        elses: 0,
        prefixes: 0,
        templates: Vec::new(),
    };
    match scanner.too_deep() {
        Some(at) => {
            let message = if scanner.depth > BRACKETS_MAX {
                format!(
                    "nested too deeply: more than {BRACKETS_MAX} brackets are open here; build the value step by step"
                )
            } else if scanner.elses > ELSES_MAX {
                format!("nested too deeply: more than {ELSES_MAX} `else`; use a table or `switch`")
            } else if scanner.prefixes > PREFIXES_MAX {
                format!("nested too deeply: more than {PREFIXES_MAX} operators before one operand")
            } else {
                format!(
                    "nested too deeply: more than {CHAIN_MAX} operators in one expression; split it into statements"
                )
            };
            Err(Refusal::at(text, at, message))
        }
        None => Ok(()),
    }
}

/// Counts what nests, outside of strings, comments and template text.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    chain: usize,
    angles: usize,
    elses: usize,
    prefixes: usize,
    /// Depths at which a `}` goes back to template text.
    templates: Vec<usize>,
}

impl Scanner<'_> {
    /// Offset of the first byte that is too deep.
    fn too_deep(&mut self) -> Option<usize> {
        while let Some(&byte) = self.bytes.get(self.at) {
            let next = self.bytes.get(self.at + 1).copied().unwrap_or(0);
            match byte {
                b'(' | b'[' | b'{' => self.depth += 1,
                b'}' if self.templates.last() == Some(&self.depth) => {
                    self.templates.pop();
                    self.depth = self.depth.saturating_sub(1);
                    self.template();
                }
                b')' | b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.ends_operand(byte == b'}');
                }
                b';' | b',' => self.ends_operand(true),
                b'&' | b'|' | b'>' => self.ends_operand(false),
                b'<' => {
                    self.chain += 1;
                    self.angles += 1;
                }
                b'=' if next == b'>' => self.chain += 1,
                b'*' if next == b'*' => self.chain += 1,
                b'"' | b'\'' => self.string(byte),
                b'`' => self.template(),
                b'/' if next == b'/' => self.line_comment(),
                b'/' if next == b'*' => self.block_comment(),
                b'!' | b'~' | b'+' | b'-' => self.prefixes += 1,
                _ if is_word(byte) => self.word(),
                _ => {}
            }
            if self.is_too_deep() {
                return Some(self.at);
            }
            self.at += 1;
        }
        None
    }

    const fn is_too_deep(&self) -> bool {
        self.depth > BRACKETS_MAX
            || self.chain > CHAIN_MAX
            || self.angles > ANGLES_MAX
            || self.elses > ELSES_MAX
            || self.prefixes > PREFIXES_MAX
    }

    /// A name, a keyword or a number, to its last byte.
    fn word(&mut self) {
        let from = self.at;
        while self.bytes.get(self.at + 1).is_some_and(|byte| is_word(*byte)) {
            self.at += 1;
        }
        match &self.bytes[from..=self.at] {
            b"else" => self.elses += 1,
            word if PREFIX_WORDS.contains(&word) => self.prefixes += 1,
            _ => self.prefixes = 0,
        }
    }

    fn ends_operand(&mut self, ends_chain: bool) {
        self.angles = 0;
        self.prefixes = 0;
        if ends_chain {
            self.chain = 0;
        }
    }

    /// From a quote to the one that closes it, or to the end of the line.
    fn string(&mut self, quote: u8) {
        while let Some(&byte) = self.bytes.get(self.at + 1) {
            match byte {
                b'\n' => return,
                b'\\' => self.at += 1,
                _ => {}
            }
            self.at += 1;
            if byte == quote {
                return;
            }
        }
    }

    /// From a back-tick, or a `}` that ends a hole, to the closing back-tick or the next hole's `{`.
    fn template(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at + 1) {
            self.at += 1;
            match byte {
                b'`' => return,
                b'\\' => self.at += 1,
                b'$' if self.bytes.get(self.at + 1) == Some(&b'{') => {
                    self.at += 1;
                    self.depth += 1;
                    self.templates.push(self.depth);
                    return;
                }
                _ => {}
            }
        }
    }

    fn line_comment(&mut self) {
        while self.bytes.get(self.at + 1).is_some_and(|byte| *byte != b'\n') {
            self.at += 1;
        }
    }

    fn block_comment(&mut self) {
        self.at += 3;
        while self.at < self.bytes.len() && self.bytes.get(self.at - 1..=self.at) != Some(b"*/") {
            self.at += 1;
        }
    }
}

/// Whether a byte can stand in a name, a keyword or a number; every byte beyond ASCII counts.
const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_at(text: &str) -> Option<(u32, u32)> {
        check(text).err().map(|refusal| refusal.place)
    }

    #[test]
    fn brackets_count_where_they_are_code() {
        assert_eq!(refused_at(&"(".repeat(BRACKETS_MAX)), None);
        assert_eq!(refused_at(&"(".repeat(BRACKETS_MAX + 1)), Some((1, 2_001)));
        assert_eq!(refused_at(&"`${".repeat(BRACKETS_MAX + 1)), Some((1, 6_003)));
        assert_eq!(refused_at(&"{}".repeat(9_000)), None);
        assert_eq!(refused_at(&format!("'{0}' + \"{0}\" + `{0}` // {0}", "(".repeat(9_000))), None);
        assert_eq!(refused_at(&format!("/*{0}\n{0}*/ `${{1}}{0}`", "[".repeat(9_000))), None);
        assert_eq!(refused_at(&format!("'\\'{}'", "(".repeat(9_000))), None);
    }

    #[test]
    fn chains_end_with_statements() {
        assert_eq!(refused_at(&"a=>".repeat(CHAIN_MAX)), None);
        assert!(refused_at(&"a=>".repeat(CHAIN_MAX + 1)).is_some());
        assert_eq!(refused_at(&"a<".repeat(ANGLES_MAX)), None);
        assert_eq!(refused_at(&"a<".repeat(ANGLES_MAX + 1)), Some((1, 402)));
        assert_eq!(refused_at(&"a < b && ".repeat(CHAIN_MAX / 2)), None);
        assert_eq!(refused_at(&"x = a < b;\n".repeat(CHAIN_MAX * 2)), None);
        assert_eq!(refused_at(&"f(a => b, 2 ** 3)\n".repeat(CHAIN_MAX * 2)), None);
    }

    #[test]
    fn unfinished_tokens_end_the_scan() {
        for text in ["'", "\"\\", "`", "`${", "/*", "/", "//", "`\\", "/* *", "'\n(", "}", "`${`${}`"] {
            assert_eq!(refused_at(text), None, "{text}");
        }
    }
}
