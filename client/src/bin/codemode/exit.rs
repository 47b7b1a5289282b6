//! Exit codes, and the problems that lead to them. A program's failure is no problem: it has an outcome.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use codemode_client::RuntimeError;

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The program completed, or there was nothing to run.
    Completed,
    /// The program failed: the outcome says how.
    Failed,
    /// The command line, the program's file or the request is wrong (`EX_USAGE`).
    Usage,
    /// No service: executor or tool server (`EX_UNAVAILABLE`).
    Unavailable,
    /// Standard output took not all (`EX_IOERR`).
    Output,
    /// Ended by that signal, after the run was settled.
    Signal(u8),
}

impl Exit {
    const fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Usage => 64,
            Self::Unavailable => 69,
            Self::Output => 74,
            Self::Signal(number) => 128 + number,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Why there is no outcome, and what to do about it.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) exit: Exit,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Problem {
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, error: error.into(), hint: None }
    }

    pub(crate) fn unavailable(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Unavailable, error: error.into(), hint: None }
    }

    /// What was to be printed is lost.
    pub(crate) fn output(error: std::io::Error) -> Self {
        Self { exit: Exit::Output, error: error.into(), hint: None }
            .context("cannot write to standard output")
    }

    pub(crate) fn context(self, context: impl fmt::Display + Send + Sync + 'static) -> Self {
        Self { error: self.error.context(context), ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn print(&self) {
        let mut stderr = std::io::stderr().lock();
        // Where standard error is closed, nobody is listening.
        let _ = writeln!(stderr, "codemode: {:#}", self.error);
        if let Some(hint) = &self.hint {
            let _ = writeln!(stderr, "hint: {hint}");
        }
    }
}

impl From<RuntimeError> for Problem {
    fn from(error: RuntimeError) -> Self {
        let (exit, hint) = match &error {
            RuntimeError::InvalidRequest { .. } => (
                Exit::Usage,
                Some("`codemode describe` shows the executor's budgets, which a run can only tighten"),
            ),
            RuntimeError::Config(_) => (Exit::Usage, None),
            RuntimeError::FailedPrecondition { .. } => (
                Exit::Unavailable,
                Some("`codemode describe` shows the engines and the layers in force, and why others are not"),
            ),
            RuntimeError::Overloaded { .. } => {
                (Exit::Unavailable, Some("all slots are taken; try again later"))
            }
            RuntimeError::Unavailable { .. } => (
                Exit::Unavailable,
                Some(
                    "is the executor running at that address? Without `--executor` a private one is started",
                ),
            ),
            error if error.may_have_acted() => (
                Exit::Unavailable,
                Some("the program may have acted before the connection was lost; it was not run again"),
            ),
            _ => (Exit::Unavailable, None),
        };
        Self { exit, error: error.into(), hint: hint.map(str::to_owned) }
    }
}
