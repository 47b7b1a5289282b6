//! `codemode describe`: what executors offer, for people or as JSON.

use std::fmt::Write as _;
use std::io::Write as _;

use codemode_client::grpc::GrpcRuntime;
use codemode_client::{Budgets, CodeRuntime, Description, Engine, Layer};
use serde_json::{Map, Value, json};

use crate::args::DescribeArgs;
use crate::connect::{config, connect};
use crate::exit::{Exit, Problem};

pub(crate) async fn describe(args: DescribeArgs) -> Result<Exit, Problem> {
    let mut described = Vec::new();
    if args.connect.executor.len() > 1 {
        // Each by itself: they may differ.
        for address in &args.connect.executor {
            let runtime = GrpcRuntime::connect(config(&args.connect, &[address])?).await?;
            described.push((Some(address.as_str()), runtime.describe().await?));
        }
    } else {
        let connected = connect(&args.connect).await?;
        let description = connected.runtime.describe().await;
        connected.end().await;
        described.push((args.connect.executor.first().map(String::as_str), description?));
    }
    let text = if args.json {
        json_text(&described)
    } else {
        described.iter().map(shown).collect::<Vec<_>>().join("\n")
    };
    let mut stdout = std::io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // A reader that has gone away has seen enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Problem::output(error)),
        Ok(()) | Err(_) => Ok(Exit::Completed),
    }
}

fn json_text(described: &[(Option<&str>, Description)]) -> String {
    let mut objects: Vec<_> = described.iter().map(|(_, description)| object(description)).collect();
    let value = if objects.len() == 1 { objects.remove(0) } else { Value::Array(objects) };
    format!("{value:#}\n")
}

fn object(description: &Description) -> Value {
    let engine = |engine: &Engine| json!({"name": engine.name, "version": engine.version, "jit": engine.jit});
    let layer = |layer: &Layer| json!({"name": layer.name, "inForce": layer.in_force, "reason": layer.reason, "required": layer.required, "engine": layer.engine});
    let limits = &description.limits;
    let budgets: Map<String, Value> = budgets(&description.budgets)
        .filter_map(|(_, key, value)| Some((key.to_owned(), value?.into())))
        .collect();
    json!({
        "contractVersion": description.contract_version,
        "language": description.language,
        "isolation": description.isolation,
        "executorVersion": description.executor_version,
        "engines": description.engines.iter().map(engine).collect::<Vec<_>>(),
        "defaultEngine": description.default_engine,
        "budgets": budgets,
        "limits": {
            "programBytesMax": limits.program_bytes_max,
            "frameBytesMax": limits.frame_bytes_max,
            "jsonDepthMax": limits.json_depth_max,
            "concurrentRunsMax": limits.concurrent_runs_max,
            "queuedRunsMax": limits.queued_runs_max,
            "queueMsMax": limits.queue_ms_max,
        },
        "layers": description.layers.iter().map(layer).collect::<Vec<_>>(),
        "spawn": description.spawn,
    })
}

/// Name, JSON key and value of each budget.
fn budgets(budgets: &Budgets) -> impl Iterator<Item = (&'static str, &'static str, Option<u64>)> {
    [
        ("compute_ms", "computeMs", budgets.compute_ms),
        ("wall_ms", "wallMs", budgets.wall_ms),
        ("output_bytes", "outputBytes", budgets.output_bytes),
        ("heap_bytes", "heapBytes", budgets.heap_bytes),
        ("binding_calls", "bindingCalls", budgets.binding_calls),
        ("pending_calls", "pendingCalls", budgets.pending_calls),
        ("pending_argument_bytes", "pendingArgumentBytes", budgets.pending_argument_bytes),
        ("log_entry_bytes", "logEntryBytes", budgets.log_entry_bytes),
    ]
    .into_iter()
}

fn shown((address, description): &(Option<&str>, Description)) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{}: executor {}, contract {}, {} programs, a {} per run made by {}",
        address.unwrap_or("private executor"),
        description.executor_version,
        description.contract_version,
        description.language,
        description.isolation,
        description.spawn
    );
    text.push_str("\nengines\n");
    for engine in &description.engines {
        let default = if engine.name == description.default_engine { ", default" } else { "" };
        let jit = if engine.jit { "just-in-time compiled" } else { "interpreted" };
        let _ = writeln!(text, "  {:<22} {} ({jit}{default})", engine.name, engine.version);
    }
    text.push_str("\nbudgets (a run can ask for less)\n");
    for (name, _, value) in budgets(&description.budgets) {
        let _ = writeln!(
            text,
            "  {name:<22} {}",
            value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
        );
    }
    let limits = &description.limits;
    text.push_str("\nlimits\n");
    for (name, value) in [
        ("program_bytes_max", limits.program_bytes_max),
        ("frame_bytes_max", limits.frame_bytes_max),
        ("json_depth_max", limits.json_depth_max.into()),
        ("concurrent_runs_max", limits.concurrent_runs_max.into()),
        ("queued_runs_max", limits.queued_runs_max.into()),
        ("queue_ms_max", limits.queue_ms_max),
    ] {
        let _ = writeln!(text, "  {name:<22} {value}");
    }
    text.push_str("\nsandbox layers\n");
    let name = |layer: &Layer| match layer.engine.as_str() {
        "" => layer.name.clone(),
        engine => format!("{} ({engine})", layer.name),
    };
    let width = description.layers.iter().map(|layer| name(layer).len()).max().unwrap_or_default();
    for layer in &description.layers {
        let state =
            if layer.in_force { "in force".to_owned() } else { format!("NOT in force: {}", layer.reason) };
        let required = if layer.required { ", required" } else { "" };
        let _ = writeln!(text, "  {:<width$} {state}{required}", name(layer));
    }
    text
}
