//! The runner: the process that holds untrusted code.
//!
//! One binary an engine, three roles by its one argument: `zygote` boots the engine and forks a process for each
//! run; `once` boots and becomes the run's process itself; `strip` erases types. A fourth, `snapshot`, belongs to the
//! build: it prints the start-up snapshot that `once` boots from. Only this crate links an engine and
//! a parser of programs. Nothing here is trusted by the executor.

mod alloc;
mod channel;
#[cfg(feature = "quickjs")]
mod collation;
mod engine;
mod heap;
mod ops;
mod program;
mod snapshot;
mod stripper;
mod sys;
mod zygote;

use codemode_lockdown::Role;

/// Exit code for arguments that are not a role (`EX_USAGE`).
const EXIT_USAGE: u8 = 64;

/// The whole of the binaries' `main`. Returns only when the argument is not a role.
pub fn main() -> std::process::ExitCode {
    sys::set_engine_environment();
    match std::env::args().nth(1).as_deref() {
        Some("zygote") => zygote::run(Role::Zygote),
        Some("once") => zygote::run(Role::Once),
        Some("strip") => stripper::run(),
        Some("snapshot") => snapshot::write(),
        _ => std::process::ExitCode::from(EXIT_USAGE),
    }
}
