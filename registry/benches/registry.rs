//! What an assembly and a sub-call cost. Prints medians; compares nothing with the clock of another day.
//!
//! `cargo bench -p codemode-registry`

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codemode_client::JsonText;
use codemode_client::fake::{FakeRuntime, Script};
use codemode_events::{MemoryStore, SessionId, SessionLog, TurnStart};
use codemode_registry::schema::Schema;
use codemode_registry::tool::{OutputContract, body_fn};
use codemode_registry::{Agent, CallRequest, Mode, Registry, ScopeId, Settings, ToolDefinition};

const TOOLS: usize = 500;
const ROUNDS: usize = 31;
const CALLS: usize = 1_000;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn definition(at: usize) -> ToolDefinition {
    let parameters = format!(
        r#"{{"type":"object","description":"d{at}","properties":{{"path":{{"type":"string","description":"Where."}},"limit":{{"type":"integer"}},
        "mode":{{"type":"string","enum":["a","b","c"]}},"filter":{{"anyOf":[{{"type":"null"}},{{"type":"object","properties":{{"q":{{"type":"string"}}}}}}]}}}},"required":["path"]}}"#
    );
    let output =
        Schema::parse(r#"{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"}}}}"#);
    ToolDefinition::new(
        format!("tool_{at}"),
        format!("Does the thing number {at}."),
        Schema::parse(&parameters).expect("lossless"),
        OutputContract::new(output.expect("lossless")),
        body_fn(|_, _| async { Ok(JsonText::null()) }),
    )
}

fn registry() -> Registry {
    let registry = Registry::new(Settings { mode: Mode::Code, ..Settings::default() }).expect("settings");
    for at in 0..TOOLS {
        registry.register(ScopeId::ROOT, definition(at)).expect("registered").keep();
    }
    let empty = ToolDefinition::new(
        "empty",
        "",
        Schema::anything(),
        OutputContract::new(Schema::anything()),
        body_fn(|_, _| async { Ok(JsonText::null()) }),
    );
    registry.register(ScopeId::ROOT, empty).expect("registered").keep();
    registry
}

async fn assemblies(out: &mut String) {
    let (mut cold, mut unchanged, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let registry = registry();
        registry.set_runtime(Arc::new(FakeRuntime::new())).expect("the first").keep();
        let time = async |times: &mut Vec<Duration>| {
            let begun = Instant::now();
            let assembly = registry.assemble(ScopeId::ROOT).await.expect("an assembly");
            times.push(begun.elapsed());
            assembly.sections.len()
        };
        time(&mut cold).await;
        time(&mut unchanged).await;
        registry.register(ScopeId::ROOT, definition(TOOLS)).expect("registered").keep();
        time(&mut changed).await;
    }
    let _ = writeln!(out, "assembly, {TOOLS} tools, cold:        {:?}", median(cold));
    let _ = writeln!(out, "assembly, {TOOLS} tools, unchanged:   {:?}", median(unchanged));
    let _ = writeln!(out, "assembly, {TOOLS} tools, one is new:  {:?}", median(changed));
}

/// Calls one after another in one program; between two events of the log lies one whole call.
async fn sub_calls(out: &mut String) {
    let registry = registry();
    let script = (0..CALLS).fold(Script::new(), |script, _| script.call("tools", "empty", JsonText::null()));
    registry.set_runtime(Arc::new(FakeRuntime::scripted([script]))).expect("the first").keep();
    let session = SessionId::new("bench").expect("an id");
    let log =
        SessionLog::create(Arc::new(MemoryStore::new()), &session, codemode_events::system_clock()).await;
    let log = log.expect("a session");
    drop(log.append(TurnStart { turn_id: "t".to_owned() }).await.expect("appended"));
    let starts = Arc::new(parking_lot::Mutex::new(Vec::with_capacity(CALLS + 1)));
    let seen = Arc::clone(&starts);
    let stamp = move |call: &codemode_registry::pipeline::Call, _: &codemode_registry::CallResult| {
        if call.parent().is_some() {
            seen.lock().push(Instant::now());
        }
    };
    struct Stamp<F>(F);
    impl<F: Fn(&codemode_registry::pipeline::Call, &codemode_registry::CallResult) + Send + Sync>
        codemode_registry::pipeline::ResultObserver for Stamp<F>
    {
        fn on_result(
            &self,
            call: &codemode_registry::pipeline::Call,
            result: &codemode_registry::CallResult,
        ) {
            (self.0)(call, result);
        }
    }
    registry.add_observer(ScopeId::ROOT, Arc::new(Stamp(stamp))).expect("root").keep();
    let arguments = JsonText::parse(r#"{"code":"x","description":"Calls"}"#).expect("JSON");
    let request =
        CallRequest::new("call", "run_code", arguments).by(Agent::new("a", ScopeId::ROOT).with_log(log));
    let result = registry.execute(request).await;
    assert!(!result.is_error(), "{}", result.text());
    let starts = starts.lock();
    let between = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let _ = writeln!(out, "sub-call, pipeline, lane and log:    {:?}", median(between));
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "a bench prints")]
async fn main() {
    let mut out = String::new();
    assemblies(&mut out).await;
    sub_calls(&mut out).await;
    print!("{out}");
}
