//! Processes made ahead of their runs: each is used once, by a run with its limits, and none outlives what it was made
//! under. Real binaries, every engine that they have.

use std::collections::BTreeSet;
use std::time::Duration;

use codemode_proto::executor_v1 as v1;
use codemode_tests::executor::Executor;
use codemode_tests::live::{LiveRun, start};
use codemode_tests::process::{self, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long something that takes milliseconds may take on a busy machine.
const SOON: Duration = Duration::from_secs(20);

async fn executor(configuration: &str) -> Executor {
    let table = toml::from_str(configuration).expect("a configuration");
    Executor::start(&table).await.expect("an executor starts")
}

/// How many system call filters hold a zygote or a process that it made; `None` for others.
fn filters(pid: i32) -> Option<u32> {
    let arguments = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?;
    (arguments.contains("zygote") || arguments.contains("once")).then(|| line.trim().parse().ok())?
}

/// Processes booted for one run.
fn booted(executor: &Executor) -> usize {
    let is_once = |pid: i32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|arguments| arguments.ends_with(b"\0once\0"))
    };
    process::descendants(executor.pid()).iter().filter(|child| is_once(child.pid)).count()
}

/// Processes for runs, which have a filter more than zygotes have.
fn for_runs(executor: &Executor) -> BTreeSet<i32> {
    let children = process::descendants(executor.pid());
    let all: Vec<_> = children
        .iter()
        .filter(|child| !child.is_zombie())
        .filter_map(|child| Some((child.pid, filters(child.pid)?)))
        .collect();
    let most = all.iter().map(|(_, filters)| *filters).max().unwrap_or_default();
    let fewest = all.iter().map(|(_, filters)| *filters).min().unwrap_or_default();
    let locked = |filters: u32| filters == most && most > fewest;
    all.into_iter().filter(|(_, filters)| locked(*filters)).map(|(pid, _)| pid).collect()
}

/// Waits until that many are made ahead of any run, and lists them.
async fn made_ahead(executor: &Executor, wanted: usize) -> BTreeSet<i32> {
    let made = eventually(SOON, || for_runs(executor).len() == wanted).await;
    assert!(made, "{wanted} wanted: {:?}\n{}", for_runs(executor), executor.log());
    for_runs(executor)
}

async fn outcome(executor: &Executor, start: v1::StartRun) -> v1::Outcome {
    let mut client = executor.client().await.expect("a client");
    let mut run = LiveRun::start(&mut client, start).await.expect("the run starts");
    run.outcome().await.expect("an outcome")
}

fn program(text: &str, engine: &str) -> v1::StartRun {
    v1::StartRun { engine: engine.to_owned(), ..start(text, &[]) }
}

async fn only(engine: &str, more: &str) -> Executor {
    executor(&format!("engines = [\"{engine}\"]\nprocesses_ahead = 2\n{more}")).await
}

async fn engines() -> Vec<String> {
    executor("").await.engines().await.expect("engines")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_serves_one_run_and_is_replaced() {
    for engine in engines().await {
        let executor = only(&engine, "").await;
        let mut seen = made_ahead(&executor, 2).await;
        for _ in 0..3 {
            let before = made_ahead(&executor, 2).await;
            let done = outcome(&executor, program("return Math.random()", &engine)).await;
            assert_eq!(done.failure, None);
            let after = made_ahead(&executor, 2).await;
            assert_eq!(before.difference(&after).count(), 1, "{before:?} {after:?}");
            seen.extend(after);
        }
        assert_eq!(seen.len(), 5, "three runs used three of five: {seen:?}");
    }
}

/// What forks share must not show: seeds, ids, clocks.
#[tokio::test(flavor = "multi_thread")]
async fn what_they_did_while_they_waited_does_not_show() {
    const PROBE: &str = "const last = [RegExp.lastMatch, RegExp.input, RegExp['$1']].join('');
        return [String(Math.random()), crypto.randomUUID(), performance.now() < 2000,
        Math.abs(performance.timeOrigin - Date.now()) < 2000, setTimeout(() => {}, 1) === 1,
        last, Object.keys(globalThis).sort().join()]";
    for engine in engines().await {
        let made = only(&engine, "").await;
        let fresh = executor(&format!("engines = [\"{engine}\"]\nprocesses_ahead = 0")).await;
        made_ahead(&made, 2).await;
        // Long enough for them to have warmed up, and for their clocks to be wrong if they began then.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let [mut randoms, mut ids, mut worlds] = [(); 3].map(|()| BTreeSet::new());
        for executor in [&made, &made, &made, &fresh] {
            let done = outcome(executor, program(PROBE, &engine)).await;
            let value: serde_json::Value =
                serde_json::from_slice(&done.value_json.expect("a value")).expect("JSON");
            let [random, id, world @ ..] = value.as_array().expect("a list").as_slice() else {
                panic!("{value}")
            };
            let expected = serde_json::json!([true, true, true, ""]);
            assert_eq!(world[..4], expected.as_array().expect("a list")[..], "{engine}");
            randoms.insert(random.to_string());
            ids.insert(id.to_string());
            worlds.insert(world[4].to_string());
        }
        assert_eq!(
            (randoms.len(), ids.len(), worlds.len()),
            (4, 4, 1),
            "{engine}: {randoms:?} {ids:?} {worlds:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_other_limits_gets_a_process_of_its_own() {
    for engine in engines().await {
        let executor = only(&engine, "").await;
        let usual = made_ahead(&executor, 2).await;
        let heap = v1::Budgets { heap_bytes: Some(64 << 20), ..v1::Budgets::default() };
        let tight = || v1::StartRun { budgets: Some(heap), ..program("return 1", &engine) };
        assert_eq!(outcome(&executor, tight()).await.failure, None);
        assert_eq!(made_ahead(&executor, 2).await, usual, "the first such run changes nothing");
        assert_eq!(outcome(&executor, tight()).await.failure, None);
        let followed =
            eventually(SOON, || for_runs(&executor).len() == 2 && for_runs(&executor).is_disjoint(&usual))
                .await;
        assert!(followed, "they follow limits that stay");
        let tightened = made_ahead(&executor, 2).await;
        let big = v1::StartRun {
            budgets: Some(heap),
            ..program("const kept = []; for (;;) kept.push(new Array(1e5).fill(kept.length))", &engine)
        };
        let failure = outcome(&executor, big).await.failure.expect("out of memory");
        assert_eq!((failure.detail.as_str(), failure.limit), ("heap_bytes", Some(64 << 20)), "{failure:?}");
        assert!(!for_runs(&executor).is_superset(&tightened), "it was one of those made for it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_killed_costs_no_run() {
    for engine in engines().await {
        let executor = only(&engine, "").await;
        let made = made_ahead(&executor, 2).await;
        let known: Vec<_> = made.iter().filter_map(|pid| process::process(*pid)).collect();
        for pid in made {
            kill(Pid::from_raw(pid), Signal::SIGKILL).expect("killed");
        }
        // A run that takes one in the moment before it ends is told so.
        assert!(eventually(SOON, || !known.iter().any(process::is_alive)).await);
        for _ in 0..3 {
            assert_eq!(outcome(&executor, program("return 1", &engine)).await.failure, None);
        }
        made_ahead(&executor, 2).await;
    }
}

/// A crash may have been an attack that learnt addresses: nothing with the same layout is used after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_ends_them_all() {
    for engine in engines().await {
        let executor = only(&engine, "").await;
        let before = made_ahead(&executor, 2).await;
        let mut client = executor.client().await.expect("a client");
        let spins = program("console.log('on'); for (;;) {}", &engine);
        let mut run = LiveRun::start(&mut client, spins).await.expect("the run starts");
        run.wait_for_log("on").await.expect("it runs");
        // The run's process is the one of them that is not idle.
        let spinning = before
            .iter()
            .copied()
            .find(|pid| process::process(*pid).is_some_and(|process| process.state == 'R'));
        kill(Pid::from_raw(spinning.expect("it spins")), Signal::SIGSEGV).expect("sent");
        let failure = run.outcome().await.expect("an outcome").failure.expect("a crash");
        assert_eq!(failure.detail, "signal");
        let replaced = eventually(SOON, || {
            let now = for_runs(&executor);
            now.len() == 2 && now.is_disjoint(&before)
        });
        assert!(replaced.await, "{before:?} and {:?}", for_runs(&executor));
    }
}

/// With a zygote for each run, what it made ahead stays although it is replaced at once.
#[tokio::test(flavor = "multi_thread")]
async fn rotation_at_every_run_comes_to_rest() {
    for engine in engines().await {
        let executor = only(&engine, "rotate_runs = 1").await;
        for _ in 0..3 {
            assert_eq!(outcome(&executor, program("return 1", &engine)).await.failure, None);
        }
        let rest = made_ahead(&executor, 2).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(made_ahead(&executor, 2).await, rest, "nothing is made that nobody takes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_end_with_the_executor() {
    for (signal, spawn) in [(Signal::SIGTERM, "fork"), (Signal::SIGKILL, "fork"), (Signal::SIGTERM, "exec")] {
        let mut executor = executor(&format!("processes_ahead = 2\nspawn = \"{spawn}\"")).await;
        let made = match spawn {
            "exec" => eventually(SOON, || booted(&executor) >= 2).await,
            _ => eventually(SOON, || for_runs(&executor).len() >= 2).await,
        };
        assert!(made, "{}", executor.log());
        let family = process::descendants(executor.pid());
        executor.signal(signal);
        assert!(executor.ended(SOON).await.is_some());
        let clean = eventually(SOON, || !family.iter().any(process::is_alive)).await;
        assert!(
            clean,
            "{signal}, {spawn}: {:?}",
            family.iter().filter(|each| process::is_alive(each)).collect::<Vec<_>>()
        );
    }
}
