//! Sections E and F of the attack catalogue: zygotes that fail, callers that go away, an executor that ends. Whatever
//! happens, no process is left and the next run is served.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::{Duration, Instant};

use codemode_proto::executor_v1 as pb;
use common::{Executor, Run, assert_gone, resident_bytes, start, with_budgets, words};
use nix::sys::signal::Signal;
use tonic::Code;

/// Waits until no run's process is left.
async fn settled(executor: &Executor) {
    let until = Instant::now() + Duration::from_secs(3);
    while executor.run_processes() > 0 {
        assert!(Instant::now() < until, "a run's process is left");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn zygotes(executor: &Executor) -> Vec<u32> {
    let role = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().ends_with(b"\0zygote\0")
    };
    let socket = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/fd/0"))
            .is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    // A run's process of the fake keeps the zygote's descriptor 0 closed.
    executor.children().into_iter().filter(|pid| role(pid) && socket(pid)).collect()
}

fn signal(pid: u32, signal: Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

#[tokio::test]
async fn budgets_of_time() {
    let executor = Executor::start(&[]);
    let began = Instant::now();
    let budgets = pb::Budgets { compute_ms: Some(300), ..Default::default() };
    // A call that nobody answers pauses nothing.
    let mut run = executor.start_run(with_budgets("log \"before\"\ncall 0 0 1\nspin 60000", budgets)).await;
    run.call().await;
    let outcome = loop {
        if let Some(pb::run_response::Message::Outcome(outcome)) = run.step().await.unwrap() {
            break outcome;
        }
    };
    let failure = outcome.failure.unwrap();
    assert_eq!((failure.detail.as_str(), failure.limit), ("compute_ms", Some(300)));
    assert_eq!(failure.message, "compute budget exhausted (300ms busy)");
    assert!((300..400).contains(&failure.used.unwrap()), "{:?}", failure.used);
    assert_eq!(outcome.logs, ["before"]);
    assert!(began.elapsed() < Duration::from_secs(5));
    // Waiting costs nothing.
    let budgets = pb::Budgets { compute_ms: Some(100), ..Default::default() };
    let mut run = executor.start_run(with_budgets("sleep 400\ndone 1", budgets)).await;
    assert_eq!(run.outcome().await.failure, None);
    let budgets = pb::Budgets { wall_ms: Some(200), ..Default::default() };
    let mut run = executor.start_run(with_budgets("log \"w\"\nsleep 60000", budgets)).await;
    let outcome = run.outcome().await;
    assert_eq!(words(&outcome), ("wall_ms".to_owned(), "wall-clock ceiling reached (200ms)".to_owned()));
    assert_eq!(outcome.logs, ["w"]);
    let wall = outcome.usage.unwrap().wall_us;
    assert!((200_000..400_000).contains(&wall), "{wall}");
}

#[tokio::test]
async fn the_smallest_budgets() {
    let executor = Executor::start(&[]);
    for budgets in [
        pb::Budgets { wall_ms: Some(1), ..Default::default() },
        pb::Budgets { compute_ms: Some(1), ..Default::default() },
    ] {
        let mut run = executor.start_run(with_budgets("spin 60000", budgets)).await;
        assert!(matches!(words(&run.outcome().await).0.as_str(), "wall_ms" | "compute_ms"));
    }
    let budgets = pb::Budgets { binding_calls: Some(0), ..Default::default() };
    let mut run = executor.start_run(with_budgets("call 0 0 1", budgets)).await;
    assert_eq!(words(&run.outcome().await).0, "binding_calls");
    settled(&executor).await;
}

#[tokio::test]
async fn abort_ends_a_run_with_its_reason_alone() {
    let executor = Executor::start(&[]);
    let mut run = executor.run("log \"a\"\nspin 60000").await;
    run.logged(1).await;
    run.abort("user-cancel").await;
    let outcome = run.outcome().await;
    assert_eq!(words(&outcome), ("caller".to_owned(), "user-cancel".to_owned()));
    assert_eq!(outcome.logs, ["a"]);
    assert_eq!(executor.run_processes(), 0, "the process is gone before the outcome");
    // Before anything happened; and through the ledger.
    let run = executor.start_run(start("sleep 60000")).await;
    run.abort("early").await;
    let mut run = run;
    assert_eq!(words(&run.outcome().await).1, "early");
    let budgets = pb::Budgets { output_bytes: Some(64), ..Default::default() };
    let mut run = executor.start_run(with_budgets("sleep 60000", budgets)).await;
    run.abort(&"x".repeat(1000)).await;
    assert_eq!(words(&run.outcome().await).1, "outer output exceeded 64 bytes");
}

#[tokio::test]
async fn cancelling_at_every_point_leaves_nothing_112() {
    let executor = Executor::start(&["--concurrent-runs-max", "2", "--strip-ms", "100"]);
    let scripts = [
        "spin 60000",
        "sleep 60000",
        "call 0 0 1\nreply",
        "repeat 1000000 log \"x\"",
        "blob 5000000",
        "//strip:slow",
        "//strip:stall",
    ];
    for script in scripts {
        for delay in [0, 1, 2, 4, 8, 30] {
            let run = executor.run(script).await;
            tokio::time::sleep(Duration::from_millis(delay)).await;
            drop(run);
        }
        settled(&executor).await;
        // The slots are free again: two runs at once are served.
        let (mut one, mut two) =
            (executor.run("sleep 20\ndone 1").await, executor.run("sleep 20\ndone 2").await);
        assert_eq!((one.outcome().await.failure, two.outcome().await.failure), (None, None));
    }
}

#[tokio::test]
async fn cancel_racing_the_end_gives_one_outcome_113() {
    let executor = Executor::start(&[]);
    for index in 0..100 {
        let mut run = executor.run("done 1").await;
        if index % 2 == 0 {
            tokio::task::yield_now().await;
        }
        run.abort("race").await;
        // `outcome` insists that exactly one comes, and nothing after it.
        let outcome = run.outcome().await;
        assert!(outcome.failure.is_none() || words(&outcome) == ("caller".to_owned(), "race".to_owned()));
    }
    settled(&executor).await;
}

#[tokio::test]
async fn misuse_of_the_stream_settles_the_run_and_is_named() {
    use pb::run_request::Message as Request;
    let executor = Executor::start(&[]);
    let reply = |id| {
        let result = Some(pb::binding_reply::Result::ValueJson("1".into()));
        Request::Reply(pb::BindingReply { id, result })
    };
    let cases = [
        (Request::Start(start("done")), "second `start`"),
        (reply(1), "`reply` to call 1, which was never made"),
        (
            Request::Reply(pb::BindingReply { id: 1, result: None }),
            "`reply` without `value_json` and without `error`",
        ),
    ];
    for (message, expected) in cases {
        let mut run = executor.run("log \"up\"\nspin 60000").await;
        run.logged(1).await;
        run.send(message).await;
        let status = run.finish().await.expect_err("a status");
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, expected));
        settled(&executor).await;
    }
    let mut run = executor.run("call 0 0 1\nquiet\nspin 60000").await;
    run.call().await;
    run.reply(1, "1").await;
    run.reply(1, "1").await;
    let status = run.finish().await.expect_err("a status");
    assert_eq!(status.message(), "`reply` to call 1, which is answered already");
    // Without a start.
    let mut client = executor.client().await;
    let first = |message| tokio_stream::iter([pb::RunRequest { message }]);
    for message in [Some(reply(1)), Some(Request::Abort(pb::Abort::default())), None] {
        let status = client.run(first(message)).await.map(drop).expect_err("a status");
        assert_eq!(status.code(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn half_closing_is_allowed() {
    let executor = Executor::start(&[]);
    let mut run = executor.run("sleep 50\ndone 1").await;
    run.half_close();
    assert_eq!(run.outcome().await.failure, None);
    let budgets = pb::Budgets { wall_ms: Some(200), ..Default::default() };
    let mut run = executor.start_run(with_budgets("call 0 0 1\nreply", budgets)).await;
    run.half_close();
    assert_eq!(words(&run.outcome().await).0, "wall_ms");
}

#[tokio::test]
async fn bad_requests_name_every_fault() {
    let executor = Executor::start(&["--program-bytes-max", "1000"]);
    let mut bad = start(&"x".repeat(1001));
    bad.namespaces[0].global = "await".to_owned();
    bad.budgets = Some(pb::Budgets { wall_ms: Some(0), heap_bytes: Some(u64::MAX), ..Default::default() });
    bad.run_id = "no uuid".to_owned();
    bad.engine = "spidermonkey".to_owned();
    bad.required_layers = vec!["moat".to_owned()];
    bad.labels.insert(String::new(), String::new());
    let status = Run::begin(&mut executor.client().await, bad).await.map(drop).expect_err("a status");
    assert_eq!(status.code(), Code::InvalidArgument);
    for part in [
        "the program has 1001 bytes; at most 1000 are allowed",
        "`await` is not a usable identifier",
        "budget `wall_ms` is 0; it must be from 1 to 600000",
        "budget `heap_bytes` is",
        "run id `no uuid` is no UUID",
        "engine `spidermonkey` is not known",
        "sandbox layer `moat` is not known",
        "label key",
    ] {
        assert!(status.message().contains(part), "{part}: {}", status.message());
    }
    for (set, part) in [
        ((|start| start.engine = "v8".to_owned()) as fn(&mut pb::StartRun), "engine `v8` is not served here"),
        (|start| start.required_layers = vec!["landlock".to_owned()], "not in force here: `landlock`"),
    ] {
        let mut lacking = start("done");
        set(&mut lacking);
        let status = Run::begin(&mut executor.client().await, lacking).await.map(drop).expect_err("a status");
        assert_eq!((status.code(), status.message().contains(part)), (Code::FailedPrecondition, true));
    }
    let mut wanted = start("done");
    wanted.required_layers = vec!["seccomp".to_owned()];
    assert_eq!(executor.start_run(wanted).await.outcome().await.failure, None);
}

#[tokio::test]
async fn run_ids_are_unique_among_live_runs() {
    let executor = Executor::start(&[]);
    let id = "0190163d-8694-739b-aea5-966c26f8ad91";
    let with_id = |script: &str| pb::StartRun { run_id: id.to_owned(), ..start(script) };
    let mut first = executor.start_run(with_id("log \"x\"\nsleep 60000")).await;
    first.logged(1).await;
    let status =
        Run::begin(&mut executor.client().await, with_id("done")).await.map(drop).expect_err("a status");
    assert!(status.message().contains("is in use"), "{}", status.message());
    first.abort("").await;
    first.outcome().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(executor.start_run(with_id("done")).await.outcome().await.failure, None);
}

#[tokio::test]
async fn no_slot_within_the_queues_bounds_is_resource_exhausted() {
    let options = ["--concurrent-runs-max", "1", "--queued-runs-max", "1", "--queue-ms-max", "200"];
    let executor = Executor::start(&options);
    let mut holder = executor.run("log \"x\"\nsleep 60000").await;
    holder.logged(1).await;
    let mut queued = executor.run("done 1").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut refused = executor.run("done 1").await;
    let status = refused.finish().await.expect_err("a status");
    assert_eq!(
        (status.code(), status.message()),
        (Code::ResourceExhausted, "1 runs wait for a slot already")
    );
    let retry: u64 = status.metadata().get("retry-after-ms").unwrap().to_str().unwrap().parse().unwrap();
    assert!(retry > 0);
    let status = queued.finish().await.expect_err("a status");
    assert_eq!(status.code(), Code::ResourceExhausted, "{}", status.message());
    // One that waits may be aborted, and one may get the slot.
    let mut aborted = executor.run("done 1").await;
    aborted.abort("never mind").await;
    assert_eq!(words(&aborted.outcome().await).1, "never mind");
    let mut lucky = executor.run("done 1").await;
    holder.abort("").await;
    holder.outcome().await;
    let outcome = lucky.outcome().await;
    assert_eq!(outcome.failure, None);
}

#[tokio::test]
async fn a_dead_zygote_is_replaced_and_its_children_live_on_106() {
    let executor = Executor::start(&[]);
    let mut run = executor.run("log \"x\"\nsleep 500\ndone 1").await;
    run.logged(1).await;
    for zygote in zygotes(&executor) {
        signal(zygote, Signal::SIGKILL);
    }
    let began = Instant::now();
    assert_eq!(executor.outcome("done 2").await.failure, None);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(run.outcome().await.value_json.as_deref(), Some(&b"1"[..]));
    settled(&executor).await;
}

#[tokio::test]
async fn a_stopped_zygote_is_killed_and_replaced_107() {
    // The spare may be stopped in the middle of its boot.
    let executor = Executor::start(&["--control-ms", "200", "--boot-ms", "1000"]);
    for zygote in zygotes(&executor) {
        signal(zygote, Signal::SIGSTOP);
    }
    let began = Instant::now();
    assert_eq!(executor.outcome("done 2").await.failure, None);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn forks_that_fail_are_unavailable() {
    for (fork, message) in [
        ("fail", "step `clone` failed with error number 11"),
        ("die", "the zygote is gone"),
        ("silent", "the zygote is gone"),
    ] {
        let executor = Executor::with_boot(&format!("fork={fork}"), &["--control-ms", "100"]);
        let mut run = executor.run("done 1").await;
        let status = run.finish().await.expect_err("a status");
        assert_eq!(status.code(), Code::Unavailable);
        assert!(status.message().ends_with(message), "{}", status.message());
        assert!(!run.started, "nothing ran, and a retry is safe");
    }
}

#[tokio::test]
async fn a_crash_rotates_the_zygote_102() {
    let executor = Executor::start(&[]);
    executor.outcome("done").await;
    let before = zygotes(&executor);
    assert_eq!(before.len(), 2, "one active, one spare");
    executor.outcome("kill 11").await;
    let until = Instant::now() + Duration::from_secs(2);
    loop {
        let after = zygotes(&executor);
        if after.len() == 2 && after.iter().filter(|pid| before.contains(pid)).count() == 1 {
            break;
        }
        assert!(Instant::now() < until, "{before:?} {after:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(executor.outcome("done").await.failure, None);
}

#[tokio::test]
async fn zygotes_rotate_by_runs_and_under_load() {
    let executor = Executor::start(&["--rotate-runs", "3"]);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..8 {
        let mut runs = Vec::new();
        for index in 0..10 {
            runs.push((index, executor.run(&format!("done {index}")).await));
        }
        for (index, mut run) in runs {
            let outcome = run.outcome().await;
            assert_eq!(outcome.value_json.as_deref(), Some(index.to_string().as_bytes()), "{outcome:?}");
        }
        seen.extend(zygotes(&executor));
    }
    assert!(seen.len() > 4, "{} zygotes in 80 runs", seen.len());
    settled(&executor).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(zygotes(&executor).len() <= 2);
}

#[tokio::test]
async fn exec_mode_gives_every_run_an_image_of_its_own() {
    let executor = Executor::start(&["--spawn", "exec"]);
    let mut runs = Vec::new();
    for index in 0..10 {
        runs.push((index, executor.run(&format!("done {index}")).await));
    }
    for (index, mut run) in runs {
        assert_eq!(run.outcome().await.value_json.as_deref(), Some(index.to_string().as_bytes()));
    }
    assert_eq!(executor.failure("kill 11").await.0, "signal");
    let described = executor.client().await.describe(pb::DescribeRequest {}).await.unwrap().into_inner();
    assert_eq!(described.spawn, "exec");
}

#[tokio::test]
async fn the_executors_death_is_everybodys_death_109_110() {
    let mut executor = Executor::start(&[]);
    let mut run = executor.run("log \"x\"\nspin 60000").await;
    run.logged(1).await;
    // The spawner thread is the parent; that worker threads come and go kills nobody.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let children = executor.children();
    assert!(children.len() >= 5, "two zygotes, two that strip, a run");
    executor.child.kill().unwrap();
    executor.child.wait().unwrap();
    assert_gone(&children);
}

#[tokio::test]
async fn sigterm_drains_114() {
    let mut executor = Executor::start(&["--drain-grace-ms", "300"]);
    let mut client = executor.client().await;
    let mut finishes = executor.run("log \"x\"\nsleep 150\ndone 1").await;
    let mut stays = executor.run("log \"x\"\nspin 60000").await;
    finishes.logged(1).await;
    stays.logged(1).await;
    let children = executor.children();
    executor.signal(Signal::SIGTERM);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let status = Run::begin(&mut client, start("done")).await.map(drop).expect_err("no new runs");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(finishes.outcome().await.value_json.as_deref(), Some(&b"1"[..]));
    let (detail, message) = words(&stays.outcome().await);
    assert_eq!((detail.as_str(), message.as_str()), ("drain", "runtime disposed"));
    assert_eq!(executor.wait(Duration::from_secs(4)), Some(0));
    assert_gone(&children);
    assert!(!executor.folder.path().join("x.sock").exists());
}

#[tokio::test]
async fn a_second_signal_ends_the_grace() {
    let mut executor = Executor::start(&["--drain-grace-ms", "60000"]);
    let mut stays = executor.run("log \"x\"\nspin 60000").await;
    stays.logged(1).await;
    executor.signal(Signal::SIGTERM);
    tokio::time::sleep(Duration::from_millis(100)).await;
    executor.signal(Signal::SIGINT);
    assert_eq!(words(&stays.outcome().await).0, "drain");
    assert_eq!(executor.wait(Duration::from_secs(4)), Some(0));
}

#[tokio::test]
async fn a_watched_parents_end_is_the_executors() {
    let mut executor = Executor::start(&["--parent-watch"]);
    let mut run = executor.run("log \"x\"\nspin 60000").await;
    run.logged(1).await;
    drop(executor.child.stdin.take());
    assert_eq!(words(&run.outcome().await).0, "drain");
    assert_eq!(executor.wait(Duration::from_secs(4)), Some(0));
}

#[tokio::test]
async fn what_cannot_serve_does_not_start_116_117() {
    for (boot, options, code, words) in [
        ("boot=fault", vec![], 69, "step `seccomp` failed with error number 22"),
        ("boot=garbage", vec![], 69, "engine `quickjs` does not come up"),
        ("boot=exit", vec![], 69, "engine `quickjs` does not come up"),
        ("boot=silent", vec!["--boot-ms", "200"], 69, "no answer within 200ms"),
        ("boot=version", vec![], 69, "the runner speaks wire version 3"),
        ("engine=v8", vec![], 69, "the runner is `v8`, configured as `quickjs`"),
        ("missing=seccomp", vec![], 69, "required layers not in force: `seccomp` (a fake has none)"),
        ("", vec!["--required-layers", "seccomp,landlock"], 69, "`landlock`"),
        ("", vec!["--compute-ms", "0"], 64, "`compute_ms` is 0"),
        ("", vec!["--no-such-option"], 64, "--no-such-option"),
        ("", vec!["--config", "/nonexistent.toml"], 64, "cannot read `/nonexistent.toml`"),
    ] {
        let folder = common::folder(boot);
        let output =
            common::command(folder.path(), &options).stderr(std::process::Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{boot} {options:?}: {stderr}");
        assert!(stderr.contains(words), "{words}: {stderr}");
        assert!(output.stdout.is_empty(), "it never listened");
    }
    // Without the requirement the missing layer is only reported.
    let executor = Executor::with_boot("missing=seccomp", &["--required-layers", "rlimits"]);
    let described = executor.client().await.describe(pb::DescribeRequest {}).await.unwrap().into_inner();
    let layer = described.layers.iter().find(|layer| layer.name == "seccomp").unwrap();
    assert!(!layer.in_force && layer.reason == "a fake has none");
    assert_eq!(executor.outcome("done").await.failure, None);
}

#[tokio::test]
async fn churn_leaks_nothing_80_115() {
    let executor = Executor::start(&["--concurrent-runs-max", "16"]);
    let warm = |executor: &Executor| (executor.descriptors(), resident_bytes(executor.pid()));
    executor.outcome("done").await;
    let mut client = executor.client().await;
    let mut baseline = None;
    for round in 0..8 {
        for script in ["done 1", "exit 3", "call 0 0 1\nreply\ndone", "log \"x\"\nthrow 0 0 E \"y\""] {
            let mut runs = Vec::new();
            for _ in 0..16 {
                runs.push(Run::begin(&mut client, start(script)).await.unwrap());
            }
            for mut run in runs {
                run.outcome().await;
            }
        }
        if round == 2 {
            baseline = Some(warm(&executor));
        }
    }
    settled(&executor).await;
    let (descriptors, bytes) = baseline.unwrap();
    let (after, after_bytes) = warm(&executor);
    assert!(after <= descriptors + 4, "{after} descriptors after {descriptors}");
    assert!(after_bytes < bytes + (16 << 20), "{after_bytes} bytes after {bytes}");
    assert!(executor.children().len() <= 4, "no zombies");
}

#[tokio::test]
async fn large_values_pass_both_ways() {
    let executor = Executor::start(&[]);
    let value = format!("\"{}\"", "x".repeat(10 << 20));
    let mut run = executor.run("call 0 0 1\nquiet\nblob 10485760").await;
    run.call().await;
    run.reply(1, &value).await;
    let outcome = run.outcome().await;
    assert_eq!(outcome.value_json.map(|value| value.len()), Some(10 << 20));
    // A reply over the limit fails the call and not the run.
    let executor = Executor::start(&["--frame-bytes-max", "100000"]);
    let mut run = executor.run("call 0 0 1\nreply\ndone 1").await;
    run.call().await;
    run.reply(1, &format!("\"{}\"", "x".repeat(100_000))).await;
    let outcome = run.outcome().await;
    assert_eq!(
        outcome.logs,
        ["1 error binding resolution of 100002 bytes exceeds the limit of 100000 bytes"]
    );
}

#[tokio::test]
async fn a_caller_that_takes_nothing_is_bounded_by_the_wall() {
    let executor = Executor::start(&[]);
    let budgets = pb::Budgets { wall_ms: Some(500), ..Default::default() };
    let line = "x".repeat(1000);
    let mut run = executor.start_run(with_budgets(&format!("repeat 1000000 log \"{line}\""), budgets)).await;
    let before = resident_bytes(executor.pid());
    tokio::time::sleep(Duration::from_millis(400)).await;
    let grown = resident_bytes(executor.pid()).saturating_sub(before);
    assert!(grown < 64 << 20, "{grown}");
    assert!(matches!(words(&run.outcome().await).0.as_str(), "wall_ms" | "output_bytes"));
    settled(&executor).await;
}
