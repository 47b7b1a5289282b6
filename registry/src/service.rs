//! The gRPC face, `codemode.registry.v1`: prost types come in and go out here and nowhere deeper.
//!
//! Start reading at `rpc`, which has every method in a few lines. `session` and `sessions` own what is open, `calls` makes
//! calls that end in order when their caller goes away, `journal` is the session log's face, `harness` owns one stream of
//! `Serve` and everything that is registered over it, `approvals` routes questions to whoever offered to answer them.

mod approvals;
mod assemble;
mod calls;
mod content;
mod context;
mod convert;
mod harness;
mod journal;
mod rpc;
mod session;
mod sessions;
mod status;

pub use context::{Context, Programs};
pub use rpc::Service;
