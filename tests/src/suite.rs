//! Runs all cases on all engines, a few at once, and reports. Cases that configure the executor differently get
//! executors of their own; all others share one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::case::{Case, Expectation, LoadedCase, Request};
use crate::executor::Executor;
use crate::judge;
use crate::run::{self, Observation};

/// What a suite is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only cases whose group or id contains one of these; empty: all.
    pub filters: Vec<String>,
    /// Only these engines; empty: all that the executor has.
    pub engines: Vec<String>,
    /// Cases at once.
    pub parallel: usize,
}

/// What became of one case on one engine.
#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    /// The case's id.
    pub id: String,
    /// Its group.
    pub group: String,
    /// The engine.
    pub engine: String,
    /// `passed`, `failed` or `skipped`.
    pub result: &'static str,
    /// What came of it, in a line.
    pub summary: String,
    /// Index of the expectation that held.
    pub expectation: Option<usize>,
    /// What did not hold, or why it was skipped.
    pub faults: Vec<String>,
    /// Elapsed time, milliseconds.
    pub wall_ms: u64,
}

/// What became of all of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Each case on each engine, in order of engine, group and id.
    pub cases: Vec<CaseReport>,
}

impl Report {
    /// Counts of each engine: passed, failed, skipped.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, [usize; 3]> {
        let mut counts = BTreeMap::<_, [usize; 3]>::new();
        for case in &self.cases {
            let at = ["passed", "failed", "skipped"].iter().position(|result| *result == case.result);
            counts.entry(case.engine.clone()).or_default()[at.unwrap_or(1)] += 1;
        }
        counts
    }

    /// Those that failed.
    pub fn failures(&self) -> impl Iterator<Item = &CaseReport> {
        self.cases.iter().filter(|case| case.result == "failed")
    }

    /// The counts as people read them, a line for each engine.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for (engine, [passed, failed, skipped]) in self.counts() {
            let _ = writeln!(text, "{engine}: {passed} passed, {failed} failed, {skipped} skipped");
        }
        text
    }

    /// Cases that both pass on two engines by different expectations, none of which is marked as an engine's own.
    #[must_use]
    pub fn untold_differences(&self, cases: &[LoadedCase]) -> Vec<String> {
        let mut found = Vec::new();
        for loaded in cases.iter().filter(|loaded| loaded.case.may_differ.is_empty()) {
            let own: Vec<_> = self.cases.iter().filter(|report| report.id == loaded.case.id).collect();
            let told = |index: usize| loaded.case.expect.get(index).is_some_and(|e| e.engine.is_some());
            let held: Vec<_> = own.iter().filter_map(|report| report.expectation).collect();
            let differ = held.windows(2).any(|pair| pair[0] != pair[1]);
            if differ && !held.iter().any(|index| told(*index)) {
                let sides = own.iter().map(|report| format!("{}: {}", report.engine, report.summary));
                found.push(format!("{} differs: {}", loaded.case.id, sides.collect::<Vec<_>>().join("; ")));
            }
        }
        found
    }
}

/// The documentation of where engines differ, from the cases alone.
#[must_use]
pub fn differences_page(cases: &[LoadedCase]) -> String {
    let mut text = String::from(
        "# Where the engines differ\n\n\
         Generated from the conformance cases (`cargo run -p codemode-tests --bin conformance -- --write-differences`); a test\n\
         compares. Whatever is not listed here comes out the same on every engine.\n\n\
         | case | engine | there | why |\n|---|---|---|---|\n",
    );
    let mut rows = 0;
    for LoadedCase { case, .. } in cases {
        if !case.engines.is_empty() {
            let _ = writeln!(
                text,
                "| {} | {} | only there | {} |",
                case.id,
                case.engines.join(", "),
                case.engines_reason
            );
            rows += 1;
        }
        for expectation in &case.expect {
            if let Some(engine) = &expectation.engine {
                let _ = writeln!(
                    text,
                    "| {} | {engine} | {} | {} |",
                    case.id,
                    expected_words(expectation),
                    expectation.reason
                );
                rows += 1;
            }
        }
    }
    if rows == 0 {
        text.push_str("| none | | | |\n");
    }
    text.push_str("\n## Left open\n\nCases with several right answers, of which an engine, or one and the same engine from run to run, may give any.\n\n");
    let mut open = BTreeMap::<&str, Vec<&str>>::new();
    for LoadedCase { case, .. } in cases.iter().filter(|loaded| !loaded.case.may_differ.is_empty()) {
        open.entry(&case.may_differ).or_default().push(&case.id);
    }
    for (reason, ids) in open {
        let _ = writeln!(text, "- {reason}: {}", ids.join(", "));
    }
    text
}

fn expected_words(expectation: &Expectation) -> String {
    let table_safe = |text: &str| judge::shorten(text).replace('|', "\\|");
    if !expectation.failure.is_empty() {
        let words = expectation.message_contains.iter().map(|word| format!("`{}`", table_safe(word)));
        let saying = words.collect::<Vec<_>>().join(", ");
        let kinds = expectation.failure.join(" or ");
        return if saying.is_empty() {
            format!("fails: {kinds}")
        } else {
            format!("fails: {kinds}, saying {saying}")
        };
    }
    match expectation.value.as_ref().or(expectation.value_text.as_ref()) {
        Some(value) => format!("value `{}`", table_safe(value)),
        None if expectation.no_value => "no value".to_owned(),
        None => "another value".to_owned(),
    }
}

/// Runs the cases that the options ask for.
///
/// # Errors
/// If an executor cannot be started. A failing case is no error.
pub async fn run(cases: &[LoadedCase], options: &Options, folder: &Path) -> anyhow::Result<Report> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    let mut by_configuration = BTreeMap::<String, Vec<&LoadedCase>>::new();
    for case in cases.iter().filter(|case| chosen(case, &options.filters)) {
        by_configuration.entry(toml::to_string(&case.case.configuration)?).or_default().push(case);
    }
    let mut report = Report::default();
    for cases in by_configuration.values() {
        let configuration = &cases[0].case.configuration;
        let executor = Arc::new(Executor::start(configuration).await?);
        for engine in executor.engines().await? {
            if options.engines.is_empty() || options.engines.contains(&engine) {
                report.cases.extend(run_on(&executor, cases, &engine, options.parallel).await?);
            }
        }
    }
    report.cases.sort_by(|a, b| (&a.engine, &a.group, &a.id).cmp(&(&b.engine, &b.group, &b.id)));
    leave(&report, cases, folder)?;
    Ok(report)
}

fn chosen(case: &LoadedCase, filters: &[String]) -> bool {
    let name = format!("{}/{}", case.group, case.case.id);
    filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
}

async fn run_on(
    executor: &Arc<Executor>,
    cases: &[&LoadedCase],
    engine: &str,
    parallel: usize,
) -> anyhow::Result<Vec<CaseReport>> {
    let slots = Arc::new(Semaphore::new(parallel.max(1)));
    let mut running = JoinSet::new();
    for &loaded in cases {
        let (executor, loaded, engine, slots) =
            (Arc::clone(executor), loaded.clone(), engine.to_owned(), Arc::clone(&slots));
        running.spawn(async move {
            let _slot = slots.acquire_owned().await;
            run_case(&executor, &loaded, &engine).await
        });
    }
    let mut reports = Vec::new();
    while let Some(report) = running.join_next().await {
        reports.push(report.context("a case's task ended")?);
    }
    Ok(reports)
}

/// One case on one engine.
pub async fn run_case(executor: &Executor, loaded: &LoadedCase, engine: &str) -> CaseReport {
    let mut report = CaseReport {
        id: loaded.case.id.clone(),
        group: loaded.group.clone(),
        engine: engine.to_owned(),
        result: "skipped",
        summary: String::new(),
        expectation: None,
        faults: Vec::new(),
        wall_ms: 0,
    };
    if !loaded.case.is_for(engine) {
        report.faults.push(loaded.case.engines_reason.clone());
        return report;
    }
    let began = Instant::now();
    if let Err(error) = all_runs(executor, &loaded.case, engine, &mut report).await {
        report.faults.push(format!("{error:#}"));
    }
    report.wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    report.result = if report.faults.is_empty() { "passed" } else { "failed" };
    report
}

async fn all_runs(
    executor: &Executor,
    case: &Case,
    engine: &str,
    report: &mut CaseReport,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut seen = Vec::new();
    for _ in 0..case.repeat {
        seen.extend(at_once(executor, &case.request, engine, case.together).await?);
    }
    let batch = began.elapsed();
    if case.batch_ms_max.is_some_and(|most| batch > Duration::from_millis(most)) {
        report.faults.push(format!("all runs together took {batch:?}"));
    }
    report.summary = seen.first().map(judge::summary).unwrap_or_default();
    for one in &seen {
        if let Some(index) = judge_into(one, &case.request, &case.expect, engine, report) {
            report.expectation = Some(index);
        } else {
            break;
        }
    }
    let identities: Vec<_> = seen.iter().map(judge::identity).collect();
    if case.same && identities.iter().any(|identity| *identity != identities[0]) {
        report.faults.push(format!("runs differ: {identities:?}"));
    }
    let mut distinct = identities.clone();
    distinct.sort();
    distinct.dedup();
    if case.differ && distinct.len() != identities.len() {
        report.faults.push(format!("runs are alike: {identities:?}"));
    }
    for follow_up in &case.then {
        let after = at_once(executor, &follow_up.request, engine, 1).await?;
        for one in &after {
            judge_into(one, &follow_up.request, &follow_up.expect, engine, report);
        }
    }
    Ok(())
}

async fn at_once(
    executor: &Executor,
    request: &Request,
    engine: &str,
    count: u32,
) -> anyhow::Result<Vec<Observation>> {
    let mut running = JoinSet::new();
    for _ in 0..count {
        let (mut client, request, engine) = (executor.client().await?, request.clone(), engine.to_owned());
        running.spawn(async move { run::run(&mut client, &request, &engine).await });
    }
    Ok(running.join_all().await)
}

fn judge_into(
    seen: &Observation,
    request: &Request,
    expect: &[Expectation],
    engine: &str,
    report: &mut CaseReport,
) -> Option<usize> {
    report.faults.extend(judge::violations(seen, request));
    match judge::judge(seen, expect, engine) {
        Ok(index) => Some(index),
        Err(ways) => {
            let several = ways.len() > 1;
            for (index, faults) in ways.iter().enumerate() {
                let number = if several { format!("expectation {}: ", index + 1) } else { String::new() };
                report.faults.extend(faults.iter().map(|fault| format!("{number}{fault}")));
            }
            report.faults.push(format!("got: {}", judge::summary(seen)));
            None
        }
    }
}

/// Leaves `report.json`, and for each failed case its program and what was wrong.
fn leave(report: &Report, cases: &[LoadedCase], folder: &Path) -> anyhow::Result<()> {
    std::fs::write(folder.join("report.json"), serde_json::to_vec_pretty(report)?)?;
    for failure in report.failures() {
        let own = folder.join(&failure.engine).join(&failure.id);
        std::fs::create_dir_all(&own)?;
        std::fs::write(own.join("faults.txt"), failure.faults.join("\n") + "\n")?;
        if let Some(loaded) = cases.iter().find(|loaded| loaded.case.id == failure.id) {
            std::fs::write(
                own.join("program.ts"),
                loaded.case.request.program.as_deref().unwrap_or_default(),
            )?;
        }
    }
    Ok(())
}

/// The failures as people read them: program, what was wrong, what came.
#[must_use]
pub fn explain(report: &Report, cases: &[LoadedCase]) -> String {
    let mut text = String::new();
    for failure in report.failures() {
        let _ = writeln!(
            text,
            "\n✗ {}/{} on {} ({} ms)",
            failure.group, failure.id, failure.engine, failure.wall_ms
        );
        if let Some(loaded) = cases.iter().find(|loaded| loaded.case.id == failure.id) {
            if !loaded.case.about.is_empty() {
                let _ = writeln!(text, "  {}", loaded.case.about);
            }
            let program = judge::shorten(loaded.case.request.program.as_deref().unwrap_or_default());
            for line in program.trim_end().lines() {
                let _ = writeln!(text, "  │ {line}");
            }
        }
        for fault in &failure.faults {
            let _ = writeln!(text, "  {fault}");
        }
    }
    text
}
