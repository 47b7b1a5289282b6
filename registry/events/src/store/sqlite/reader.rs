//! Reading: a few connections shared by all who read, each query on a thread that may block.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Row};
use tokio::sync::Semaphore;

use super::{failed, file};
use crate::entry::Record;
use crate::store::{Head, Page, SessionId, SessionInfo, StoreError};

/// How many reads run at once; further ones wait.
const READS_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Readers(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    path: PathBuf,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        let permits = Arc::new(Semaphore::new(READS_MAX));
        Self(Arc::new(Pool { path: path.to_owned(), permits, idle: Mutex::default() }))
    }

    /// Runs a query. Cancelled, the query still ends by itself.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let pool = Arc::clone(&self.0);
        let permit = Arc::clone(&pool.permits).acquire_owned().await.map_err(|_| StoreError::Stopped)?;
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let idle = pool.idle.lock().pop();
            let connection = idle.map_or_else(|| file::open_reader(&pool.path), Ok)?;
            let answer = query(&connection).map_err(|fault| match fault {
                Fault::Store(error) => error,
                Fault::Sqlite(error) => failed("read the event store", &pool.path)(error),
            })?;
            // A connection that failed is not used again.
            pool.idle.lock().push(connection);
            Ok(answer)
        });
        read.await.unwrap_or(Err(StoreError::Stopped))
    }
}

/// What can go wrong in a query.
pub(super) enum Fault {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

pub(super) fn page(connection: &Connection, session: &SessionId, page: Page) -> Result<Vec<Record>, Fault> {
    let number: Option<i64> = connection
        .prepare_cached("SELECT number FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()?;
    let number = number.ok_or_else(|| Fault::Store(StoreError::NoSuchSession(session.clone())))?;
    // Beyond what the file can hold there is nothing.
    let Ok(from) = i64::try_from(page.from) else { return Ok(Vec::new()) };
    let limit = i64::try_from(page.records).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(
        "SELECT seq, at, v, event FROM entries WHERE session = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3",
    )?;
    let mut rows = statement.query((number, from, limit))?;
    let mut read = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let record = Record { seq: row.get(0)?, at: row.get(1)?, v: row.get(2)?, event: row.get(3)? };
        bytes += record.event.len();
        read.push(record);
        if bytes >= page.bytes {
            break;
        }
    }
    Ok(read)
}

pub(super) fn head(connection: &Connection, session: &SessionId) -> Result<Head, Fault> {
    let head = connection
        .prepare_cached("SELECT last, open FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| Ok(Head { last: row.get(0)?, open: row.get(1)? }))
        .optional()?;
    head.ok_or_else(|| Fault::Store(StoreError::NoSuchSession(session.clone())))
}

pub(super) fn sessions(
    connection: &Connection,
    after: Option<&SessionId>,
    limit: usize,
) -> Result<Vec<SessionInfo>, Fault> {
    // No id is empty, so every id comes after the empty text.
    let after = after.map_or("", SessionId::as_str);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(
        "SELECT id, created_at, last, open FROM sessions WHERE id > ?1 ORDER BY id LIMIT ?2",
    )?;
    let rows = statement.query_map((after, limit), info)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn info(row: &Row<'_>) -> rusqlite::Result<SessionInfo> {
    let id: String = row.get(0)?;
    let session = SessionId::new(&id).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(SessionInfo { session, created_at: row.get(1)?, head: Head { last: row.get(2)?, open: row.get(3)? } })
}
