//! Sessions in this process's memory: durable until it ends.

use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Batch, EventStore, Head, Lease, Page, SessionId, SessionInfo, StoreError};
use crate::entry::Record;

/// A store in memory. Batches are settled before `append` returns.
#[derive(Debug, Default)]
pub struct MemoryStore {
    sessions: Mutex<BTreeMap<SessionId, Session>>,
}

#[derive(Debug)]
struct Session {
    created_at: u64,
    epoch: u64,
    records: Vec<Record>,
    head: watch::Sender<Head>,
}

impl Session {
    fn lease(&self, session: &SessionId) -> Lease {
        Lease { session: session.clone(), epoch: self.epoch, last: self.head.borrow().last }
    }

    fn holds(&self, lease: &Lease) -> Result<(), StoreError> {
        if self.epoch == lease.epoch && self.head.borrow().open {
            return Ok(());
        }
        Err(StoreError::Fenced { session: lease.session.clone(), epoch: lease.epoch })
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(
        &self,
        session: &SessionId,
        act: impl FnOnce(&mut Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut sessions = self.sessions.lock();
        act(sessions.get_mut(session).ok_or_else(|| StoreError::NoSuchSession(session.clone()))?)
    }
}

#[async_trait]
impl EventStore for MemoryStore {
    async fn create(&self, session: &SessionId, at: u64) -> Result<Lease, StoreError> {
        let mut sessions = self.sessions.lock();
        if sessions.contains_key(session) {
            return Err(StoreError::SessionExists(session.clone()));
        }
        let head = watch::Sender::new(Head { last: 0, open: true });
        let made = Session { created_at: at, epoch: 1, records: Vec::new(), head };
        Ok(sessions.entry(session.clone()).or_insert(made).lease(session))
    }

    async fn resume(&self, session: &SessionId) -> Result<Lease, StoreError> {
        self.with(session, |kept| {
            kept.epoch += 1;
            kept.head.send_modify(|head| head.open = true);
            Ok(kept.lease(session))
        })
    }

    fn append(&self, lease: &Lease, batch: Batch) {
        let outcome = self.with(&lease.session, |kept| {
            kept.holds(lease)?;
            batch.follows(&lease.session, kept.head.borrow().last)?;
            kept.records.extend_from_slice(batch.records());
            if let Some(record) = batch.records().last() {
                kept.head.send_modify(|head| head.last = record.seq);
            }
            Ok(())
        });
        batch.settle(outcome);
    }

    async fn close(&self, lease: &Lease) -> Result<(), StoreError> {
        self.with(&lease.session, |kept| {
            kept.holds(lease)?;
            kept.head.send_modify(|head| head.open = false);
            Ok(())
        })
    }

    async fn read(&self, session: &SessionId, page: Page) -> Result<Vec<Record>, StoreError> {
        self.with(session, |kept| {
            let skip = usize::try_from(page.from.saturating_sub(1)).unwrap_or(usize::MAX);
            let mut read = Vec::new();
            let mut bytes = 0;
            for record in kept.records.iter().skip(skip).take(page.records) {
                if bytes >= page.bytes && !read.is_empty() {
                    break;
                }
                bytes += record.event.len();
                read.push(record.clone());
            }
            Ok(read)
        })
    }

    async fn head(&self, session: &SessionId) -> Result<Head, StoreError> {
        self.with(session, |kept| Ok(*kept.head.borrow()))
    }

    async fn wait(&self, session: &SessionId, after: u64) -> Result<Head, StoreError> {
        let mut head = self.with(session, |kept| Ok(kept.head.subscribe()))?;
        let reached = head.wait_for(|head| head.last > after || !head.open).await;
        reached.map(|head| *head).map_err(|_| StoreError::Stopped)
    }

    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, StoreError> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let sessions = self.sessions.lock();
        let listed = sessions.range::<SessionId, _>((from, Bound::Unbounded)).take(limit);
        let info = |(session, kept): (&SessionId, &Session)| SessionInfo {
            session: session.clone(),
            created_at: kept.created_at,
            head: *kept.head.borrow(),
        };
        Ok(listed.map(info).collect())
    }
}
