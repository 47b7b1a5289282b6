//! The executor: runs untrusted programs in fresh, locked-down processes, and serves that over gRPC.
//!
//! It links no engine and no parser of programs, and believes nothing that a child process says. Start reading at [`run`]
//! (one run), [`supervisor`] (child processes) and [`server`] (the face); [`config`] is what an operator decides.

pub mod admission;
pub mod bridge;
pub mod config;
pub mod context;
pub mod outcome;
pub mod run;
pub mod server;
pub mod service;
pub mod supervisor;
pub mod telemetry;
