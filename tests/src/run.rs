//! One run as its caller sees it: sends what a case says, answers calls by script, and records everything.

use std::sync::Arc;
use std::time::{Duration, Instant};

use codemode_proto::executor_v1 as v1;
use codemode_proto::executor_v1::binding_reply::Result as ReplyResult;
use codemode_proto::executor_v1::run_request::Message as ToExecutor;
use codemode_proto::executor_v1::run_response::Message as FromExecutor;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Status};

use crate::case::{Abort, Budgets, Request, assemble};
use crate::executor::Client;
use crate::tools::{Answer, Tools};

/// Beyond a run's wall budget; after it the harness gives up and the case fails.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// A run's wall budget where the case names none, for the harness's own patience.
const WALL_DEFAULT: Duration = Duration::from_secs(120);
/// How long the stream is watched after its outcome for what may not come.
const AFTERMATH: Duration = Duration::from_secs(5);

/// All that was seen of one run.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Engine that `started` named.
    pub engine: String,
    /// Log entries as they were streamed.
    pub streamed: Vec<String>,
    /// Calls as `global.name ARGS`.
    pub calls: Vec<String>,
    /// The outcome, if one came.
    pub outcome: Option<v1::Outcome>,
    /// The status, if the stream ended in one.
    pub status: Option<(Code, String)>,
    /// From the start message to the outcome or the status.
    pub wall: Duration,
    /// What no run may do, whatever its case expects.
    pub violations: Vec<String>,
}

/// The start message of a request.
#[must_use]
pub fn start_message(request: &Request, engine: &str) -> v1::StartRun {
    let namespaces = request.namespaces.iter().flatten().map(|namespace| v1::Namespace {
        global: namespace.global.clone(),
        functions: namespace
            .standard
            .then_some(crate::tools::STANDARD)
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .chain(namespace.functions.iter().map(|function| function.name.clone()))
            .collect(),
        error_class: namespace.error_class.as_ref().map(|class| v1::ErrorClass {
            name: class.name.clone(),
            member_name_property: class.member_name_property.clone(),
        }),
    });
    v1::StartRun {
        program: request.program.clone().unwrap_or_default(),
        namespaces: namespaces.collect(),
        budgets: Some(budgets_message(request.budgets)),
        run_id: request.run_id.clone(),
        engine: request.engine.as_deref().unwrap_or(engine).to_owned(),
        required_layers: request.required_layers.clone(),
        labels: std::collections::HashMap::new(),
    }
}

const fn budgets_message(budgets: Budgets) -> v1::Budgets {
    v1::Budgets {
        compute_ms: budgets.compute_ms,
        wall_ms: budgets.wall_ms,
        output_bytes: budgets.output_bytes,
        heap_bytes: budgets.heap_bytes,
        binding_calls: budgets.binding_calls,
        pending_calls: budgets.pending_calls,
        pending_argument_bytes: budgets.pending_argument_bytes,
        log_entry_bytes: budgets.log_entry_bytes,
    }
}

fn request_message(message: ToExecutor) -> v1::RunRequest {
    v1::RunRequest { message: Some(message) }
}

/// The caller's side of the stream: open until dropped.
type Outgoing = Option<mpsc::UnboundedSender<v1::RunRequest>>;

/// One run in progress.
struct Driver {
    tools: Arc<Tools>,
    outgoing: Outgoing,
    abort: Option<Abort>,
    seen: Observation,
    started: bool,
}

/// Runs a request on an engine and watches it to its end.
pub async fn run(client: &mut Client, request: &Request, engine: &str) -> Observation {
    let (sender, receiver) = mpsc::unbounded_channel();
    let start = ToExecutor::Start(start_message(request, engine));
    // The receiver is alive: the channel cannot be closed yet.
    let _ = sender.send(request_message(start));
    let mut driver = Driver {
        tools: Arc::new(Tools::new(request.namespaces.clone().unwrap_or_default())),
        outgoing: (!request.half_close).then_some(sender),
        abort: request.abort.clone(),
        seen: Observation::default(),
        started: false,
    };
    let wall = request.budgets.wall_ms.map_or(WALL_DEFAULT, Duration::from_millis);
    let began = Instant::now();
    driver.arm_abort();
    let watched = driver.watch(client, receiver, began);
    if tokio::time::timeout(wall + PATIENCE, watched).await.is_err() {
        driver.violation(format!("no end after the wall budget and {PATIENCE:?} more"));
        driver.seen.wall = began.elapsed();
    }
    driver.seen
}

impl Driver {
    fn violation(&mut self, what: impl Into<String>) {
        self.seen.violations.push(what.into());
    }

    fn arm_abort(&self) {
        let Some(abort) = &self.abort else { return };
        if abort.after_log.is_some() || abort.on_call.is_some() {
            return;
        }
        match abort.after_ms {
            None | Some(0) => self.send_abort(abort),
            Some(after) => {
                let Some(outgoing) = self.outgoing.clone() else { return };
                let message = abort_message(abort);
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(after)).await;
                    let _ = outgoing.send(message);
                });
            }
        }
    }

    fn send_abort(&self, abort: &Abort) {
        if let Some(outgoing) = &self.outgoing {
            let _ = outgoing.send(abort_message(abort));
        }
    }

    async fn watch(
        &mut self,
        client: &mut Client,
        receiver: mpsc::UnboundedReceiver<v1::RunRequest>,
        began: Instant,
    ) {
        let answer = client.run(UnboundedReceiverStream::new(receiver)).await;
        let mut stream = match answer {
            Ok(response) => response.into_inner(),
            Err(status) => return self.ended(Some(&status), began),
        };
        loop {
            match stream.next().await {
                Some(Ok(response)) => {
                    self.message(response);
                    if self.seen.outcome.is_some() {
                        break;
                    }
                }
                Some(Err(status)) => return self.ended(Some(&status), began),
                None => return self.ended(None, began),
            }
        }
        self.seen.wall = began.elapsed();
        // The outcome is the last message and the stream ends with it; the caller's side is still open.
        match tokio::time::timeout(AFTERMATH, stream.next()).await {
            Ok(None) => {}
            Ok(Some(Ok(message))) => self.violation(format!("after the outcome: {message:?}")),
            Ok(Some(Err(status))) => self.violation(format!("after the outcome: {status}")),
            Err(_) => self.violation("the stream stays open after the outcome"),
        }
    }

    fn ended(&mut self, status: Option<&Status>, began: Instant) {
        self.seen.wall = began.elapsed();
        match status {
            Some(status) => self.seen.status = Some((status.code(), status.message().to_owned())),
            None => self.violation("the stream ended without an outcome"),
        }
    }

    fn message(&mut self, response: v1::RunResponse) {
        match response.message {
            Some(FromExecutor::Started(started)) => {
                if self.started {
                    self.violation("started twice");
                }
                if started.run_id.is_empty() {
                    self.violation("`started` without a run id");
                }
                self.started = true;
                self.seen.engine = started.engine;
            }
            _ if !self.started => self.violation("a message before `started`"),
            Some(FromExecutor::Log(entry)) => {
                if let Some(abort) = &self.abort
                    && abort.after_log.as_deref() == Some(entry.text.as_str())
                {
                    self.send_abort(abort);
                }
                self.seen.streamed.push(entry.text);
            }
            Some(FromExecutor::Call(call)) => self.call(&call),
            Some(FromExecutor::Outcome(outcome)) => self.seen.outcome = Some(outcome),
            None => self.violation("an empty message"),
        }
    }

    fn call(&mut self, call: &v1::BindingCall) {
        let expected = self.seen.calls.len() as u64 + 1;
        if call.id != expected {
            self.violation(format!("call {} where {expected} is due", call.id));
        }
        if let Err(fault) = codemode_wire::json::check_as("arguments", &call.args_json) {
            self.violation(format!("call {} is not lossless JSON: {fault}", call.id));
        }
        let function = format!("{}.{}", call.global, call.name);
        self.seen.calls.push(format!("{function} {}", String::from_utf8_lossy(&call.args_json)));
        if let Some(abort) = &self.abort
            && abort.on_call.as_ref() == Some(&function)
        {
            self.send_abort(abort);
        }
        let timed = self.tools.answer(&call.global, &call.name, &call.args_json);
        let result = match timed.answer {
            Answer::Value(text) => ReplyResult::ValueJson(text),
            Answer::Error(message) => ReplyResult::Error(v1::BindingError { message }),
            Answer::Never => return,
        };
        let Some(outgoing) = self.outgoing.clone() else { return };
        let reply =
            request_message(ToExecutor::Reply(v1::BindingReply { id: call.id, result: Some(result) }));
        if timed.delay.is_zero() {
            let _ = outgoing.send(reply);
            return;
        }
        tokio::spawn(async move {
            tokio::time::sleep(timed.delay).await;
            let _ = outgoing.send(reply);
        });
    }
}

fn abort_message(abort: &Abort) -> v1::RunRequest {
    let reason = abort.reason_parts.as_ref().map_or_else(|| abort.reason.clone(), |parts| assemble(parts));
    request_message(ToExecutor::Abort(v1::Abort { reason }))
}
