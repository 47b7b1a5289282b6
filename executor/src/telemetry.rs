//! What operators see: log events and metrics, emitted together. Program text, arguments and values are never in either.
//!
//! Metrics are a handful of atomics rendered as Prometheus text; labels come from closed lists only.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use codemode_proto::detail::Detail;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};
use crate::outcome::Outcome;

/// Upper bounds of the duration histograms, seconds.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.03, 0.06, 0.125, 0.25, 1.0, 5.0, 30.0, 300.0];

/// Sets up logging to stderr. To be called once, by the binary.
pub fn init_logging(config: &Config) {
    let filter = EnvFilter::new(&config.log_filter);
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}

/// A histogram of durations.
#[derive(Debug, Default)]
struct Histogram {
    buckets: [AtomicU64; SECONDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Histogram {
    fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if let Some(index) = SECONDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[index].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn render(&self, out: &mut String, name: &str, help: &str) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut below = 0;
        for (bound, bucket) in SECONDS.iter().zip(&self.buckets) {
            below += bucket.load(Ordering::Relaxed);
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {below}");
        }
        let count = self.count.load(Ordering::Relaxed);
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}");
        let seconds = Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64();
        let _ = writeln!(out, "{name}_sum {seconds}\n{name}_count {count}");
    }
}

/// The executor's metrics.
#[derive(Debug, Default)]
pub struct Metrics {
    completed: AtomicU64,
    /// In the order of [`Detail::ALL`].
    failed: [AtomicU64; Detail::ALL.len()],
    /// Requests answered with a status, in the order of [`REFUSALS`].
    refused: [AtomicU64; REFUSALS.len()],
    binding_calls: AtomicU64,
    live: AtomicU64,
    wall: Histogram,
    fork: Histogram,
    settle: Histogram,
}

/// Statuses that requests are refused with.
const REFUSALS: [&str; 5] =
    ["invalid_argument", "failed_precondition", "resource_exhausted", "unavailable", "other"];

/// Counts a run as live until it is dropped.
#[derive(Debug)]
pub struct Live<'a>(&'a Metrics);

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// A run begins.
    #[must_use]
    pub fn run_started(&self) -> Live<'_> {
        self.live.fetch_add(1, Ordering::Relaxed);
        Live(self)
    }

    /// A run has settled.
    pub fn run_settled(&self, outcome: &Outcome) {
        let usage = &outcome.usage;
        self.wall.observe(usage.wall);
        self.fork.observe(usage.phases.fork + usage.phases.lockdown);
        self.settle.observe(usage.phases.settle);
        self.binding_calls.fetch_add(usage.binding_calls, Ordering::Relaxed);
        let detail = match &outcome.failure {
            None => {
                self.completed.fetch_add(1, Ordering::Relaxed);
                "completed"
            }
            Some(failure) => {
                if let Some(index) = Detail::ALL.iter().position(|detail| *detail == failure.detail) {
                    self.failed[index].fetch_add(1, Ordering::Relaxed);
                }
                failure.detail.word()
            }
        };
        tracing::info!(
            outcome = detail,
            wall_us = usage.wall.as_micros(),
            cpu_us = usage.cpu.as_micros(),
            peak_memory_bytes = usage.peak_memory_bytes,
            binding_calls = usage.binding_calls,
            output_bytes = usage.output_bytes,
            "run settled"
        );
    }

    /// A request was answered with a status and never became a run with an outcome.
    pub fn run_refused(&self, status: &tonic::Status) {
        let word = match status.code() {
            tonic::Code::InvalidArgument => "invalid_argument",
            tonic::Code::FailedPrecondition => "failed_precondition",
            tonic::Code::ResourceExhausted => "resource_exhausted",
            tonic::Code::Unavailable => "unavailable",
            _ => "other",
        };
        if let Some(index) = REFUSALS.iter().position(|refusal| *refusal == word) {
            self.refused[index].fetch_add(1, Ordering::Relaxed);
        }
        // The message may quote names out of the request, escaped and bounded; no program text.
        if status.code() == tonic::Code::Unavailable {
            tracing::warn!(message = status.message(), "run refused: the service cannot run programs now");
        } else {
            tracing::info!(code = ?status.code(), message = status.message(), "run refused");
        }
    }

    /// The metrics as Prometheus text.
    #[must_use]
    pub fn render(&self, children: usize, waiting: usize) -> String {
        let mut out = String::new();
        let name = "codemode_executor_runs_total";
        let _ = writeln!(out, "# HELP {name} Runs by what they came to.\n# TYPE {name} counter");
        let _ = writeln!(out, "{name}{{outcome=\"completed\"}} {}", self.completed.load(Ordering::Relaxed));
        for (detail, count) in Detail::ALL.iter().zip(&self.failed) {
            let _ =
                writeln!(out, "{name}{{outcome=\"{}\"}} {}", detail.word(), count.load(Ordering::Relaxed));
        }
        let name = "codemode_executor_refused_total";
        let _ = writeln!(out, "# HELP {name} Requests answered with a status.\n# TYPE {name} counter");
        for (code, count) in REFUSALS.iter().zip(&self.refused) {
            let _ = writeln!(out, "{name}{{code=\"{code}\"}} {}", count.load(Ordering::Relaxed));
        }
        let calls = self.binding_calls.load(Ordering::Relaxed);
        single(&mut out, "binding_calls_total", "counter", "Binding calls of settled runs.", calls);
        let live = self.live.load(Ordering::Relaxed);
        single(&mut out, "runs_live", "gauge", "Runs that have not settled, waiting ones included.", live);
        single(&mut out, "runs_waiting", "gauge", "Runs that wait for a slot.", waiting as u64);
        single(&mut out, "children", "gauge", "Child processes, zygotes included.", children as u64);
        self.wall.render(&mut out, "codemode_executor_run_wall_seconds", "Elapsed time of runs.");
        let help = "Making and locking down the processes of runs.";
        self.fork.render(&mut out, "codemode_executor_spawn_seconds", help);
        let help = "Ending and reaping the processes of runs.";
        self.settle.render(&mut out, "codemode_executor_settle_seconds", help);
        out
    }
}

fn single(out: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    let name = format!("codemode_executor_{name}");
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Failure, Usage};

    #[test]
    fn every_metric_moves() {
        let metrics = Metrics::default();
        let quiet = metrics.render(0, 0);
        let live = metrics.run_started();
        let usage = Usage { wall: Duration::from_millis(3), binding_calls: 2, ..Usage::default() };
        let completed = Outcome { value: None, logs: Vec::new(), failure: None, usage, hints: Vec::new() };
        metrics.run_settled(&completed);
        for detail in Detail::ALL {
            let failure = Some(Failure::new(*detail, ""));
            metrics.run_settled(&Outcome { failure, ..completed.clone() });
        }
        for status in [
            tonic::Status::invalid_argument(""),
            tonic::Status::failed_precondition(""),
            tonic::Status::resource_exhausted(""),
            tonic::Status::unavailable(""),
            tonic::Status::internal(""),
        ] {
            metrics.run_refused(&status);
        }
        let busy = metrics.render(3, 1);
        let unmoved: Vec<&str> = quiet
            .lines()
            .zip(busy.lines())
            .filter(|(before, after)| before == after && !before.starts_with('#'))
            // Buckets below the observed durations stay empty.
            .filter(|(before, _)| !before.contains("_bucket{") && !before.contains("_seconds_sum"))
            .map(|(before, _)| before)
            .collect();
        assert_eq!(unmoved, Vec::<&str>::new());
        assert!(busy.contains("codemode_executor_run_wall_seconds_bucket{le=\"0.004\"} 21"), "{busy}");
        drop(live);
        assert!(metrics.render(0, 0).contains("codemode_executor_runs_live 0"));
    }
}
