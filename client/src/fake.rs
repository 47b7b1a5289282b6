//! A scripted runtime for tests of hosts: no process, no network, the same promises as any other.
//!
//! Each run takes the next script and follows it: log entries and binding calls happen as written, calls really reach the
//! request's functions, abort and deadline work. What was asked and answered is recorded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::binding::{BindingError, BindingTable, CallContext};
use crate::description::{Description, Engine, Limits};
use crate::error::RuntimeError;
use crate::event::RunEvent;
use crate::json::JsonText;
use crate::outcome::{Failure, FailureKind, Outcome, Usage};
use crate::request::{Budgets, RunId, RunRequest};
use crate::runtime::{CodeRuntime, RunHost};

/// Something that a scripted program does.
#[derive(Clone, Debug)]
enum Step {
    Log(String),
    /// Calls that are in flight together; the next step waits for all of them.
    Calls(Vec<(String, String, JsonText)>),
    Wait(Duration),
}

/// How a scripted program ends.
#[derive(Debug)]
enum End {
    Completes(Option<JsonText>),
    /// With the reply of the last call, or as `exception` with its message.
    LastReply,
    Fails(Failure),
    Errs(RuntimeError),
}

/// What one run does. Without an end it completes with undefined.
#[derive(Debug)]
pub struct Script {
    steps: Vec<Step>,
    end: End,
    hints: Vec<String>,
}

impl Default for Script {
    fn default() -> Self {
        Self { steps: Vec::new(), end: End::Completes(None), hints: Vec::new() }
    }
}

impl Script {
    /// A program that does nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Then it logs an entry.
    #[must_use]
    pub fn log(mut self, text: impl Into<String>) -> Self {
        self.steps.push(Step::Log(text.into()));
        self
    }

    /// Then it calls a binding and waits for the reply.
    #[must_use]
    pub fn call(self, global: &str, name: &str, args: JsonText) -> Self {
        self.calls([(global, name, args)])
    }

    /// Then it makes several calls at once and waits for all replies.
    #[must_use]
    pub fn calls<'a>(mut self, calls: impl IntoIterator<Item = (&'a str, &'a str, JsonText)>) -> Self {
        let owned = |(global, name, args): (&str, &str, JsonText)| (global.to_owned(), name.to_owned(), args);
        self.steps.push(Step::Calls(calls.into_iter().map(owned).collect()));
        self
    }

    /// Then it waits.
    #[must_use]
    pub fn wait(mut self, duration: Duration) -> Self {
        self.steps.push(Step::Wait(duration));
        self
    }

    /// Its outcome has that hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// In the end it completes with a value.
    #[must_use]
    pub fn completes(self, value: JsonText) -> Self {
        Self { end: End::Completes(Some(value)), ..self }
    }

    /// In the end it returns the reply of its last call, or throws that call's failure.
    #[must_use]
    pub fn returns_last_reply(self) -> Self {
        Self { end: End::LastReply, ..self }
    }

    /// In the end it fails.
    #[must_use]
    pub fn fails(self, failure: Failure) -> Self {
        Self { end: End::Fails(failure), ..self }
    }

    /// In the end there is no outcome.
    #[must_use]
    pub fn errs(self, error: RuntimeError) -> Self {
        Self { end: End::Errs(error), ..self }
    }
}

/// A run that was asked for.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// The request as it came.
    pub request: RunRequest,
    /// What the bindings answered, in the order of the calls.
    pub replies: Vec<Result<JsonText, BindingError>>,
}

/// A runtime that follows scripts.
#[derive(Debug, Default)]
pub struct FakeRuntime {
    scripts: Mutex<VecDeque<Script>>,
    runs: Mutex<Vec<RecordedRun>>,
    disposal: CancellationToken,
    live: TaskTracker,
}

impl FakeRuntime {
    /// A runtime without scripts: each run completes with undefined.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A runtime whose runs follow these scripts, in order; later runs complete with undefined.
    #[must_use]
    pub fn scripted(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self { scripts: Mutex::new(scripts.into_iter().collect()), ..Self::default() }
    }

    /// The runs so far that ended, in the order of their ends.
    #[must_use]
    pub fn runs(&self) -> Vec<RecordedRun> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next_script(&self) -> Script {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or_default()
    }

    fn record(&self, run: RecordedRun) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
    }
}

/// One scripted run.
struct FakeRun<'a> {
    run_id: RunId,
    host: &'a RunHost,
    deadline: Option<Instant>,
    cancellation: CancellationToken,
    table: BindingTable,
    logs: Vec<String>,
    replies: Vec<Result<JsonText, BindingError>>,
    calls: u64,
}

impl FakeRun<'_> {
    async fn follow(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Log(text) => {
                    self.host.notify(RunEvent::Log { text: &text });
                    self.logs.push(text);
                }
                Step::Wait(duration) => tokio::time::sleep(duration).await,
                Step::Calls(calls) => {
                    let begun: Vec<_> = calls
                        .into_iter()
                        .map(|call| (self.begin_call(&call.0, &call.1, &call.2), call.2))
                        .collect();
                    let replies = begun.into_iter().map(|(context, args)| self.finish_call(context, args));
                    let replies = futures::future::join_all(replies).await;
                    self.replies.extend(replies);
                }
            }
        }
    }

    fn begin_call(&mut self, global: &str, name: &str, args: &JsonText) -> CallContext {
        self.calls += 1;
        self.host.notify(RunEvent::CallStarted {
            call_id: self.calls,
            global,
            name,
            argument_bytes: args.len(),
        });
        CallContext {
            run_id: self.run_id,
            call_id: self.calls,
            global: global.into(),
            name: name.into(),
            cancellation: self.cancellation.clone(),
            deadline: self.deadline,
        }
    }

    async fn finish_call(&self, context: CallContext, args: JsonText) -> Result<JsonText, BindingError> {
        let (call_id, global, name) =
            (context.call_id, Arc::clone(&context.global), Arc::clone(&context.name));
        let begun = Instant::now();
        let result = self.table.call(args, context).await;
        self.host.notify(RunEvent::CallSettled {
            call_id,
            global: &global,
            name: &name,
            result: result.as_ref().map(JsonText::len).map_err(|error| error.message.as_str()),
            elapsed: begun.elapsed(),
        });
        result
    }

    fn outcome(&mut self, end: End, hints: Vec<String>) -> Result<Outcome, RuntimeError> {
        let ended = match end {
            End::Completes(value) => Ok(value),
            End::Fails(failure) => Err(failure),
            End::Errs(error) => return Err(error),
            End::LastReply => match self.replies.last().cloned() {
                None => Ok(None),
                Some(Ok(value)) => Ok(Some(value)),
                Some(Err(error)) => Err(Failure::new(FailureKind::Exception, error.message)),
            },
        };
        let (value, failure) = ended.map_or_else(|failure| (None, Some(failure)), |value| (value, None));
        let usage = Usage { binding_calls: self.calls, ..Usage::default() };
        Ok(Outcome {
            run_id: self.run_id,
            value,
            logs: std::mem::take(&mut self.logs),
            failure,
            usage,
            hints,
        })
    }
}

#[async_trait]
impl CodeRuntime for FakeRuntime {
    async fn run(&self, request: RunRequest, host: RunHost) -> Result<Outcome, RuntimeError> {
        let _live = self.live.token();
        if self.disposal.is_cancelled() {
            return Err(RuntimeError::Disposed);
        }
        let run_id = request.run_id.unwrap_or_else(RunId::random);
        if let Some(reason) = host.abort.reason() {
            return Ok(Outcome::aborted(run_id, reason));
        }
        let script = self.next_script();
        host.notify(RunEvent::Started { run_id, engine: "fake" });
        let deadline = host.deadline.and_then(|length| Instant::now().checked_add(length));
        let cancellation = CancellationToken::new();
        let _cancel = cancellation.clone().drop_guard();
        let table = BindingTable::new(&request.namespaces);
        let mut run = FakeRun {
            run_id,
            host: &host,
            deadline,
            cancellation,
            table,
            logs: Vec::new(),
            replies: Vec::new(),
            calls: 0,
        };
        let aborted = tokio::select! {
            () = run.follow(script.steps) => None,
            reason = host.abort.aborted() => Some(reason.to_owned()),
            () = self.disposal.cancelled() => Some("runtime disposed".to_owned()),
            () = async { match deadline { Some(at) => tokio::time::sleep_until(at).await, None => std::future::pending().await } } => {
                Some(format!("deadline of {}ms exceeded", host.deadline.unwrap_or_default().as_millis()))
            }
        };
        let end = match aborted {
            Some(reason) => End::Fails(
                Outcome::aborted(run_id, reason)
                    .failure
                    .unwrap_or_else(|| Failure::new(FailureKind::Abort, "")),
            ),
            None => script.end,
        };
        let outcome = run.outcome(end, script.hints);
        let replies = std::mem::take(&mut run.replies);
        drop(run);
        self.record(RecordedRun { request, replies });
        outcome
    }

    fn language(&self) -> &str {
        "typescript"
    }

    fn isolation(&self) -> &str {
        "none"
    }

    async fn describe(&self) -> Result<Description, RuntimeError> {
        Ok(Description {
            contract_version: codemode_proto::EXECUTOR_CONTRACT_VERSION.to_owned(),
            language: self.language().to_owned(),
            isolation: self.isolation().to_owned(),
            executor_version: env!("CARGO_PKG_VERSION").to_owned(),
            engines: vec![Engine { name: "fake".to_owned(), version: String::new(), jit: false }],
            default_engine: "fake".to_owned(),
            budgets: Budgets::default(),
            limits: Limits::default(),
            layers: Vec::new(),
            spawn: "none".to_owned(),
        })
    }

    async fn dispose(&self) {
        self.disposal.cancel();
        self.live.close();
        self.live.wait().await;
    }
}

#[cfg(test)]
mod tests;
