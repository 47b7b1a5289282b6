//! The calls of programs and their order: behaviours 136 to 145.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Fixture, Journal, Latch, Odd, Peak, completed, json, safe, slow, text, tool};
use codemode_client::fake::Script;
use codemode_client::{Failure, FailureKind};
use codemode_registry::tool::{Content, ContextMessage, body_fn};
use codemode_registry::{Mode, ScopeId, Settings};

fn gather<const N: usize>(calls: [(&'static str, &'static str); N]) -> Script {
    Script::new().calls(calls.map(|(name, arguments)| ("tools", name, json(arguments))))
}

#[tokio::test(start_paused = true)]
async fn safe_calls_overlap_and_start_in_order_136() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let mut fixture = Fixture::new(Mode::Code).await;
    fixture.tools([safe(slow("safe", &journal, &peak, 10))]);
    fixture.scripts([gather([("safe", "{\"n\":1}"), ("safe", "{\"n\":2}"), ("safe", "{\"n\":3}")])]);
    fixture.run_code().await;
    assert_eq!(peak.most(), 3);
    let lines = fixture.event_lines().await;
    assert_eq!(lines[..3], ["start call:code:1", "start call:code:2", "start call:code:3"]);
    let mut ends = lines[3..].to_vec();
    ends.sort();
    assert_eq!(ends, ["settle call:code:1", "settle call:code:2", "settle call:code:3"]);
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_call_is_a_barrier_137_142() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let mut fixture = Fixture::new(Mode::Code).await;
    fixture.tools([safe(slow("safe", &journal, &peak, 10)), slow("alone", &journal, &peak, 10)]);
    let seen = journal.clone();
    fixture.post(move |call, _, verdict| {
        seen.note(format!("{} reviewed", call.name()));
        Ok(verdict)
    });
    fixture.scripts([gather([
        ("safe", "{\"n\":1}"),
        ("safe", "{\"n\":2}"),
        ("alone", "{}"),
        ("safe", "{\"n\":4}"),
    ])]);
    fixture.run_code().await;
    assert_eq!(
        journal.lines(),
        [
            "safe begins {\"n\":1}",
            "safe begins {\"n\":2}",
            "safe ends {\"n\":1}",
            "safe ends {\"n\":2}",
            "safe reviewed",
            "safe reviewed",
            "alone begins {}",
            "alone ends {}",
            "alone reviewed",
            "safe begins {\"n\":4}",
            "safe ends {\"n\":4}",
            "safe reviewed",
            "run_code reviewed",
        ]
    );
    assert_eq!(peak.most(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_more_bodies_than_the_pool_takes_138() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let mut fixture =
        Fixture::with(Settings { mode: Mode::Code, max_parallel_sub_calls: 2, ..Settings::default() }).await;
    fixture.tools([safe(slow("safe", &journal, &peak, 10))]);
    fixture.scripts([gather([("safe", "{}"), ("safe", "{}"), ("safe", "{}")])]);
    fixture.run_code().await;
    assert_eq!(peak.most(), 2);
    assert_eq!(journal.lines().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn tools_run_alone_unless_they_say_otherwise_139() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let mut fixture = Fixture::new(Mode::Code).await;
    fixture.tools([slow("tool", &journal, &peak, 10)]);
    fixture.scripts([gather([("tool", "{\"n\":1}"), ("tool", "{\"n\":2}"), ("tool", "{\"n\":3}")])]);
    fixture.run_code().await;
    let wanted: Vec<String> = (1..4)
        .flat_map(|n| [format!("tool begins {{\"n\":{n}}}"), format!("tool ends {{\"n\":{n}}}")])
        .collect();
    assert_eq!(journal.lines(), wanted);
}

#[tokio::test]
async fn a_tool_that_went_away_is_unknown_and_named_140() {
    let mut fixture = Fixture::new(Mode::Code).await;
    let gone = fixture.registry.register(ScopeId::ROOT, crate::support::echo("gone")).expect("registered");
    let gone = std::sync::Mutex::new(Some(gone));
    fixture.tools([tool(
        "remove",
        body_fn(move |_, _| {
            drop(gone.lock().expect("not poisoned").take());
            async { Ok(codemode_client::JsonText::null()) }
        }),
    )]);
    fixture.scripts([Script::new()
        .call("tools", "remove", json("{}"))
        .call("tools", "gone", json("{}"))
        .returns_last_reply()]);
    let result = fixture.run_code().await;
    assert_eq!(text(&result), "Error: code run failed (exception): unknown tool \"gone\"");
    assert_eq!(fixture.event_lines().await.last().map(String::as_str), Some("error call:code:2"));
}

#[tokio::test(start_paused = true)]
async fn policies_of_calls_never_overlap_141() {
    struct Slow(Arc<Peak>);
    #[async_trait::async_trait]
    impl codemode_registry::pipeline::PreExecute for Slow {
        async fn decide(
            &self,
            call: &codemode_registry::pipeline::Call,
            current: codemode_registry::pipeline::Decision,
        ) -> Result<codemode_registry::pipeline::Decision, codemode_registry::HookError> {
            if call.parent().is_some() {
                self.0.enter();
                tokio::time::sleep(Duration::from_millis(5)).await;
                self.0.leave();
            }
            Ok(current)
        }
    }
    let (journal, peak, policies) =
        (Journal::default(), Arc::new(Peak::default()), Arc::new(Peak::default()));
    let mut fixture = Fixture::new(Mode::Code).await;
    fixture.tools([safe(slow("safe", &journal, &peak, 50))]);
    fixture.keep(
        fixture.registry.add_pre_execute(ScopeId::ROOT, Arc::new(Slow(Arc::clone(&policies)))).expect("root"),
    );
    fixture.scripts([gather([("safe", "{}"), ("safe", "{}"), ("safe", "{}")])]);
    fixture.run_code().await;
    assert_eq!((policies.most(), peak.most()), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_commit_in_progress_is_waited_for_and_ends_as_an_error_143() {
    struct Slow(Latch);
    #[async_trait::async_trait]
    impl codemode_registry::pipeline::PostExecute for Slow {
        async fn review(
            &self,
            call: &codemode_registry::pipeline::Call,
            _: &codemode_registry::CallResult,
            current: codemode_registry::pipeline::PostVerdict,
        ) -> Result<codemode_registry::pipeline::PostVerdict, codemode_registry::HookError> {
            if call.parent().is_some() {
                self.0.open();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(current)
        }
    }
    let in_commit = Latch::default();
    let mut fixture = Fixture::new(Mode::Code).await;
    fixture.tools([crate::support::echo("echo")]);
    fixture.keep(
        fixture.registry.add_post_execute(ScopeId::ROOT, Arc::new(Slow(in_commit.clone()))).expect("root"),
    );
    let script = Script::new().call("tools", "echo", json("{}"));
    fixture.runtime(Odd::ending([script], &in_commit, || Ok(completed("7"))));
    let result = fixture.run_code().await;
    assert_eq!(text(&result), "7");
    assert_eq!(fixture.event_lines().await, ["start call:code:1", "error call:code:1"]);
}

#[tokio::test(start_paused = true)]
async fn commits_follow_the_order_of_submission_144() {
    let (journal, peak) = (Journal::default(), Arc::new(Peak::default()));
    let mut fixture = Fixture::new(Mode::Code).await;
    fixture.tools([safe(slow("safe", &journal, &peak, 0))]);
    fixture.post(|call, _, mut verdict| {
        if call.parent().is_some() {
            verdict.contexts.push(ContextMessage::from_plugin("p", vec![Content::text(call.call_id())]));
        }
        Ok(verdict)
    });
    fixture.scripts([gather([("safe", "{\"ms\":30}"), ("safe", "{\"ms\":20}"), ("safe", "{\"ms\":10}")])]);
    let result = fixture.run_code().await;
    let contexts: Vec<&str> =
        result.contexts.iter().filter_map(|context| context.content[0].as_text()).collect();
    assert_eq!(contexts, ["call:code:1", "call:code:2", "call:code:3"]);
    assert_eq!(journal.lines()[3], "safe ends {\"ms\":10}");
    let lines = fixture.event_lines().await;
    assert_eq!(lines[3..], ["settle call:code:1", "settle call:code:2", "settle call:code:3"]);
}

#[tokio::test(start_paused = true)]
async fn what_never_started_leaves_no_event_145() {
    let (running, ended) = (Latch::default(), Journal::default());
    let mut fixture = Fixture::new(Mode::Code).await;
    let (begun, seen) = (running.clone(), ended.clone());
    fixture.tools([tool(
        "hang",
        body_fn(move |_, context: codemode_registry::tool::CallContext| {
            let (begun, seen) = (begun.clone(), seen.clone());
            async move {
                begun.open();
                seen.note(context.signal().aborted().await);
                Ok(codemode_client::JsonText::null())
            }
        }),
    )]);
    let script = gather([("hang", "{}"), ("hang", "{}")]);
    fixture.runtime(Odd::ending([script], &running, || {
        let failure = Failure::new(FailureKind::Exception, "boom");
        Ok(codemode_client::Outcome { value: None, failure: Some(failure), ..completed("null") })
    }));
    let result = fixture.run_code().await;
    assert_eq!(text(&result), "Error: code run failed (exception): boom");
    assert_eq!(ended.lines(), ["run_code settled"]);
    assert_eq!(fixture.event_lines().await, ["start call:code:1", "error call:code:1"]);
}

/// Whatever settles when, fails or is aborted in between: what started ends once, in order, and nothing is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_any_disturbance_every_start_has_one_end_136_to_145() {
    const CALLS: u64 = 24;
    for round in 0..60_u64 {
        let mut fixture = Fixture::new(Mode::Code).await;
        let body = |fails: bool| {
            body_fn(
                move |arguments: codemode_registry::tool::Arguments,
                      context: codemode_registry::tool::CallContext| async move {
                    let turns = arguments
                        .value()
                        .get("turns")
                        .map(ToString::to_string)
                        .and_then(|turns| turns.parse().ok());
                    for _ in 0..turns.unwrap_or(0_u64) {
                        tokio::task::yield_now().await;
                    }
                    if fails || context.signal().is_aborted() {
                        return Err(codemode_registry::tool::BodyError::new("no"));
                    }
                    Ok(arguments.text().clone())
                },
            )
        };
        fixture.tools([
            safe(tool("safe", body(false))),
            safe(tool("fails", body(true))),
            tool("alone", body(false)),
        ]);
        // A cheap generator: what comes is different in each round and the same in each run of the test.
        let random =
            |call: u64| (round * 7_919 + call * 104_729 + 13).wrapping_mul(2_862_933_555_777_941_757) >> 33;
        let calls: Vec<_> = (0..CALLS)
            .map(|call| {
                let name =
                    ["safe", "safe", "fails", "alone"][usize::try_from(random(call) % 4).expect("small")];
                ("tools", name, json(&format!("{{\"turns\":{}}}", random(call) % 50)))
            })
            .collect();
        fixture.scripts([Script::new().calls(calls)]);
        let abort = codemode_client::AbortSignal::new();
        let request =
            fixture.request("run_code", crate::support::RUN_CODE_ARGUMENTS).with_signal(abort.clone());
        let disturb = async {
            for _ in 0..random(99) % 400 {
                tokio::task::yield_now().await;
            }
            if round % 3 > 0 {
                abort.abort("disturbed");
            }
        };
        tokio::join!(fixture.registry.execute(request), disturb);
        let lines = fixture.event_lines().await;
        let started: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("start ")).collect();
        let ended: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.strip_prefix("settle ").or(line.strip_prefix("error ")))
            .collect();
        let wanted: Vec<String> = (1..=started.len()).map(|n| format!("call:code:{n}")).collect();
        assert_eq!(started, wanted, "round {round}");
        assert_eq!(ended, wanted, "round {round}");
        assert!(round % 3 > 0 || started.len() as u64 == CALLS, "round {round}");
        assert!(fixture.log.open_work().dispatches.is_empty(), "round {round}");
    }
}
