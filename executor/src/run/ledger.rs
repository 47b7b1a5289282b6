//! The output ledger: what logs plus value or message cost, to the byte, and what is kept when they cost too much.
//! Pure arithmetic; the rules are `proto/README.md`, "The output ledger".

use codemode_wire::json::{StringLiteral, cost_of_str, prefix_of_str};

/// Bytes of the brackets around the logs.
const BRACKETS: u64 = 2;

/// Log entries of one run, at most. An empty entry costs three bytes on the ledger but some thirty in memory: without
/// a bound on the count a forged flood would cost ten times the output budget.
pub const LOG_ENTRIES_MAX: usize = 1 << 20;

/// Bytes that a runner's own mark on a cut entry may add to it.
const CUT_MARK_BYTES: u64 = 64;

/// One log entry. The literal is kept only where the decoded text would cost less than it did (half surrogates,
/// escapes that were not needed), so that a later cut counts the same bytes as the admission did.
#[derive(Clone, Debug)]
struct Entry {
    text: String,
    cost: u64,
    literal: Option<Box<[u8]>>,
}

impl Entry {
    fn of(literal: StringLiteral<'_>, bytes: &[u8]) -> Self {
        let (text, cost) = (literal.decode(), literal.cost());
        let literal = (cost_of_str(&text) != cost).then(|| bytes.into());
        Self { text, cost, literal }
    }

    /// The entry that is the beginning of a literal, `cost` bytes of it with its quotes.
    fn of_prefix(text: String, cost: u64, bytes: &[u8]) -> Self {
        let literal = (cost_of_str(&text) != cost).then(|| {
            let inside = usize::try_from(cost).unwrap_or(usize::MAX).saturating_sub(1).min(bytes.len());
            let mut literal = bytes[..inside].to_vec();
            literal.push(b'"');
            literal.into_boxed_slice()
        });
        Self { text, cost, literal }
    }

    /// The longest non-empty beginning that costs at most `budget`.
    fn cut(&self, budget: u64) -> Option<(String, u64)> {
        let (text, cost) = match &self.literal {
            Some(bytes) => StringLiteral::parse(bytes).ok()?.prefix(budget)?,
            None => {
                let (text, cost) = prefix_of_str(&self.text, budget)?;
                (text.to_owned(), cost)
            }
        };
        (!text.is_empty()).then_some((text, cost))
    }
}

/// What became of a log entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is on the ledger; to be streamed.
    Kept(String),
    /// It does not fit. What of it could be kept so far is to be streamed, if anything; the run is over.
    Overflow(Option<String>),
}

/// The books of one run.
#[derive(Debug)]
pub struct Ledger {
    cap: u64,
    entry_bytes_max: u64,
    entries: Vec<Entry>,
    /// Cost of the logs so far: brackets, commas, entries.
    logs_cost: u64,
    overflow: Option<Overflow>,
    /// What logs and value or message would have cost, where that is known to be too much, bytes.
    asked: Option<u64>,
}

/// What was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    Bytes,
    Entries,
}

/// The books when they are closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The logs that are kept.
    pub logs: Vec<String>,
    /// The failure's message as it fits, where the run failed.
    pub message: Option<String>,
    /// Bytes that logs and value or message cost.
    pub cost: u64,
    /// Bytes that they would have cost where that was too much, if it is known.
    pub asked: Option<u64>,
}

/// What stands on the ledger beside the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail<'a> {
    /// Nothing: the program returned undefined.
    Nothing,
    /// A value of that many bytes of JSON text.
    Value(u64),
    /// A failure's message.
    Message(&'a str),
    /// A failure's message whose literal costs that much.
    CountedMessage(&'a str, u64),
}

impl Tail<'_> {
    fn cost(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Value(bytes) | Self::CountedMessage(_, bytes) => bytes,
            Self::Message(text) => cost_of_str(text),
        }
    }
}

impl Ledger {
    /// Empty books with a cap of `cap` bytes (at least 4) and entries of at most `entry_bytes_max` bytes.
    #[must_use]
    pub const fn new(cap: u64, entry_bytes_max: u64) -> Self {
        Self { cap, entry_bytes_max, entries: Vec::new(), logs_cost: BRACKETS, overflow: None, asked: None }
    }

    /// Enters a log entry. `bytes` are the literal's own. After an overflow nothing more is kept.
    pub fn log(&mut self, literal: StringLiteral<'_>, bytes: &[u8]) -> Admission {
        if self.overflow.is_some() {
            return Admission::Overflow(None);
        }
        if self.entries.len() >= LOG_ENTRIES_MAX {
            self.overflow = Some(Overflow::Entries);
            return Admission::Overflow(None);
        }
        let comma = u64::from(!self.entries.is_empty());
        let room = self.cap.saturating_sub(self.logs_cost.saturating_add(comma));
        let entry = if literal.cost() > room {
            self.overflow = Some(Overflow::Bytes);
            self.asked = Some(self.logs_cost.saturating_add(comma).saturating_add(literal.cost()));
            // Only the beginning can ever be kept; a forged giant is not decoded whole.
            match literal.prefix(room) {
                Some((text, cost)) if !text.is_empty() => Entry::of_prefix(text, cost, bytes),
                _ => return Admission::Overflow(None),
            }
        } else {
            self.bounded(Entry::of(literal, bytes))
        };
        let text = entry.text.clone();
        self.logs_cost += comma + entry.cost;
        self.entries.push(entry);
        if self.overflow.is_some() { Admission::Overflow(Some(text)) } else { Admission::Kept(text) }
    }

    /// The runner cuts long entries and marks them; a longer one is forged, and cut here.
    fn bounded(&self, entry: Entry) -> Entry {
        let length = entry.text.len() as u64;
        if length <= self.entry_bytes_max.saturating_add(CUT_MARK_BYTES) {
            return entry;
        }
        let max = usize::try_from(self.entry_bytes_max).unwrap_or(usize::MAX);
        let mut text = entry.text[..entry.text.floor_char_boundary(max)].to_owned();
        text.push_str("… [entry cut]");
        let cost = cost_of_str(&text);
        Entry { text, cost, literal: None }
    }

    /// Whether a tail of that cost fits beside the logs.
    #[must_use]
    pub fn fits(&self, cost: u64) -> bool {
        self.overflow.is_none() && self.logs_cost.saturating_add(cost) <= self.cap
    }

    /// Notes that a tail of that cost was asked for and does not fit.
    pub fn note_asked(&mut self, tail_cost: u64) {
        self.asked.get_or_insert(self.logs_cost.saturating_add(tail_cost));
    }

    /// Bytes on the books so far.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.logs_cost
    }

    /// The cap, bytes.
    #[must_use]
    pub const fn cap(&self) -> u64 {
        self.cap
    }

    /// Closes the books over `tail`. `Err` if that does not fit, or if a log entry did not: then the run is
    /// `output-limit`, and the closed books carry its message.
    ///
    /// # Errors
    /// The books of the failed run.
    pub fn close(mut self, tail: Tail<'_>) -> Result<Closed, Closed> {
        if !self.fits(tail.cost()) {
            self.note_asked(tail.cost());
            return Err(self.close_over_cap());
        }
        let message = match tail {
            Tail::Message(text) | Tail::CountedMessage(text, _) => Some(text.to_owned()),
            Tail::Nothing | Tail::Value(_) => None,
        };
        Ok(Closed { cost: self.logs_cost + tail.cost(), logs: self.into_logs(), message, asked: None })
    }

    /// Closes the books of a run that is `output-limit`: the message first, cut if it must be, then the longest
    /// prefix of the logs that fits beside it.
    #[must_use]
    pub fn close_over_cap(self) -> Closed {
        let message = match self.overflow {
            Some(Overflow::Entries) => format!("outer output exceeded {LOG_ENTRIES_MAX} log entries"),
            Some(Overflow::Bytes) | None => format!("outer output exceeded {} bytes", self.cap),
        };
        let (message, message_cost) =
            prefix_of_str(&message, self.cap.saturating_sub(BRACKETS)).unwrap_or(("", 0));
        let message = message.to_owned();
        let mut room = self.cap.saturating_sub(message_cost + BRACKETS);
        let mut cost = BRACKETS + message_cost;
        let mut logs = Vec::new();
        for entry in self.entries {
            let comma = u64::from(!logs.is_empty());
            let Some(beside_comma) = room.checked_sub(comma) else { break };
            if entry.cost <= beside_comma {
                room = beside_comma - entry.cost;
                cost += comma + entry.cost;
                logs.push(entry.text);
                continue;
            }
            if let Some((text, cut_cost)) = entry.cut(beside_comma) {
                cost += comma + cut_cost;
                logs.push(text);
            }
            break;
        }
        Closed { logs, message: Some(message), cost, asked: self.asked }
    }

    fn into_logs(self) -> Vec<String> {
        self.entries.into_iter().map(|entry| entry.text).collect()
    }
}

#[cfg(test)]
mod tests;
