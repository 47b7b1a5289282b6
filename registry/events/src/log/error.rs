//! Why a log cannot be opened, and why it does not take an event.

use std::sync::Arc;

use crate::entry::{CorruptEntry, SCHEMA_VERSION};
use crate::refusal::Refusal;
use crate::store::{SessionId, StoreError};

/// Why a session cannot be opened for writing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An entry cannot be read.
    #[error(transparent)]
    Corrupt(#[from] CorruptEntry),
    /// An entry is not one that this log could have taken.
    #[error("entry {seq} breaks the log's invariants")]
    Inconsistent {
        /// The entry's number.
        seq: u64,
        /// What it breaks.
        #[source]
        refusal: Refusal,
    },
    /// An entry is of a later version: this build can read the log and cannot judge what may follow.
    #[error(
        "entry {seq} was written with version {version}; this build writes {SCHEMA_VERSION}: use a newer build"
    )]
    NewerEntry {
        /// The entry's number.
        seq: u64,
        /// Its version.
        version: u32,
    },
}

/// Why an event was not appended.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The event may not come here. The log is as it was, and takes other events.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed, now or earlier, or the lease is over. The log takes nothing any more.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log was closed.
    #[error("session `{0}` is closed")]
    Closed(SessionId),
    /// The event cannot be said in JSON.
    #[error("the event cannot be written as JSON: {0}")]
    Unwritable(Arc<serde_json::Error>),
}
