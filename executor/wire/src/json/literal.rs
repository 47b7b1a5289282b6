//! JSON string literals: their parts, their cost on the output ledger, and where they may be cut.

use super::check::{JsonFault, literal_fault};

/// One JSON string literal, quotes included, known to be well formed. Borrowed from the frame it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringLiteral<'a> {
    /// What stands between the quotes.
    inner: &'a str,
}

/// A piece of a literal, as far as it can be taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit<'a> {
    /// Text without escapes.
    Run(&'a str),
    /// One escaped character; a pair of surrogate escapes is one character.
    Char(char),
    /// An escaped half surrogate without its other half.
    Half(u16),
}

/// The units of the inside of a well-formed literal, each with its length in the literal, bytes.
#[derive(Clone, Debug)]
pub(super) struct Units<'a> {
    rest: &'a str,
}

impl<'a> Units<'a> {
    /// The units of what stands between a literal's quotes.
    pub(super) const fn new(inner: &'a str) -> Self {
        Self { rest: inner }
    }

    /// The UTF-16 unit of a `\uXXXX` at `at`, if one is there.
    fn hex(&self, at: usize) -> Option<u16> {
        let digits = self.rest.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    }

    fn escape(&self) -> Option<(Unit<'a>, usize)> {
        let simple = |c| Some((Unit::Char(c), 2));
        match self.rest.as_bytes().get(1)? {
            b'b' => simple('\u{8}'),
            b'f' => simple('\u{c}'),
            b'n' => simple('\n'),
            b'r' => simple('\r'),
            b't' => simple('\t'),
            b'u' => {
                let first = self.hex(0)?;
                if let Some(c) = char::from_u32(u32::from(first)) {
                    return Some((Unit::Char(c), 6));
                }
                let pair = self.hex(6).and_then(|second| char::decode_utf16([first, second]).next()?.ok());
                Some(pair.map_or((Unit::Half(first), 6), |c| (Unit::Char(c), 12)))
            }
            other => simple(char::from(*other)),
        }
    }
}

impl<'a> Iterator for Units<'a> {
    type Item = (Unit<'a>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (unit, length) = match self.rest.find('\\') {
            Some(0) => self.escape()?,
            Some(end) => (Unit::Run(&self.rest[..end]), end),
            None => (Unit::Run(self.rest), self.rest.len()),
        };
        self.rest = &self.rest[length..];
        Some((unit, length))
    }
}

impl<'a> StringLiteral<'a> {
    /// The literal that these bytes are: quotes first and last, nothing around them.
    ///
    /// # Errors
    /// [`JsonFault`] if they are anything else.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, JsonFault> {
        match literal_fault(bytes) {
            Some(fault) => Err(fault),
            None => Ok(Self { inner: inner_of(bytes) }),
        }
    }

    /// What it costs on the output ledger, bytes, quotes included: its own length. Canonical escapes are the
    /// shortest there are, so this is never less than what the decoded text would cost.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.inner.len() as u64 + 2
    }

    /// The text it stands for; half surrogates become U+FFFD.
    #[must_use]
    pub fn decode(&self) -> String {
        let mut text = String::with_capacity(self.inner.len());
        for (unit, _) in Units::new(self.inner) {
            push(&mut text, unit);
        }
        text
    }

    /// The longest beginning whose literal fits `budget` bytes, quotes included, decoded, and what it costs. Never
    /// cut inside a character or between the halves of a surrogate pair. `None` if not even `""` fits.
    #[must_use]
    pub fn prefix(&self, budget: u64) -> Option<(String, u64)> {
        let room = room_inside(budget)?;
        let mut text = String::with_capacity(self.inner.len().min(room));
        let mut used = 0;
        for (unit, length) in Units::new(self.inner) {
            if length <= room - used {
                push(&mut text, unit);
                used += length;
                continue;
            }
            if let Unit::Run(run) = unit {
                let end = run.floor_char_boundary(room - used);
                text.push_str(&run[..end]);
                used += end;
            }
            break;
        }
        Some((text, used as u64 + 2))
    }
}

fn push(text: &mut String, unit: Unit<'_>) {
    match unit {
        Unit::Run(run) => text.push_str(run),
        Unit::Char(c) => text.push(c),
        Unit::Half(_) => text.push(char::REPLACEMENT_CHARACTER),
    }
}

/// Between the quotes of bytes that are known to be a literal.
fn inner_of(bytes: &[u8]) -> &str {
    let inner = bytes.get(1..bytes.len() - 1).unwrap_or_default();
    std::str::from_utf8(inner).unwrap_or_default()
}

/// Bytes that may stand between the quotes.
fn room_inside(budget: u64) -> Option<usize> {
    Some(usize::try_from(budget.checked_sub(2)?).unwrap_or(usize::MAX))
}

/// Bytes of a character inside a literal in canonical escapes.
const fn cost_of_char(c: char) -> usize {
    match c {
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

/// What a text costs on the output ledger, bytes: its JSON literal in canonical escapes, quotes included.
#[must_use]
pub fn cost_of_str(text: &str) -> u64 {
    let escapes: usize = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | 8 | b'\t' | b'\n' | 12 | b'\r' => 1,
            0..=0x1f => 5,
            _ => 0,
        })
        .sum();
    (text.len() + escapes) as u64 + 2
}

/// The longest beginning of a text whose literal fits `budget` bytes, quotes included, and what it costs. `None` if
/// not even `""` fits.
#[must_use]
pub fn prefix_of_str(text: &str, budget: u64) -> Option<(&str, u64)> {
    let room = room_inside(budget)?;
    let mut used = 0;
    for (at, c) in text.char_indices() {
        let cost = cost_of_char(c);
        if cost > room - used {
            return Some((&text[..at], used as u64 + 2));
        }
        used += cost;
    }
    Some((text, used as u64 + 2))
}

/// The text as a JSON string literal in canonical escapes; exactly [`cost_of_str`] bytes.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\u{8}' => literal.push_str("\\b"),
            '\t' => literal.push_str("\\t"),
            '\n' => literal.push_str("\\n"),
            '\u{c}' => literal.push_str("\\f"),
            '\r' => literal.push_str("\\r"),
            '\0'..='\u{1f}' => {
                const DIGITS: [char; 16] =
                    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
                literal.push_str(if c < '\u{10}' { "\\u000" } else { "\\u001" });
                literal.push(DIGITS[c as usize % 16]);
            }
            _ => literal.push(c),
        }
    }
    literal.push('"');
    literal
}
