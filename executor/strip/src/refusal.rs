//! Why a program cannot run, and where. The only error type of the crate.

use crate::scan;

/// A program refused, with its place.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message} (line {}, column {})", place.0, place.1)]
pub(crate) struct Refusal {
    /// What is wrong and what to write instead; one line.
    pub(crate) message: String,
    /// Line and UTF-16 column, each from 1.
    pub(crate) place: (u32, u32),
}

impl Refusal {
    /// A refusal at a byte offset of a text whose lines and columns are the program's own.
    pub(crate) fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let message = message.into();
        let message = if message.contains(scan::is_line_terminator) {
            message.split(scan::is_line_terminator).map(str::trim).collect::<Vec<_>>().join(" ")
        } else {
            message
        };
        Self { message, place: scan::place(text, offset) }
    }
}
