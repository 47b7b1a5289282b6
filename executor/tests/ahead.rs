//! What is made ahead of runs, over the fake runner: what may still be used after a crash, a rotation, a death, a stop.

#![allow(clippy::unwrap_used, reason = "a test that fails loudly")]

mod common;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use codemode_proto::executor_v1 as pb;
use common::{Executor, start, words};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long something that takes milliseconds may take on a busy machine.
const SOON: Duration = Duration::from_secs(20);

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

fn in_role(executor: &Executor, role: &str) -> Vec<u32> {
    let ending = format!("\0{role}\0");
    let has = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().ends_with(ending.as_bytes())
    };
    executor.children().into_iter().filter(has).collect()
}

/// Zygotes: they alone hold a socket as descriptor 0.
fn zygotes(executor: &Executor) -> BTreeSet<u32> {
    let holds = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/fd/0"))
            .is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    };
    in_role(executor, "zygote").into_iter().filter(holds).collect()
}

fn ahead(executor: &Executor) -> BTreeSet<u32> {
    let zygotes = zygotes(executor);
    in_role(executor, "zygote").into_iter().filter(|pid| !zygotes.contains(pid)).collect()
}

/// Waits until `what` says yes, and answers whether it did.
async fn eventually(mut what: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + SOON;
    while Instant::now() < until {
        if what() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    what()
}

/// An executor that keeps one process ahead, and that process.
async fn with_one_ahead(options: &[&str]) -> (Executor, u32) {
    let executor = Executor::start(&[&["--processes-ahead", "1"], options].concat());
    // Zygotes are two when all is at rest; until then a process just made may be taken for one.
    assert!(eventually(|| zygotes(&executor).len() == 2 && ahead(&executor).len() == 1).await);
    let one = *ahead(&executor).first().unwrap();
    (executor, one)
}

/// How zygotes that boot from now on behave.
fn set_boot(executor: &Executor, boot: &str) {
    std::fs::write(executor.folder.path().join("codemode-runner-quickjs.boot"), boot).unwrap();
}

#[tokio::test]
async fn nothing_is_made_with_a_layout_that_a_crash_may_have_shown() {
    let (executor, first) = with_one_ahead(&["--boot-ms", "60000"]).await;
    // No spare, and none that boots: the zygote of the crash has to serve on.
    set_boot(&executor, "boot=silent");
    let mut spares = zygotes(&executor);
    let active = *spares.first().unwrap();
    spares.remove(&active);
    for spare in &spares {
        signal(*spare, Signal::SIGKILL);
    }
    let another = || zygotes(&executor).len() == 2 && zygotes(&executor).is_disjoint(&spares);
    assert!(eventually(another).await, "another one boots, and will not come up");
    let (kind, _) = words(&executor.outcome("kill 11").await);
    assert_eq!(kind, "signal");
    assert!(eventually(|| ahead(&executor).is_empty()).await, "{first} may know what the crash showed");
    // Runs are served all the same, by processes made for them.
    for _ in 0..3 {
        assert_eq!(executor.outcome("done 1").await.failure, None);
    }
    assert!(ahead(&executor).is_empty(), "{:?}", ahead(&executor));
    set_boot(&executor, "");
    for stuck in zygotes(&executor).into_iter().filter(|pid| *pid != active) {
        signal(stuck, Signal::SIGKILL);
    }
    assert!(eventually(|| ahead(&executor).len() == 1 && !zygotes(&executor).contains(&active)).await);
}

#[tokio::test]
async fn what_a_killed_zygote_made_is_not_used() {
    let (executor, first) = with_one_ahead(&[]).await;
    for zygote in zygotes(&executor) {
        signal(zygote, Signal::SIGKILL);
    }
    assert!(eventually(|| ahead(&executor).len() == 1 && !ahead(&executor).contains(&first)).await);
    assert_eq!(executor.outcome("done 1").await.failure, None);
}

/// CPU time that a process has used, clock ticks of a hundredth of a second.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_ascii_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test]
async fn without_a_zygote_the_executor_waits_and_does_not_spin() {
    let (executor, _) = with_one_ahead(&["--boot-ms", "60000"]).await;
    set_boot(&executor, "boot=silent");
    let before = zygotes(&executor);
    for zygote in &before {
        signal(*zygote, Signal::SIGKILL);
    }
    assert!(eventually(|| ahead(&executor).is_empty() && zygotes(&executor).is_disjoint(&before)).await);
    let (began, used) = (Instant::now(), cpu_ticks(executor.pid()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let used = (cpu_ticks(executor.pid()) - used) as f64 / 100.0;
    assert!(used < began.elapsed().as_secs_f64() / 4.0, "{used} s of CPU time for nothing");
}

#[tokio::test]
async fn a_crash_without_a_zygote_that_serves_ends_what_was_made_ahead() {
    let (executor, first) = with_one_ahead(&["--boot-ms", "60000"]).await;
    let mut run = executor.run("log \"x\"\nsleep 300\nkill 11").await;
    run.logged(1).await;
    assert!(eventually(|| ahead(&executor).len() == 2).await, "the run's, and the next one");
    set_boot(&executor, "boot=silent");
    for zygote in zygotes(&executor) {
        signal(zygote, Signal::SIGKILL);
    }
    assert_eq!(words(&run.outcome().await).0, "signal");
    assert!(eventually(|| ahead(&executor).is_empty()).await, "{first}: {:?}", ahead(&executor));
}

#[tokio::test]
async fn a_zygote_that_cannot_fork_is_not_booted_again_and_again() {
    let executor = Executor::with_boot("fork=die", &["--processes-ahead", "1"]);
    let (began, mut seen) = (Instant::now(), BTreeSet::new());
    while began.elapsed() < Duration::from_secs(3) {
        seen.extend(in_role(&executor, "zygote"));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Pauses double from 50 ms: in three seconds there are six, and a few boots before the first.
    assert!(seen.len() < 30, "{} zygotes in {:?}", seen.len(), began.elapsed());
}

#[tokio::test]
async fn a_timed_rotation_takes_one_zygote_and_renews_what_is_ahead() {
    let (executor, first) = with_one_ahead(&["--rotate-ms", "1000"]).await;
    let began = Instant::now();
    let (mut seen, mut made, mut last) = (zygotes(&executor), BTreeSet::from([first]), BTreeSet::new());
    while made.difference(&seen).count() < 4 && began.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = zygotes(&executor);
        // What has just been forked looks like a zygote for a moment.
        seen.extend(now.intersection(&last));
        last = now;
        made.extend(ahead(&executor));
    }
    assert!(made.difference(&seen).count() >= 4, "what was made ahead goes with its zygote: {made:?}");
    let rotations = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    assert!(seen.len() <= 2 + rotations, "{rotations} rotations at most took {} zygotes", seen.len());
}

#[tokio::test]
async fn what_dies_unused_is_reaped_and_replaced_without_a_run() {
    let (executor, first) = with_one_ahead(&[]).await;
    signal(first, Signal::SIGKILL);
    let path = format!("/proc/{first}");
    assert!(eventually(|| !std::path::Path::new(&path).exists()).await, "it stays a zombie");
    assert!(eventually(|| ahead(&executor).len() == 1).await);
}

#[tokio::test]
async fn what_is_stopped_is_not_handed_out() {
    let (executor, first) = with_one_ahead(&[]).await;
    signal(first, Signal::SIGSTOP);
    let stopped =
        || std::fs::read_to_string(format!("/proc/{first}/stat")).is_ok_and(|stat| stat.contains(") T "));
    assert!(eventually(stopped).await);
    assert_eq!(executor.outcome("done 1").await.failure, None);
    let path = format!("/proc/{first}");
    assert!(eventually(|| !std::path::Path::new(&path).exists()).await);
}

#[tokio::test]
async fn a_stopped_stripping_process_is_replaced_long_before_a_programs_time_is_over() {
    let executor = Executor::start(&["--strip-ms", "60000"]);
    let before = in_role(&executor, "strip");
    for process in &before {
        signal(*process, Signal::SIGSTOP);
    }
    let began = Instant::now();
    assert_eq!(executor.outcome("done 1").await.failure, None);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let long = format!("done 1\n#{}", "x".repeat(64 * 1024));
    assert_eq!(executor.start_run(start(&long)).await.outcome().await.failure, None);
    assert!(in_role(&executor, "strip").iter().all(|pid| !before.contains(pid)));
}

#[tokio::test]
async fn in_exec_mode_processes_are_booted_ahead() {
    for (wanted, booted) in [("0", 1), ("1", 1), ("3", 3)] {
        let executor = Executor::start(&["--spawn", "exec", "--processes-ahead", wanted]);
        let rests = || in_role(&executor, "once").len() == booted;
        for runs in [0, 5] {
            for _ in 0..runs {
                assert_eq!(executor.outcome("done 1").await.failure, None);
            }
            assert!(eventually(rests).await, "{wanted}: {:?}", in_role(&executor, "once"));
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert!(rests(), "{wanted} and no more: {:?}", in_role(&executor, "once"));
        }
    }
}

#[tokio::test]
async fn in_exec_mode_runs_wait_for_their_turn_as_long_as_boots_go_on() {
    let options = ["--spawn", "exec", "--boot-ms", "1000", "--concurrent-runs-max", "64"];
    let executor = Executor::with_boot("boot_ms=100", &options);
    let mut runs = Vec::new();
    for _ in 0..48 {
        runs.push(executor.run("done 1").await);
    }
    // On two cores they take two seconds and more.
    for mut run in runs {
        assert_eq!(run.outcome().await.failure, None);
    }
}

#[tokio::test]
async fn in_exec_mode_a_run_that_waits_can_be_ended() {
    let executor = Executor::start(&["--spawn", "exec", "--boot-ms", "60000"]);
    set_boot(&executor, "boot=silent");
    assert_eq!(executor.outcome("done 1").await.failure, None);
    let mut aborted = executor.run("done 1").await;
    aborted.abort("enough").await;
    assert_eq!(words(&aborted.outcome().await).1, "enough");
    let wall = pb::Budgets { wall_ms: Some(200), ..pb::Budgets::default() };
    let late = pb::StartRun { budgets: Some(wall), ..start("done 1") };
    assert_eq!(words(&executor.start_run(late).await.outcome().await).0, "wall_ms");
}

#[tokio::test]
async fn a_stopped_zygote_holds_up_neither_rotation_nor_the_end() {
    let options = ["--control-ms", "300", "--rotate-ms", "1000", "--processes-ahead", "0"];
    let mut executor = Executor::start(&options);
    assert!(eventually(|| zygotes(&executor).len() == 2).await);
    let stopped = zygotes(&executor);
    for zygote in &stopped {
        signal(*zygote, Signal::SIGSTOP);
    }
    assert!(eventually(|| zygotes(&executor).is_disjoint(&stopped)).await, "a retired one is killed");
    assert!(eventually(|| zygotes(&executor).len() == 2).await);
    for zygote in zygotes(&executor) {
        signal(zygote, Signal::SIGSTOP);
    }
    executor.signal(Signal::SIGTERM);
    assert_eq!(executor.wait(SOON), Some(0));
}

#[tokio::test]
async fn a_boot_that_hangs_does_not_hold_up_the_end() {
    let mut executor = Executor::start(&["--boot-ms", "600000"]);
    assert!(eventually(|| zygotes(&executor).len() == 2).await);
    set_boot(&executor, "boot=silent");
    for zygote in zygotes(&executor) {
        signal(zygote, Signal::SIGKILL);
    }
    assert!(eventually(|| zygotes(&executor).len() == 1).await);
    executor.signal(Signal::SIGTERM);
    assert_eq!(executor.wait(SOON), Some(0));
}
