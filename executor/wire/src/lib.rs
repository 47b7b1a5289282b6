//! The frames that cross the process boundary between the executor and its runners.
//!
//! Owns the vocabulary and its bytes, and the checker for JSON text that crosses. Knows no tokio, no engine and no
//! gRPC, reads no clock and does no I/O. Every decoder here is written against a hostile peer: it borrows from the
//! bytes it is given, allocates at most in proportion to them, and never panics.
//!
//! Start reading at [`message`] (executor and run process), [`control`] (executor and zygote) and [`strip`]
//! (executor and stripping process); [`codec`] frames them.
#![forbid(unsafe_code)]

pub mod codec;
pub mod control;
pub mod exit;
pub mod json;
pub mod layer;
pub mod limits;
pub mod message;
pub mod strip;

pub use codec::{Decoder, Frame, FrameError, Reader, Writer};
pub use layer::{Layer, LayerReport, LayerSet, LayerState};
