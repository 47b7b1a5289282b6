//! The sessions that are open here: opening, joining, closing, one at a time for each id.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use codemode_events::{AppendError, EventStore, OpenError, SessionId, SessionLog, StoreError, system_clock};
use parking_lot::Mutex;
use tonic::Status;

use crate::registry::Registry;
use crate::service::session::{LOST, Session, Wishes};
use crate::service::status;
use crate::store::ScopeId;

/// Whether a session may be made, must be, or must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Either,
    Create,
    Resume,
}

/// A session that was opened, and how.
pub(super) struct Opened {
    pub(super) session: Arc<Session>,
    pub(super) resumed: bool,
    pub(super) joined: bool,
}

/// The table of open sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    registry: Registry,
    store: Arc<dyn EventStore>,
    sessions_max: usize,
    open: Mutex<HashMap<String, Arc<Session>>>,
    /// Held by whoever opens or closes a session of that id.
    turns: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl Sessions {
    pub(super) fn new(registry: Registry, store: Arc<dyn EventStore>, sessions_max: usize) -> Self {
        Self { registry, store, sessions_max, open: Mutex::default(), turns: Mutex::default() }
    }

    /// The open session of that id.
    pub(super) fn get(&self, id: &str) -> Result<Arc<Session>, Status> {
        let found = self.open.lock().get(id).cloned();
        found.filter(|session| session.abort.reason().is_none()).ok_or_else(|| status::no_session(id))
    }

    pub(super) fn count(&self) -> usize {
        self.open.lock().len()
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.open.lock().values().cloned().collect()
    }

    fn turn(&self, id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock();
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(id).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        turns.insert(id.to_owned(), Arc::downgrade(&turn));
        turn
    }

    /// Opens a session, or joins it if it is open.
    pub(super) async fn open(&self, id: &SessionId, how: How, wishes: Wishes) -> Result<Opened, Status> {
        let turn = self.turn(id.as_str());
        let _turn = turn.lock().await;
        if let Some(session) = self.open.lock().get(id.as_str()).cloned() {
            return join(session, how, &wishes);
        }
        if self.count() >= self.sessions_max {
            let message = format!("{} sessions are open, which is all there may be", self.sessions_max);
            return Err(Status::resource_exhausted(message));
        }
        let held = self.scope(&wishes)?;
        let (log, resumed) = self.log(id, how).await?;
        let session = Session::new(log, wishes, held);
        self.open.lock().insert(id.as_str().to_owned(), Arc::clone(&session));
        Ok(Opened { session, resumed, joined: false })
    }

    fn scope(
        &self,
        wishes: &Wishes,
    ) -> Result<(Vec<crate::store::Registration>, crate::store::Scope), Status> {
        let refused = |error: crate::RegistryError| Status::invalid_argument(error.to_string());
        let scope = self.registry.open_scope(ScopeId::ROOT, wishes.label.as_deref()).map_err(refused)?;
        let mut held = Vec::new();
        if let Some(mode) = wishes.mode {
            held.push(self.registry.present_as(scope.id(), mode).map_err(refused)?);
        }
        if let Some(restriction) = &wishes.restriction {
            held.push(self.registry.restrict(scope.id(), restriction.clone()).map_err(refused)?);
        }
        Ok((held, scope))
    }

    /// The log, new or resumed; what a crash left open is closed first.
    async fn log(&self, id: &SessionId, how: How) -> Result<(SessionLog, bool), Status> {
        let failed = |error: OpenError| status::of_open(&error);
        if how != How::Resume {
            match SessionLog::create(Arc::clone(&self.store), id, system_clock()).await {
                Ok(log) => return Ok((log, false)),
                Err(OpenError::Store(StoreError::SessionExists(_))) if how == How::Either => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let log = SessionLog::resume(Arc::clone(&self.store), id, system_clock()).await.map_err(failed)?;
        for event in log.open_work().closing_events() {
            drop(log.append(event).await.map_err(|error| status::of_append(&error))?);
        }
        log.flush().await.map_err(|error| status::of_store(&error))?;
        Ok((log, true))
    }

    /// Closes a session: its calls, its registrations, its log. Gives the last number.
    pub(super) async fn close(&self, id: &str, reason: &str) -> Result<u64, Status> {
        let turn = self.turn(id);
        let _turn = turn.lock().await;
        let session = self.open.lock().get(id).cloned().ok_or_else(|| status::no_session(id))?;
        session.quiesce(reason).await;
        let closed = session.log.close().await;
        self.open.lock().remove(id);
        session.closed.cancel();
        closed.map_err(|error| status::of_append(&error))?;
        Ok(session.log.last())
    }

    /// Waits until all that a session has logged is durable. Gives the last number.
    pub(super) async fn flush(&self, session: &Arc<Session>) -> Result<u64, Status> {
        session.log.flush().await.map_err(|error| self.failed(session, &error.into()))
    }

    /// The status of a log's failure. A log that takes nothing any more takes its session with it: it can be resumed.
    pub(super) fn failed(&self, session: &Arc<Session>, error: &AppendError) -> Status {
        if !matches!(error, AppendError::Refused(_) | AppendError::Unwritable(_)) {
            tracing::error!(session = session.id(), %error, "a session's log has ended");
            let mut open = self.open.lock();
            if open.get(session.id()).is_some_and(|open| Arc::ptr_eq(open, session)) {
                open.remove(session.id());
            }
            drop(open);
            session.abort.abort(LOST);
            session.closed.cancel();
            let session = Arc::clone(session);
            tokio::spawn(async move { session.quiesce(LOST).await });
        }
        status::of_append(error)
    }
}

fn join(session: Arc<Session>, how: How, wishes: &Wishes) -> Result<Opened, Status> {
    if how == How::Create {
        return Err(Status::already_exists(format!("session `{}` is open here already", session.id())));
    }
    let own = &session.wishes;
    let differs = [
        ("label", wishes.label.is_some() && wishes.label != own.label),
        ("mode", wishes.mode.is_some() && wishes.mode != own.mode),
        ("restriction", wishes.restriction.is_some() && wishes.restriction != own.restriction),
    ];
    if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
        let message = format!("session `{}` is open here with another {what}", session.id());
        return Err(Status::failed_precondition(message));
    }
    Ok(Opened { session, resumed: true, joined: true })
}
