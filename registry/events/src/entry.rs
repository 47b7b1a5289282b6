//! Entries: an event with its number and its time, and the record a store keeps of it.

use serde::{Deserialize, Serialize};

use crate::event::Event;

/// The version of the events' shape that this build writes. Raised when an older build would misread a new event.
pub const SCHEMA_VERSION: u32 = 1;

/// One line of a session's log: `{"seq":1,"at":1767225600000,"v":1,"event":{"type":"turn/start",…}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number in the session: from 1, without gaps.
    pub seq: u64,
    /// When it was ordered, in milliseconds since 1970. Never less than the entry's before.
    pub at: u64,
    /// The [`SCHEMA_VERSION`] it was written with.
    pub v: u32,
    /// What happened.
    pub event: Event,
}

/// An entry as a store keeps it: the event as JSON text, which no store looks into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// As in [`Entry`].
    pub seq: u64,
    /// As in [`Entry`].
    pub at: u64,
    /// As in [`Entry`].
    pub v: u32,
    /// The event's JSON.
    pub event: String,
}

/// A record that does not hold what it should.
#[derive(Clone, Debug, thiserror::Error)]
#[error("entry {seq} cannot be read: {message}")]
pub struct CorruptEntry {
    /// The entry's number.
    pub seq: u64,
    /// What is wrong with it.
    pub message: String,
}

impl Record {
    /// Reads the event. One of a later version that this build cannot read stays the JSON it is.
    ///
    /// # Errors
    /// When the text is no event, or an event of this version or an earlier one in no shape it ever had.
    pub fn entry(&self) -> Result<Entry, CorruptEntry> {
        let event = match Event::from_json(&self.event) {
            Err(_) if self.v > SCHEMA_VERSION => Event::raw(&self.event),
            read => read,
        };
        let event = event.map_err(|error| CorruptEntry { seq: self.seq, message: error.to_string() })?;
        Ok(Entry { seq: self.seq, at: self.at, v: self.v, event })
    }
}
