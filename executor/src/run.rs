//! One run, from its acceptance to its outcome: one task that owns everything of it.
//!
//! The pure parts decide ([`state`], [`confirm`], [`ledger`], [`budget`], [`settle`], [`attribution`], [`crate::bridge`]); here are the
//! clocks and the I/O. Start reading at [`run`]; [`drive`] is the loop while the process lives.
//!
//! A run is never aborted as a task: whatever happens, it ends its process, reaps it, and only then says so.

pub mod attribution;
pub mod budget;
pub mod confirm;
mod drive;
pub mod excerpt;
pub mod ledger;
pub mod namespace;
pub mod settle;
pub mod state;
mod talk;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use codemode_proto::detail::Detail;
use codemode_wire::message::{NamespaceTable, ProgramSpec, Shape};
use futures::Stream;
use tokio::sync::mpsc;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::admission::{Refused, Slot};
use crate::config::Engine;
use crate::context::{Context, ReservedId};
use crate::outcome::{Failure, Outcome, Phases, Usage};
use crate::supervisor::strip::{StripError, Stripped};
use crate::supervisor::zygote::ForkError;
use crate::supervisor::{Forked, random};
use budget::Budgets;
use confirm::Unconfirmed;
use ledger::Ledger;
use settle::Terminal;
pub(crate) use talk::Talk;

/// Advice to a caller that finds no slot, milliseconds: about the time in which some run ends.
pub const RETRY_AFTER_MS: u64 = 250;

/// How long a settled run waits for a caller that does not take what it is sent, before it gives its slot away.
const HAND_OVER_PATIENCE: Duration = Duration::from_secs(30);

/// A run that was checked and may begin.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// Its id.
    pub id: Uuid,
    /// The program as it was sent.
    pub program: Arc<str>,
    /// What it can call.
    pub namespaces: Vec<NamespaceTable>,
    /// What it may spend.
    pub budgets: Budgets,
    /// What it runs on.
    pub engine: Engine,
    /// The caller's labels, for logs.
    pub labels: Vec<(String, String)>,
}

/// What the caller sends while the run goes on.
#[derive(Clone, Debug)]
pub enum HostMessage {
    /// The answer to a call: JSON text, or a message.
    Reply {
        /// The call.
        id: u64,
        /// Its result.
        result: Result<Bytes, String>,
    },
    /// The run shall end.
    Abort(String),
    /// What the contract does not allow here: why.
    Misuse(&'static str),
}

/// What the caller is told while the run goes on.
#[derive(Debug)]
pub enum Event {
    /// It has begun.
    Started {
        /// The run.
        id: Uuid,
        /// Its engine.
        engine: Engine,
    },
    /// A log entry.
    Log(String),
    /// A binding call.
    Call {
        /// Its id.
        id: u64,
        /// The namespace.
        global: String,
        /// The function.
        name: String,
        /// JSON text.
        args: Bytes,
    },
    /// The last word.
    Outcome(Box<Outcome>),
    /// Instead of an outcome: misuse, or a broken service.
    Refused(Refusal),
}

/// Why a run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The caller broke the contract.
    #[error("{0}")]
    Misuse(String),
    /// No slot.
    #[error(transparent)]
    Capacity(#[from] Refused),
    /// The executor is shutting down.
    #[error("the executor is draining")]
    Draining,
    /// No process can be made.
    #[error("no process can be made for the run")]
    NoProcess(#[source] ForkError),
    /// Programs cannot be stripped.
    #[error("the program cannot be prepared")]
    NoStripper(#[source] StripError),
    /// The caller's stream broke.
    #[error("the request stream broke")]
    Stream(#[source] Box<tonic::Status>),
}

/// How a run ends, and what the caller is told instead of the outcome if the caller is to blame.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) terminal: Terminal,
    pub(crate) refusal: Option<Refusal>,
}

impl From<Terminal> for End {
    fn from(terminal: Terminal) -> Self {
        Self { terminal, refusal: None }
    }
}

/// Measures the phases one after the other.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    began: Instant,
    last: Instant,
    pub(crate) phases: Phases,
}

impl Stopwatch {
    fn start() -> Self {
        let now = Instant::now();
        Self { began: now, last: now, phases: Phases::default() }
    }

    /// Ends a phase.
    pub(crate) fn lap(&mut self, phase: impl FnOnce(&mut Phases) -> &mut Duration) {
        let now = Instant::now();
        *phase(&mut self.phases) = now - self.last;
        self.last = now;
    }

    fn usage(&self) -> Usage {
        Usage { wall: self.began.elapsed(), phases: self.phases, ..Usage::default() }
    }
}

/// Runs a program and tells `events` what happens; the outcome or a refusal is the last event, sent when no process of
/// the run is left. To be awaited to its end, in a task of its own.
///
/// `id` is the run's own until just before its last event: a caller that has seen that may use the id again.
pub async fn run<S>(
    context: Arc<Context>,
    spec: RunSpec,
    id: ReservedId,
    inbound: S,
    events: mpsc::Sender<Event>,
) where
    S: Stream<Item = Result<HostMessage, tonic::Status>> + Send + Unpin,
{
    let span = tracing::info_span!("run", run_id = %spec.id, engine = %spec.engine, labels = ?spec.labels);
    let talk = Talk::new(inbound, events.clone(), context.settle_now.clone());
    let caller = Caller { events, id };
    Box::pin(conduct(&context, spec, talk, caller)).instrument(span).await;
}

/// Who is told what happens.
struct Caller {
    events: mpsc::Sender<Event>,
    id: ReservedId,
}

impl Caller {
    /// Hands over the last event.
    async fn last(self, event: Event) {
        drop(self.id);
        hand_over(&self.events, event).await;
    }
}

/// A run before it has a process.
struct Prepared {
    slot: Slot,
    /// When the wall budget is spent.
    wall: Instant,
    stripped: Arc<Stripped>,
}

async fn conduct<S>(context: &Context, spec: RunSpec, mut talk: Talk<S>, caller: Caller)
where
    S: Stream<Item = Result<HostMessage, tonic::Status>> + Send + Unpin,
{
    let _live = context.metrics.run_started();
    let mut watch = Stopwatch::start();
    let prepared = match prepare(context, &spec, &mut talk, &mut watch).await {
        Ok(prepared) => prepared,
        Err(early) => return leave(context, &spec, caller, early, &watch).await,
    };
    let Prepared { slot, wall, stripped } = prepared;
    let Stripped::Program { shape, source, hints } = &*stripped else {
        let outcome = refused_program(&spec, &stripped, &watch);
        return report_early(context, &spec, caller, outcome, None).await;
    };
    let program = match program(context, &spec, *shape, source) {
        Ok(program) => program,
        Err(error) => {
            return refuse(context, caller, Refusal::NoProcess(ForkError::Random(error))).await;
        }
    };
    let forked = match obtain(context, &spec, &mut talk, wall).await {
        Ok(forked) => forked,
        Err(early) => return leave(context, &spec, caller, early, &watch).await,
    };
    watch.lap(|phases| &mut phases.fork);
    let unconfirmed = Unconfirmed::new(program, forked.nonce, forked.expected);
    let driven = drive::Drive::new(context, &spec, forked, unconfirmed, wall);
    let (mut outcome, refusal) = driven.conclude(&mut talk, &caller.events, watch).await;
    outcome.hints.clone_from(hints);
    report(context, caller, outcome, refusal).await;
    drop(slot);
}

/// Why a run ends before it has a process.
enum Early {
    Refused(Refusal),
    Ended(End),
}

async fn prepare<S>(
    context: &Context,
    spec: &RunSpec,
    talk: &mut Talk<S>,
    watch: &mut Stopwatch,
) -> Result<Prepared, Early>
where
    S: Stream<Item = Result<HostMessage, tonic::Status>> + Send + Unpin,
{
    if context.draining.is_cancelled() {
        return Err(Early::Refused(Refusal::Draining));
    }
    let slot = talk.unless_ended(context.admission.acquire()).await.map_err(Early::Ended)?;
    let slot = slot.map_err(|refused| Early::Refused(Refusal::Capacity(refused)))?;
    watch.lap(|phases| &mut phases.admission);
    let wall = Instant::now() + Duration::from_millis(spec.budgets.wall_ms);
    let stripping = tokio::time::timeout_at(wall.into(), context.supervisor.strip(&spec.program));
    let stripped = talk.unless_ended(stripping).await.map_err(Early::Ended)?;
    watch.lap(|phases| &mut phases.strip);
    match stripped {
        Ok(Ok(stripped)) => Ok(Prepared { slot, wall, stripped }),
        Ok(Err(error)) => Err(Early::Refused(Refusal::NoStripper(error))),
        Err(_) => Err(Early::Ended(wall_spent(&spec.budgets).into())),
    }
}

/// A process for the run. Only where each run boots its own is that worth calling a wait.
async fn obtain<S>(
    context: &Context,
    spec: &RunSpec,
    talk: &mut Talk<S>,
    wall: Instant,
) -> Result<Forked, Early>
where
    S: Stream<Item = Result<HostMessage, tonic::Status>> + Send + Unpin,
{
    let forking = tokio::time::timeout_at(wall.into(), context.supervisor.fork(spec.engine, &spec.budgets));
    match talk.unless_ended(forking).await.map_err(Early::Ended)? {
        Ok(Ok(forked)) => Ok(forked),
        Ok(Err(error)) => Err(Early::Refused(Refusal::NoProcess(error))),
        Err(_) => Err(Early::Ended(wall_spent(&spec.budgets).into())),
    }
}

/// Tells the caller of a run that ended before it had a process.
async fn leave(context: &Context, spec: &RunSpec, caller: Caller, why: Early, watch: &Stopwatch) {
    match why {
        Early::Refused(refusal) => refuse(context, caller, refusal).await,
        Early::Ended(end) => {
            let outcome = early(spec, end.terminal, watch);
            report_early(context, spec, caller, outcome, end.refusal).await;
        }
    }
}

/// The wall budget is spent.
pub(crate) fn wall_spent(budgets: &Budgets) -> Terminal {
    let limit = budgets.wall_ms;
    let failure = Failure::new(Detail::WallMs, format!("wall-clock ceiling reached ({limit}ms)"));
    Terminal::failed(failure.with_numbers(limit, Some(limit)))
}

/// What the run's process is given.
fn program(context: &Context, spec: &RunSpec, shape: Shape, source: &str) -> std::io::Result<ProgramSpec> {
    Ok(ProgramSpec {
        source: source.to_owned(),
        shape,
        namespaces: spec.namespaces.clone(),
        output_bytes: spec.budgets.output_bytes,
        heap_bytes: spec.budgets.heap_bytes,
        argument_bytes_max: context.config.frame_bytes_max,
        log_entry_bytes_max: u32::try_from(spec.budgets.log_entry_bytes).unwrap_or(u32::MAX),
        undefined_omit: context.config.undefined_omit,
        seed: random()?,
    })
}

/// The outcome of a run that never had a process.
fn early(spec: &RunSpec, terminal: Terminal, watch: &Stopwatch) -> Outcome {
    let ledger = Ledger::new(spec.budgets.output_bytes, spec.budgets.log_entry_bytes);
    let settled = settle::settle(terminal, ledger, |_| Failure::new(Detail::Infrastructure, "no process"));
    let usage = Usage { output_bytes: settled.output_bytes, ..watch.usage() };
    Outcome { value: settled.value, logs: settled.logs, failure: settled.failure, usage, hints: Vec::new() }
}

fn refused_program(spec: &RunSpec, stripped: &Stripped, watch: &Stopwatch) -> Outcome {
    let (message, line, column) = match stripped {
        Stripped::Refused { message, line, column } => (message.as_str(), *line, *column),
        Stripped::Program { .. } => ("", 0, 0),
    };
    let mut failure = Failure::new(Detail::Syntax, message);
    failure.position = settle::position(&spec.program, line, column);
    "SyntaxError".clone_into(&mut failure.error_name);
    early(spec, Terminal::failed(failure), watch)
}

/// Hands over the outcome of a run that never had a process; `Started` comes before it all the same.
async fn report_early(
    context: &Context,
    spec: &RunSpec,
    caller: Caller,
    outcome: Outcome,
    refusal: Option<Refusal>,
) {
    if refusal.is_none() {
        hand_over(&caller.events, Event::Started { id: spec.id, engine: spec.engine }).await;
    }
    report(context, caller, outcome, refusal).await;
}

/// Hands over the last event.
async fn report(context: &Context, caller: Caller, outcome: Outcome, refusal: Option<Refusal>) {
    context.metrics.run_settled(&outcome);
    let last = match refusal {
        Some(refusal) => Event::Refused(refusal),
        None => Event::Outcome(Box::new(outcome)),
    };
    caller.last(last).await;
}

async fn refuse(context: &Context, caller: Caller, refusal: Refusal) {
    context.metrics.run_refused(&crate::service::status::of_refusal(&refusal));
    caller.last(Event::Refused(refusal)).await;
}

/// Sends an event to a caller that may be gone or stuck. False if it is: then there is no use in sending more.
async fn hand_over(events: &mpsc::Sender<Event>, event: Event) -> bool {
    match tokio::time::timeout(HAND_OVER_PATIENCE, events.send(event)).await {
        Ok(sent) => sent.is_ok(),
        Err(_) => {
            tracing::warn!("the caller does not take what it is sent; the rest is dropped");
            false
        }
    }
}
