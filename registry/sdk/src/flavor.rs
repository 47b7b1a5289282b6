//! The wording of `run_code` for each language: what a model reads about the one tool that it calls directly.
//!
//! Both texts name both arguments: a model that is told of a program only sends a program only, and loses it.

use serde_json::{Value, json};

use crate::RUN_CODE;
use crate::language::Language;

/// What a model is told about `run_code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flavor {
    /// The tool's description.
    pub tool: &'static str,
    /// The description of the argument `code`.
    pub code: &'static str,
    /// The description of the argument `description`.
    pub description: &'static str,
}

const DESCRIPTION: &str = "What the program does, in 5 to 10 words in active voice. It is shown to the user while the program runs.";

const TYPESCRIPT: Flavor = Flavor {
    tool: "Runs a TypeScript program that may call your tools, and gives back what it prints and returns. Takes two \
           required arguments: `code`, the program, and `description`, what it does in 5 to 10 words. The tools' \
           declarations and the rules for programs are in the system prompt.",
    code: "The body of an async TypeScript function, in erasable syntax only. Call tools with `await \
           tools.name(args)`; print with `console.log` or `return` what you need to see.",
    description: DESCRIPTION,
};

const PYTHON: Flavor = Flavor {
    tool: "Runs a Python program that may call your tools, and gives back what it prints and returns. Takes two \
           required arguments: `code`, the program, and `description`, what it does in 5 to 10 words. The tools' \
           declarations and the rules for programs are in the system prompt.",
    code: "The body of an async Python function. Call tools with `await tools.name(args)`; `print` or `return` what \
           you need to see.",
    description: DESCRIPTION,
};

/// The wording for a language.
#[must_use]
pub const fn flavor(language: Language) -> Flavor {
    match language {
        Language::TypeScript => TYPESCRIPT,
        Language::Python => PYTHON,
    }
}

impl Flavor {
    /// The schema of the arguments. Other keys are allowed: the root is open.
    #[must_use]
    pub fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "code": { "type": "string", "description": self.code },
                "description": { "type": "string", "description": self.description },
            },
            "required": ["code", "description"],
        })
    }

    /// The tool as a model API lists it: name, description, parameters.
    #[must_use]
    pub fn listed(&self) -> Value {
        json!({ "name": RUN_CODE, "description": self.tool, "parameters": self.parameters() })
    }
}
