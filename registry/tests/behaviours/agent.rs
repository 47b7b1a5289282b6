//! The native calls of a step: behaviours 227 to 236.

use std::sync::Arc;

use crate::support::{Fixture, Journal, Latch, Peak, code, echo, safe, slow, text, tool};
use codemode_client::AbortSignal;
use codemode_registry::agent::{ModelCall, StepEnd, StepOutcome, append_contexts, run_step};
use codemode_registry::pipeline::Decision;
use codemode_registry::present::{Listing, ToolOrder, ToolProvider};
use codemode_registry::tool::{CallContext, Content, ContextMessage, body_fn};
use codemode_registry::{HookError, Mode, ScopeId, Settings, Signal};

fn calls<const N: usize>(calls: [(&str, &str); N]) -> Vec<ModelCall> {
    let call = |(at, (name, arguments)): (usize, (&str, &str))| {
        ModelCall::new(format!("c{}", at + 1), name, arguments)
    };
    calls.into_iter().enumerate().map(call).collect()
}

async fn step(fixture: &Fixture, calls: Vec<ModelCall>, signal: impl Into<Signal>) -> StepOutcome {
    let surface = fixture.registry.surface(ScopeId::ROOT);
    run_step(&fixture.registry, &fixture.agent, &surface, calls, signal.into()).await
}

async fn fixture(running_max: usize, journal: &Journal, peak: &Arc<Peak>) -> Fixture {
    let mut fixture =
        Fixture::with(Settings { max_parallel_tool_calls: running_max, ..Settings::default() }).await;
    fixture.tools([safe(slow("safe", journal, peak, 10)), slow("alone", journal, peak, 10), echo("echo")]);
    fixture
}

#[test]
fn arguments_as_models_send_them() {
    for (sent, kept) in [
        ("", "{}"),
        ("  ", "{}"),
        ("{\"a\":1}", "{\"a\":1}"),
        ("{\"a\":", "\"{\\\"a\\\":\""),
        ("ls -la", "\"ls -la\""),
    ] {
        assert_eq!(ModelCall::new("c", "t", sent).arguments.as_str(), kept);
    }
}

#[tokio::test(start_paused = true)]
async fn siblings_overlap_around_barriers_227() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let fixture = fixture(10, &journal, &peak).await;
    let outcome = step(
        &fixture,
        calls([("safe", "{}"), ("safe", "{}"), ("alone", "{}"), ("safe", "{}")]),
        AbortSignal::new(),
    )
    .await;
    assert!(matches!(outcome.end, StepEnd::Completed));
    let lines = journal.lines();
    assert_eq!(lines[..2], ["safe begins {}", "safe begins {}"]);
    assert_eq!(lines[4..6], ["alone begins {}", "alone ends {}"]);
    assert_eq!(peak.most(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_replaced_is_classified_anew_228() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let fixture = fixture(10, &journal, &peak).await;
    let registry = fixture.registry.clone();
    let first = registry.register(ScopeId::ROOT, slow("changing", &journal, &peak, 10)).expect("registered");
    let held = Arc::new(std::sync::Mutex::new(Some(first)));
    let (own, handle, own_journal, own_peak) =
        (Arc::clone(&held), registry.clone(), journal.clone(), Arc::clone(&peak));
    let replace = tool(
        "replace",
        body_fn(move |_, _| {
            let mut held = own.lock().expect("not poisoned");
            drop(held.take());
            *held = Some(
                handle
                    .register(ScopeId::ROOT, safe(slow("changing", &own_journal, &own_peak, 10)))
                    .expect("again"),
            );
            async { Ok(codemode_client::JsonText::null()) }
        }),
    );
    let _replace = registry.register(ScopeId::ROOT, replace).expect("registered");
    let wanted = calls([
        ("changing", "{}"),
        ("changing", "{}"),
        ("replace", "{}"),
        ("changing", "{}"),
        ("changing", "{}"),
    ]);
    step(&fixture, wanted, AbortSignal::new()).await;
    let lines = journal.lines();
    assert_eq!(lines[1], "changing ends {}");
    assert_eq!(lines[4..6], ["changing begins {}", "changing begins {}"]);
}

#[tokio::test(start_paused = true)]
async fn results_are_logged_in_the_models_order_229_230() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let uneven = || calls([("safe", "{\"ms\":30}"), ("safe", "{\"ms\":10}"), ("safe", "{}"), ("safe", "{}")]);
    let wide = fixture(10, &journal, &peak).await;
    let outcome = step(&wide, uneven(), AbortSignal::new()).await;
    let order: Vec<&str> = outcome.results.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(order, ["c1", "c2", "c3", "c4"]);
    let wanted =
        ["call c1", "call c2", "call c3", "call c4", "result c1", "result c2", "result c3", "result c4"];
    assert_eq!(wide.event_lines().await, wanted);
    let even = || {
        calls([
            ("safe", "{\"ms\":10}"),
            ("safe", "{\"ms\":30}"),
            ("safe", "{\"ms\":30}"),
            ("safe", "{\"ms\":30}"),
        ])
    };
    let two = fixture(2, &journal, &peak).await;
    step(&two, even(), AbortSignal::new()).await;
    assert_eq!(two.event_lines().await[..4], ["call c1", "call c2", "result c1", "call c3"]);
    let one = fixture(1, &journal, &peak).await;
    step(&one, even(), AbortSignal::new()).await;
    assert_eq!(one.event_lines().await[..4], ["call c1", "result c1", "call c2", "result c2"]);
}

#[tokio::test(start_paused = true)]
async fn denials_are_results_in_order_231() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let mut fixture = fixture(10, &journal, &peak).await;
    fixture.pre(|call, current| match call.call_id() {
        "c2" => Ok(Decision::deny("no")),
        "c3" => Err(HookError::new("broke")),
        _ => Ok(current),
    });
    let outcome = step(
        &fixture,
        calls([("safe", "{}"), ("safe", "{}"), ("safe", "{}"), ("unknown", "")]),
        AbortSignal::new(),
    )
    .await;
    let texts: Vec<String> = outcome.results.iter().map(|(_, result)| text(result)).collect();
    assert_eq!(texts, ["{}", "Error: no", "Error: broke", "Error: unknown tool \"unknown\""]);
    let lines = fixture.event_lines().await;
    assert_eq!(lines[3..], ["result c1", "result c2", "result c3", "call c4", "result c4 UNKNOWN_TOOL"]);
}

#[tokio::test(start_paused = true)]
async fn an_abort_gives_every_call_a_result_232() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let fixture_before = fixture(10, &journal, &peak).await;
    let abort = AbortSignal::new();
    abort.abort("early");
    let outcome = step(&fixture_before, calls([("safe", "{}"), ("alone", "{}")]), abort).await;
    assert!(matches!(outcome.end, StepEnd::Aborted));
    let gone = "ABORTED_BEFORE_DISPATCH";
    assert_eq!(
        fixture_before.event_lines().await,
        [
            "call c1".to_owned(),
            format!("result c1 {gone}"),
            "call c2".to_owned(),
            format!("result c2 {gone}")
        ]
    );

    let mut middle = fixture(10, &journal, &peak).await;
    let (begun, abort) = (Latch::default(), AbortSignal::new());
    let started = begun.clone();
    middle.tools([tool(
        "heeds",
        body_fn(move |_, context: CallContext| {
            let started = started.clone();
            async move {
                context.defer_context(ContextMessage::from_plugin("p", vec![Content::text("kept")]));
                started.open();
                context.signal().aborted().await;
                Ok(codemode_client::JsonText::null())
            }
        }),
    )]);
    let (outcome, ()) = tokio::join!(
        step(&middle, calls([("heeds", "{}"), ("alone", "{}"), ("safe", "{}")]), abort.clone()),
        async {
            begun.wait().await;
            abort.abort("now");
        }
    );
    let codes: Vec<String> = outcome.results.iter().map(|(_, result)| code(result)).collect();
    assert_eq!(codes, ["ABORTED", gone, gone]);
    assert_eq!(outcome.contexts.len(), 1, "what was accepted is parked and not lost");
    append_contexts(&middle.agent, &outcome.contexts).await.expect("appended");
    assert_eq!(middle.event_lines().await.last().map(String::as_str), Some("user/message"));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_fails_ends_the_step_without_inventing_results_233() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let mut fixture = fixture(1, &journal, &peak).await;
    let log = fixture.log.clone();
    fixture.tools([tool(
        "close",
        body_fn(move |_, _| {
            let log = log.clone();
            async move {
                log.close().await.expect("closed");
                Ok(codemode_client::JsonText::null())
            }
        }),
    )]);
    let outcome = step(&fixture, calls([("close", "{}"), ("alone", "{}")]), AbortSignal::new()).await;
    assert!(matches!(outcome.end, StepEnd::Failed(_)), "{:?}", outcome.end);
    assert_eq!(outcome.results.len(), 1);
    assert!(journal.lines().is_empty(), "nothing started afterwards");
}

#[tokio::test]
async fn a_step_can_conclude_the_turn() {
    let mut fixture = Fixture::new(Mode::Native).await;
    fixture.tools([tool("end", crate::support::body_with(CallContext::conclude_turn)), echo("echo")]);
    assert!(step(&fixture, calls([("echo", "{}"), ("end", "{}")]), AbortSignal::new()).await.concludes_turn);
    assert!(!step(&fixture, calls([("echo", "{}")]), AbortSignal::new()).await.concludes_turn);
}

struct Provides(&'static [&'static str]);

impl ToolProvider for Provides {
    fn listings(&self, _: ScopeId) -> Vec<Listing> {
        let listing = |name: &&str| Listing {
            name: (*name).into(),
            description: "".into(),
            parameters: crate::support::schema("{}"),
        };
        self.0.iter().map(listing).collect()
    }
}

#[tokio::test]
async fn orders_are_checked_235() {
    for (names, fragment) in [
        (&["a"][..], "rest entry"),
        (&["a", "a", "<unlisted-tools>"], "more than once"),
        (&["<unlisted-tools>", "<unlisted-tools>"], "more than once"),
    ] {
        let error = ToolOrder::new(names.iter().copied()).expect_err("refused").to_string();
        assert!(error.contains(fragment), "{error}");
    }
    let mut fixture = Fixture::new(Mode::Native).await;
    fixture.tools([echo("b")]);
    let provider =
        fixture.registry.add_provider(ScopeId::ROOT, Arc::new(Provides(&["a", "b"]))).expect("root");
    let assembly = fixture.registry.assemble(ScopeId::ROOT).await.expect("native");
    let names: Vec<&str> = assembly.tools.iter().map(|listing| &*listing.name).collect();
    assert_eq!(names, ["a", "b", "b"]);
    provider.dispose();
    fixture.keep(
        fixture
            .registry
            .add_provider(ScopeId::ROOT, Arc::new(Provides(&["<unlisted-tools>"])))
            .expect("root"),
    );
    let error =
        fixture.registry.assemble(ScopeId::ROOT).await.expect_err("named like the marker").to_string();
    assert!(error.contains("<unlisted-tools>"), "{error}");
}

#[tokio::test]
async fn an_unchanged_header_is_not_logged_again_236() {
    let mut fixture = Fixture::new(Mode::Code).await;
    fixture.tools([echo("b")]);
    fixture.scripts([]);
    for _ in 0..2 {
        let assembly = fixture.registry.assemble(ScopeId::ROOT).await.expect("an assembly");
        let (system, tools) = assembly.header();
        let config = codemode_events::Json::parse("{}").expect("JSON");
        drop(fixture.log.request_header(config, system, tools).await.expect("appended"));
    }
    assert_eq!(fixture.event_lines().await, ["request/header"]);
}
