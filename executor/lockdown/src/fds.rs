//! Which descriptors a runner has, and how they get their numbers.
//!
//! The numbers are fixed because the system call policy names them. They are handed out as borrowed for ever: an owned
//! one would be closed when it is dropped, and a run's process may not call `close`.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::socket::{SockType, getsockopt, sockopt};
use nix::sys::stat::Mode;

use crate::error::{Step, StepError};
use crate::sys;

/// The run's socket, and the stripping process's stream.
pub const RUN_FD: RawFd = 3;
/// The control socket, in the zygote only.
pub const CONTROL_FD: RawFd = 4;
/// The list of the process's own mappings, in V8's zygote until it is sealed.
pub const MAPS_FD: RawFd = 5;
/// The ruleset of a run's own Landlock domain, in the zygote only.
pub(crate) const RULESET_FD: RawFd = 6;
/// The process's own `/proc/self/status`, until the zygote is sealed.
pub(crate) const STATUS_FD: RawFd = 7;
/// The first number that nothing may have once the zygote is sealed.
pub(crate) const UNUSED_FD: RawFd = 7;

const STANDARD_INPUT: RawFd = 0;

/// Takes the control socket, which the process was started with as its standard input, to [`CONTROL_FD`]; puts the
/// null device on 0 and 1 (and on 2 if nothing is there); closes all others. The first call of a zygote.
///
/// # Errors
/// A step that failed. What was open may then be in any order.
pub fn claim_control() -> Result<BorrowedFd<'static>, StepError> {
    claim(CONTROL_FD, SockType::SeqPacket)?;
    sys::close_span(RUN_FD, RUN_FD).step("close descriptors")?;
    Ok(control_socket())
}

/// As [`claim_control`], for the stripping process: its stream goes to [`RUN_FD`].
///
/// # Errors
/// A step that failed.
pub fn claim_stream() -> Result<BorrowedFd<'static>, StepError> {
    claim(RUN_FD, SockType::Stream)?;
    Ok(run_socket())
}

fn claim(place: RawFd, kind: SockType) -> Result<(), StepError> {
    let input = sys::borrow(STANDARD_INPUT);
    match getsockopt(&input, sockopt::SockType) {
        Ok(found) if found == kind => {}
        Ok(_) => return Err(StepError::new("claim socket", Errno::EPROTOTYPE)),
        Err(errno) => return Err(StepError::new("claim socket", errno)),
    }
    sys::dup_to(STANDARD_INPUT, place).step("claim socket")?;
    let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()).step("open null device")?;
    let null = null.into_raw_fd();
    for standard in [0, 1, 2] {
        let keep = standard == 2 && fcntl(sys::borrow(2), FcntlArg::F_GETFD).is_ok();
        if !keep && standard != null {
            sys::dup_to(null, standard).step("open null device")?;
        }
    }
    if null > 2 {
        drop(sys::own(null));
    }
    sys::close_from(place + 1).step("close descriptors")
}

/// The run's socket by its number. Reading and writing it fails with `EBADF` where there is none.
#[must_use]
pub fn run_socket() -> BorrowedFd<'static> {
    sys::borrow(RUN_FD)
}

/// The control socket by its number.
pub(crate) fn control_socket() -> BorrowedFd<'static> {
    sys::borrow(CONTROL_FD)
}

/// Opens a file for reading and gives it a number.
pub(crate) fn open_at_number(path: &str, number: RawFd, step: &'static str) -> Result<(), StepError> {
    let file = open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).step(step)?;
    let from = file.as_fd().as_raw_fd();
    if from == number {
        // Already where it belongs; keep it.
        std::mem::forget(file);
        return Ok(());
    }
    sys::dup_to(from, number).step(step)
}
