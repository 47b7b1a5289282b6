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

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use codemode_tests::executor::Executor;
use codemode_tests::process::{descendants, eventually};

use options::{Options, Section};
use peers::Peers;
use report::Report;

/// How long an executor may take until it has no run and every spare is there.
const SETTLING: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let options = Options::parse();
    // One thread: the caller must not take the executor's share of a small machine by waking itself up.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(measure(&options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "benchmark: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What every section needs.
#[derive(Debug)]
struct Setting<'a> {
    options: &'a Options,
    peers: Peers,
    engines: Vec<String>,
    /// Children of an executor that has no run: for each engine two zygotes and a process made ahead, and two that strip.
    children: usize,
}

impl Setting<'_> {
    /// Waits until only those children are left and all of them are there; whether that came about.
    async fn settled(&self, executor: &Executor) -> bool {
        eventually(SETTLING, || descendants(executor.pid()).len() == self.children).await
    }
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
    let children = 3 * served.len() + 2;
    let engines = options.engines_of(served)?;
    let peers = Peers::find(options, &mut report);
    let setting = Setting { options, peers, engines, children };
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
