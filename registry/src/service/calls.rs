//! Calls for a harness. They run in tasks of their session, so that an RPC that goes away aborts its calls and does not
//! drop them: each ends in order and is logged.

use std::sync::Arc;

use codemode_client::AbortSignal;
use codemode_proto::registry_v1 as proto;
use tonic::Status;
use uuid::Uuid;

use crate::agent::{ModelCall, StepEnd, StepOutcome, append_contexts, run_step};
use crate::present::Surface;
use crate::service::content;
use crate::service::context::Context;
use crate::service::session::Session;
use crate::service::status;
use crate::signal::Signal;

/// Calls of one step.
const CALLS_MAX: usize = 1_024;
/// Longest id of a call, bytes.
const CALL_ID_BYTES_MAX: usize = 1_024;

/// Aborts when it is dropped.
struct AbortOnDrop(AbortSignal);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort("the caller has gone away");
    }
}

/// Makes one call, in a turn of its own where none is open.
pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::CallRequest,
) -> Result<proto::CallResult, Status> {
    let call_id = if request.call_id.is_empty() { Uuid::new_v4().to_string() } else { request.call_id };
    status::check(&faults_of_call("", &call_id, &request.name))?;
    let session = context.sessions.get(&request.session_id)?;
    let surface = session.shown(&context.registry, &request.assembly_id)?;
    let call = ModelCall::new(call_id, request.name, &request.arguments);
    let work = |context: Arc<Context>, session: Arc<Session>, signal| async move {
        let is_own_turn =
            session.enter_turn().await.map_err(|error| context.sessions.failed(&session, &error))?;
        let outcome = carried_out(&context, &session, &surface, vec![call], signal).await;
        if is_own_turn {
            session.leave_turn().await;
        }
        outcome
    };
    let outcome = in_session(context, &session, work).await?;
    match (outcome.results.first(), outcome.end) {
        (_, StepEnd::Failed(error)) => Err(context.sessions.failed(&session, &error)),
        (Some((call_id, result)), _) => Ok(content::to_result(call_id, result)),
        (None, _) => Err(Status::internal("the call has no result")),
    }
}

/// Makes the calls of one model answer.
pub(super) async fn step(
    context: &Arc<Context>,
    request: proto::StepRequest,
) -> Result<proto::StepResponse, Status> {
    let mut faults = Vec::new();
    if request.calls.is_empty() || request.calls.len() > CALLS_MAX {
        faults
            .push(format!("`calls` has {} entries; it must have from 1 to {CALLS_MAX}", request.calls.len()));
    }
    for (place, call) in request.calls.iter().enumerate() {
        faults.extend(faults_of_call(&format!("calls[{place}]."), &call.call_id, &call.name));
    }
    status::check(&faults)?;
    let session = context.sessions.get(&request.session_id)?;
    let surface = session.shown(&context.registry, &request.assembly_id)?;
    let calls: Vec<ModelCall> = request
        .calls
        .into_iter()
        .map(|call| ModelCall::new(call.call_id, call.name, &call.arguments))
        .collect();
    let work = |context: Arc<Context>, session: Arc<Session>, signal| async move {
        let _one_at_a_time = session.step.lock().await;
        carried_out(&context, &session, &surface, calls, signal).await
    };
    let outcome = in_session(context, &session, work).await?;
    let (end, failure) = match &outcome.end {
        StepEnd::Completed => (proto::StepEnd::Completed, String::new()),
        StepEnd::Aborted => (proto::StepEnd::Aborted, String::new()),
        StepEnd::Failed(error) => {
            // The status is for those who come after; these results are still told.
            drop(context.sessions.failed(&session, error));
            (proto::StepEnd::Failed, error.to_string())
        }
    };
    let results = outcome.results.iter().map(|(call_id, result)| content::to_result(call_id, result));
    Ok(proto::StepResponse {
        results: results.collect(),
        end: end.into(),
        concludes_turn: outcome.concludes_turn,
        failure,
        last_seq: session.log.last(),
    })
}

fn faults_of_call(at: &str, call_id: &str, name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if call_id.is_empty() || call_id.len() > CALL_ID_BYTES_MAX {
        let bytes = call_id.len();
        faults.push(format!("`{at}call_id` has {bytes} bytes; it must have from 1 to {CALL_ID_BYTES_MAX}"));
    }
    if name.is_empty() {
        faults.push(format!("`{at}name` is empty"));
    }
    faults
}

/// Runs work as a task of the session. When this future is dropped, the work is aborted and goes on to its end.
async fn in_session<F, R>(
    context: &Arc<Context>,
    session: &Arc<Session>,
    work: impl FnOnce(Arc<Context>, Arc<Session>, Signal) -> F,
) -> Result<R, Status>
where
    F: Future<Output = Result<R, Status>> + Send + 'static,
    R: Send + 'static,
{
    if context.draining.is_cancelled() {
        return Err(status::draining());
    }
    let abort = AbortOnDrop(AbortSignal::new());
    let signal = Signal::from(abort.0.clone()).fused(session.abort.clone());
    let task = session.tasks.spawn(work(Arc::clone(context), Arc::clone(session), signal));
    let done = task.await;
    done.map_err(|error| Status::internal(format!("the call broke off: {error}")))?
}

/// Makes the calls, appends or parks their contexts, and waits until all of it is durable.
async fn carried_out(
    context: &Context,
    session: &Arc<Session>,
    surface: &Arc<Surface>,
    calls: Vec<ModelCall>,
    signal: Signal,
) -> Result<StepOutcome, Status> {
    let outcome = run_step(&context.registry, &session.agent, surface, calls, signal).await;
    match outcome.end {
        StepEnd::Failed(_) => return Ok(outcome),
        StepEnd::Aborted => session.park(&outcome.contexts),
        StepEnd::Completed => {
            let appended = append_contexts(&session.agent, &outcome.contexts).await;
            appended.map_err(|error| context.sessions.failed(session, &error))?;
        }
    }
    context.sessions.flush(session).await?;
    Ok(outcome)
}
