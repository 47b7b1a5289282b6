//! The executor's benchmarks: real processes, real sockets, each figure beside its peer's from the same run.
//!
//! `make bench`, or `cargo bench -p codemode-tests --bench executor -- --help`. Prints a report and writes it as JSON
//! under `target/bench`. Nothing here fails for being slow: machines differ, so it prints ratios and whether a
//! target is met. It fails when a run does not end as it should. Start reading at [`measure`].

mod budgets;
mod calls;
mod cpu;
mod engines;
mod health;
mod machine;
mod memory;
mod options;
mod peers;
mod report;
mod samples;
mod stripping;
mod throughput;
mod timed;
mod trivial;

use clap::Parser as _;
use codemode_tests::executor::Executor;

use options::{Options, Section};
use peers::Peers;
use report::Report;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    // One thread: the caller must not take the executor's share of a small machine by waking itself up.
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure(&options))
}

/// What every section needs.
#[derive(Debug)]
struct Setting<'a> {
    options: &'a Options,
    peers: Peers,
    engines: Vec<String>,
}

async fn measure(options: &Options) -> anyhow::Result<()> {
    let mut report = Report::new();
    machine::describe(&mut report);
    let executor = Executor::start(&toml::Table::new()).await?;
    let described = executor.describe().await?;
    drop(executor);
    for engine in &described.engines {
        let jit = if engine.jit { "with" } else { "without" };
        report.line(format!("engine {} {}, {jit} a compiler", engine.name, engine.version));
    }
    let layers: Vec<String> = described.layers.iter().map(|layer| format!("{layer:?}")).collect();
    report.note("layers", layers);
    let served: Vec<String> = described.engines.into_iter().map(|engine| engine.name).collect();
    let engines = options.engines_of(served)?;
    let peers = Peers::find(options, &mut report);
    let setting = Setting { options, peers, engines };
    for section in Section::ALL {
        if options.wants(section) {
            run(section, &setting, &mut report).await?;
        }
    }
    machine::load_at_the_end(&mut report);
    report.finish(&options.output)
}

async fn run(section: Section, setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    match section {
        Section::Trivial => trivial::measure(setting, report).await,
        Section::Throughput => throughput::measure(setting, report).await,
        Section::Soak => throughput::soak(setting, report).await,
        Section::Memory => memory::measure(setting, report).await,
        Section::Calls => calls::measure(setting, report).await,
        Section::Budgets => budgets::measure(setting, report).await,
        Section::Health => health::measure(setting, report).await,
        Section::Engines => engines::measure(setting, report).await,
        Section::Strip => stripping::measure(setting, report).await,
    }
}
