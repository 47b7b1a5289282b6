//! `codemode run`: one program, from its tools' start to its exit code.

use std::pin::pin;
use std::time::Duration;

use codemode_client::grpc::GrpcRuntime;
use codemode_client::{AbortSignal, CodeRuntime, Outcome, RunHost, RunRequest, RuntimeError};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::RunArgs;
use crate::connect::connect;
use crate::console::{Console, Settings};
use crate::exit::{Exit, Problem};
use crate::report;
use crate::tools::ToolServer;

/// How long after a first signal a second one still belongs to it.
const IMPATIENCE_MIN: Duration = Duration::from_millis(300);

/// Signals that end a run in order. A second one ends the command at once.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> Result<Self, Problem> {
        let listen = |kind| {
            signal(kind).map_err(|error| Problem::unavailable(error).context("cannot listen for signals"))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// The next one: exit code and name. Cancel-safe.
    async fn next(&mut self) -> (Exit, &'static str) {
        tokio::select! {
            _ = self.interrupt.recv() => (Exit::Signal(2), "SIGINT"),
            _ = self.terminate.recv() => (Exit::Signal(15), "SIGTERM"),
            _ = self.hangup.recv() => (Exit::Signal(1), "SIGHUP"),
        }
    }
}

pub(crate) async fn run(args: RunArgs, program: String) -> Result<Exit, Problem> {
    let mut signals = Signals::new()?;
    let started = tokio::select! {
        started = start(&args) => started?,
        // What was begun is dropped, and its processes with it.
        (exit, _) = signals.next() => return Ok(exit),
    };
    let (tools, connected) = started;
    let mut request = args.request(program);
    request.namespaces = tools.as_ref().map(ToolServer::namespaces).unwrap_or_default();
    let abort = AbortSignal::new();
    let console = Console::new(Settings { json: args.json, trace: args.trace }, abort.clone());
    let (result, interrupted) = settle(&connected.runtime, request, &console, &abort, &mut signals).await;
    if let Some(Ok(outcome)) = &result {
        show(&console, outcome, &args);
    }
    let written = console.finish().await;
    let end_tools = async {
        if let Some(tools) = tools {
            tools.end().await;
        }
    };
    tokio::join!(end_tools, connected.end());
    match (interrupted, result) {
        (Some(exit), _) => Ok(exit),
        (None, Some(Ok(_))) if let Err(error) = written => Err(Problem::output(error)),
        (None, Some(Err(error))) => Err(error.into()),
        (None, Some(Ok(outcome))) if outcome.completed() => Ok(Exit::Completed),
        (None, _) => Ok(Exit::Failed),
    }
}

/// Tool server and executor, side by side; the one that started is ended in order where the other did not.
async fn start(args: &RunArgs) -> Result<(Option<ToolServer>, crate::connect::Connected), Problem> {
    let start_tools = async {
        match &args.tools {
            Some(command) => ToolServer::start(command).await.map(Some).map_err(|error| {
                Problem::unavailable(error)
                    .hint("`codemode run --help` shows what a tool server prints and reads")
            }),
            None => Ok(None),
        }
    };
    match tokio::join!(start_tools, connect(&args.connect)) {
        (Ok(tools), Ok(connected)) => Ok((tools, connected)),
        (Err(problem), Ok(connected)) => {
            connected.end().await;
            Err(problem)
        }
        (Ok(tools), Err(problem)) => {
            if let Some(tools) = tools {
                tools.end().await;
            }
            Err(problem)
        }
        (Err(problem), Err(_)) => Err(problem),
    }
}

/// Runs to the end. The first signal aborts the run and waits for it; the second gives it up (`None`).
async fn settle(
    runtime: &GrpcRuntime,
    request: RunRequest,
    console: &Console,
    abort: &AbortSignal,
    signals: &mut Signals,
) -> (Option<Result<Outcome, RuntimeError>>, Option<Exit>) {
    let host = RunHost::observed_by(console.clone()).with_abort(abort.clone());
    let mut run = pin!(runtime.run(request, host));
    let (exit, name) = tokio::select! {
        result = &mut run => return (Some(result), None),
        signal = signals.next() => signal,
    };
    abort.abort(format!("interrupted by {name}"));
    let again = async {
        // One stroke of Ctrl-C can come twice: to the process and to its group.
        let soon = tokio::time::Instant::now() + IMPATIENCE_MIN;
        while tokio::time::timeout_at(soon, signals.next()).await.is_ok() {}
        signals.next().await
    };
    tokio::select! {
        result = &mut run => (Some(result), Some(exit)),
        (exit, _) = again => (None, Some(exit)),
    }
}

fn show(console: &Console, outcome: &Outcome, args: &RunArgs) {
    if args.json {
        match report::json(outcome) {
            Ok(text) => console.out(text),
            // A checked text and strings always have a form.
            Err(error) => console.err(format!("codemode: the outcome has no JSON form: {error}")),
        }
    } else {
        match &outcome.value {
            Some(value) => console.out(report::value(value)),
            None if outcome.completed() => console.err("codemode: the program completed without a value"),
            None => {}
        }
    }
    for hint in &outcome.hints {
        console.err(format!("hint: {hint}"));
    }
    if let Some(failure) = &outcome.failure
        && !args.json
    {
        console.err(format!("codemode: {}", report::failure(failure).trim_end()));
    }
    if args.trace || console.has_progress() {
        console.err(format!("usage: {}", report::usage(&outcome.usage)));
    }
}
