//! Who burns the CPU time of a run: the caller, the executor, the zygotes, the run's process. Reads `/proc` only.
//!
//! Unlike elapsed time it hardly depends on what else the machine does.

use std::time::Duration;

use codemode_tests::executor::Executor;
use codemode_tests::process;

/// CPU time used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    caller: Duration,
    executor: Duration,
    /// Zygotes, the stripping process and runs; those that were reaped too.
    children: Duration,
    /// Times that a thread of the executor gave up its core.
    switches: u64,
}

/// CPU time of a live process.
fn of_process(pid: i32) -> Duration {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Duration::ZERO };
    let nanos = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// CPU time of a process's reaped children.
fn of_reaped(pid: i32) -> Duration {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let tail = stat.rsplit_once(')').map_or("", |(_, tail)| tail);
    let ticks = tail.split_whitespace().skip(13).take(2).filter_map(|word| word.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 1000 / TICKS_PER_SECOND)
}

fn switches(pid: i32) -> u64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let counts = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    });
    counts.sum()
}

impl Cpu {
    /// So far; no run may live, or what it used is counted with the zygotes.
    pub(crate) fn so_far(executor: &Executor) -> Self {
        let pid = executor.pid();
        let alive: Duration = process::descendants(pid).iter().map(|child| of_process(child.pid)).sum();
        Self {
            caller: of_process(i32::try_from(std::process::id()).unwrap_or(0)),
            executor: of_process(pid),
            children: of_reaped(pid) + alive,
            switches: switches(pid),
        }
    }

    /// Microseconds a run since `before`: `[caller, executor, zygotes and stripping, run]`, and the executor's context
    /// switches a run. `run_us` is what the runs' own usage comes to.
    pub(crate) fn per_run(self, before: Self, runs: usize, run_us: u64) -> ([f64; 4], f64) {
        let runs = runs.max(1) as f64;
        let micros = |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64() * 1e6;
        let of_runs = run_us as f64;
        let children = micros(self.children, before.children);
        let parts = [
            micros(self.caller, before.caller),
            micros(self.executor, before.executor),
            (children - of_runs).max(0.0),
            of_runs,
        ];
        (parts.map(|part| part / runs), self.switches.saturating_sub(before.switches) as f64 / runs)
    }
}
