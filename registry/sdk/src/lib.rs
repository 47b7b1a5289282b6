//! What a model is shown of the tools that its programs may call: declarations in TypeScript or Python, made from JSON
//! Schemas of any quality, and the wording of `run_code`.
//!
//! Pure: definitions in, text out; no file, no connection, no clock. Total: whatever a schema is, there is an answer,
//! in time and size about linear in it; only the node that a language cannot say becomes `unknown` or `Any`. Stable:
//! the same tools give the same bytes in any order. Names and descriptions are data: nothing in them ends a string, a
//! comment, a docstring or a fence.
//!
//! ```
//! use codemode_sdk::{Language, Sdk, SdkOptions, ToolSignature};
//! use serde_json::json;
//!
//! let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
//! let tool = ToolSignature::new("read_file", "Reads a file.", Some(schema), Some(json!({"type": "string"})));
//! let sdk = Sdk::build(&[tool], SdkOptions::default());
//! assert!(sdk.text(Language::TypeScript).contains("path: string;"));
//! assert_eq!(sdk.names().collect::<Vec<_>>(), ["read_file"]);
//! ```
//!
//! Start reading at `schema`, which turns a schema into a graph of types; `typescript` and `python` write that graph;
//! `sdk` puts tools together; `catalogue` is what is shown where not all fits.

#![forbid(unsafe_code)]

mod catalogue;
mod example;
pub mod flavor;
mod language;
mod names;
mod python;
mod schema;
mod sdk;
mod signature;
mod text;
mod typescript;

pub use catalogue::{Described, Found, FoundTool};
pub use language::{Language, UnknownLanguage};
pub use sdk::{BYTES_PER_TOKEN, Sdk, SdkOptions, estimated_tokens};
pub use signature::{ContentKey, ToolSignature};

/// The tool that runs programs: never among those that programs call.
pub const RUN_CODE: &str = "run_code";
