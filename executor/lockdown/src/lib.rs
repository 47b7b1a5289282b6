//! What a runner process gives up before it touches a program, in which order, and how each layer stands.
//!
//! Owns the system call policy (`policy/seccomp.toml`), the steps by which the zygote and each run's process restrict
//! themselves, the fork between the two, and the packets on the control socket. Links no engine and no async runtime;
//! never sees a program. `README.md` beside this crate lists the layers with what each defends against and the test
//! that shows it.
//!
//! A runner calls, in this order and while it has a single thread:
//!
//! 1. [`claim_control`] (or [`claim_stream`]): the socket it was started with gets its place, all else is closed;
//! 2. [`confine_zygote`], once it has read its [`BootRequest`](codemode_wire::control::BootRequest): everything that can be given up
//!    before the engine boots;
//! 3. [`Confined::seal`], after the engine has booted: Landlock and the system call allowlist;
//! 4. [`Sealed::fork`], per run;
//! 5. [`Sealed::confine_child`], in the run's process, before it says hello.
//!
//! The types follow the order: only a [`Sealed`] can fork, only a [`Locked`] has a run's socket to read a program from.
//! Every step has a name, and the first failure ends it: a process that is not locked down never gets a program.

mod bpf;
pub mod cgroup;
mod child;
mod domain;
mod engine;
mod error;
mod fds;
mod limits;
mod namespaces;
pub mod policy;
mod privileges;
mod probe;
mod proc_status;
pub mod socket;
mod sys;
mod zygote;

pub use bpf::{CompileError, Program};
pub use child::{ChildPlan, Locked};
pub use engine::{Engine, Role};
pub use error::StepError;
pub use fds::{CONTROL_FD, MAPS_FD, RUN_FD, claim_control, claim_stream, run_socket};
pub use probe::probe;
pub use sys::exit_now;
pub use zygote::{Confined, Fork, Sealed, confine_zygote};
