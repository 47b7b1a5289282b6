//! One trivial run after the other: how long, where the time goes, and how long its peers take.
//!
//! Everything takes turns, a round at a time, so that what else the machine does hits all alike.

use std::time::Duration;

use codemode_tests::executor::{Client, Executor};

use crate::Setting;
use crate::report::{Report, Target};
use crate::samples::Samples;
use crate::timed::{self, Timed};

const PROGRAM: &str = "return 1+1";
const ROUNDS: u32 = 10;
/// Runs of each kind in a round.
const RUNS: u32 = 100;
/// Runs of each kind in a round that have a pause before them.
const SPACED_RUNS: u32 = 20;
/// That pause: longer than anything an executor does between two runs.
const PAUSE: Duration = Duration::from_millis(30);
const WARM_UP: u32 = 20;
const WORKERS: u32 = 10;
const PROCESSES: u32 = 3;

/// What is measured of one engine.
#[derive(Debug, Default)]
struct Ours {
    engine: String,
    /// The same text each time, so that stripping remembers it.
    same: Samples,
    /// Another text each time.
    new: Samples,
    /// Another text each time, with a pause before each.
    spaced: Samples,
    phases: Phases,
}

/// Parts of the runs with another text each time.
#[derive(Debug, Default)]
struct Phases([Samples; 7]);

const PHASES: [&str; 7] = ["admission", "strip", "fork", "lockdown", "run", "settle", "gRPC and the rest"];

impl Phases {
    fn push(&mut self, timed: &Timed) {
        let phases = timed.phases();
        let ms = |us: u64| us as f64 / 1e3;
        let rest = timed.wall.as_secs_f64() * 1e3 - ms(timed.usage().wall_us);
        let parts = [
            ms(phases.admission_us),
            ms(phases.strip_us),
            ms(phases.fork_us),
            ms(phases.lockdown_us),
            ms(phases.run_us),
            ms(phases.settle_us),
            rest,
        ];
        for (samples, part) in self.0.iter_mut().zip(parts) {
            samples.push_ms(part);
        }
    }
}

/// What is measured of the peers.
#[derive(Debug, Default)]
struct Theirs {
    workers: Samples,
    node: Samples,
    deno: Samples,
}

pub(crate) async fn measure(setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    report.section("trivial", "A trivial run, `return 1+1`, one after the other, lockdown complete");
    first_runs(setting, report).await?;
    let executor = Executor::start(&toml::Table::new()).await?;
    let mut client = executor.client().await?;
    let named = |engine: &String| Ours { engine: engine.clone(), ..Ours::default() };
    let mut ours: Vec<Ours> = setting.engines.iter().map(named).collect();
    let mut theirs = Theirs::default();
    for engine in &setting.engines {
        for _ in 0..WARM_UP {
            timed::plain(&mut client, engine, PROGRAM).await?;
        }
    }
    for round in 0..setting.options.times(ROUNDS) {
        for each in &mut ours {
            each.round(&mut client, round).await?;
        }
        theirs.round(setting)?;
    }
    for each in &ours {
        each.report(report);
    }
    theirs.report(report);
    for each in &ours {
        compare(each, &theirs, report);
    }
    Ok(())
}

/// What the very first run of an executor takes: nothing is warm but what is made ahead.
async fn first_runs(setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    for engine in &setting.engines {
        let [mut walls, mut strips] = [(); 2].map(|()| Samples::default());
        for _ in 0..setting.options.times(ROUNDS) {
            let executor = Executor::start(&toml::Table::new()).await?;
            setting.settled(&executor).await;
            let timed = timed::plain(&mut executor.client().await?, engine, PROGRAM).await?;
            walls.push(timed.wall);
            strips.push_ms(timed.phases().strip_us as f64 / 1e3);
        }
        report.samples(&format!("{engine}, the first run of an executor"), &walls);
        report.samples(&format!("{engine}:   its strip"), &strips);
    }
    Ok(())
}

impl Ours {
    async fn round(&mut self, client: &mut Client, round: u32) -> anyhow::Result<()> {
        for run in 0..RUNS {
            let timed = timed::plain(client, &self.engine, PROGRAM).await?;
            self.same.push(timed.wall);
            let program = format!("{PROGRAM} // {} {round} {run}", self.engine);
            let timed = timed::plain(client, &self.engine, &program).await?;
            self.new.push(timed.wall);
            self.phases.push(&timed);
        }
        for run in 0..SPACED_RUNS {
            tokio::time::sleep(PAUSE).await;
            let program = format!("{PROGRAM} // {} {round} {run}, spaced", self.engine);
            self.spaced.push(timed::plain(client, &self.engine, &program).await?.wall);
        }
        Ok(())
    }

    fn report(&self, report: &mut Report) {
        let Self { engine, same, new, spaced, phases } = self;
        report.samples(&format!("{engine}, another text each time"), new);
        for (name, samples) in PHASES.iter().zip(&phases.0) {
            report.samples(&format!("{engine}:   {name}"), samples);
        }
        report.samples(&format!("{engine}, the same text each time"), same);
        report.samples(&format!("{engine}, another text, a pause before each"), spaced);
        for (kind, samples) in [("new text", new), ("same text", same)] {
            report.target(&format!("{engine}, {kind}, p50"), samples.p50(), "ms", Target::Below(2.0));
            report.target(&format!("{engine}, {kind}, p99"), samples.p99(), "ms", Target::Below(6.0));
        }
    }
}

impl Theirs {
    fn round(&mut self, setting: &Setting<'_>) -> anyhow::Result<()> {
        for run in setting.peers.workers(PROGRAM, WORKERS)?.unwrap_or_default() {
            self.workers.push_ms(run.total_ms);
        }
        setting.peers.node_processes(PROGRAM, PROCESSES, &mut self.node)?;
        setting.peers.deno_processes(PROGRAM, PROCESSES, &mut self.deno)
    }

    fn named(&self) -> [(&'static str, &Samples, f64); 3] {
        [
            ("a fresh Node worker thread", &self.workers, 10.0),
            ("`node` per run", &self.node, 8.0),
            ("`deno run` per run", &self.deno, 8.0),
        ]
    }

    fn report(&self, report: &mut Report) {
        for (name, samples, _) in self.named() {
            if samples.len() > 0 {
                report.samples(name, samples);
            }
        }
    }
}

fn compare(ours: &Ours, theirs: &Theirs, report: &mut Report) {
    for (name, samples, target) in theirs.named() {
        if samples.len() > 0 {
            report.faster(&ours.engine, ours.new.p50(), name, samples.p50(), target);
        }
    }
}
