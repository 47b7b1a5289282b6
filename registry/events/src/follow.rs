//! Reading a session: a page of it, or everything from a number on and then what comes.
//!
//! A follower holds one page and no more: it reads from the store, however slow it is. It sees durable entries only,
//! each once and in order, those of a later writer included.

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};

use crate::entry::{CorruptEntry, Entry, Record};
use crate::store::{EventStore, Page, SessionId, StoreError};

/// Why a session cannot be read on.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An entry cannot be read.
    #[error(transparent)]
    Corrupt(#[from] CorruptEntry),
}

/// Reads a page of durable entries; empty beyond the last one.
///
/// # Errors
/// When there is no such session, an entry cannot be read, or the store fails.
pub async fn read(store: &dyn EventStore, session: &SessionId, page: Page) -> Result<Vec<Entry>, ReadError> {
    let records = store.read(session, page).await?;
    Ok(records.iter().map(Record::entry).collect::<Result<_, _>>()?)
}

/// Yields the entries from number `from` on (0 means 1), then those that come, until the session is closed. Ends after
/// the first error. Dropping the stream is all it takes to stop.
#[must_use = "a stream does nothing unless polled"]
pub fn follow(
    store: Arc<dyn EventStore>,
    session: SessionId,
    from: u64,
) -> BoxStream<'static, Result<Entry, ReadError>> {
    let follower = Follower { store, session, next: from.max(1) };
    let pages = stream::unfold(Some(follower), |follower| async {
        let mut follower = follower?;
        match follower.page().await {
            Ok(page) if page.is_empty() => None,
            Ok(page) => Some((stream::iter(page).map(Ok).left_stream(), Some(follower))),
            Err(error) => Some((stream::iter([Err(error)]).right_stream(), None)),
        }
    });
    pages.flatten().boxed()
}

struct Follower {
    store: Arc<dyn EventStore>,
    session: SessionId,
    /// The number that is yielded next.
    next: u64,
}

impl Follower {
    /// Waits for the next entries; none when the session is closed and all of it was yielded.
    async fn page(&mut self) -> Result<Vec<Entry>, ReadError> {
        let head = self.store.wait(&self.session, self.next - 1).await?;
        if head.last < self.next {
            return Ok(Vec::new());
        }
        let records = self.store.read(&self.session, Page::from(self.next)).await?;
        let mut entries = Vec::with_capacity(records.len());
        for record in &records {
            match self.entry(record) {
                Ok(entry) => entries.push(entry),
                // What comes before is yielded first; the next page begins with the error.
                Err(_) if !entries.is_empty() => break,
                Err(error) => return Err(error.into()),
            }
            self.next += 1;
        }
        if entries.is_empty() {
            let message = format!("it is missing; the session has {} entries", head.last);
            return Err(CorruptEntry { seq: self.next, message }.into());
        }
        Ok(entries)
    }

    fn entry(&self, record: &Record) -> Result<Entry, CorruptEntry> {
        if record.seq == self.next {
            return record.entry();
        }
        let message = format!("entry {} comes in its place", record.seq);
        Err(CorruptEntry { seq: self.next, message })
    }
}
