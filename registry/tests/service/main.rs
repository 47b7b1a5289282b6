//! The service end to end over gRPC, in this process: a scripted runtime where programs run, harnesses as clients.

mod approvals;
mod cancelling;
mod draining;
mod harness;
mod hooks;
mod journal;
mod reload;
mod sessions;
mod support;
