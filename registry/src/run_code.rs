//! The reserved tool `run_code`: runs a program whose functions are the caller's tools.
//!
//! `bindings` is what the program sees, `catalogue` what it sees where the tools are too many to be declared, `calls` what happens to each of its calls, `log_writer` what is written of them,
//! `run` the life of one program from start to rest, `output` what it comes to.

mod bindings;
mod calls;
mod catalogue;
mod log_writer;
mod output;
mod run;
mod transport;

pub(crate) use transport::transport;

/// Source of the messages that carry images of sub-results.
pub(crate) const IMAGE_SOURCE: &str = "tools-code-mode";
