//! The kernel's handle on a child process: open, signal, wait. A leaf, and the only unsafe code of the executor.
//!
//! A process is never signalled or awaited by its number: numbers are used again, descriptors are not. (The number is
//! used once, to open the descriptor, while the process is our own unreaped child and so cannot have been replaced.)
#![expect(unsafe_code, reason = "nix and std wrap neither pidfds nor a wait that answers resource usage")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::run::attribution::Exit;

/// How a process ended and what it had used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Code or signal.
    pub(crate) exit: Exit,
    /// User and system time.
    pub(crate) cpu: Duration,
    /// Peak resident memory, bytes. What it shared with its zygote at the fork is in it.
    pub(crate) peak_memory_bytes: u64,
    /// Whether the kernel killed it because its control group was out of memory.
    pub(crate) memory_killed: bool,
}

/// A descriptor for our child `pid`, close-on-exec.
pub(crate) fn open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and touches no memory of ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned the descriptor, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether the process is an unreaped child of ours.
///
/// # Errors
/// `ECHILD` if it is not.
pub(crate) fn check_child(fd: BorrowedFd<'_>) -> io::Result<()> {
    // Looks without waiting, and leaves an ended child to be reaped.
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    waitid(Id::PIDFd(fd), look)?;
    Ok(())
}

/// Watches a descriptor with the runtime's reactor. Must run inside a tokio runtime.
pub(crate) fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd answers one and the same open descriptor as long as it lives, and the AsyncFd owns it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

/// Whether the process has ended. What cannot be asked counts as ended.
pub(crate) fn is_ended(fd: BorrowedFd<'_>) -> bool {
    !matches!(poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::ZERO), Ok(0))
}

/// Whether the process neither has ended nor is stopped by a signal. What cannot be asked is not running.
pub(crate) fn is_running(fd: BorrowedFd<'_>) -> bool {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    matches!(waitid(Id::PIDFd(fd), look), Ok(WaitStatus::StillAlive))
}

/// Sends SIGKILL. A process that has ended already, reaped or not, is no error.
pub(crate) fn kill(fd: BorrowedFd<'_>) -> io::Result<()> {
    let none: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: pidfd_send_signal reads the siginfo only if it is not null; the descriptor is open while borrowed.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), libc::SIGKILL, none, 0) };
    if sent == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        error => Err(error),
    }
}

/// Reaps the process; blocks until it has ended.
///
/// # Errors
/// `ECHILD` if somebody else has reaped it, which nobody but this module may do.
pub(crate) fn reap(fd: BorrowedFd<'_>) -> io::Result<Ended> {
    loop {
        match wait(fd) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn wait(fd: BorrowedFd<'_>) -> io::Result<Ended> {
    // SAFETY: siginfo_t is plain integers and unions of them, for which all zeroes is a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: rusage is plain integers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: waitid writes one siginfo_t and one rusage, to live and exclusive borrows of just these types. The libc
    // wrapper lacks the fifth argument, which the system call has.
    let waited = unsafe {
        libc::syscall(
            libc::SYS_waitid,
            libc::P_PIDFD,
            fd.as_raw_fd(),
            &raw mut info,
            libc::WEXITED | libc::__WALL,
            &raw mut usage,
        )
    };
    if waited != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: waitid succeeded with WEXITED, so the kernel has filled in the fields of SIGCHLD.
    let status = unsafe { info.si_status() };
    let exit = if info.si_code == libc::CLD_EXITED { Exit::Code(status) } else { Exit::Signal(status) };
    let kibibytes = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    Ok(Ended {
        exit,
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        peak_memory_bytes: kibibytes.saturating_mul(1024),
        memory_killed: false,
    })
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
