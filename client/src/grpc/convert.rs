//! The one place where prost types and ours meet. Pure; what an executor sends is checked here field by field.

use codemode_proto::EXECUTOR_CONTRACT_VERSION;
use codemode_proto::executor_v1 as pb;

use crate::binding::{BindingError, ErrorClass, Namespace};
use crate::description::{Description, Engine, Layer, Limits};
use crate::error::RuntimeError;
use crate::json::JsonText;
use crate::outcome::{Failure, FailureKind, Outcome, Phases, Position, Usage};
use crate::request::{Budgets, RunId, RunRequest};

/// What an executor sent that the contract does not have.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ContractFault {
    #[error("run id `{0}` is no UUID")]
    RunId(String),
    #[error("{0} is not a JSON text")]
    Json(&'static str),
    #[error("failure kind {0} is unknown")]
    Kind(i32),
    #[error("outcome has a value and a failure")]
    ValueAndFailure,
}

pub(super) fn start(request: &RunRequest) -> pb::RunRequest {
    let start = pb::StartRun {
        program: request.program.clone(),
        namespaces: request.namespaces.iter().map(namespace).collect(),
        budgets: (request.budgets != Budgets::default()).then(|| budgets(&request.budgets)),
        run_id: request.run_id.map(|run_id| run_id.to_string()).unwrap_or_default(),
        engine: request.engine.clone().unwrap_or_default(),
        required_layers: request.required_layers.clone(),
        labels: request.labels.clone().into_iter().collect(),
    };
    message(pb::run_request::Message::Start(start))
}

pub(super) fn reply(id: u64, result: Result<JsonText, BindingError>) -> pb::RunRequest {
    let result = match result {
        Ok(value) => pb::binding_reply::Result::ValueJson(value.into_string().into()),
        Err(error) => pb::binding_reply::Result::Error(pb::BindingError { message: error.message }),
    };
    message(pb::run_request::Message::Reply(pb::BindingReply { id, result: Some(result) }))
}

pub(super) fn abort(reason: String) -> pb::RunRequest {
    message(pb::run_request::Message::Abort(pb::Abort { reason }))
}

const fn message(message: pb::run_request::Message) -> pb::RunRequest {
    pb::RunRequest { message: Some(message) }
}

fn namespace(namespace: &Namespace) -> pb::Namespace {
    pb::Namespace {
        global: namespace.global.clone(),
        functions: namespace.function_names().map(str::to_owned).collect(),
        error_class: namespace.error_class.as_ref().map(|ErrorClass { name, member_name_property }| {
            pb::ErrorClass { name: name.clone(), member_name_property: member_name_property.clone() }
        }),
    }
}

fn budgets(budgets: &Budgets) -> pb::Budgets {
    pb::Budgets {
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

fn budgets_from(budgets: pb::Budgets) -> Budgets {
    Budgets {
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

pub(super) fn run_id(text: &str) -> Result<RunId, ContractFault> {
    text.parse().map_err(|_| ContractFault::RunId(text.to_owned()))
}

pub(super) fn json(what: &'static str, bytes: bytes::Bytes) -> Result<JsonText, ContractFault> {
    // Takes the buffer over without a copy where this is its only owner.
    let text = String::from_utf8(Vec::from(bytes)).map_err(|_| ContractFault::Json(what))?;
    JsonText::parse(text).map_err(|_| ContractFault::Json(what))
}

pub(super) fn outcome(run_id: RunId, outcome: pb::Outcome) -> Result<Outcome, ContractFault> {
    let value = outcome.value_json.map(|bytes| json("the value", bytes)).transpose()?;
    let failure = outcome.failure.map(failure).transpose()?;
    if value.is_some() && failure.is_some() {
        return Err(ContractFault::ValueAndFailure);
    }
    Ok(Outcome {
        run_id,
        value,
        logs: outcome.logs,
        failure,
        usage: usage(outcome.usage.unwrap_or_default()),
        hints: outcome.hints,
    })
}

fn failure(failure: pb::Failure) -> Result<Failure, ContractFault> {
    Ok(Failure {
        kind: kind(failure.kind)?,
        message: failure.message,
        cause: non_empty(failure.detail),
        limit: failure.limit,
        used: failure.used,
        signal: failure.signal,
        position: failure.position.map(|position| Position {
            line: position.line,
            column: position.column,
            excerpt: position.excerpt,
        }),
        error_name: non_empty(failure.error_name),
    })
}

fn kind(number: i32) -> Result<FailureKind, ContractFault> {
    match pb::FailureKind::try_from(number) {
        Ok(pb::FailureKind::Exception) => Ok(FailureKind::Exception),
        Ok(pb::FailureKind::Timeout) => Ok(FailureKind::Timeout),
        Ok(pb::FailureKind::Abort) => Ok(FailureKind::Abort),
        Ok(pb::FailureKind::WorkerExit) => Ok(FailureKind::WorkerExit),
        Ok(pb::FailureKind::InvalidOutput) => Ok(FailureKind::InvalidOutput),
        Ok(pb::FailureKind::OutputLimit) => Ok(FailureKind::OutputLimit),
        Ok(pb::FailureKind::Unspecified) | Err(_) => Err(ContractFault::Kind(number)),
    }
}

fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn usage(usage: pb::Usage) -> Usage {
    let phases = usage.phases.unwrap_or_default();
    Usage {
        cpu_us: usage.cpu_us,
        wall_us: usage.wall_us,
        peak_memory_bytes: usage.peak_memory_bytes,
        binding_calls: usage.binding_calls,
        output_bytes: usage.output_bytes,
        layers: usage.layers,
        phases: Phases {
            admission_us: phases.admission_us,
            strip_us: phases.strip_us,
            fork_us: phases.fork_us,
            lockdown_us: phases.lockdown_us,
            run_us: phases.run_us,
            settle_us: phases.settle_us,
        },
    }
}

pub(super) const fn describe_request() -> pb::DescribeRequest {
    pb::DescribeRequest {}
}

pub(super) fn description(answer: pb::DescribeResponse) -> Description {
    let limits = answer.limits.unwrap_or_default();
    Description {
        contract_version: answer.contract_version,
        language: answer.language,
        isolation: answer.isolation,
        executor_version: answer.executor_version,
        engines: answer
            .engines
            .into_iter()
            .map(|engine| Engine { name: engine.name, version: engine.version, jit: engine.jit })
            .collect(),
        default_engine: answer.default_engine,
        budgets: budgets_from(answer.budgets.unwrap_or_default()),
        limits: Limits {
            program_bytes_max: limits.program_bytes_max,
            frame_bytes_max: limits.frame_bytes_max,
            json_depth_max: limits.json_depth_max,
            concurrent_runs_max: limits.concurrent_runs_max,
            queued_runs_max: limits.queued_runs_max,
            queue_ms_max: limits.queue_ms_max,
        },
        layers: answer
            .layers
            .into_iter()
            .map(|layer| Layer {
                name: layer.name,
                in_force: layer.in_force,
                reason: layer.reason,
                required: layer.required,
                engine: layer.engine,
            })
            .collect(),
        spawn: answer.spawn,
    }
}

/// Minor versions only add; a foreign major version is another contract.
pub(super) fn check_version(found: &str) -> Result<(), RuntimeError> {
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(found) == major(EXECUTOR_CONTRACT_VERSION) {
        return Ok(());
    }
    Err(RuntimeError::Incompatible { found: found.to_owned(), spoken: EXECUTOR_CONTRACT_VERSION })
}

#[cfg(test)]
mod tests;
