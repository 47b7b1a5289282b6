//! The report: lines for people as they come, the same figures as JSON at the end.

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::samples::Samples;

/// What has been reported so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    sections: Map<String, Value>,
    section: String,
    missed: Vec<String>,
}

/// What a target asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// Less than this.
    Below(f64),
    /// This or more.
    AtLeast(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::Below(limit) => value < limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Below(limit) => write!(f, "< {limit}"),
            Self::AtLeast(limit) => write!(f, ">= {limit}"),
        }
    }
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { section: "machine".to_owned(), ..Self::default() }
    }

    /// Begins a section.
    pub(crate) fn section(&mut self, name: &str, title: &str) {
        name.clone_into(&mut self.section);
        self.line(format!("\n{title}"));
    }

    /// Says something.
    pub(crate) fn line(&mut self, text: impl Display) {
        let mut stdout = std::io::stdout().lock();
        // Who closed the pipe still gets the file.
        let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    }

    /// Keeps something for the file only.
    pub(crate) fn note(&mut self, name: &str, value: impl Into<Value>) {
        let section = self.sections.entry(self.section.clone()).or_insert_with(|| json!({}));
        if let Value::Object(section) = section {
            section.insert(name.to_owned(), value.into());
        }
    }

    /// A row of percentiles, milliseconds.
    pub(crate) fn samples(&mut self, name: &str, samples: &Samples) {
        let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|part| samples.quantile(part));
        let count = samples.len();
        self.line(format!(
            "  {name:<34} p50 {p50:>8.3}  p90 {p90:>8.3}  p99 {p99:>8.3}  max {max:>8.3} ms  ({count})"
        ));
        self.note(
            name,
            json!({"p50_ms": p50, "p90_ms": p90, "p99_ms": p99, "max_ms": max, "samples": count}),
        );
    }

    /// One figure.
    pub(crate) fn figure(&mut self, name: &str, value: f64, unit: &str) {
        self.line(format!("  {name:<34} {value:>12.3} {unit}"));
        self.note(name, json!({"value": value, "unit": unit}));
    }

    /// A figure and what it should be.
    pub(crate) fn target(&mut self, name: &str, value: f64, unit: &str, target: Target) {
        let met = target.is_met(value);
        let verdict = if met { "met" } else { "MISSED" };
        self.line(format!("  {name:<34} {value:>12.3} {unit}  target {target}: {verdict}"));
        self.note(name, json!({"value": value, "unit": unit, "target": target.to_string(), "met": met}));
        if !met {
            self.missed.push(format!("{}: {name} {value:.3} {unit}, target {target}", self.section));
        }
    }

    /// Something that does not work at all; counts as a target that is missed.
    pub(crate) fn fails(&mut self, what: String) {
        self.line(format!("  fails: {what}"));
        self.missed.push(format!("{}: {what}", self.section));
    }

    /// Says how much faster one is than its peer, and whether that is what it should be.
    pub(crate) fn faster(&mut self, who: &str, ours: f64, peer: &str, theirs: f64, target: f64) {
        let ratio = if ours > 0.0 { theirs / ours } else { 0.0 };
        self.target(&format!("{who} faster than {peer}"), ratio, "times", Target::AtLeast(target));
    }

    /// Writes the file, and says which targets were missed.
    pub(crate) fn finish(mut self, path: &Path) -> anyhow::Result<()> {
        self.line("");
        if self.missed.is_empty() {
            self.line("every target is met");
        }
        for missed in std::mem::take(&mut self.missed) {
            self.line(format!("missed: {missed}"));
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("make `{}`", folder.display()))?;
        }
        let text = serde_json::to_string_pretty(&self.sections)?;
        std::fs::write(path, text).with_context(|| format!("write `{}`", path.display()))?;
        self.line(format!("written to {}", path.display()));
        Ok(())
    }
}
