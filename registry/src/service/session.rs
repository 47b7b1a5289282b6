//! One session that is open here: its log, its scope, its calls, and the assemblies that calls may name.

use std::collections::VecDeque;
use std::sync::Arc;

use codemode_client::AbortSignal;
use codemode_events::{AppendError, SessionLog, TurnEnd, TurnOutcome, TurnStart};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;
use uuid::Uuid;

use crate::agent::{Agent, append_contexts};
use crate::present::{Mode, Surface};
use crate::registry::Registry;
use crate::store::{Registration, Restriction, Scope, ScopeId};
use crate::tool::ContextMessage;

/// Why a session has ended whose log takes nothing any more: another process has it, or its store failed.
pub(super) const LOST: &str = "the session's log has ended";

/// Assemblies that calls may name, the latest ones.
const ASSEMBLIES_KEPT: usize = 16;

/// What a session was opened with; whoever joins it must not say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) label: Option<String>,
    pub(super) mode: Option<Mode>,
    pub(super) restriction: Option<Restriction>,
}

/// An open session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) log: SessionLog,
    pub(super) agent: Agent,
    pub(super) wishes: Wishes,
    /// Ends all its calls.
    pub(super) abort: AbortSignal,
    /// Cancelled once it is closed, or was lost to another process.
    pub(super) closed: CancellationToken,
    /// Its calls; they outlive the RPCs that asked for them.
    pub(super) tasks: TaskTracker,
    /// Held while a step runs.
    pub(super) step: tokio::sync::Mutex<()>,
    /// Calls that share the turn which was opened for them.
    own_turn: tokio::sync::Mutex<OwnTurn>,
    assemblies: Mutex<VecDeque<(String, Arc<Surface>)>>,
    /// Contexts of an aborted step; they go to the next turn.
    parked: Mutex<Vec<ContextMessage>>,
    /// What is registered for as long as it is open, and the scope, in the order in which they go.
    held: Mutex<Option<(Vec<Registration>, Scope)>>,
}

#[derive(Debug, Default)]
struct OwnTurn {
    id: String,
    calls: usize,
}

impl Session {
    pub(super) fn new(log: SessionLog, wishes: Wishes, held: (Vec<Registration>, Scope)) -> Arc<Self> {
        let agent = Agent::new(log.session().as_str(), held.1.id()).with_log(log.clone());
        Arc::new(Self {
            log,
            agent,
            wishes,
            abort: AbortSignal::new(),
            closed: CancellationToken::new(),
            tasks: TaskTracker::new(),
            step: tokio::sync::Mutex::default(),
            own_turn: tokio::sync::Mutex::default(),
            assemblies: Mutex::default(),
            parked: Mutex::default(),
            held: Mutex::new(Some(held)),
        })
    }

    pub(super) fn id(&self) -> &str {
        self.log.session().as_str()
    }

    pub(super) fn scope(&self) -> ScopeId {
        self.agent.scope()
    }

    /// Keeps an assembly's surface for the calls that answer it. Gives the assembly's id, the same for the same surface.
    pub(super) fn keep(&self, surface: &Arc<Surface>) -> String {
        let mut assemblies = self.assemblies.lock();
        if let Some((id, _)) = assemblies.back().filter(|(_, last)| Arc::ptr_eq(last, surface)) {
            return id.clone();
        }
        if assemblies.len() == ASSEMBLIES_KEPT {
            assemblies.pop_front();
        }
        let id = Uuid::new_v4().to_string();
        assemblies.push_back((id.clone(), Arc::clone(surface)));
        id
    }

    /// What the model was shown that asks for calls.
    pub(super) fn shown(&self, registry: &Registry, assembly: &str) -> Result<Arc<Surface>, Status> {
        let assemblies = self.assemblies.lock();
        let kept = if assembly.is_empty() {
            assemblies.back()
        } else {
            assemblies.iter().find(|(id, _)| id == assembly)
        };
        match kept {
            Some((_, surface)) => Ok(Arc::clone(surface)),
            None if assembly.is_empty() => Ok(registry.surface(self.scope())),
            None => Err(Status::not_found(format!(
                "assembly `{assembly}` is not among the last {ASSEMBLIES_KEPT} of session `{}`",
                self.id()
            ))),
        }
    }

    pub(super) fn park(&self, contexts: &[ContextMessage]) {
        self.parked.lock().extend_from_slice(contexts);
    }

    /// Appends what aborted steps have left, now that a turn has begun.
    pub(super) async fn release_parked(&self) -> Result<(), AppendError> {
        let parked = std::mem::take(&mut *self.parked.lock());
        append_contexts(&self.agent, &parked).await
    }

    /// Sees to it that a turn is open while a call runs. Gives whether [`Self::leave_turn`] must follow.
    pub(super) async fn enter_turn(&self) -> Result<bool, AppendError> {
        let mut own = self.own_turn.lock().await;
        if own.calls == 0 {
            if self.log.open_work().turn.is_some() {
                return Ok(false);
            }
            own.id = format!("call:{}", Uuid::new_v4());
            let start = TurnStart { turn_id: own.id.clone() };
            drop(self.log.append(start).await?);
            self.release_parked().await?;
        }
        own.calls += 1;
        Ok(true)
    }

    /// Ends the turn that was opened for calls with the last of them.
    pub(super) async fn leave_turn(&self) {
        let mut own = self.own_turn.lock().await;
        own.calls -= 1;
        if own.calls > 0 {
            return;
        }
        let aborted = self.abort.reason().is_some();
        let outcome = if aborted { TurnOutcome::Aborted } else { TurnOutcome::Completed };
        let end = TurnEnd { turn_id: std::mem::take(&mut own.id), outcome, message: None };
        if let Err(error) = self.log.append(end).await {
            tracing::warn!(session = self.id(), %error, "the turn of a call was not ended in the log");
        }
    }

    /// Ends everything of it but its log: calls, then registrations, then the scope.
    pub(super) async fn quiesce(&self, reason: &str) {
        self.abort.abort(reason);
        self.tasks.close();
        self.tasks.wait().await;
        drop(self.held.lock().take());
    }
}
