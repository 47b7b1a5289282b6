//! Sessions in one SQLite file: durable once on the disk.
//!
//! One thread writes (`writer`): it takes everything that waits, writes it in one transaction and answers after the
//! commit, so that many appends share one sync of the disk (write-ahead log, `synchronous = FULL`). Reads have
//! connections of their own (`reader`) and see committed entries only. `file` opens and migrates. Several processes may
//! share a file: leases keep their writers apart, and followers look for what others wrote once a second.

mod file;
mod reader;
mod writer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use rusqlite::ErrorCode;
use tokio::sync::{oneshot, watch};

use self::reader::Readers;
use self::writer::{Command, Writer};
use super::{Batch, EventStore, Head, Lease, Page, SessionId, SessionInfo, StoreError};
use crate::entry::Record;

/// How long a waiting follower goes without looking for entries that another process wrote.
const FOREIGN_POLL: Duration = Duration::from_secs(1);

/// Where the file is and how large it may grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The file. Made if it is not there, readable by its owner only; the directory has to exist. SQLite keeps two more
    /// files beside it, of the same name and `-wal` or `-shm`.
    pub path: PathBuf,
    /// Largest size of the file in bytes, rounded up to a page; none for as large as the disk allows. Beyond it appends
    /// fail with [`StoreError::Full`].
    pub bytes_max: Option<u64>,
}

impl SqliteOptions {
    /// A file that may grow as large as the disk allows.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), bytes_max: None }
    }
}

/// A store in one SQLite file.
///
/// Dropping it waits until everything appended is written. Use it inside a tokio runtime with time enabled.
#[derive(Debug)]
pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    heads: Heads,
}

impl SqliteStore {
    /// Opens the file, or makes it, and brings it to the version this build writes. Blocks.
    ///
    /// # Errors
    /// [`StoreError::NewerVersion`] and [`StoreError::Foreign`] for files that are not for this build,
    /// [`StoreError::ReadOnly`], or the step that failed.
    pub fn open(options: &SqliteOptions) -> Result<Self, StoreError> {
        let connection = file::open(options)?;
        let heads = Heads::default();
        let writer = Writer::start(connection, &options.path, heads.clone())?;
        Ok(Self { writer, readers: Readers::new(&options.path), heads })
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Command,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.writer.send(command(reply));
        answer.await.unwrap_or(Err(StoreError::Stopped))
    }
}

#[async_trait]
impl EventStore for SqliteStore {
    async fn create(&self, session: &SessionId, at: u64) -> Result<Lease, StoreError> {
        self.ask(|reply| Command::Create { session: session.clone(), at, reply }).await
    }

    async fn resume(&self, session: &SessionId) -> Result<Lease, StoreError> {
        self.ask(|reply| Command::Resume { session: session.clone(), reply }).await
    }

    fn append(&self, lease: &Lease, batch: Batch) {
        self.writer.send(Command::Append { session: lease.session.clone(), epoch: lease.epoch, batch });
    }

    async fn close(&self, lease: &Lease) -> Result<(), StoreError> {
        self.ask(|reply| Command::Close { session: lease.session.clone(), epoch: lease.epoch, reply }).await
    }

    async fn read(&self, session: &SessionId, page: Page) -> Result<Vec<Record>, StoreError> {
        let session = session.clone();
        self.readers.run(move |connection| reader::page(connection, &session, page)).await
    }

    async fn head(&self, session: &SessionId) -> Result<Head, StoreError> {
        let session = session.clone();
        self.readers.run(move |connection| reader::head(connection, &session)).await
    }

    async fn wait(&self, session: &SessionId, after: u64) -> Result<Head, StoreError> {
        // Subscribed before the first look: whatever is committed after that look wakes this.
        let mut changes = self.heads.subscribe(session);
        loop {
            let head = self.head(session).await?;
            if head.last > after || !head.open {
                return Ok(head);
            }
            // Woken or not, look again: another process may have written.
            let _ = tokio::time::timeout(FOREIGN_POLL, changes.changed()).await;
        }
    }

    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, StoreError> {
        let after = after.cloned();
        self.readers.run(move |connection| reader::sessions(connection, after.as_ref(), limit)).await
    }
}

/// Who waits for which session in this process.
#[derive(Clone, Debug, Default)]
struct Heads(Arc<Mutex<HashMap<SessionId, watch::Sender<()>>>>);

impl Heads {
    fn subscribe(&self, session: &SessionId) -> watch::Receiver<()> {
        self.0.lock().entry(session.clone()).or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// Wakes those who wait for a session, and forgets it if nobody does.
    fn changed(&self, session: &SessionId) {
        let mut heads = self.0.lock();
        if heads.get(session).is_some_and(|head| head.send(()).is_err()) {
            heads.remove(session);
        }
    }
}

/// Says which step failed and how.
fn failed(step: &'static str, path: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    let path = path.display().to_string();
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(error.to_string()),
        Some(ErrorCode::NotADatabase) => StoreError::Foreign(path.clone()),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(path.clone()),
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly(path.clone()),
        _ => StoreError::Failed { step, message: error.to_string() },
    }
}
