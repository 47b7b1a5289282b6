//! How long after its budget a run is over, and how long after its caller wants it to be.

use std::time::{Duration, Instant};

use anyhow::ensure;
use bytes::Bytes;
use codemode_proto::executor_v1 as v1;
use codemode_tests::executor::{Client, Executor};
use codemode_tests::live::LiveRun;
use codemode_tests::process;

use crate::Setting;
use crate::report::{Report, Target};
use crate::samples::Samples;
use crate::timed::{self, Timed};

/// Most that a run may go on after its limit, milliseconds.
const OVERSHOOT_MS: f64 = 50.0;
const RUNS: u32 = 10;
const SPINS: &str = "for (;;) {}";
const WAITS: &str = "await new Promise((resolve) => setTimeout(resolve, 1e9))";
const NEVER: &str = "await new Promise(() => {})";

pub(crate) async fn measure(setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    report.section("budgets", "After the limit: how much longer until the outcome, the process gone");
    let executor = Executor::start(&toml::toml! { processes_ahead = 0 }).await?;
    let mut client = executor.client().await?;
    for engine in &setting.engines {
        compute(setting, report, &mut client, engine).await?;
        wall(setting, report, &mut client, engine).await?;
        deadlock(setting, report, &mut client, engine).await?;
        endings(setting, report, &executor, engine).await?;
    }
    Ok(())
}

async fn ends(client: &mut Client, start: v1::StartRun, detail: &str) -> anyhow::Result<Timed> {
    timed::run(client, start, |_| Bytes::new()).await?.failed_with(detail)
}

async fn compute(
    setting: &Setting<'_>,
    report: &mut Report,
    client: &mut Client,
    engine: &str,
) -> anyhow::Result<()> {
    let [mut cpu, mut elapsed] = [(); 2].map(|()| Samples::default());
    for limit in [100, 300, 1000] {
        for _ in 0..setting.options.times(RUNS) {
            let budgets = Some(v1::Budgets { compute_ms: Some(limit), ..v1::Budgets::default() });
            let start = v1::StartRun { budgets, ..timed::start(engine, SPINS, &[]) };
            let timed = ends(client, start, "compute_ms").await?;
            cpu.push_ms(timed.usage().cpu_us as f64 / 1e3 - limit as f64);
            elapsed.push_ms(timed.since_started.as_secs_f64() * 1e3 - limit as f64);
        }
    }
    report.samples(&format!("{engine}, compute, CPU time over"), &cpu);
    report.samples(&format!("{engine}, compute, elapsed over"), &elapsed);
    report.target(
        &format!("{engine}, compute, CPU time, most"),
        cpu.max(),
        "ms",
        Target::Below(OVERSHOOT_MS),
    );
    report.target(
        &format!("{engine}, compute, elapsed, p50"),
        elapsed.p50(),
        "ms",
        Target::Below(OVERSHOOT_MS),
    );
    Ok(())
}

async fn wall(
    setting: &Setting<'_>,
    report: &mut Report,
    client: &mut Client,
    engine: &str,
) -> anyhow::Result<()> {
    let mut over = Samples::default();
    for (program, limit) in [(WAITS, 100), (WAITS, 300), (SPINS, 100), (SPINS, 300)] {
        for _ in 0..setting.options.times(RUNS) {
            let budgets = Some(v1::Budgets { wall_ms: Some(limit), ..v1::Budgets::default() });
            let start = v1::StartRun { budgets, ..timed::start(engine, program, &[]) };
            let timed = ends(client, start, "wall_ms").await?;
            over.push_ms(timed.wall.as_secs_f64() * 1e3 - limit as f64);
        }
    }
    report.samples(&format!("{engine}, wall, elapsed over"), &over);
    report.target(&format!("{engine}, wall, most"), over.max(), "ms", Target::Below(OVERSHOOT_MS));
    Ok(())
}

async fn deadlock(
    setting: &Setting<'_>,
    report: &mut Report,
    client: &mut Client,
    engine: &str,
) -> anyhow::Result<()> {
    let mut walls = Samples::default();
    for _ in 0..setting.options.times(RUNS) {
        walls.push(ends(client, timed::start(engine, NEVER, &[]), "deadlock").await?.wall);
    }
    report.samples(&format!("{engine}, waits for nothing, in all"), &walls);
    Ok(())
}

/// The caller says abort, or goes away, while the program spins.
async fn endings(
    setting: &Setting<'_>,
    report: &mut Report,
    executor: &Executor,
    engine: &str,
) -> anyhow::Result<()> {
    let [mut aborted, mut dropped] = [(); 2].map(|()| Samples::default());
    let mut client = executor.client().await?;
    for _ in 0..setting.options.times(RUNS) {
        let mut run = spinning(&mut client, engine).await?;
        let began = Instant::now();
        run.abort("enough");
        run.outcome().await?;
        aborted.push(began.elapsed());
    }
    for _ in 0..setting.options.times(RUNS) {
        let before = process::descendants(executor.pid());
        let run = spinning(&mut client, engine).await?;
        let fresh = timed::fresh_children(executor, &before);
        let began = Instant::now();
        drop(run);
        while fresh
            .iter()
            .any(|child| process::process(child.pid).is_some_and(|now| now.started == child.started))
        {
            ensure!(began.elapsed() < Duration::from_secs(10), "a dropped run lives on");
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        dropped.push(began.elapsed());
    }
    report.samples(&format!("{engine}, abort until the outcome"), &aborted);
    report.samples(&format!("{engine}, call dropped, process gone"), &dropped);
    report.target(&format!("{engine}, abort, most"), aborted.max(), "ms", Target::Below(OVERSHOOT_MS));
    report.target(&format!("{engine}, call dropped, most"), dropped.max(), "ms", Target::Below(OVERSHOOT_MS));
    Ok(())
}

async fn spinning(client: &mut Client, engine: &str) -> anyhow::Result<LiveRun> {
    let start = timed::start(engine, &format!("console.log('spins'); {SPINS}"), &[]);
    let mut run = LiveRun::start(client, start).await?;
    run.wait_for_log("spins").await?;
    Ok(run)
}
