//! The life of one program: start, run, drain, result.

use std::sync::Arc;

use codemode_client::{AbortSignal, CodeRuntime, JsonText, Outcome, RunHost, RunRequest, RuntimeError};
use futures::FutureExt;
use tokio::sync::{mpsc, watch};

use crate::hook::{HookError, guarded_async};
use crate::lane;
use crate::registry::Registry;
use crate::run_code::bindings::Gate;
use crate::run_code::calls::ProgramCalls;
use crate::run_code::catalogue;
use crate::run_code::log_writer::LogWriter;
use crate::run_code::output;
use crate::signal::Signal;
use crate::tool::{BodyError, CallContext, ToolError};

/// Why calls end that a program left behind.
const SETTLED: &str = "run_code settled";
/// Why everything ends when nobody waits for the result any more.
const DROPPED: &str = "run_code call was dropped";

/// Runs a program and waits until nothing of it is left: every started call is committed and logged.
///
/// Dropping the future aborts the run; its calls are then still committed and logged, by a task of their own.
pub(super) async fn run(
    registry: Registry,
    runtime: Arc<dyn CodeRuntime>,
    program: String,
    outer: CallContext,
) -> Result<JsonText, BodyError> {
    let abort = AbortSignal::new();
    let guard = AbortOnDrop(abort.clone());
    let ended = tokio::spawn(to_rest(registry, runtime, program, outer, abort)).await;
    drop(guard);
    match ended {
        Ok(result) => result.map_err(BodyError::from),
        Err(error) => Err(BodyError::new(format!("the run broke off: {error}"))),
    }
}

struct AbortOnDrop(AbortSignal);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort(DROPPED);
    }
}

async fn to_rest(
    registry: Registry,
    runtime: Arc<dyn CodeRuntime>,
    program: String,
    outer: CallContext,
    abort: AbortSignal,
) -> Result<JsonText, ToolError> {
    let running_max = outer.call().surface().settings().max_parallel_sub_calls;
    let (lane, inbox) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let over = Signal::from(abort.clone()).fused_with(outer.signal());
    let gate = Gate::new(over.clone(), lane);
    let surface = Arc::clone(outer.call().surface());
    let mut request = RunRequest::new(program).with_namespace(gate.namespace(surface.names()));
    request.namespaces.extend(catalogue::namespace(&surface));
    let session = outer.call().agent().and_then(|agent| agent.log().cloned());
    let mut calls = ProgramCalls {
        registry: registry.clone(),
        outer: outer.clone(),
        over,
        gate: Arc::clone(&gate),
        log: session.map(|log| LogWriter::new(registry.clone(), log, running_max)),
    };
    let program = async {
        let outcome = until_settled(&*runtime, request, &gate, &outer, &abort).await;
        abort.abort(SETTLED);
        gate.close();
        // The lane may have ended already.
        let _ = stop.send(true);
        outcome
    };
    let (outcome, ()) =
        tokio::join!(program, lane::drive(&registry, &mut calls, running_max, inbox, stopped));
    if let Some(log) = calls.log.take() {
        log.finish().await;
    }
    match outcome {
        Ok(outcome) => output::of_outcome(outcome),
        Err(Rejection::Runtime(error)) => Err(output::of_rejection(&error)),
        Err(Rejection::Panic(error)) => Err(ToolError::plain(format!("the code runtime failed: {error}"))),
    }
}

/// Why a runtime gave no outcome.
enum Rejection {
    Runtime(RuntimeError),
    Panic(HookError),
}

impl From<HookError> for Rejection {
    fn from(error: HookError) -> Self {
        Self::Panic(error)
    }
}

/// Runs the program; the outer call's abort becomes the run's.
async fn until_settled(
    runtime: &dyn CodeRuntime,
    request: RunRequest,
    gate: &Arc<Gate>,
    outer: &CallContext,
    abort: &AbortSignal,
) -> Result<Outcome, Rejection> {
    let host = RunHost { abort: abort.clone(), observer: Some(Arc::clone(gate) as _), deadline: None };
    let run = guarded_async(runtime.run(request, host).map(|ran| ran.map_err(Rejection::Runtime)));
    tokio::pin!(run);
    tokio::select! {
        outcome = &mut run => outcome,
        reason = outer.signal().aborted() => {
            abort.abort(reason);
            run.await
        }
    }
}
