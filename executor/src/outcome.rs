//! What a run can come to, in the executor's own types. Holds no rule: [`crate::run::settle`] decides.

use std::time::Duration;

use bytes::Bytes;
use codemode_proto::detail::Detail;
use codemode_wire::LayerSet;

/// The last word on a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Completion value as JSON text; `None` for undefined and for every failure.
    pub value: Option<Bytes>,
    /// Log entries that the output budget let through.
    pub logs: Vec<String>,
    /// Why there is no completion.
    pub failure: Option<Failure>,
    /// What the run spent.
    pub usage: Usage,
    /// Advice for the program's author.
    pub hints: Vec<String>,
}

/// Why a run did not complete. The kind follows from the detail, so the two never disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The cause.
    pub detail: Detail,
    /// For a model or a person to read.
    pub message: String,
    /// The budget's limit, in its own unit.
    pub limit: Option<u64>,
    /// What was used or asked for, in the same unit.
    pub used: Option<u64>,
    /// The signal that ended the process.
    pub signal: Option<i32>,
    /// Where in the program.
    pub position: Option<Position>,
    /// Class name of what was thrown, or empty.
    pub error_name: String,
}

impl Failure {
    /// A failure with nothing but its cause and its message.
    #[must_use]
    pub fn new(detail: Detail, message: impl Into<String>) -> Self {
        Self {
            detail,
            message: message.into(),
            limit: None,
            used: None,
            signal: None,
            position: None,
            error_name: String::new(),
        }
    }

    /// With the budget's limit and what was used of it.
    #[must_use]
    pub const fn with_numbers(mut self, limit: u64, used: Option<u64>) -> Self {
        self.limit = Some(limit);
        self.used = used;
        self
    }

    /// With the signal that ended the process.
    #[must_use]
    pub const fn with_signal(mut self, signal: i32) -> Self {
        self.signal = Some(signal);
        self
    }
}

/// A place in the program as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in UTF-16 units, from 1.
    pub column: u32,
    /// The lines around it, see [`crate::run::excerpt`].
    pub excerpt: String,
}

/// What a run spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of the process.
    pub cpu: Duration,
    /// Elapsed time from the request's acceptance to settlement.
    pub wall: Duration,
    /// Peak resident memory of the process, bytes.
    pub peak_memory_bytes: u64,
    /// Binding calls made.
    pub binding_calls: u64,
    /// Bytes on the output ledger.
    pub output_bytes: u64,
    /// Layers in force for the process.
    pub layers: LayerSet,
    /// Where the time went.
    pub phases: Phases,
}

/// Parts of a run's elapsed time, in order; a phase that was not reached is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Waiting for a slot.
    pub admission: Duration,
    /// Erasing types.
    pub strip: Duration,
    /// Getting the process.
    pub fork: Duration,
    /// The process locking itself down.
    pub lockdown: Duration,
    /// The program, until its terminal event.
    pub run: Duration,
    /// Ending and reaping the process.
    pub settle: Duration,
}
