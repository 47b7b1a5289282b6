//! Between prost's types and our own. Everything a caller can get wrong is found here, all of it at once.

use std::collections::HashSet;
use std::time::Duration;

use codemode_proto::EXECUTOR_CONTRACT_VERSION;
use codemode_proto::executor_v1 as pb;
use codemode_wire::limits::JSON_DEPTH_MAX;
use codemode_wire::message::NamespaceTable;
use codemode_wire::{Layer, LayerSet, LayerState};
use tonic::Status;
use uuid::Uuid;

use super::{namespace_bytes_max, status};
use crate::config::Engine;
use crate::context::Context;
use crate::outcome::{Failure, Outcome, Usage};
use crate::run::budget::{Budgets, RequestedBudgets};
use crate::run::{Event, HostMessage, RunSpec, namespace};
use crate::supervisor::zygote::EngineInfo;

/// Labels of one run, at most.
const LABELS_MAX: usize = 32;
/// Bytes of a label's key, at most.
const LABEL_KEY_BYTES_MAX: usize = 64;
/// Bytes of a label's value, at most.
const LABEL_VALUE_BYTES_MAX: usize = 256;
/// Characters of a foreign name that a message shows.
const SHOWN_CHARS: usize = 64;

/// Checks a request.
pub(super) fn spec(context: &Context, start: pb::StartRun) -> Result<RunSpec, Status> {
    let mut faults = Vec::new();
    let program_max = usize::try_from(context.config.program_bytes_max).unwrap_or(usize::MAX);
    if start.program.len() > program_max {
        faults.push(format!(
            "the program has {} bytes; at most {program_max} are allowed",
            start.program.len()
        ));
    }
    let namespaces: Vec<NamespaceTable> = start.namespaces.into_iter().map(namespace_table).collect();
    faults
        .extend(namespace::faults(&namespaces, namespace_bytes_max(context)).iter().map(ToString::to_string));
    let own = context.config.budgets;
    let budgets = own.tighten(&requested(start.budgets.unwrap_or_default())).unwrap_or_else(|found| {
        faults.extend(found.iter().map(ToString::to_string));
        own
    });
    let id = run_id(&start.run_id, &mut faults);
    let engine = engine_of(&start.engine, context, &mut faults);
    let required = required_layers(&start.required_layers, &mut faults);
    label_faults(&start.labels, &mut faults);
    if !faults.is_empty() {
        return Err(status::faults(&faults));
    }
    precondition(context, engine, required)?;
    let mut labels: Vec<(String, String)> = start.labels.into_iter().collect();
    labels.sort_unstable();
    Ok(RunSpec { id, program: start.program.into(), namespaces, budgets, engine, labels })
}

fn namespace_table(namespace: pb::Namespace) -> NamespaceTable {
    let pb::Namespace { global, functions, error_class } = namespace;
    let error_class = error_class.map(|class| (class.name, class.member_name_property));
    NamespaceTable { global, functions, error_class }
}

const fn requested(budgets: pb::Budgets) -> RequestedBudgets {
    RequestedBudgets {
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

fn run_id(given: &str, faults: &mut Vec<String>) -> Uuid {
    if given.is_empty() {
        return Uuid::new_v4();
    }
    Uuid::try_parse(given).unwrap_or_else(|_| {
        faults.push(format!("run id `{}` is no UUID", shown(given)));
        Uuid::nil()
    })
}

fn engine_of(given: &str, context: &Context, faults: &mut Vec<String>) -> Engine {
    if given.is_empty() {
        return context.config.default_engine;
    }
    Engine::from_name(given).unwrap_or_else(|| {
        faults.push(format!("engine `{}` is not known; there are `v8` and `quickjs`", shown(given)));
        context.config.default_engine
    })
}

fn required_layers(given: &[String], faults: &mut Vec<String>) -> LayerSet {
    let mut layers = LayerSet::EMPTY;
    let mut unknown = HashSet::new();
    for name in given {
        match Layer::from_name(name) {
            Some(layer) => layers.insert(layer),
            None if unknown.insert(name) => {
                faults.push(format!("sandbox layer `{}` is not known", shown(name)));
            }
            None => {}
        }
    }
    layers
}

fn label_faults(labels: &std::collections::HashMap<String, String>, faults: &mut Vec<String>) {
    if labels.len() > LABELS_MAX {
        faults.push(format!("{} labels; at most {LABELS_MAX} are allowed", labels.len()));
        return;
    }
    for (key, value) in labels {
        if key.is_empty() || key.len() > LABEL_KEY_BYTES_MAX {
            faults.push(format!(
                "label key `{}` has {} bytes; it must have 1 to {LABEL_KEY_BYTES_MAX}",
                shown(key),
                key.len()
            ));
        }
        if value.len() > LABEL_VALUE_BYTES_MAX {
            faults.push(format!(
                "the value of label `{}` has {} bytes; at most {LABEL_VALUE_BYTES_MAX} are allowed",
                shown(key),
                value.len()
            ));
        }
    }
}

/// What is right in itself but cannot be had here.
fn precondition(context: &Context, engine: Engine, required: LayerSet) -> Result<(), Status> {
    let Some(info) = context.supervisor.engine(engine) else {
        return Err(Status::failed_precondition(format!("engine `{engine}` is not served here")));
    };
    let missing = required.minus(info.in_force());
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = missing.iter().map(|layer| format!("`{layer}`")).collect();
    Err(Status::failed_precondition(format!("sandbox layers not in force here: {}", names.join(", "))))
}

/// A foreign name as a message may show it.
fn shown(name: &str) -> String {
    name.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect()
}

/// A message of the caller's, after `start`.
pub(super) fn host_message(request: pb::RunRequest) -> HostMessage {
    use pb::binding_reply::Result as Reply;
    use pb::run_request::Message;
    match request.message {
        Some(Message::Reply(pb::BindingReply { id, result: Some(Reply::ValueJson(value)) })) => {
            HostMessage::Reply { id, result: Ok(value) }
        }
        Some(Message::Reply(pb::BindingReply { id, result: Some(Reply::Error(error)) })) => {
            HostMessage::Reply { id, result: Err(error.message) }
        }
        Some(Message::Reply(pb::BindingReply { result: None, .. })) => {
            HostMessage::Misuse("`reply` without `value_json` and without `error`")
        }
        Some(Message::Abort(abort)) => HostMessage::Abort(abort.reason),
        Some(Message::Start(_)) => HostMessage::Misuse("second `start`"),
        None => HostMessage::Misuse("a message that is neither `start`, `reply` nor `abort`"),
    }
}

/// An event as it travels.
pub(super) fn response(event: Event) -> Result<pb::RunResponse, Status> {
    use pb::run_response::Message;
    let message = match event {
        Event::Started { id, engine } => {
            Message::Started(pb::Started { run_id: id.to_string(), engine: engine.name().to_owned() })
        }
        Event::Log(text) => Message::Log(pb::LogEntry { text }),
        Event::Call { id, global, name, args } => {
            Message::Call(pb::BindingCall { id, global, name, args_json: args })
        }
        Event::Outcome(outcome) => Message::Outcome(self::outcome(*outcome)),
        Event::Refused(refusal) => return Err(status::of_refusal(&refusal)),
    };
    Ok(pb::RunResponse { message: Some(message) })
}

fn outcome(outcome: Outcome) -> pb::Outcome {
    let Outcome { value, logs, failure, usage, hints } = outcome;
    pb::Outcome {
        value_json: value,
        logs,
        failure: failure.map(self::failure),
        usage: Some(self::usage(&usage)),
        hints,
    }
}

fn failure(failure: Failure) -> pb::Failure {
    let Failure { detail, message, limit, used, signal, position, error_name } = failure;
    pb::Failure {
        kind: detail.kind().into(),
        message,
        detail: detail.word().to_owned(),
        limit,
        used,
        signal,
        position: position.map(|place| pb::Position {
            line: place.line,
            column: place.column,
            excerpt: place.excerpt,
        }),
        error_name,
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn usage(usage: &Usage) -> pb::Usage {
    let phases = &usage.phases;
    pb::Usage {
        cpu_us: micros(usage.cpu),
        wall_us: micros(usage.wall),
        peak_memory_bytes: usage.peak_memory_bytes,
        binding_calls: usage.binding_calls,
        output_bytes: usage.output_bytes,
        layers: usage.layers.iter().map(|layer| layer.name().to_owned()).collect(),
        phases: Some(pb::Phases {
            admission_us: micros(phases.admission),
            strip_us: micros(phases.strip),
            fork_us: micros(phases.fork),
            lockdown_us: micros(phases.lockdown),
            run_us: micros(phases.run),
            settle_us: micros(phases.settle),
        }),
    }
}

const fn budgets(budgets: &Budgets) -> pb::Budgets {
    pb::Budgets {
        compute_ms: Some(budgets.compute_ms),
        wall_ms: Some(budgets.wall_ms),
        output_bytes: Some(budgets.output_bytes),
        heap_bytes: Some(budgets.heap_bytes),
        binding_calls: Some(budgets.binding_calls),
        pending_calls: Some(budgets.pending_calls),
        pending_argument_bytes: Some(budgets.pending_argument_bytes),
        log_entry_bytes: Some(budgets.log_entry_bytes),
    }
}

/// What the executor says of itself.
pub(super) fn description(context: &Context) -> pb::DescribeResponse {
    let config = &context.config;
    let engines = context.supervisor.engines();
    pb::DescribeResponse {
        contract_version: EXECUTOR_CONTRACT_VERSION.to_owned(),
        language: "typescript".to_owned(),
        isolation: "process".to_owned(),
        executor_version: env!("CARGO_PKG_VERSION").to_owned(),
        engines: engines
            .iter()
            .map(|info| pb::Engine {
                name: info.engine.name().to_owned(),
                version: info.version.clone(),
                jit: info.jit,
            })
            .collect(),
        default_engine: config.default_engine.name().to_owned(),
        budgets: Some(budgets(&config.budgets)),
        limits: Some(pb::Limits {
            program_bytes_max: u64::from(config.program_bytes_max),
            frame_bytes_max: u64::from(config.frame_bytes_max),
            json_depth_max: JSON_DEPTH_MAX,
            concurrent_runs_max: config.concurrent_runs_max,
            queued_runs_max: config.queued_runs_max,
            queue_ms_max: u64::try_from(config.queue.as_millis()).unwrap_or(u64::MAX),
        }),
        layers: engines.iter().flat_map(|info| layers(info, config.required_layers)).collect(),
        spawn: config.spawn.name().to_owned(),
    }
}

/// Every layer there is, as it stands for one engine.
fn layers(info: &EngineInfo, required: LayerSet) -> Vec<pb::Layer> {
    let line = |layer: Layer| {
        let report = info.layers.iter().find(|report| report.layer == layer);
        let in_force = report.is_some_and(|report| report.state == LayerState::InForce);
        let reason = report.map_or("not reported by the runner", |report| report.reason.as_str());
        pb::Layer {
            name: layer.name().to_owned(),
            in_force,
            reason: if in_force { String::new() } else { reason.to_owned() },
            required: required.contains(layer),
            engine: info.engine.name().to_owned(),
        }
    };
    Layer::ALL.into_iter().map(line).collect()
}
