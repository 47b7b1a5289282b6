//! The checker: one pass over the text with an explicit stack.

use super::literal::{Unit, Units, quote};
use crate::limits::{EXACT_INTEGER_MAX, FRAME_BYTES_CEILING, JSON_DEPTH_MAX};

/// Bytes of a fault's path that are kept on each side of the gap in a long one.
const PATH_SIDE_BYTES: usize = 120;
/// Bytes of one key that a path shows.
const PATH_KEY_BYTES: usize = 64;
/// Bytes of a number that a reason shows.
const NUMBER_SHOWN_BYTES: usize = 40;
/// Bytes of the longest token whose fault is noticed at its beginning, `\uXXXX`.
const LONGEST_TOKEN_BYTES: usize = 6;
/// Up to this many keys are compared pairwise, more are sorted.
const PAIRWISE_KEYS_MAX: usize = 8;
/// Every decimal integer of this many digits is a double.
const EXACT_DIGITS: usize = 15;
/// A decimal without exponent whose parts are no longer than this neither overflows nor vanishes.
const SAFE_PART_DIGITS: usize = 300;

/// Why a text is not lossless JSON: where, and what is the matter. Reads as one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {reason}")]
pub struct JsonFault {
    /// Where, e.g. `value.items[3]["odd key"]`. Of bounded length; the middle of a long one is left out.
    pub path: String,
    /// What, e.g. `is 9007199254740993, which a double cannot hold exactly; send it as a string`.
    pub reason: String,
}

/// [`check_as`] with the root called `value`.
///
/// # Errors
/// [`JsonFault`].
pub fn check(text: &[u8]) -> Result<(), JsonFault> {
    check_as("value", text)
}

/// Whether the bytes are exactly one lossless JSON text, white space around it allowed: strict grammar, at most
/// [`JSON_DEPTH_MAX`] levels, finite numbers without negative zero, integers that a double holds (or that are a
/// double's own shortest digits, as JavaScript prints large ones), no key twice in one object.
///
/// # Errors
/// [`JsonFault`] for the first fault found; its path begins with `root`.
pub fn check_as(root: &str, text: &[u8]) -> Result<(), JsonFault> {
    if text.len() > widen(FRAME_BYTES_CEILING) {
        let reason = format!("is longer than {FRAME_BYTES_CEILING} bytes");
        return Err(JsonFault { path: root.to_owned(), reason });
    }
    let (valid, broken_at) = match std::str::from_utf8(text) {
        Ok(valid) => (valid, None),
        Err(error) => {
            let (valid, _) = text.split_at(error.valid_up_to());
            (std::str::from_utf8(valid).unwrap_or_default(), Some(error.valid_up_to()))
        }
    };
    let mut checker = Checker { text: valid, broken_at, at: 0, levels: Vec::new(), keys: Keys::default() };
    checker.run().map_err(|fault| checker.explain(root, &fault))
}

/// What is wrong with bytes that should be one string literal and nothing else.
pub(super) fn literal_fault(bytes: &[u8]) -> Option<JsonFault> {
    if bytes.first() != Some(&b'"') || bytes.last() != Some(&b'"') {
        return Some(JsonFault {
            path: "text".to_owned(),
            reason: "is not a JSON string literal".to_owned(),
        });
    }
    // It begins with a quote, so the one value in it is a string; it ends with one, so nothing follows it.
    check_as("text", bytes).err()
}

/// An open array or object.
#[derive(Clone, Copy, Debug)]
enum Level {
    Array {
        /// Index of the item that is being read.
        index: u32,
    },
    Object {
        /// Where its keys begin.
        keys: u32,
        /// Where its decoded keys begin.
        decoded: u32,
    },
}

/// Keys of all open objects, innermost last.
#[derive(Debug, Default)]
struct Keys {
    spans: Vec<KeySpan>,
    /// Keys that have escapes, decoded; half surrogates as three bytes that no UTF-8 has.
    decoded: Vec<u8>,
}

/// Where a key's bytes are: in the text, or in [`Keys::decoded`].
#[derive(Clone, Copy, Debug)]
struct KeySpan {
    start: u32,
    /// Length, and [`KeySpan::DECODED`].
    length: u32,
}

impl KeySpan {
    /// The key lies among the decoded ones. No key is longer than [`FRAME_BYTES_CEILING`], so the bit is free.
    const DECODED: u32 = 1 << 31;

    fn bytes<'k>(self, text: &'k str, decoded: &'k [u8]) -> &'k [u8] {
        let from = if self.length & Self::DECODED == 0 { text.as_bytes() } else { decoded };
        let start = widen(self.start);
        from.get(start..start + widen(self.length & !Self::DECODED)).unwrap_or_default()
    }
}

/// A fault as it is found, before it is put into words.
#[derive(Debug)]
enum Fault {
    /// The text stops being JSON at the checker's place.
    Syntax(&'static str),
    /// Too many levels.
    Depth,
    /// A value of the text from here to the checker's place cannot stand.
    Number { from: usize, reason: NumberFault },
    /// The key, as a segment of a path, occurs twice in the object that was just read.
    Duplicate(String),
}

#[derive(Clone, Copy, Debug)]
enum NumberFault {
    NotFinite,
    NegativeZero,
    Inexact,
}

#[derive(Debug)]
struct Checker<'a> {
    text: &'a str,
    /// Where the text stops being UTF-8; `text` ends there.
    broken_at: Option<usize>,
    at: usize,
    levels: Vec<Level>,
    keys: Keys,
}

impl Checker<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        loop {
            if self.open_or_scalar()? {
                continue;
            }
            if !self.close_and_step()? {
                return Ok(());
            }
        }
    }

    /// Reads a scalar or an empty container (false), or opens a container up to its first value (true).
    fn open_or_scalar(&mut self) -> Result<bool, Fault> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string().map(|_| false),
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| false),
            Some(b'[') => self.open_array(),
            Some(b'{') => self.open_object(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(Fault::Syntax("expected a value")),
        }
    }

    /// After a value: closes what ends here and steps to the next value (true), or to the end of the text (false).
    fn close_and_step(&mut self) -> Result<bool, Fault> {
        loop {
            self.skip_space();
            let next = self.peek();
            match self.levels.last_mut() {
                None => {
                    return match next {
                        None if self.broken_at.is_none() => Ok(false),
                        _ => Err(Fault::Syntax("expected the end of the text")),
                    };
                }
                Some(Level::Array { index }) => match next {
                    Some(b',') => {
                        self.at += 1;
                        *index += 1;
                        return Ok(true);
                    }
                    Some(b']') => {
                        self.at += 1;
                        self.levels.pop();
                    }
                    _ => return Err(Fault::Syntax("expected `,` or `]`")),
                },
                Some(Level::Object { keys, decoded }) => match next {
                    Some(b',') => {
                        self.at += 1;
                        self.skip_space();
                        self.key()?;
                        return Ok(true);
                    }
                    Some(b'}') => {
                        self.at += 1;
                        let (keys, decoded) = (widen(*keys), widen(*decoded));
                        self.levels.pop();
                        let doubled = self.doubled(keys).map(|span| self.segment(span));
                        self.keys.spans.truncate(keys);
                        self.keys.decoded.truncate(decoded);
                        if let Some(key) = doubled {
                            return Err(Fault::Duplicate(key));
                        }
                    }
                    _ => return Err(Fault::Syntax("expected `,` or `}`")),
                },
            }
        }
    }

    fn open(&mut self, level: Level) -> Result<(), Fault> {
        if self.levels.len() >= widen(JSON_DEPTH_MAX) {
            return Err(Fault::Depth);
        }
        self.at += 1;
        self.levels.push(level);
        self.skip_space();
        Ok(())
    }

    fn open_array(&mut self) -> Result<bool, Fault> {
        self.open(Level::Array { index: 0 })?;
        if self.peek() == Some(b']') {
            self.at += 1;
            self.levels.pop();
            return Ok(false);
        }
        Ok(true)
    }

    fn open_object(&mut self) -> Result<bool, Fault> {
        let (keys, decoded) = (narrow(self.keys.spans.len()), narrow(self.keys.decoded.len()));
        self.open(Level::Object { keys, decoded })?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.levels.pop();
            return Ok(false);
        }
        self.key()?;
        Ok(true)
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b'"') {
            return Err(Fault::Syntax("expected a key"));
        }
        let start = self.at + 1;
        let escaped = self.string()?;
        let inner = &self.text[start..self.at - 1];
        let span = if escaped {
            let from = self.keys.decoded.len();
            decode_key(&mut self.keys.decoded, inner);
            let length = narrow(self.keys.decoded.len() - from) | KeySpan::DECODED;
            KeySpan { start: narrow(from), length }
        } else {
            KeySpan { start: narrow(start), length: narrow(inner.len()) }
        };
        self.keys.spans.push(span);
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(Fault::Syntax("expected `:`"));
        }
        self.at += 1;
        Ok(())
    }

    /// A key that occurs twice among those from `from` on. Sorting needs no hash that a peer could flood.
    fn doubled(&mut self, from: usize) -> Option<KeySpan> {
        let Keys { spans, decoded } = &mut self.keys;
        let spans = spans.get_mut(from..).unwrap_or_default();
        let bytes = |span: &KeySpan| span.bytes(self.text, decoded);
        if spans.len() <= PAIRWISE_KEYS_MAX {
            let seen_before = |(at, span): &(usize, &KeySpan)| {
                spans[..*at].iter().any(|earlier| bytes(earlier) == bytes(span))
            };
            return spans.iter().enumerate().find(seen_before).map(|(_, span)| *span);
        }
        spans.sort_unstable_by(|a, b| {
            let (a, b) = (bytes(a), bytes(b));
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        });
        spans.windows(2).find(|pair| bytes(&pair[0]) == bytes(&pair[1])).map(|pair| pair[0])
    }

    fn word(&mut self, word: &str) -> Result<bool, Fault> {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(false);
        }
        Err(Fault::Syntax("expected a value"))
    }

    /// Reads a string; whether it has escapes.
    fn string(&mut self) -> Result<bool, Fault> {
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += plain_length(&bytes[self.at..]);
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at += escape_length(&bytes[self.at..]).ok_or(Fault::Syntax("invalid escape"))?;
                }
                Some(_) => return Err(Fault::Syntax("raw control character in a string")),
                None => return Err(Fault::Syntax("unfinished string")),
            }
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        let from = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let whole = self.digits();
        let leading_zero = whole > 1 && self.text.as_bytes()[self.at - whole] == b'0';
        if whole == 0 || leading_zero {
            return Err(Fault::Syntax("invalid number"));
        }
        let mut fraction = 0;
        if self.peek() == Some(b'.') {
            self.at += 1;
            fraction = self.digits();
            if fraction == 0 {
                return Err(Fault::Syntax("invalid number"));
            }
        }
        let exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(Fault::Syntax("invalid number"));
            }
        }
        let literal = &self.text[from..self.at];
        let judged = if fraction == 0 && !exponent {
            judge_integer(literal, negative, whole)
        } else {
            judge_decimal(literal, negative, exponent || whole.max(fraction) > SAFE_PART_DIGITS)
        };
        judged.map_err(|reason| Fault::Number { from, reason })
    }

    /// Skips decimal digits; how many there were.
    fn digits(&mut self) -> usize {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - from
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// The words for a fault. Cold.
impl Checker<'_> {
    fn explain(&self, root: &str, fault: &Fault) -> JsonFault {
        let last = match fault {
            Fault::Duplicate(key) => Some(key.as_str()),
            _ => None,
        };
        JsonFault { path: self.path(root, last), reason: self.reason(fault) }
    }

    fn reason(&self, fault: &Fault) -> String {
        match fault {
            Fault::Syntax(what) => match self.broken_at {
                // The fault may be noticed at the beginning of the escape or word that is cut short there.
                Some(broken_at) if broken_at - self.at < LONGEST_TOKEN_BYTES => {
                    format!("is not UTF-8 at byte {broken_at}")
                }
                _ => format!("is not JSON at byte {}: {what}", self.at),
            },
            Fault::Depth => format!("is nested deeper than {JSON_DEPTH_MAX} levels"),
            Fault::Duplicate(_) => "is given twice in its object".to_owned(),
            Fault::Number { from, reason } => {
                let number = shorten(&self.text[*from..self.at], NUMBER_SHOWN_BYTES);
                match reason {
                    NumberFault::NotFinite => {
                        format!("is {number}, which is beyond every double; send it as a string")
                    }
                    NumberFault::NegativeZero => {
                        format!("is {number}, a negative zero; send 0, or a string")
                    }
                    NumberFault::Inexact => {
                        format!("is {number}, which a double cannot hold exactly; send it as a string")
                    }
                }
            }
        }
    }

    /// The place of the value that is being read, long ones without their middle.
    fn path(&self, root: &str, last: Option<&str>) -> String {
        let segments = self.levels.len() + usize::from(last.is_some());
        let segment = |index: usize| match self.levels.get(index) {
            Some(Level::Array { index }) => format!("[{index}]"),
            Some(Level::Object { keys, .. }) => self.key_of_level(index, widen(*keys)),
            None => last.unwrap_or_default().to_owned(),
        };
        let mut head = root.to_owned();
        let mut done = 0;
        while done < segments && head.len() < PATH_SIDE_BYTES {
            head.push_str(&segment(done));
            done += 1;
        }
        let mut tail = Vec::new();
        let mut tail_bytes = 0;
        let mut from = segments;
        while from > done && tail_bytes < PATH_SIDE_BYTES {
            from -= 1;
            let text = segment(from);
            tail_bytes += text.len();
            tail.push(text);
        }
        if from > done {
            head.push('…');
        }
        head.extend(tail.into_iter().rev());
        head
    }

    /// The segment of the key that an open object is at: the last of its own keys.
    fn key_of_level(&self, level: usize, keys: usize) -> String {
        let end = self.levels[level + 1..]
            .iter()
            .find_map(|inner| match inner {
                Level::Object { keys, .. } => Some(widen(*keys)),
                Level::Array { .. } => None,
            })
            .unwrap_or(self.keys.spans.len());
        if end > keys { self.segment(self.keys.spans[end - 1]) } else { String::new() }
    }

    fn segment(&self, span: KeySpan) -> String {
        let key = String::from_utf8_lossy(span.bytes(self.text, &self.keys.decoded));
        let mut letters = key.bytes();
        let plain = key.len() <= PATH_KEY_BYTES
            && letters.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_' || b == b'$')
            && letters.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$');
        if plain { format!(".{key}") } else { format!("[{}]", quote(&shorten(&key, PATH_KEY_BYTES))) }
    }
}

/// Decoded as UTF-8, but half surrogates as the three bytes UTF-8 would give them: equal if and only if the keys are.
fn decode_key(into: &mut Vec<u8>, inner: &str) {
    for (unit, _) in Units::new(inner) {
        match unit {
            Unit::Run(run) => into.extend_from_slice(run.as_bytes()),
            Unit::Char(c) => into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Half(half) => {
                let [high, low] = half.to_be_bytes();
                into.extend_from_slice(&[
                    0xe0 | high >> 4,
                    0x80 | (high & 0x0f) << 2 | low >> 6,
                    0x80 | (low & 0x3f),
                ]);
            }
        }
    }
}

/// Bytes from here up to the next quote, backslash or control character, eight at a time.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word & HIGH;
    let (chunks, tail) = bytes.as_chunks::<8>();
    let mut length = 0;
    for chunk in chunks {
        let word = u64::from_le_bytes(*chunk);
        let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
        let slashes = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = quotes | slashes | below(word, 0x20);
        if found != 0 {
            // Only bytes above the lowest hit can be false hits, so the lowest is a true one.
            return length + widen(found.trailing_zeros() / 8);
        }
        length += 8;
    }
    length + tail.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count()
}

/// Length of the escape at the start of `bytes`, if it is one.
fn escape_length(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => bytes.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

fn judge_integer(literal: &str, negative: bool, digits: usize) -> Result<(), NumberFault> {
    if negative && literal == "-0" {
        return Err(NumberFault::NegativeZero);
    }
    if digits <= EXACT_DIGITS {
        return Ok(());
    }
    let magnitude = &literal[usize::from(negative)..];
    // Without its trailing zero bits a double's integer value fits its 53 bits.
    let exact = |integer: u64| integer >> integer.trailing_zeros() <= EXACT_INTEGER_MAX;
    if magnitude.parse().is_ok_and(exact) {
        return Ok(());
    }
    let double: f64 = magnitude.parse().unwrap_or(f64::INFINITY);
    if double.is_infinite() {
        return Err(NumberFault::NotFinite);
    }
    // `{}` prints the shortest digits that read back as the same double, `{:.0}` all digits of its exact value.
    if format!("{double}") == magnitude || format!("{double:.0}") == magnitude {
        return Ok(());
    }
    Err(NumberFault::Inexact)
}

fn judge_decimal(literal: &str, negative: bool, extreme: bool) -> Result<(), NumberFault> {
    let mantissa = literal.bytes().take_while(|byte| !matches!(byte, b'e' | b'E'));
    if negative && !mantissa.into_iter().any(|byte| matches!(byte, b'1'..=b'9')) {
        return Err(NumberFault::NegativeZero);
    }
    if !extreme {
        return Ok(());
    }
    let double: f64 = literal.parse().unwrap_or(f64::INFINITY);
    if double.is_infinite() {
        return Err(NumberFault::NotFinite);
    }
    if negative && double == 0.0 {
        return Err(NumberFault::NegativeZero);
    }
    Ok(())
}

/// At most `bytes` of the text, with a mark where it is cut.
fn shorten(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(bytes)])
}

/// A place in a text that is known to be no longer than [`FRAME_BYTES_CEILING`].
fn narrow(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// A place as an index.
const fn widen(place: u32) -> usize {
    place as usize
}
