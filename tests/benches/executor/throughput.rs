//! Many runs in flight: how many a second, and what is left behind after very many.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use codemode_tests::executor::Executor;
use codemode_tests::process;
use serde_json::json;
use tokio::task::JoinSet;

use crate::Setting;
use crate::cpu::Cpu;
use crate::report::{Report, Target};
use crate::samples::{Samples, slope};
use crate::timed;

const IN_FLIGHT: u32 = 64;
const PROGRAM: &str = "return 1+1";
/// Looks at the executor in a soak.
const SAMPLES: u32 = 50;

/// What an executor holds while no run lives.
#[derive(Clone, Debug)]
struct Held {
    runs: u32,
    descriptors: Option<usize>,
    threads: u64,
    children: usize,
    zombies: usize,
    resident: u64,
    /// By process: number and start.
    zygotes: BTreeMap<(i32, u64), u64>,
}

fn threads(pid: i32) -> u64 {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, |tasks| tasks.count() as u64)
}

impl Held {
    fn look(executor: &Executor, runs: u32) -> Self {
        let pid = executor.pid();
        let children = process::descendants(pid);
        let resident = |pid| process::resident_bytes(pid).unwrap_or(0);
        Self {
            runs,
            descriptors: process::open_descriptors(pid),
            threads: threads(pid),
            zombies: children.iter().filter(|child| child.is_zombie()).count(),
            children: children.len(),
            resident: resident(pid),
            zygotes: children.iter().map(|child| ((child.pid, child.started), resident(child.pid))).collect(),
        }
    }

    /// Waits until no run lives and what rotates has rotated.
    async fn settled(setting: &Setting<'_>, executor: &Executor, runs: u32) -> Self {
        setting.settled(executor).await;
        Self::look(executor, runs)
    }

    fn line(&self) -> String {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let descriptors =
            self.descriptors.map_or_else(|| "not readable".to_owned(), |count| count.to_string());
        let zygotes: u64 = self.zygotes.values().sum();
        format!(
            "  after {:>7} runs: {:>3} descriptors, {} threads, {} children, {} zombies, {:.1} MiB executor, {:.1} MiB zygotes",
            self.runs,
            descriptors,
            self.threads,
            self.children,
            self.zombies,
            mib(self.resident),
            mib(zygotes),
        )
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "runs": self.runs,
            "descriptors": self.descriptors,
            "threads": self.threads,
            "children": self.children,
            "zombies": self.zombies,
            "executor_resident_bytes": self.resident,
            "zygotes_resident_bytes": self.zygotes.values().sum::<u64>(),
        })
    }
}

/// What came of many runs.
#[derive(Debug, Default)]
struct Tally {
    walls: Samples,
    /// CPU time that the runs say they used.
    cpu_us: u64,
    failures: u32,
    first_failure: Option<String>,
}

impl Tally {
    fn add(&mut self, result: anyhow::Result<timed::Timed>) {
        match result {
            Ok(timed) => {
                self.walls.push(timed.wall);
                self.cpu_us += timed.usage().cpu_us;
            }
            Err(error) => {
                self.failures += 1;
                self.first_failure.get_or_insert_with(|| format!("{error:#}"));
            }
        }
    }
}

/// Keeps runs in flight, each of the engines in turn, as long as `more` says, which is asked before each.
async fn keep_in_flight(
    executor: &Executor,
    engines: &[String],
    mut more: impl FnMut() -> bool,
) -> anyhow::Result<Tally> {
    let client = executor.client().await?;
    let mut flying = JoinSet::new();
    let mut tally = Tally::default();
    let mut turns = engines.iter().cycle();
    loop {
        while flying.len() < IN_FLIGHT as usize && more() {
            let (mut client, engine) = (client.clone(), turns.next().cloned().unwrap_or_default());
            flying.spawn(async move { timed::plain(&mut client, &engine, PROGRAM).await });
        }
        let Some(landed) = flying.join_next().await else { return Ok(tally) };
        tally.add(landed?);
    }
}

pub(crate) async fn measure(setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    let length = Duration::from_secs(u64::from(setting.options.times(10)) * setting.options.seconds / 10);
    let length = length.max(Duration::from_secs(1));
    report
        .section("throughput", &format!("{IN_FLIGHT} trivial runs in flight for {length:?}, one connection"));
    for engine in &setting.engines {
        let executor = Executor::start(&toml::Table::new()).await?;
        let engines = std::slice::from_ref(engine);
        let mut left = IN_FLIGHT;
        let once = || left.checked_sub(1).map(|less| left = less).is_some();
        keep_in_flight(&executor, engines, once).await?;
        let before = Held::settled(setting, &executor, IN_FLIGHT).await;
        let cpu = Cpu::so_far(&executor);
        let began = Instant::now();
        let tally = keep_in_flight(&executor, engines, || began.elapsed() < length).await?;
        let elapsed = began.elapsed().as_secs_f64();
        let runs = u32::try_from(tally.walls.len()).unwrap_or(u32::MAX);
        report.samples(&format!("{engine}, caller to outcome"), &tally.walls);
        report.target(
            &format!("{engine}, sustained"),
            f64::from(runs) / elapsed,
            "runs/s",
            Target::AtLeast(500.0),
        );
        report.target(&format!("{engine}, failures"), f64::from(tally.failures), "runs", Target::Below(1.0));
        let after = Held::settled(setting, &executor, IN_FLIGHT + runs).await;
        cpu_of_a_run(engine, report, Cpu::so_far(&executor).per_run(cpu, tally.walls.len(), tally.cpu_us));
        for held in [&before, &after] {
            report.line(held.line());
        }
        report.note(&format!("{engine}, held"), vec![before.json(), after.json()]);
        ensure!(tally.failures == 0, "{} runs failed; the first: {:?}", tally.failures, tally.first_failure);
    }
    Ok(())
}

fn cpu_of_a_run(engine: &str, report: &mut Report, (parts, switches): ([f64; 4], f64)) {
    let [caller, executor, zygotes, run] = parts;
    let sum: f64 = parts.iter().sum();
    report.line(format!(
        "  {engine}, CPU time of a run: {sum:.0} us = caller {caller:.0} + executor {executor:.0} + zygotes {zygotes:.0} + \
         its process {run:.0}; the executor slept {switches:.1} times"
    ));
    report.note(
        &format!("{engine}, CPU time of a run"),
        json!({"caller_us": caller, "executor_us": executor, "zygotes_us": zygotes, "run_us": run, "switches": switches}),
    );
}

pub(crate) async fn soak(setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    let runs = setting.options.soak_runs().max(SAMPLES);
    report.section("soak", &format!("{runs} runs, {IN_FLIGHT} in flight, the engines in turn"));
    // Every zygote is looked at often enough to see whether it grows, and there are rotations.
    let mut configuration = toml::Table::new();
    configuration.insert("rotate_runs".to_owned(), i64::from(runs / 6).max(1).into());
    let executor = Executor::start(&configuration).await?;
    let mut held = Vec::new();
    let mut done = 0;
    let began = Instant::now();
    for sample in 1..=SAMPLES {
        let mut left = runs / SAMPLES;
        let once = || left.checked_sub(1).map(|less| left = less).is_some();
        let tally = keep_in_flight(&executor, &setting.engines, once).await?;
        ensure!(tally.failures == 0, "{} runs failed; the first: {:?}", tally.failures, tally.first_failure);
        done += runs / SAMPLES;
        let look = Held::settled(setting, &executor, done).await;
        if sample % (SAMPLES / 10) == 0 || sample == 1 {
            report.line(look.line());
        }
        held.push(look);
    }
    report.figure("sustained", f64::from(done) / began.elapsed().as_secs_f64(), "runs/s");
    flatness(&held, report);
    report.note("held", held.iter().map(Held::json).collect::<Vec<_>>());
    Ok(())
}

/// Growth per 1000 runs. The first fifth is left out: buffers grow to their size, caches fill.
fn flatness(held: &[Held], report: &mut Report) {
    let steady = &held[held.len() / 5..];
    let per_thousand = |of: &dyn Fn(&Held) -> f64| {
        let points: Vec<_> = steady.iter().map(|held| (f64::from(held.runs) / 1e3, of(held))).collect();
        slope(&points)
    };
    let spread = |of: &dyn Fn(&Held) -> f64| {
        let values: Vec<f64> = steady.iter().map(of).collect();
        values.iter().copied().fold(f64::MIN, f64::max) - values.iter().copied().fold(f64::MAX, f64::min)
    };
    let descriptors = |held: &Held| held.descriptors.unwrap_or(0) as f64;
    report.target("descriptors, per 1000 runs", per_thousand(&descriptors), "", Target::Below(0.05));
    report.figure("descriptors, most less fewest", spread(&descriptors), "");
    report.target(
        "threads, per 1000 runs",
        per_thousand(&|held| held.threads as f64),
        "",
        Target::Below(0.05),
    );
    let zombies = held.iter().map(|held| held.zombies).max().unwrap_or(0);
    report.target("zombies, most ever", zombies as f64, "", Target::Below(1.0));
    let resident = |held: &Held| held.resident as f64 / 1024.0;
    report.target("executor, per 1000 runs", per_thousand(&resident), "KiB", Target::Below(16.0));
    report.figure("executor, most less least", spread(&resident), "KiB");
    report.target("zygotes, per 1000 runs", zygote_slope(steady), "KiB", Target::Below(64.0));
}

/// How fast one zygote grows, KiB for 1000 runs of the executor: the slope common to all of them.
fn zygote_slope(held: &[Held]) -> f64 {
    let mut lives: BTreeMap<(i32, u64), Vec<(f64, f64)>> = BTreeMap::new();
    for look in held {
        for (zygote, resident) in &look.zygotes {
            lives.entry(*zygote).or_default().push((f64::from(look.runs) / 1e3, *resident as f64 / 1024.0));
        }
    }
    let centred = lives.values().flat_map(|points| {
        let count = points.len() as f64;
        let x = points.iter().map(|point| point.0).sum::<f64>() / count;
        let y = points.iter().map(|point| point.1).sum::<f64>() / count;
        points.iter().map(move |point| (point.0 - x, point.1 - y))
    });
    slope(&centred.collect::<Vec<_>>())
}
