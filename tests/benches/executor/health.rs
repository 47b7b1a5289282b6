//! Health is answered, and runs are run, while programs take all the CPU there is.

use std::time::{Duration, Instant};

use anyhow::ensure;
use codemode_tests::executor::Executor;
use codemode_tests::live::LiveRun;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::Setting;
use crate::report::{Report, Target};
use crate::samples::Samples;
use crate::timed;

const SPINNING: usize = 8;
const FLOODING: usize = 4;
const CHECKS: u32 = 500;
const RUNS: u32 = 100;
/// Between two checks.
const PAUSE: Duration = Duration::from_millis(5);

pub(crate) async fn measure(setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    report.section("health", &format!("Health checks while {SPINNING} programs spin"));
    let executor = Executor::start(&toml::Table::new()).await?;
    let mut client = executor.client().await?;
    let mut health = HealthClient::new(executor.channel().await?);
    let checks = setting.options.times(CHECKS);
    report.samples("nothing runs", &check(&mut health, checks).await?);
    let mut spinning = Vec::new();
    for engine in setting.engines.iter().cycle().take(SPINNING) {
        let start = timed::start(engine, "console.log('spins'); for (;;) {}", &[]);
        let mut run = LiveRun::start(&mut client, start).await?;
        run.wait_for_log("spins").await?;
        spinning.push(run);
    }
    let busy = check(&mut health, checks).await?;
    report.samples(&format!("{SPINNING} programs spin"), &busy);
    for engine in &setting.engines {
        let mut walls = Samples::default();
        for _ in 0..setting.options.times(RUNS) {
            walls.push(timed::plain(&mut client, engine, "return 1+1").await?.wall);
        }
        report.samples(&format!("a trivial run meanwhile, {engine}"), &walls);
    }
    report.target("health, p99", busy.p99(), "ms", Target::Below(50.0));
    end(spinning).await?;
    let heavy = while_values_flow(setting, &executor, &mut health).await?;
    report.samples(&format!("{FLOODING} programs pass 900 KiB about"), &heavy);
    report.target("health while values flow, p99", heavy.p99(), "ms", Target::Below(50.0));
    Ok(())
}

async fn end(runs: Vec<LiveRun>) -> anyhow::Result<()> {
    for mut run in runs {
        run.abort("enough");
        run.outcome().await?;
    }
    Ok(())
}

/// Checks while programs send and get values that are just not large enough to be handled beside everything else.
async fn while_values_flow(
    setting: &Setting<'_>,
    executor: &Executor,
    health: &mut HealthClient<Channel>,
) -> anyhow::Result<Samples> {
    const PROGRAM: &str = "const list = Array.from({ length: 150000 }, (_, i) => i % 10000);\
        for (;;) await Promise.all(Array.from({ length: 16 }, () => tools.sink(list)));";
    let mut client = executor.client().await?;
    let mut flooding = tokio::task::JoinSet::new();
    for engine in setting.engines.iter().cycle().take(FLOODING) {
        let mut run = LiveRun::start(&mut client, timed::start(engine, PROGRAM, &["sink"])).await?;
        flooding.spawn(async move {
            while let Ok(call) = run.wait_for_call().await {
                run.reply(call, "null");
            }
        });
    }
    let samples = check(health, setting.options.times(CHECKS)).await;
    flooding.shutdown().await;
    samples
}

async fn check(health: &mut HealthClient<Channel>, times: u32) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..times {
        let began = Instant::now();
        let answer = health.check(HealthCheckRequest::default()).await?.into_inner();
        samples.push(began.elapsed());
        ensure!(answer.status() == ServingStatus::Serving, "not serving: {answer:?}");
        tokio::time::sleep(PAUSE).await;
    }
    Ok(samples)
}
