//! The command line of the benchmarks.

use std::path::PathBuf;

use anyhow::ensure;
use clap::{Parser, ValueEnum};

/// Measures the executor beside its peers.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// Sections to measure; without it all but the soak.
    #[arg(value_enum)]
    sections: Vec<Section>,
    /// Engines; without it all that are built.
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// A tenth of the repetitions, to see whether it works.
    #[arg(long)]
    quick: bool,
    /// How long the throughput is sustained, seconds.
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Runs of the soak; with it the soak is measured too.
    #[arg(long, value_name = "RUNS")]
    soak: Option<u32>,
    /// Leave out peers that are not installed instead of installing them under `target/bench`.
    #[arg(long)]
    pub(crate) no_install: bool,
    /// Where the report goes as JSON.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench/executor.json"))]
    pub(crate) output: PathBuf,
    /// Given by `cargo bench`; means nothing.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Section {
    /// One trivial run after the other.
    Trivial,
    /// Many in flight.
    Throughput,
    /// Very many, and what is left behind.
    Soak,
    /// Memory of a live run.
    Memory,
    /// Binding calls.
    Calls,
    /// What happens at the end of a budget.
    Budgets,
    /// Health while programs spin.
    Health,
    /// The engines themselves.
    Engines,
    /// Erasing types.
    Strip,
}

impl Section {
    /// All, in the report's order.
    pub(crate) const ALL: [Self; 9] = [
        Self::Trivial,
        Self::Throughput,
        Self::Soak,
        Self::Memory,
        Self::Calls,
        Self::Budgets,
        Self::Health,
        Self::Engines,
        Self::Strip,
    ];
}

impl Options {
    /// Whether a section is to be measured.
    pub(crate) fn wants(&self, section: Section) -> bool {
        match section {
            Section::Soak if self.soak.is_some() => true,
            Section::Soak => self.sections.contains(&section),
            _ => self.sections.is_empty() || self.sections.contains(&section),
        }
    }

    /// The engines to measure, of those that there are.
    pub(crate) fn engines_of(&self, served: Vec<String>) -> anyhow::Result<Vec<String>> {
        for wanted in &self.engines {
            ensure!(served.contains(wanted), "engine `{wanted}` is not built; there are {served:?}");
        }
        Ok(if self.engines.is_empty() { served } else { self.engines.clone() })
    }

    /// So many repetitions, or a tenth of them.
    pub(crate) fn times(&self, full: u32) -> u32 {
        if self.quick { full.div_ceil(10) } else { full }
    }

    /// Runs of the soak.
    pub(crate) fn soak_runs(&self) -> u32 {
        self.soak.unwrap_or_else(|| self.times(50_000))
    }
}
