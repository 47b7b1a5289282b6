//! The only writer of one session: judges each event, gives it its number and hands it to the store.
//!
//! What an acknowledgement means: [`SessionLog::append`] returns once the event is *ordered* (its number and place are
//! final for this writer, and it is on its way to the store); [`Appended::durable`], [`SessionLog::append_durable`],
//! [`SessionLog::flush`] and [`SessionLog::close`] return once it is *durable*. Followers and readers see durable
//! entries only. If an entry cannot be made durable, neither can any after it, and the log takes no more: resume it.

mod error;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

pub use self::error::{AppendError, OpenError};
use crate::entry::{CorruptEntry, Entry, Record, SCHEMA_VERSION};
use crate::event::{Event, Header, RequestHeader};
use crate::follow::{self, ReadError};
use crate::index::{Index, OpenWork};
use crate::json::Json;
use crate::refusal::Refusal;
use crate::store::{Batch, Commit, EventStore, Lease, Page, SessionId, StoreError};

/// Largest event, in bytes of its JSON: twice what a run may put out, for what it is wrapped in and escaped to.
pub const EVENT_BYTES_MAX: usize = 128 << 20;

/// How many bytes of one session's events may be ordered and not yet durable; `append` waits for room beyond it.
pub const BACKLOG_BYTES_MAX: u32 = 64 << 20;

/// The latest time an entry can have: what databases can hold.
const AT_MAX: u64 = u64::MAX >> 1;

/// An event that was ordered.
#[derive(Debug)]
pub struct Appended {
    /// Its number.
    pub seq: u64,
    /// Its time, in milliseconds since 1970.
    pub at: u64,
    commit: Commit,
}

impl Appended {
    /// Waits until the entry, and with it every entry before it, is durable. Gives its number.
    ///
    /// # Errors
    /// When it will never be durable.
    pub async fn durable(self) -> Result<u64, StoreError> {
        self.commit.durable().await?;
        Ok(self.seq)
    }
}

/// Tells the time in milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The system's clock.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The log of one session, open for writing. Clones write the same log.
#[derive(Clone)]
pub struct SessionLog(Arc<Inner>);

struct Inner {
    store: Arc<dyn EventStore>,
    lease: Lease,
    clock: Clock,
    room: Arc<Semaphore>,
    /// The first failure of the store.
    fuse: Arc<OnceLock<StoreError>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    index: Index,
    seq: u64,
    at: u64,
    closed: bool,
}

impl fmt::Debug for SessionLog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SessionLog").field("lease", &self.0.lease).finish_non_exhaustive()
    }
}

impl SessionLog {
    /// Makes a new session.
    ///
    /// # Errors
    /// When there is one of that id, or the store fails.
    pub async fn create(
        store: Arc<dyn EventStore>,
        session: &SessionId,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let lease = store.create(session, clock()).await?;
        Ok(Self::over(store, lease, clock, State::default()))
    }

    /// Goes on with a session, closed or not: reads it whole, and ends the right of whoever was writing it.
    ///
    /// # Errors
    /// When there is no such session, its entries are not what this build could have written, or the store fails.
    pub async fn resume(
        store: Arc<dyn EventStore>,
        session: &SessionId,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let lease = store.resume(session).await?;
        let mut state = State::default();
        while state.seq < lease.last {
            let records = store.read(session, Page::from(state.seq + 1)).await?;
            if records.is_empty() {
                let message = format!("it is missing; the session has {} entries", lease.last);
                return Err(CorruptEntry { seq: state.seq + 1, message }.into());
            }
            for record in &records {
                state.replay(record)?;
            }
        }
        state.index.mark_resumed();
        Ok(Self::over(store, lease, clock, state))
    }

    fn over(store: Arc<dyn EventStore>, lease: Lease, clock: Clock, state: State) -> Self {
        let room = Arc::new(Semaphore::new(BACKLOG_BYTES_MAX as usize));
        Self(Arc::new(Inner { store, lease, clock, room, fuse: Arc::default(), state: Mutex::new(state) }))
    }

    /// Appends an event: returns once it is ordered, and waits only while [`BACKLOG_BYTES_MAX`] are on their way.
    /// Safe to cancel: the event is then appended or not, and never by half.
    ///
    /// # Errors
    /// [`AppendError::Refused`] leaves the log as it was; any other error is the end of this log.
    pub async fn append(&self, event: impl Into<Event>) -> Result<Appended, AppendError> {
        let event = event.into();
        let text = serde_json::to_string(&event).map_err(|error| AppendError::Unwritable(Arc::new(error)))?;
        let bytes = text.len();
        if bytes > EVENT_BYTES_MAX {
            return Err(Refusal::TooLarge { bytes, limit: EVENT_BYTES_MAX }.into());
        }
        let room = u32::try_from(bytes).unwrap_or(u32::MAX).min(BACKLOG_BYTES_MAX);
        let room = Arc::clone(&self.0.room).acquire_many_owned(room).await.ok();

        let mut state = self.0.state.lock();
        self.writable(&state)?;
        state.index.check(&event)?;
        state.at = state.at.max((self.0.clock)()).min(AT_MAX);
        state.seq += 1;
        let (seq, at) = (state.seq, state.at);
        state.index.apply(seq, &event);
        let record = Record { seq, at, v: SCHEMA_VERSION, event: text };
        let (batch, commit) = Batch::with(vec![record], Arc::clone(&self.0.fuse), room);
        self.0.store.append(&self.0.lease, batch);
        Ok(Appended { seq, at, commit })
    }

    /// Appends an event and waits until it is durable. Gives its number.
    ///
    /// # Errors
    /// As [`SessionLog::append`], or when it will never be durable.
    pub async fn append_durable(&self, event: impl Into<Event>) -> Result<u64, AppendError> {
        Ok(self.append(event).await?.durable().await?)
    }

    /// Logs what a model request has beside its messages, if it is not what the last one had. None if it is.
    ///
    /// Empty text and an empty list count as left out. Configuration and tools are compared by their JSON text, tools
    /// in order.
    ///
    /// # Errors
    /// As [`SessionLog::append`].
    pub async fn request_header(
        &self,
        config: Json,
        system: Option<String>,
        tools: Option<Vec<Json>>,
    ) -> Result<Option<Appended>, AppendError> {
        let system = system.filter(|text| !text.is_empty());
        let tools = tools.filter(|list| !list.is_empty());
        let header = Header { config, system, tools };
        loop {
            let reason = self.0.state.lock().index.header_reason(&header);
            let Some(reason) = reason else { return Ok(None) };
            match self.append(RequestHeader { header: header.clone(), reason }).await {
                // Another header was logged meanwhile: look again.
                Err(AppendError::Refused(Refusal::HeaderUnchanged | Refusal::HeaderReason { .. })) => {}
                appended => return appended.map(Some),
            }
        }
    }

    /// Waits until everything that was ordered before is durable. Gives the last number; 0 for none.
    ///
    /// # Errors
    /// When something will never be durable.
    pub async fn flush(&self) -> Result<u64, StoreError> {
        let (seq, commit) = {
            let state = self.0.state.lock();
            let (batch, commit) = Batch::with(Vec::new(), Arc::clone(&self.0.fuse), None);
            self.0.store.append(&self.0.lease, batch);
            (state.seq, commit)
        };
        commit.durable().await?;
        self.0.fuse.get().cloned().map_or(Ok(seq), Err)
    }

    /// Closes the session once everything ordered is durable; followers end. `resume` opens it again.
    ///
    /// # Errors
    /// When something will never be durable, or the lease is over.
    pub async fn close(&self) -> Result<(), AppendError> {
        {
            let mut state = self.0.state.lock();
            self.writable(&state)?;
            state.closed = true;
        }
        self.flush().await?;
        Ok(self.0.store.close(&self.0.lease).await?)
    }

    /// Yields durable entries from number `from` on, then those that come, until the session is closed.
    #[must_use = "a stream does nothing unless polled"]
    pub fn follow(&self, from: u64) -> BoxStream<'static, Result<Entry, ReadError>> {
        follow::follow(Arc::clone(&self.0.store), self.session().clone(), from)
    }

    /// Reads a page of durable entries; `flush` first to see what was ordered just now.
    ///
    /// # Errors
    /// When an entry cannot be read or the store fails.
    pub async fn read(&self, page: Page) -> Result<Vec<Entry>, ReadError> {
        follow::read(self.0.store.as_ref(), self.session(), page).await
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.0.lease.session
    }

    /// The number of the last entry that was ordered; 0 for none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.0.state.lock().seq
    }

    /// What has begun and not ended.
    #[must_use]
    pub fn open_work(&self) -> OpenWork {
        self.0.state.lock().index.open_work()
    }

    fn writable(&self, state: &State) -> Result<(), AppendError> {
        if let Some(error) = self.0.fuse.get() {
            return Err(error.clone().into());
        }
        if state.closed {
            return Err(AppendError::Closed(self.session().clone()));
        }
        Ok(())
    }
}

impl State {
    fn replay(&mut self, record: &Record) -> Result<(), OpenError> {
        let seq = self.seq + 1;
        if record.seq != seq {
            let message = format!("entry {} comes in its place", record.seq);
            return Err(CorruptEntry { seq, message }.into());
        }
        if record.v > SCHEMA_VERSION {
            return Err(OpenError::NewerEntry { seq, version: record.v });
        }
        let entry = record.entry()?;
        self.index.check_again(&entry.event).map_err(|refusal| OpenError::Inconsistent { seq, refusal })?;
        self.index.apply(seq, &entry.event);
        (self.seq, self.at) = (seq, record.at);
        Ok(())
    }
}
