//! The seam to where logs are kept: what a store promises, and the values that cross the seam.
//!
//! A store keeps records and hands out the right to write; it knows nothing of events. One session has one writer at a
//! time: whoever creates or resumes it is given a lease with a new epoch, and with that every earlier lease is worth
//! nothing. A store checks epoch and number of each batch in the transaction that writes it, so numbers never fork,
//! whether the earlier writer is in this process, in another, or hung.

mod memory;
mod sqlite;

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::entry::Record;

pub use self::memory::MemoryStore;
pub use self::sqlite::{SqliteOptions, SqliteStore};

/// Longest session id, in bytes.
pub const SESSION_ID_BYTES_MAX: usize = 1024;

/// A session's id: any text of 1 to [`SESSION_ID_BYTES_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Arc<str>);

/// A text that is no session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session id has 1 to {SESSION_ID_BYTES_MAX} bytes, not {bytes}")]
pub struct BadSessionId {
    /// How many bytes the text has.
    pub bytes: usize,
}

impl SessionId {
    /// Takes a text as a session's id.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn new(id: &str) -> Result<Self, BadSessionId> {
        if id.is_empty() || id.len() > SESSION_ID_BYTES_MAX {
            return Err(BadSessionId { bytes: id.len() });
        }
        Ok(Self(id.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The right to write one session, until somebody else is given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session: SessionId,
    /// How often the right was given or ended. A batch under any but the latest epoch is refused.
    pub epoch: u64,
    /// The last entry's number when the lease was given; 0 for none.
    pub last: u64,
}

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last durable entry's number; 0 for none.
    pub last: u64,
    /// Whether somebody may be writing. False from `close` to the next `resume`.
    pub open: bool,
}

/// A session in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// The session.
    pub session: SessionId,
    /// When it was created, in milliseconds since 1970.
    pub created_at: u64,
    /// How far it has come.
    pub head: Head,
}

/// Which records to read: those from a number on, in order, until one of the bounds is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The first number; 0 means 1.
    pub from: u64,
    /// At most so many records.
    pub records: usize,
    /// No further record once those read hold so many bytes; the first is always read.
    pub bytes: usize,
}

impl Page {
    /// The page that followers and resuming writers read: a few hundred records, a megabyte or one record.
    #[must_use]
    pub fn from(from: u64) -> Self {
        Self { from, records: 512, bytes: 1 << 20 }
    }
}

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// `create` of a session that is there.
    #[error("session `{0}` exists already")]
    SessionExists(SessionId),
    /// A session that is not there.
    #[error("there is no session `{0}`")]
    NoSuchSession(SessionId),
    /// The lease is over: the session was closed, or somebody resumed it.
    #[error("the right to write session `{session}` was given at epoch {epoch} and has ended")]
    Fenced {
        /// The session.
        session: SessionId,
        /// The epoch of the lease that is over.
        epoch: u64,
    },
    /// A batch that does not begin with the next number, or is not consecutive.
    #[error("session `{session}` goes on with entry {expected}, not {given}")]
    OutOfOrder {
        /// The session.
        session: SessionId,
        /// The number that comes next.
        expected: u64,
        /// The number that was given.
        given: u64,
    },
    /// What holds the data is of a later version of this software.
    #[error(
        "the event store has version {found}; this build knows versions up to {known}: use a newer build"
    )]
    NewerVersion {
        /// Its version.
        found: i64,
        /// The latest that this build can read.
        known: i64,
    },
    /// What should hold the data holds something else.
    #[error("`{0}` is not an event store")]
    Foreign(String),
    /// What holds the data cannot be written.
    #[error("the event store `{0}` cannot be written")]
    ReadOnly(String),
    /// Somebody else held what holds the data for too long.
    #[error("another process holds the event store `{0}`")]
    Busy(String),
    /// The store has no room left for it.
    #[error("the event store is full: {0}")]
    Full(String),
    /// A step failed.
    #[error("cannot {step}: {message}")]
    Failed {
        /// What was being done.
        step: &'static str,
        /// What went wrong, from below.
        message: String,
    },
    /// The store has shut down, or gave a batch up without an answer.
    #[error("the event store has shut down")]
    Stopped,
}

/// Records of one session on their way to a store, with whoever waits for them.
#[derive(Debug)]
pub struct Batch {
    records: Vec<Record>,
    /// None once settled.
    settled: Option<oneshot::Sender<Result<(), StoreError>>>,
    fuse: Arc<OnceLock<StoreError>>,
    /// Room in the writer's backlog, given back when the batch is dropped.
    _room: Option<OwnedSemaphorePermit>,
}

/// The promise of a batch: says when it is durable.
#[derive(Debug)]
pub struct Commit(oneshot::Receiver<Result<(), StoreError>>);

impl Commit {
    /// Waits until the batch is durable. Dropping the future or the handle does not take the batch back.
    ///
    /// # Errors
    /// When it will never be durable.
    pub async fn durable(self) -> Result<(), StoreError> {
        self.0.await.unwrap_or(Err(StoreError::Stopped))
    }
}

impl Batch {
    /// A batch with its promise.
    #[must_use]
    pub fn new(records: Vec<Record>) -> (Self, Commit) {
        Self::with(records, Arc::default(), None)
    }

    pub(crate) fn with(
        records: Vec<Record>,
        fuse: Arc<OnceLock<StoreError>>,
        room: Option<OwnedSemaphorePermit>,
    ) -> (Self, Commit) {
        let (settled, commit) = oneshot::channel();
        (Self { records, settled: Some(settled), fuse, _room: room }, Commit(commit))
    }

    /// The records, in order.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Says what became of the batch: to be called once it is durable and never before, or once it has failed.
    pub fn settle(mut self, outcome: Result<(), StoreError>) {
        self.answer(outcome);
    }

    fn answer(&mut self, outcome: Result<(), StoreError>) {
        let Some(settled) = self.settled.take() else { return };
        if let Err(error) = &outcome {
            // The first failure is the reason for all later ones.
            let _ = self.fuse.set(error.clone());
        }
        // Whoever appended may not care.
        let _ = settled.send(outcome);
    }

    /// Checks that the records follow `last` without a gap.
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] for the first that does not.
    pub fn follows(&self, session: &SessionId, last: u64) -> Result<(), StoreError> {
        for (record, expected) in self.records.iter().zip(last + 1..) {
            if record.seq != expected {
                let session = session.clone();
                return Err(StoreError::OutOfOrder { session, expected, given: record.seq });
            }
        }
        Ok(())
    }
}

impl Drop for Batch {
    /// A batch that nobody settled was given up, e.g. because the store's thread is gone.
    fn drop(&mut self) {
        self.answer(Err(StoreError::Stopped));
    }
}

/// Where sessions are kept.
///
/// Implementations differ in what durable means (memory, a file, a database) and in nothing else; one suite of
/// conformance tests runs over all of them.
#[async_trait]
pub trait EventStore: fmt::Debug + Send + Sync {
    /// Makes a session and gives the right to write it.
    async fn create(&self, session: &SessionId, at: u64) -> Result<Lease, StoreError>;

    /// Gives the right to write a session that is there, open or closed, and ends every earlier right.
    async fn resume(&self, session: &SessionId) -> Result<Lease, StoreError>;

    /// Takes a batch. Does not wait; of two calls, the one that returned first is written first. The batch is settled
    /// once it is durable. It is refused whole, and nothing of it written, when the lease is over or the numbers do not
    /// follow; so after one failure everything queued behind it fails as well.
    fn append(&self, lease: &Lease, batch: Batch);

    /// Ends the lease once everything appended before has been settled, and marks the session closed: followers end.
    async fn close(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Reads durable records. Empty beyond the last one.
    async fn read(&self, session: &SessionId, page: Page) -> Result<Vec<Record>, StoreError>;

    /// How far a session has come.
    async fn head(&self, session: &SessionId) -> Result<Head, StoreError>;

    /// Waits until a session has durable entries beyond `after`, or is closed. Safe to cancel.
    async fn wait(&self, session: &SessionId, after: u64) -> Result<Head, StoreError>;

    /// At most `limit` sessions in the order of their ids, those after `after`.
    async fn sessions(&self, after: Option<&SessionId>, limit: usize)
    -> Result<Vec<SessionInfo>, StoreError>;
}
