//! Tools, and what happens when a model or a program calls one.
//!
//! A harness registers tools and hooks in a [`Registry`], asks it for the [`present::Assembly`] of each model request, and
//! has it make the calls of the model's answer. Programs that the model writes run through the [`CodeRuntime`] seam of
//! the client crate; their calls pass the same pipeline as the model's own.
//!
//! Start reading at [`Registry`]. The rooms: [`tool`] what a tool is, [`schema`] and [`json`] values and what breaks them,
//! [`store`] who sees what, [`present`] modes and prompts, [`pipeline`] the stages of a call, [`policy`] rules without
//! code, `lane` and `run_code` programs and their calls, [`agent`] pieces of an agent loop. With the feature `service`, `service`
//! is all of it over gRPC, `server` what that listens on, `config` what an operator decides.
//!
//! [`CodeRuntime`]: codemode_client::CodeRuntime
#![forbid(unsafe_code)]

pub mod agent;
#[cfg(feature = "service")]
pub mod config;
pub mod error;
pub mod hook;
pub mod json;
mod lane;
pub mod pipeline;
pub mod policy;
pub mod present;
mod registry;
mod run_code;
pub mod schema;
#[cfg(feature = "service")]
pub mod server;
#[cfg(feature = "service")]
pub mod service;
pub mod settings;
mod signal;
pub mod store;
pub mod tool;

pub use agent::Agent;
pub use error::{RUN_CODE, RegistryError};
pub use hook::HookError;
pub use pipeline::CallRequest;
pub use present::{Assembly, Mode, Surface};
pub use registry::Registry;
pub use settings::Settings;
pub use signal::Signal;
pub use store::{Registration, Restriction, Scope, ScopeId};
pub use tool::{CallResult, ToolDefinition};
