//! Runs the conformance cases against the executor built beside this program, prints what fails and the counts of each
//! engine, and ends with 1 if anything failed.
#![expect(clippy::print_stdout, reason = "a command line prints")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use codemode_tests::case::{self, LoadedCase};
use codemode_tests::suite::{self, Options};

/// Runs conformance cases against `codemode-executor`.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only cases whose `group/id` contains one of these.
    filters: Vec<String>,
    /// Only these engines.
    #[arg(long)]
    engine: Vec<String>,
    /// Cases at once.
    #[arg(long, default_value_t = 3)]
    parallel: usize,
    /// Folder of the cases.
    #[arg(long)]
    cases: Option<PathBuf>,
    /// Folder for the report.
    #[arg(long, default_value = "target/conformance")]
    report: PathBuf,
    /// List the cases and run none.
    #[arg(long)]
    list: bool,
    /// Write `docs/engine-differences.md` and run none.
    #[arg(long)]
    write_differences: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let cases = case::load(&arguments.cases.clone().unwrap_or_else(case::conformance_folder))?;
    if arguments.list {
        for LoadedCase { case, group, .. } in &cases {
            println!("{group}/{}  {}", case.id, case.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.write_differences {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/engine-differences.md");
        std::fs::create_dir_all(page.parent().context("a page has a folder")?)?;
        std::fs::write(page, suite::differences_page(&cases))?;
        return Ok(ExitCode::SUCCESS);
    }
    let options =
        Options { filters: arguments.filters, engines: arguments.engine, parallel: arguments.parallel };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(suite::run(&cases, &options, &arguments.report))?;
    print!("{}", suite::explain(&report, &cases));
    let differences = report.untold_differences(&cases);
    for difference in &differences {
        println!("{difference}");
    }
    print!("{}", report.summary());
    let good = report.failures().next().is_none() && differences.is_empty() && !report.cases.is_empty();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
