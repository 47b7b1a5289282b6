//! Why a runtime could not give an outcome: misuse of the seam, or a service that was not there.
//!
//! A program's failure is never one of these.

use std::fmt::Write as _;
use std::time::Duration;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The request breaks the contract; all faults are named. The same request will fail again. Nothing ran.
    #[error("invalid request: {message}")]
    InvalidRequest {
        /// The faults.
        message: String,
    },
    /// A required sandbox layer or a pinned engine is not in force there. Nothing ran.
    #[error("precondition not met: {message}")]
    FailedPrecondition {
        /// Which one.
        message: String,
    },
    /// The executors let nobody in who shows no or not the right credentials. Nothing ran.
    #[error("not allowed: {message}")]
    NotAllowed {
        /// What the service said.
        message: String,
    },
    /// No slot within the queue's bounds, on no executor, in no attempt. Nothing ran.
    #[error("overloaded: {message}")]
    Overloaded {
        /// What the service said.
        message: String,
        /// When to try again, where the service gave advice.
        retry_after: Option<Duration>,
    },
    /// No executor could be reached, or the one reached is draining. Nothing ran.
    #[error("no executor available at {endpoint}: {message}")]
    Unavailable {
        /// The endpoint tried last.
        endpoint: String,
        /// What the service or the network said.
        message: String,
    },
    /// The connection broke, or the service did.
    #[error("connection to {endpoint} lost {}: {message}", if *after_start { "after the run had started" } else { "before the run started" })]
    Transport {
        /// The endpoint.
        endpoint: String,
        /// What the network or the service said.
        message: String,
        /// Whether the run had started: the program may have acted, so it was not and must not be replayed.
        after_start: bool,
    },
    /// The caller's deadline passed and the run did not settle in time.
    #[error("deadline of {}ms exceeded {}", deadline.as_millis(), if *after_start { "after the run had started" } else { "before the run started" })]
    DeadlineExceeded {
        /// The deadline, from the call of `run`.
        deadline: Duration,
        /// Whether the run had started.
        after_start: bool,
    },
    /// The executor broke the contract.
    #[error("executor at {endpoint} broke the contract: {fault}")]
    Contract {
        /// The endpoint.
        endpoint: String,
        /// What it did.
        fault: String,
        /// Whether the run had started.
        after_start: bool,
    },
    /// The executor speaks a version of the contract that this client does not.
    #[error("executor speaks contract `{found}`, this client speaks `{spoken}`")]
    Incompatible {
        /// The executor's version.
        found: String,
        /// Ours.
        spoken: &'static str,
    },
    /// The settings of the runtime cannot work.
    #[error(transparent)]
    Config(#[from] crate::grpc::ConfigError),
    /// The runtime was disposed of.
    #[error("run after disposal")]
    Disposed,
}

impl RuntimeError {
    /// Whether the program may have acted although there is no outcome.
    #[must_use]
    pub const fn may_have_acted(&self) -> bool {
        match self {
            Self::Transport { after_start, .. }
            | Self::DeadlineExceeded { after_start, .. }
            | Self::Contract { after_start, .. } => *after_start,
            Self::InvalidRequest { .. }
            | Self::FailedPrecondition { .. }
            | Self::NotAllowed { .. }
            | Self::Overloaded { .. }
            | Self::Unavailable { .. }
            | Self::Incompatible { .. }
            | Self::Config(_)
            | Self::Disposed => false,
        }
    }
}

/// An error and its sources in one line, outermost first, without repeating a text that already holds the next.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        if !text.contains(&next) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {next}");
        }
        source = cause.source();
    }
    text
}
