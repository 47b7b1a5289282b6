//! Presentation modes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How tools are presented to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Each tool by itself. Nothing of Code Mode is there.
    #[default]
    Native,
    /// `run_code` alone; all other tools are reached from its programs.
    Code,
    /// Both ways.
    Both,
}

impl Mode {
    /// The mode's name: `code`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Code => "code",
            Self::Both => "both",
        }
    }

    /// Whether tools are listed one by one.
    #[must_use]
    pub const fn lists_tools(self) -> bool {
        matches!(self, Self::Native | Self::Both)
    }

    /// Whether `run_code` is there.
    #[must_use]
    pub const fn has_transport(self) -> bool {
        matches!(self, Self::Code | Self::Both)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
