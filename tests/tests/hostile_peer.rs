//! Forged runners against the real executor: what a process that an attacker has taken over can say, and what becomes of it.
//! The forger is `hostile-runner`; what it does is named in the program's text.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use codemode_proto::executor_v1 as v1;
use codemode_proto::executor_v1::run_response::Message as FromExecutor;
use codemode_tests::executor::Executor;
use codemode_tests::judge::{kind_name, ledger_bytes};
use codemode_tests::live::{LiveRun, start};
use codemode_tests::process;

/// What came of one attack.
#[derive(Debug)]
struct Seen {
    outcome: v1::Outcome,
    calls: Vec<String>,
}

impl Seen {
    /// Kind and detail of the failure; the value where there is none.
    fn what(&self) -> (String, String) {
        match (&self.outcome.failure, &self.outcome.value_json) {
            (Some(failure), _) => (kind_name(failure.kind).to_owned(), failure.detail.clone()),
            (None, Some(value)) => ("value".to_owned(), String::from_utf8_lossy(value).into_owned()),
            (None, None) => ("no value".to_owned(), String::new()),
        }
    }

    fn message(&self) -> &str {
        self.outcome.failure.as_ref().map_or("", |failure| failure.message.as_str())
    }
}

/// An executor whose only runner is the forger, under the given file name.
async fn executor_with(name: &str) -> (Executor, tempfile::TempDir) {
    executor_spawning(name, "exec").await
}

async fn executor_spawning(name: &str, spawn: &str) -> (Executor, tempfile::TempDir) {
    // A link and no copy: what another thread forks while a copy is written holds it open, and it cannot be started.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path: PathBuf = folder.path().join(name);
    std::fs::hard_link(env!("CARGO_BIN_EXE_hostile-runner"), &path).expect("linked");
    let mut table = toml::toml! {
        engines = ["quickjs"]
        lockdown_ms = 1000
        control_ms = 500
        strip_ms = 200
        frame_bytes_max = 16777216
        output_bytes = 8388608
    };
    table.insert("spawn".to_owned(), spawn.into());
    table.insert("runner_quickjs".to_owned(), path.display().to_string().into());
    (Executor::start(&table).await.expect("an executor starts"), folder)
}

async fn attack_on(executor: &Executor, name: &str, budgets: v1::Budgets) -> Seen {
    let mut client = executor.client().await.expect("a client");
    let request = v1::StartRun {
        budgets: Some(budgets),
        ..start(&format!("// hostile: {name}\n"), &["echo", "other"])
    };
    let mut run = LiveRun::start(&mut client, request).await.expect("it starts");
    let mut calls = Vec::new();
    loop {
        match run.next().await.unwrap_or_else(|error| panic!("`{name}`: {error:#}\n{}", executor.log())) {
            Some(FromExecutor::Call(call)) => {
                let args = String::from_utf8_lossy(&call.args_json).into_owned();
                run.reply(call.id, &args);
                calls.push(format!("{} {}.{} {args}", call.id, call.global, call.name));
            }
            Some(FromExecutor::Outcome(outcome)) => {
                assert_eq!(run.next().await.expect("a good end"), None, "`{name}`");
                return Seen { outcome, calls };
            }
            Some(_) => {}
            None => panic!("`{name}`: no outcome"),
        }
    }
}

/// Runs attacks in turn on one executor; after each an honest run comes to its end.
async fn attack(names: &[&str], budgets: v1::Budgets, check: impl Fn(&str, &Seen)) {
    let (executor, _folder) = executor_with("hostile-runner").await;
    for name in names {
        let seen = attack_on(&executor, name, budgets).await;
        check(name, &seen);
        let honest = attack_on(&executor, "honest", v1::Budgets::default()).await;
        assert_eq!(honest.what(), ("value".to_owned(), "\"honest\"".to_owned()), "after `{name}`");
    }
}

fn short() -> v1::Budgets {
    v1::Budgets { wall_ms: Some(5000), ..v1::Budgets::default() }
}

fn output(bytes: u64) -> v1::Budgets {
    v1::Budgets { output_bytes: Some(bytes), ..short() }
}

fn is(seen: &Seen, kind: &str, detail: &str) -> bool {
    seen.what() == (kind.to_owned(), detail.to_owned())
}

fn assert_violation(name: &str, seen: &Seen) {
    assert!(is(seen, "worker-exit", "protocol"), "`{name}`: {seen:?}");
    assert!(seen.message().contains("protocol violation"), "`{name}`: {}", seen.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_junk() {
    let names = [
        "hello-twice",
        "unknown-kind",
        "zero-flood",
        "truncated",
        "left-over",
        "log-not-a-literal",
        "log-not-utf8",
        "message-not-a-literal",
    ];
    attack(&names, short(), |name, seen| {
        assert_violation(name, seen);
        assert!(seen.outcome.logs.is_empty(), "`{name}`");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_over_its_limit() {
    attack(&["frame-too-long"], short(), |name, seen| {
        assert!(
            is(seen, "worker-exit", "protocol") || is(seen, "worker-exit", "frame_bytes"),
            "`{name}`: {seen:?}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_calls() {
    attack(&["unknown-binding"], short(), |_, seen| {
        let (kind, value) = seen.what();
        assert_eq!(kind, "value", "{seen:?}");
        assert!(
            value.contains("1 error unknown binding") && value.contains("2 error unknown binding"),
            "{value}"
        );
        assert!(value.contains("3 value {\\\"n\\\":1}"), "{value}");
        // The program's own count has no gaps, whatever was refused in between.
        assert_eq!(seen.calls.len(), 1, "{:?}", seen.calls);
        assert!(seen.calls[0].ends_with("tools.echo {\"n\":1}"), "{:?}", seen.calls);
    })
    .await;
    attack(&["duplicate-id", "id-gap", "id-zero", "id-huge"], short(), |name, seen| {
        assert_violation(name, seen);
        assert!(seen.calls.len() <= 1, "`{name}`: {:?}", seen.calls);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_lossy_arguments() {
    attack(&["lossy-arguments"], short(), |name, seen| {
        let (kind, value) = seen.what();
        assert_eq!(kind, "value", "`{name}`: {seen:?}");
        assert_eq!(value.matches("error binding arguments must be lossless JSON").count(), 6, "{value}");
        assert_eq!(seen.calls.len(), 1, "{:?}", seen.calls);
        assert!(seen.calls[0].ends_with("tools.echo {\"fine\":true}"), "{:?}", seen.calls);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_calls() {
    let budgets = v1::Budgets { pending_calls: Some(16), binding_calls: Some(1000), ..short() };
    attack(&["call-flood"], budgets, |name, seen| {
        let (kind, detail) = seen.what();
        assert!(
            kind == "worker-exit" && ["pending_calls", "binding_calls"].contains(&detail.as_str()),
            "`{name}`: {seen:?}"
        );
        assert!(seen.calls.len() <= 1000, "{}", seen.calls.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_logs_and_a_huge_completion() {
    attack(&["logs-and-huge-completion"], output(200), |name, seen| {
        assert!(is(seen, "output-limit", "output_bytes"), "`{name}`: {seen:?}");
        assert_eq!(seen.message(), "outer output exceeded 200 bytes");
        assert!(ledger_bytes(&seen.outcome) <= 200);
        assert_eq!(seen.outcome.logs.first().map(String::len), Some(98));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_oversized_completion() {
    attack(&["huge-completion"], output(64), |name, seen| {
        assert!(is(seen, "output-limit", "output_bytes"), "`{name}`: {seen:?}");
        assert!(seen.outcome.logs.is_empty() && seen.outcome.value_json.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_log_of_quotes() {
    attack(&["log-of-quotes", "log-of-forged-escapes"], output(96), |name, seen| {
        assert!(is(seen, "output-limit", "output_bytes"), "`{name}`: {seen:?}");
        assert_eq!(seen.outcome.logs.len(), 1, "`{name}`");
        assert!(ledger_bytes(&seen.outcome) <= 96, "`{name}`");
        assert!(!seen.outcome.logs[0].is_empty(), "`{name}`");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_logs_end_at_the_cap() {
    let (executor, _folder) = executor_with("hostile-runner").await;
    attack_on(&executor, "honest", short()).await;
    let before = process::resident_bytes(executor.pid()).expect("readable");
    for name in ["log-flood", "empty-log-flood"] {
        let began = Instant::now();
        let seen = attack_on(&executor, name, output(1 << 20)).await;
        assert!(is(&seen, "output-limit", "output_bytes"), "`{name}`: {:?}", seen.what());
        assert!(ledger_bytes(&seen.outcome) <= 1 << 20, "`{name}`");
        // Far below the time of which it has as much as it likes: the wall budget.
        assert!(began.elapsed() < Duration::from_secs(30), "`{name}` took {:?}", began.elapsed());
    }
    let after = process::resident_bytes(executor.pid()).expect("readable");
    assert!(after < before + (64 << 20), "{before} bytes resident before, {after} after");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_deep_completion() {
    attack(&["deep-completion"], short(), |name, seen| {
        assert!(is(seen, "value", &("[".repeat(3000) + &"]".repeat(3000))), "`{name}`: {:?}", seen.what());
    })
    .await;
    attack(&["too-deep-completion"], short(), |name, seen| {
        assert!(is(seen, "invalid-output", "lossy"), "`{name}`: {:?}", seen.what());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_error_text_over_the_limit() {
    attack(&["long-error"], output(64), |name, seen| {
        assert!(is(seen, "output-limit", "output_bytes"), "`{name}`: {seen:?}");
        assert!(ledger_bytes(&seen.outcome) <= 64, "`{name}`");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_lossy_values() {
    let names = [
        "completes -0",
        "completes [1e400]",
        "completes {\"a\":1,\"\\u0061\":2}",
        "completes 9007199254740993",
        "completes nope",
        "completes 1 2",
        "completes ",
    ];
    attack(&names, short(), |name, seen| {
        assert!(
            is(seen, "invalid-output", "lossy") || is(seen, "worker-exit", "protocol"),
            "`{name}`: {seen:?}"
        );
        assert!(seen.outcome.value_json.is_none(), "`{name}`");
    })
    .await;
    attack(&["completes -0"], short(), |name, seen| {
        assert!(is(seen, "invalid-output", "lossy"), "`{name}`: {seen:?}");
        assert!(seen.message().contains("program completion must be lossless JSON"), "{}", seen.message());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_output_limit() {
    attack(&["forged-output-limit"], output(1000), |name, seen| {
        assert!(is(seen, "output-limit", "output_bytes"), "`{name}`: {seen:?}");
        assert_eq!(seen.message(), "outer output exceeded 1000 bytes");
        assert_eq!(seen.outcome.failure.as_ref().and_then(|failure| failure.limit), Some(1000));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_heap_report_names_the_real_cap() {
    let budgets = v1::Budgets { heap_bytes: Some(64 << 20), ..short() };
    attack(&["forged-heap"], budgets, |name, seen| {
        assert!(is(seen, "worker-exit", "heap_bytes"), "`{name}`: {seen:?}");
        assert_eq!(seen.outcome.failure.as_ref().and_then(|failure| failure.limit), Some(64 << 20));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_exits_by_itself() {
    attack(&["exit-7"], short(), |_, seen| {
        assert!(is(seen, "worker-exit", "exit"), "{seen:?}");
        let message =
            "worker exited with code 7 before completing: it could not read the executor's messages";
        assert_eq!(seen.message(), message);
    })
    .await;
    attack(&["exit-0"], short(), |_, seen| assert!(is(seen, "worker-exit", "exit"), "{seen:?}")).await;
    attack(&["abort"], short(), |_, seen| {
        assert!(is(seen, "worker-exit", "signal"), "{seen:?}");
        assert_eq!(seen.outcome.failure.as_ref().and_then(|failure| failure.signal), Some(6));
    })
    .await;
    attack(&["ends-inside-a-frame"], short(), |name, seen| {
        assert!(is(seen, "worker-exit", "protocol") || is(seen, "worker-exit", "exit"), "`{name}`: {seen:?}");
    })
    .await;
}

/// A stream that ends while the process lives is the end of the run, and soon of the process.
#[tokio::test(flavor = "multi_thread")]
async fn a_half_closed_stream() {
    let began = Instant::now();
    attack(&["half-close"], short(), |name, seen| {
        assert_eq!(seen.what().0, "worker-exit", "`{name}`: {seen:?}");
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

/// Bytes that never become a frame hold up nobody, and only the wall ends them.
#[tokio::test(flavor = "multi_thread")]
async fn half_frames_end_at_the_wall() {
    let budgets = v1::Budgets { wall_ms: Some(1500), ..v1::Budgets::default() };
    attack(&["half-a-header", "slow-header"], budgets, |name, seen| {
        assert!(is(seen, "timeout", "wall_ms"), "`{name}`: {seen:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_counts_after_the_end() {
    attack(&["after-the-end"], short(), |name, seen| {
        let (kind, what) = seen.what();
        let first = kind == "value" && what == "\"first\"";
        assert!(first || (kind == "worker-exit" && what == "protocol"), "`{name}`: {seen:?}");
        assert!(seen.calls.is_empty() && seen.outcome.logs.is_empty(), "`{name}`: {seen:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lie_about_being_stalled() {
    attack(&["stalled-with-a-call"], short(), |name, seen| {
        assert!(is(seen, "timeout", "deadlock") || is(seen, "worker-exit", "protocol"), "`{name}`: {seen:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_stderr_is_bounded() {
    let (executor, _folder) = executor_with("hostile-runner").await;
    attack_on(&executor, "honest", short()).await;
    let before = process::resident_bytes(executor.pid()).expect("readable");
    let seen = attack_on(&executor, "stderr-flood", short()).await;
    let ended =
        is(&seen, "value", "\"after\"") || is(&seen, "timeout", "wall_ms") || seen.what().0 == "worker-exit";
    assert!(ended, "{seen:?}");
    let after = process::resident_bytes(executor.pid()).expect("readable");
    assert!(after < before + (32 << 20), "{before} bytes resident before, {after} after");
    assert!(executor.log().len() < 1 << 20, "{} bytes of log", executor.log().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptors_that_are_pushed_on_the_executor_do_not_stay() {
    let (executor, _folder) = executor_with("hostile-runner").await;
    for _ in 0..2 {
        attack_on(&executor, "honest", short()).await;
    }
    let before = process::open_descriptors(executor.pid()).expect("readable");
    let seen = attack_on(&executor, "descriptors", short()).await;
    assert!(is(&seen, "value", "1") || seen.what().0 == "worker-exit", "{seen:?}");
    attack_on(&executor, "honest", short()).await;
    let after = process::open_descriptors(executor.pid()).expect("readable");
    assert!(after <= before + 3, "{before} descriptors before, {after} after");
}

/// What becomes of an honest program on this executor: `value`, kind and detail of a failure, or a status.
async fn fate(executor: &Executor) -> String {
    let mut client = executor.client().await.expect("a client");
    let request = v1::StartRun { budgets: Some(short()), ..start("// hostile: honest", &["echo"]) };
    let mut run = match LiveRun::open(&mut client, [v1::run_request::Message::Start(request)]).await {
        Err(status) => return format!("status {:?}", status.code()),
        Ok(run) => run,
    };
    loop {
        match run.next().await {
            Ok(Some(FromExecutor::Outcome(v1::Outcome { failure: Some(failure), .. }))) => {
                return format!("{} {}", kind_name(failure.kind), failure.detail);
            }
            Ok(Some(FromExecutor::Outcome(_))) => return "value".to_owned(),
            Ok(Some(FromExecutor::Log(entry))) => panic!("{entry:?}"),
            Ok(Some(_)) => {}
            Ok(None) => panic!("no outcome"),
            Err(error) => return format!("status {error}"),
        }
    }
}

/// Whether nothing ran and the caller is told that the fault is not the program's.
fn is_infrastructure(fate: &str) -> bool {
    fate == "worker-exit infrastructure" || fate.to_lowercase().contains("unavailable")
}

/// A stripping process that lies or dies costs a program, never a wrong one that runs, and never the executor.
#[tokio::test(flavor = "multi_thread")]
async fn a_stripping_process_is_not_believed() {
    for name in ["strip-wrong-id", "strip-dies", "strip-junk", "strip-silent", "strip-cut-short"] {
        let (executor, _folder) = executor_with(name).await;
        for _ in 0..2 {
            let fate = fate(&executor).await;
            assert!(
                is_infrastructure(&fate) || fate == "exception syntax",
                "`{name}`: {fate}\n{}",
                executor.log()
            );
        }
        executor.describe().await.expect("it still answers");
    }
    let (executor, _folder) = executor_with("strip-answers-twice").await;
    for _ in 0..3 {
        let fate = fate(&executor).await;
        assert!(fate == "value" || is_infrastructure(&fate), "{fate}");
    }
}

/// A zygote names processes that are not its children, or none: nobody is killed, nobody is given the program.
#[tokio::test(flavor = "multi_thread")]
async fn a_zygote_is_not_believed() {
    for name in [
        "zygote-names-init",
        "zygote-names-its-parent",
        "zygote-names-itself",
        "zygote-names-nobody",
        "zygote-names-a-group",
        "zygote-junk",
        "zygote-exits",
        "zygote-fails",
        "zygote-silent",
    ] {
        let (mut executor, _folder) = executor_spawning(name, "fork").await;
        for _ in 0..2 {
            let fate = fate(&executor).await;
            assert!(is_infrastructure(&fate), "`{name}`: {fate}\n{}", executor.log());
        }
        assert!(
            executor.ended(Duration::ZERO).await.is_none(),
            "`{name}` ended the executor\n{}",
            executor.log()
        );
        executor.describe().await.expect("it still answers");
    }
}

/// A process that does not say the right thing first is never given a program.
#[tokio::test(flavor = "multi_thread")]
async fn no_program_before_a_good_hello() {
    for name in [
        "early-log",
        "early-completed",
        "early-junk",
        "silent",
        "wrong-nonce",
        "wrong-version",
        "missing-layer",
        "step-failed",
        "gone",
    ] {
        let (executor, _folder) = executor_with(name).await;
        // Given a program, it would answer with a value.
        let came = fate(&executor).await;
        let good = [
            "worker-exit infrastructure",
            "worker-exit protocol",
            "worker-exit frame_bytes",
            "worker-exit exit",
        ]
        .contains(&came.as_str())
            || is_infrastructure(&came);
        assert!(good, "`{name}`: {came}");
    }
}
