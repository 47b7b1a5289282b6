//! Carries one attempt on its stream: start, logs and calls as they come, abort and deadline, the outcome.
//!
//! Everything of the attempt hangs on the future of [`Attempt::drive`]: dropping it closes the stream, which aborts the run,
//! and drops the calls in flight. The select loop is cancel-safe: its only state is the stream, the set of calls and `ending`.

use std::sync::Arc;
use std::time::Duration;

use codemode_proto::executor_v1 as pb;
use codemode_proto::executor_v1::run_response::Message;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Response, Status};

use super::DISPOSED_REASON;
use super::convert::{self, ContractFault};
use super::pool::Lease;
use super::status::{self, Refusal};
use crate::abort::AbortSignal;
use crate::binding::{BindingTable, CallContext};
use crate::error::RuntimeError;
use crate::event::RunEvent;
use crate::outcome::Outcome;
use crate::request::{RunId, RunRequest};
use crate::runtime::RunHost;

/// Replies that wait for the connection; further calls wait with their results in hand.
const OUTBOUND_MAX: usize = 64;

/// How long the stream's own end is awaited after the outcome, so that it does not look like a cancellation.
const END_WAIT: Duration = Duration::from_millis(250);
/// How long functions that were cancelled may take to be dropped. A future that never yields is not waited for.
const CALLS_WAIT: Duration = Duration::from_millis(250);
/// How long an abort before `started` may take to be answered; nothing ran that would have to be waited for.
const UNSTARTED_GRACE_MAX: Duration = Duration::from_secs(1);

/// What ends a run from outside.
pub(super) struct Stop<'a> {
    abort: &'a AbortSignal,
    disposal: &'a CancellationToken,
    deadline: Option<(Instant, Duration)>,
    grace: Duration,
}

/// That it did.
#[derive(Debug)]
pub(super) enum Early {
    Abort(String),
    Deadline(Duration),
}

impl<'a> Stop<'a> {
    pub(super) fn new(
        abort: &'a AbortSignal,
        disposal: &'a CancellationToken,
        deadline: Option<Duration>,
        grace: Duration,
    ) -> Self {
        // A deadline beyond the clock's end is none.
        let deadline = deadline.and_then(|length| Some((Instant::now().checked_add(length)?, length)));
        Self { abort, disposal, deadline, grace }
    }

    /// Waits for the first of abort, disposal and deadline. Cancel-safe.
    async fn early(&self) -> Early {
        let deadline = async {
            match self.deadline {
                Some((at, length)) => {
                    tokio::time::sleep_until(at).await;
                    length
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            reason = self.abort.aborted() => Early::Abort(reason.to_owned()),
            () = self.disposal.cancelled() => Early::Abort(DISPOSED_REASON.to_owned()),
            length = deadline => Early::Deadline(length),
        }
    }

    /// Waits for `delay`, unless something ends the run first.
    pub(super) async fn within(&self, delay: Duration) -> Option<Early> {
        tokio::time::timeout(delay, self.early()).await.ok()
    }
}

impl Early {
    /// What a run comes to that was ended before it started.
    pub(super) fn before_start(self, request: &RunRequest) -> Result<Outcome, RuntimeError> {
        match self {
            Self::Abort(reason) => Ok(Outcome::aborted(request.run_id.unwrap_or_else(RunId::random), reason)),
            Self::Deadline(deadline) => Err(RuntimeError::DeadlineExceeded { deadline, after_start: false }),
        }
    }

    /// The reason that the executor is told.
    fn reason(&self) -> String {
        match self {
            Self::Abort(reason) => reason.clone(),
            Self::Deadline(deadline) => format!("deadline of {}ms exceeded", deadline.as_millis()),
        }
    }
}

/// How an attempt ended.
pub(super) enum Ended {
    Settled(Box<Outcome>),
    /// It did not start.
    Refused(Refusal),
    /// There is no outcome and no further attempt.
    Broken(RuntimeError),
}

impl From<Result<Outcome, RuntimeError>> for Ended {
    fn from(result: Result<Outcome, RuntimeError>) -> Self {
        result.map_or_else(Self::Broken, |outcome| Self::Settled(Box::new(outcome)))
    }
}

/// The calls in flight. Dropping it cancels their token and drops their futures.
struct Calls {
    set: JoinSet<()>,
    cancellation: CancellationToken,
    _cancel: DropGuard,
}

impl Calls {
    fn new() -> Self {
        let cancellation = CancellationToken::new();
        Self { set: JoinSet::new(), _cancel: cancellation.clone().drop_guard(), cancellation }
    }

    /// Cancels them and waits a moment until they are gone.
    async fn end(mut self) {
        self.cancellation.cancel();
        if tokio::time::timeout(CALLS_WAIT, self.set.shutdown()).await.is_err() {
            tracing::warn!("a binding's function blocks its thread and outlives its run");
        }
    }
}

/// One attempt on one executor.
pub(super) struct Attempt<'a> {
    lease: &'a Lease,
    request: &'a RunRequest,
    host: &'a RunHost,
    stop: &'a Stop<'a>,
    table: &'a Arc<BindingTable>,
    started: Option<RunId>,
    outbound: mpsc::Sender<pb::RunRequest>,
    replies: Option<mpsc::Receiver<pb::RunRequest>>,
    calls: Calls,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        lease: &'a Lease,
        request: &'a RunRequest,
        host: &'a RunHost,
        stop: &'a Stop<'a>,
        table: &'a Arc<BindingTable>,
    ) -> Self {
        let (outbound, replies) = mpsc::channel(OUTBOUND_MAX);
        Self {
            lease,
            request,
            host,
            stop,
            table,
            started: None,
            outbound,
            replies: Some(replies),
            calls: Calls::new(),
        }
    }

    /// Drives the attempt to its end. Dropping the future aborts the run and waits for nothing.
    pub(super) async fn drive(mut self) -> Ended {
        let first = stream::iter([convert::start(self.request)]);
        let replies = first.chain(stream::iter(self.replies.take()).map(ReceiverStream::new).flatten());
        let mut client = self.lease.client();
        // The head of the response may come late, e.g. after queueing: opening is part of the stream, so that abort and
        // deadline work meanwhile.
        let open = async move { client.run(replies).await.map(Response::into_inner) };
        let mut inbound = Box::pin(stream::once(open).try_flatten());
        let ended = self.until_end(&mut inbound).await;
        let Self { outbound, calls, .. } = self;
        drop(outbound);
        calls.end().await;
        if matches!(ended, Ended::Settled(_)) {
            // Whatever comes after the outcome does not matter, and whether the end comes in time neither.
            let _ = tokio::time::timeout(END_WAIT, inbound.next()).await;
        }
        ended
    }

    async fn until_end<S>(&mut self, inbound: &mut S) -> Ended
    where
        S: stream::Stream<Item = Result<pb::RunResponse, Status>> + Unpin,
    {
        let mut ending: Option<(Early, Instant)> = None;
        loop {
            let grace_end = ending.as_ref().map(|(_, at)| *at);
            tokio::select! {
                received = inbound.next() => {
                    if let Some(ended) = self.on_received(received, ending.as_ref().map(|(early, _)| early)) {
                        return ended;
                    }
                }
                Some(_) = self.calls.set.join_next() => {}
                early = self.stop.early(), if ending.is_none() => match self.begin_ending(early) {
                    Ok(begun) => ending = Some(begun),
                    Err(ended) => return *ended,
                },
                () = until(grace_end), if ending.is_some() => return self.give_up(ending),
            }
        }
    }

    /// Tells the executor; a deadline before `started` ends the attempt there and then.
    fn begin_ending(&mut self, early: Early) -> Result<(Early, Instant), Box<Ended>> {
        let grace = match (&early, self.started) {
            (Early::Deadline(_), None) => return Err(Box::new(early.before_start(self.request).into())),
            (Early::Abort(_), None) => self.stop.grace.min(UNSTARTED_GRACE_MAX),
            (_, Some(_)) => self.stop.grace,
        };
        let (outbound, abort) = (self.outbound.clone(), convert::abort(early.reason()));
        // A task of its own: the connection may be clogged, and the loop must go on reading.
        self.calls.set.spawn(async move {
            // No receiver means that the stream is over, and the run with it.
            let _ = outbound.send(abort).await;
        });
        Ok((early, Instant::now() + grace))
    }

    /// The aborted run did not settle in time: closing the stream is all that is left.
    fn give_up(&self, ending: Option<(Early, Instant)>) -> Ended {
        let Some((early, _)) = ending else { return self.transport("the run never settled") };
        match (early, self.started) {
            (early, None) => early.before_start(self.request).into(),
            (Early::Deadline(deadline), Some(_)) => {
                Ended::Broken(RuntimeError::DeadlineExceeded { deadline, after_start: true })
            }
            (Early::Abort(_), Some(_)) => self.transport(&format!(
                "the aborted run did not settle within {}ms",
                self.stop.grace.as_millis()
            )),
        }
    }

    /// What the stream gave. `None`: it goes on.
    fn on_received(
        &mut self,
        received: Option<Result<pb::RunResponse, Status>>,
        ending: Option<&Early>,
    ) -> Option<Ended> {
        match received {
            Some(Ok(response)) => self
                .on_message(response.message?)
                .unwrap_or_else(|fault| Some(self.contract(&fault.to_string()))),
            Some(Err(status)) => Some(self.on_status(&status, ending)),
            None if self.started.is_some() => Some(self.transport("the stream ended without an outcome")),
            None => Some(self.contract("the stream ended without a start")),
        }
    }

    fn on_status(&self, status: &Status, ending: Option<&Early>) -> Ended {
        let endpoint = self.lease.endpoint();
        match (self.started, ending) {
            (Some(_), _) => Ended::Broken(status::after_start(endpoint, status)),
            // It was told to abort and did, in the only way it has before a start.
            (None, Some(Early::Abort(reason))) => {
                Early::Abort(reason.clone()).before_start(self.request).into()
            }
            (None, _) => Ended::Refused(Refusal::from_status(endpoint, status)),
        }
    }

    fn on_message(&mut self, message: Message) -> Result<Option<Ended>, ContractFault> {
        match (message, self.started) {
            (Message::Started(started), None) => {
                let run_id = convert::run_id(&started.run_id)?;
                self.started = Some(run_id);
                self.host.notify(RunEvent::Started { run_id, engine: &started.engine });
                Ok(None)
            }
            (Message::Log(entry), Some(_)) => {
                self.host.notify(RunEvent::Log { text: &entry.text });
                Ok(None)
            }
            (Message::Call(call), Some(run_id)) => self.on_call(run_id, call).map(|()| None),
            (Message::Outcome(outcome), Some(run_id)) => {
                Ok(Some(Ended::Settled(Box::new(convert::outcome(run_id, outcome)?))))
            }
            (Message::Started(_), Some(_)) => Ok(Some(self.contract("a second start"))),
            (Message::Log(_) | Message::Call(_) | Message::Outcome(_), None) => {
                Ok(Some(self.contract("a message before the start")))
            }
        }
    }

    /// Starts the function; its reply goes out whenever it is there, in no order.
    fn on_call(&mut self, run_id: RunId, call: pb::BindingCall) -> Result<(), ContractFault> {
        let args = convert::json("a call's argument", call.args_json)?;
        self.host.notify(RunEvent::CallStarted {
            call_id: call.id,
            global: &call.global,
            name: &call.name,
            argument_bytes: args.len(),
        });
        let context = CallContext {
            run_id,
            call_id: call.id,
            global: call.global.into(),
            name: call.name.into(),
            cancellation: self.calls.cancellation.clone(),
            deadline: self.stop.deadline.map(|(at, _)| at),
        };
        let (table, host, outbound) = (Arc::clone(self.table), self.host.clone(), self.outbound.clone());
        self.calls.set.spawn(async move { answer(&table, &host, &outbound, args, context).await });
        Ok(())
    }

    fn transport(&self, message: &str) -> Ended {
        Ended::Broken(RuntimeError::Transport {
            endpoint: self.lease.endpoint().to_owned(),
            message: message.to_owned(),
            after_start: self.started.is_some(),
        })
    }

    fn contract(&self, fault: &str) -> Ended {
        Ended::Broken(RuntimeError::Contract {
            endpoint: self.lease.endpoint().to_owned(),
            fault: fault.to_owned(),
            after_start: self.started.is_some(),
        })
    }
}

/// Carries out one call and sends what it came to.
async fn answer(
    table: &BindingTable,
    host: &RunHost,
    outbound: &mpsc::Sender<pb::RunRequest>,
    args: crate::json::JsonText,
    context: CallContext,
) {
    let (call_id, global, name) = (context.call_id, Arc::clone(&context.global), Arc::clone(&context.name));
    let begun = Instant::now();
    let result = table.call(args, context).await;
    host.notify(RunEvent::CallSettled {
        call_id,
        global: &global,
        name: &name,
        result: result.as_ref().map(crate::json::JsonText::len).map_err(|error| error.message.as_str()),
        elapsed: begun.elapsed(),
    });
    // No receiver means that the run is over: a late result is dropped.
    let _ = outbound.send(convert::reply(call_id, result)).await;
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
