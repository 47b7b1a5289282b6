//! Failures of calls: a message for the model, and for the registry's own ones a name and a code.

use std::fmt;

/// What kind of failure of the registry's own it is. A tool's own failures have no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The arguments break the parameter schema.
    InvalidArgs,
    /// No such tool for this caller, or not callable in this way.
    UnknownTool,
    /// The body's value breaks the tool's own output contract.
    InvalidToolOutput,
    /// A program of `run_code` failed.
    CodeRunFailed,
    /// Aborted after the body had started.
    Aborted,
    /// Aborted before the body had started.
    AbortedBeforeDispatch,
    /// The body did not end within the tool's timeout.
    ToolTimeout,
    /// A declared schema is beyond what authors may write.
    UnsupportedSchema,
}

impl ErrorCode {
    /// Every code there is.
    pub const ALL: [Self; 8] = [
        Self::InvalidArgs,
        Self::UnknownTool,
        Self::InvalidToolOutput,
        Self::CodeRunFailed,
        Self::Aborted,
        Self::AbortedBeforeDispatch,
        Self::ToolTimeout,
        Self::UnsupportedSchema,
    ];

    /// The code: `INVALID_ARGS`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgs => "INVALID_ARGS",
            Self::UnknownTool => "UNKNOWN_TOOL",
            Self::InvalidToolOutput => "INVALID_TOOL_OUTPUT",
            Self::CodeRunFailed => "CODE_RUN_FAILED",
            Self::Aborted => "ABORTED",
            Self::AbortedBeforeDispatch => "ABORTED_BEFORE_DISPATCH",
            Self::ToolTimeout => "TOOL_TIMEOUT",
            Self::UnsupportedSchema => "UNSUPPORTED_SCHEMA",
        }
    }

    /// Name of the error: `ToolArgsError`.
    #[must_use]
    pub const fn error_name(self) -> &'static str {
        match self {
            Self::InvalidArgs => "ToolArgsError",
            Self::UnknownTool => "ToolNotFoundError",
            Self::InvalidToolOutput => "ToolOutputError",
            Self::CodeRunFailed => "CodeRunFailedError",
            Self::Aborted | Self::AbortedBeforeDispatch => "AbortError",
            Self::ToolTimeout => "ToolTimeoutError",
            Self::UnsupportedSchema => "UnsupportedSchemaError",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Machine-readable side of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorInfo {
    /// The error's name.
    pub name: String,
    /// Its code.
    pub code: String,
}

impl From<ErrorCode> for ErrorInfo {
    fn from(code: ErrorCode) -> Self {
        Self { name: code.error_name().to_owned(), code: code.as_str().to_owned() }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// For a model or a person to read; without the prefix that content has.
    pub message: String,
    /// Of failures of the registry's own, and of denials that say more.
    pub info: Option<ErrorInfo>,
}

impl ToolError {
    /// A failure without a code: a tool's own, a denial, a hook's.
    #[must_use]
    pub fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), info: None }
    }

    /// A failure of the registry's own.
    #[must_use]
    pub fn coded(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { message: message.into(), info: Some(code.into()) }
    }

    /// The abort of a call, by whether its body had started.
    #[must_use]
    pub fn aborted(body_started: bool) -> Self {
        if body_started {
            Self::coded(ErrorCode::Aborted, "tool call aborted")
        } else {
            Self::coded(ErrorCode::AbortedBeforeDispatch, "tool call aborted before dispatch")
        }
    }

    /// A tool that this caller does not have.
    #[must_use]
    pub fn unknown_tool(name: &str) -> Self {
        Self::coded(ErrorCode::UnknownTool, format!("unknown tool \"{name}\""))
    }

    /// Whether it has that code.
    #[must_use]
    pub fn is(&self, code: ErrorCode) -> bool {
        self.info.as_ref().is_some_and(|info| info.code == code.as_str())
    }
}
