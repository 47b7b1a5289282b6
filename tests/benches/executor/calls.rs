//! Binding calls: a thousand one after the other, and a thousand at once.

use codemode_tests::executor::{Client, Executor};

use crate::Setting;
use crate::report::{Report, Target};
use crate::samples::Samples;
use crate::timed;

const CALLS: u32 = 1000;
const RUNS: u32 = 10;

fn sequential() -> String {
    format!(
        "let sum = 0; for (let i = 0; i < {CALLS}; i++) sum += (await tools.echo({{ i }})).i; return sum;"
    )
}

fn together() -> String {
    format!(
        "const all = await Promise.all(Array.from({{ length: {CALLS} }}, (_, i) => tools.echo({{ i }})));\
         let sum = 0; for (const each of all) sum += each.i; return sum;"
    )
}

pub(crate) async fn measure(setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    report.section("calls", &format!("{CALLS} binding calls in one run, the run included"));
    let mut configuration = toml::Table::new();
    configuration.insert("pending_calls".to_owned(), i64::from(CALLS).into());
    let executor = Executor::start(&configuration).await?;
    let mut client = executor.client().await?;
    for (name, program) in [("one after the other", sequential()), ("all at once", together())] {
        let mut ours = Vec::new();
        for engine in &setting.engines {
            let samples = times(&mut client, engine, &program, setting.options.times(RUNS)).await?;
            report.samples(&format!("{engine}, {name}"), &samples);
            ours.push((engine, samples));
        }
        let mut workers = Samples::default();
        for run in setting.peers.workers(&program, setting.options.times(RUNS))?.unwrap_or_default() {
            workers.push_ms(run.total_ms);
        }
        if workers.len() > 0 {
            report.samples(&format!("a Node worker thread, {name}"), &workers);
        }
        for (engine, samples) in ours {
            report.target(&format!("{engine}, {name}, p50"), samples.p50(), "ms", Target::Below(150.0));
            report.figure(&format!("{engine}, {name}, a call"), samples.p50() * 1e3 / f64::from(CALLS), "us");
            if workers.len() > 0 {
                let ratio = workers.p50() / samples.p50();
                report.figure(&format!("{engine}, {name}, than a worker"), ratio, "times faster");
            }
        }
    }
    Ok(())
}

async fn times(client: &mut Client, engine: &str, program: &str, times: u32) -> anyhow::Result<Samples> {
    let expected = (CALLS * (CALLS - 1) / 2).to_string();
    let mut samples = Samples::default();
    for count in 0..=times {
        let start = timed::start(engine, program, &["echo"]);
        let timed = timed::run(client, start, |call| call.args_json.clone()).await?.completed()?;
        let value = timed.outcome.value_json.as_deref().unwrap_or_default();
        anyhow::ensure!(value == expected.as_bytes(), "the program returned {value:?}");
        // The first is stripped and warms up.
        if count > 0 {
            samples.push(timed.wall);
        }
    }
    Ok(samples)
}
