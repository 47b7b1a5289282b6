//! From the TypeScript a model sends to JavaScript that means the same, every line and column where it was.
//!
//! Pure: text in, text or refusal out. Runs nothing, reads nothing, keeps nothing between programs. It is the only
//! crate that links a TypeScript parser, and only the stripping process uses it.
//!
//! A program goes through these stations, start reading at `strip`: `text` blanks what is no program text (byte
//! order mark, shebang, Markdown fence); `nesting` refuses what would overflow the stack; `parse` reads it as
//! TypeScript; `shape` decides how it is to be run; `erase` blanks its types in the text; `oracle` drops the
//! types from the tree; `verify` reads the blanked text as JavaScript and compares the two trees. Whatever differs is
//! refused: a silent miscompile is the worst fault there is.

mod early;
mod edit;
mod erase;
mod foreign;
mod line_words;
mod nesting;
mod oracle;
mod parse;
mod refusal;
mod satisfies;
mod scan;
mod shape;
mod text;
mod verify;

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;

use codemode_wire::message::Shape;

use crate::refusal::Refusal;

/// What became of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StripResult {
    /// JavaScript that means what the TypeScript meant.
    Stripped {
        /// How to run the text.
        shape: Shape,
        /// The text, every line and column where it was in the program. Columns are UTF-16 units.
        source: String,
        /// Advice for the author, e.g. that a function is defined and never called.
        hints: Vec<String>,
    },
    /// Not a program that can run.
    Refused {
        /// One line: what is wrong, what to write instead, and the place in words.
        message: String,
        /// Line in the program, from 1; 0 if unknown.
        line: u32,
        /// Column in UTF-16 units, from 1; 0 if unknown.
        column: u32,
    },
}

/// Erases the types of one program, or says why it cannot run.
///
/// Never panics. Maps 256 MiB of stack for the time of the call and touches as much of it as the program is deep. A
/// program built to be deep in a way that the scan for brackets does not see can still overflow it, and one built to
/// make the parser try and try again can take long: call this where the process may die and its time is bounded.
#[must_use]
pub fn strip(program: &str) -> StripResult {
    let answer = std::panic::catch_unwind(|| nesting::on_deep_stack(|| stations(program)));
    match answer {
        Ok(Ok(stripped)) => stripped,
        Ok(Err(refusal)) => {
            let (line, column) = refusal.place;
            StripResult::Refused { message: refusal.to_string(), line, column }
        }
        Err(_) => StripResult::Refused {
            message: "the program is beyond what the parser can read; write it more plainly".to_owned(),
            line: 0,
            column: 0,
        },
    }
}

/// Does once what the first program would do: to be called before a process gives up the right to open files, since
/// finding the end of the main stack reads `/proc/self/maps`.
pub fn warm_up() {
    let _ = strip("const x: number = 1; return [`${x}`, /x/u, x as unknown] satisfies unknown[];");
}

fn stations(program: &str) -> Result<StripResult, Refusal> {
    let text = text::normalise(program)?;
    nesting::check(&text)?;
    let mut tree = match parse::typescript(&text) {
        Ok(tree) => tree,
        Err(fault) => parse::lone_function(&text).ok_or_else(|| foreign::explain(&text, &fault))?,
    };
    if let Some(refusal) = foreign::disguised(&text, &tree) {
        return Err(refusal);
    }
    let plan = shape::plan(&tree);
    let hints = shape::hints(&tree, &plan);
    let edits = erase::erase(&text, &tree, &plan)?;
    let source = edits.apply(&text);
    oracle::erase(&mut tree, &plan);
    verify::verify(&source, &tree, &plan, &edits)?;
    Ok(StripResult::Stripped { shape: plan.shape(), source, hints })
}
