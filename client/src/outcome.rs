//! What a run can come to.

use std::fmt;

use crate::json::JsonText;
use crate::request::RunId;

/// What a run came to. Its process is gone by the time this exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The run's id.
    pub run_id: RunId,
    /// The completion value. Absent: the program failed, or returned undefined; `null` is a value.
    pub value: Option<JsonText>,
    /// Log entries that the output budget let through, in order. Authoritative over what was streamed.
    pub logs: Vec<String>,
    /// Absent: the program completed.
    pub failure: Option<Failure>,
    /// What the run spent.
    pub usage: Usage,
    /// Advice on the program for its author.
    pub hints: Vec<String>,
}

impl Outcome {
    /// An outcome of kind `abort` for a run that never reached an executor.
    #[must_use]
    pub fn aborted(run_id: RunId, reason: impl Into<String>) -> Self {
        let failure =
            Failure { cause: Some("caller".to_owned()), ..Failure::new(FailureKind::Abort, reason) };
        Self {
            run_id,
            value: None,
            logs: Vec::new(),
            failure: Some(failure),
            usage: Usage::default(),
            hints: Vec::new(),
        }
    }

    /// Whether the program completed.
    #[must_use]
    pub fn completed(&self) -> bool {
        self.failure.is_none()
    }
}

/// Kinds of failure; never folded into one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The program threw, or did not parse.
    Exception,
    /// A time budget expired, or nothing could ever wake the program.
    Timeout,
    /// The caller, or the executor's shutdown, ended the run.
    Abort,
    /// The process ended without an outcome.
    WorkerExit,
    /// The completion value is not lossless JSON.
    InvalidOutput,
    /// Logs plus value or message exceed the output budget.
    OutputLimit,
}

impl FailureKind {
    /// Every kind there is.
    pub const ALL: [Self; 6] = [
        Self::Exception,
        Self::Timeout,
        Self::Abort,
        Self::WorkerExit,
        Self::InvalidOutput,
        Self::OutputLimit,
    ];

    /// The kind's name: `worker-exit`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exception => "exception",
            Self::Timeout => "timeout",
            Self::Abort => "abort",
            Self::WorkerExit => "worker-exit",
            Self::InvalidOutput => "invalid-output",
            Self::OutputLimit => "output-limit",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Why a program did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// For a model or a person to read.
    pub message: String,
    /// Machine-readable cause within the kind, a word of `proto/README.md`: `compute_ms`, `deadlock`. New words may come.
    pub cause: Option<String>,
    /// The budget's limit, in the budget's own unit.
    pub limit: Option<u64>,
    /// What was used or asked for, in the same unit.
    pub used: Option<u64>,
    /// The signal that ended the process.
    pub signal: Option<i32>,
    /// Where in the program as it was sent.
    pub position: Option<Position>,
    /// Class name of the thrown error.
    pub error_name: Option<String>,
}

impl Failure {
    /// A failure that says no more than its kind and message.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            cause: None,
            limit: None,
            used: None,
            signal: None,
            position: None,
            error_name: None,
        }
    }
}

/// A place in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in UTF-16 units, from 1.
    pub column: u32,
    /// The program around the place, numbered, with a caret under the column. May be empty.
    pub excerpt: String,
}

/// What a run spent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of the run's process from the moment when it got its program, microseconds.
    pub cpu_us: u64,
    /// Elapsed time from admission to settlement, microseconds.
    pub wall_us: u64,
    /// Peak resident memory of the process, bytes.
    pub peak_memory_bytes: u64,
    /// Binding calls made.
    pub binding_calls: u64,
    /// Bytes on the output ledger.
    pub output_bytes: u64,
    /// Names of the sandbox layers that were in force.
    pub layers: Vec<String>,
    /// Where the time went.
    pub phases: Phases,
}

/// Parts of the elapsed time, microseconds, in order; a phase that was not reached is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Waiting for a slot.
    pub admission_us: u64,
    /// Erasing types.
    pub strip_us: u64,
    /// Getting the process; next to nothing for one that was made ahead.
    pub fork_us: u64,
    /// Until the process's word that it is locked down was judged.
    pub lockdown_us: u64,
    /// The program.
    pub run_us: u64,
    /// Ending and reaping the process.
    pub settle_us: u64,
}
