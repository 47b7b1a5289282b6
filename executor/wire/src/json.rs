//! The iterative checker for lossless JSON text, and the byte arithmetic of the output ledger.
//!
//! [`check()`] decides whether bytes of a hostile peer are exactly one lossless JSON text: the grammar of RFC 8259,
//! every number a double holds without loss, no key twice in one object. It keeps a few bytes for each open level
//! and each key of an open object, never a tree, and never recurses; values stay opaque text everywhere else.
//!
//! [`StringLiteral`], [`cost_of_str`] and [`prefix_of_str`] count what the output ledger counts: the bytes of a
//! JSON string literal in canonical escapes, `"` and `\` and `\b \t \n \f \r` as two bytes, every other C0 control
//! and half surrogate as six, all else as UTF-8. A literal can only be longer than its canonical form, never
//! shorter, so a literal's cost is its own length and forged escapes gain nothing.

mod check;
mod literal;

pub use check::{JsonFault, check, check_as};
pub use literal::{StringLiteral, cost_of_str, prefix_of_str, quote};

#[cfg(test)]
mod tests;
