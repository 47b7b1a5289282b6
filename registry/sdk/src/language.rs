//! The languages that programs are written in.

use std::fmt;
use std::str::FromStr;

/// A language with a renderer of declarations and a wording of `run_code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// TypeScript, types erased.
    TypeScript,
    /// Python.
    Python,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 2] = [Self::TypeScript, Self::Python];

    /// The name that a runtime gives as its language.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::Python => "python",
        }
    }

    /// The known names as an error lists them: `"typescript", "python"`.
    #[must_use]
    pub fn known() -> String {
        Self::ALL.map(|language| format!("\"{language}\"")).join(", ")
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(name: &str) -> Result<Self, UnknownLanguage> {
        let found = Self::ALL.into_iter().find(|language| language.name() == name);
        found.ok_or_else(|| UnknownLanguage { name: name.to_owned() })
    }
}

/// A runtime's language that nothing is known of. Its message is what an assembly says; for whoever reads `run_code`'s
/// schema, [`UnknownLanguage::for_schema`] is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no SDK renderer registered for runtime language \"{name}\" (known: {})", Language::known())]
pub struct UnknownLanguage {
    /// The name that was asked for.
    pub name: String,
}

impl UnknownLanguage {
    /// The message for whoever reads the schema of `run_code` directly.
    #[must_use]
    pub fn for_schema(&self) -> String {
        format!(
            "no run_code schema flavor registered for runtime language \"{}\" (known: {})",
            self.name,
            Language::known()
        )
    }
}
