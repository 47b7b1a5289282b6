//! Every raw system call of this crate, one function each. Nothing outside this file is unsafe.
//!
//! `nix` is used elsewhere wherever it has a wrapper; what stands here either has none (`seccomp`, `capset`, most of
//! `prctl`, `landlock_restrict_self`, `clone` without a new stack) or has one that allocates or owns descriptors in a
//! way that a forked child cannot afford.
#![expect(unsafe_code, reason = "the leaf module for system calls without a safe wrapper")]
#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "the kernel's own widths: C ints, longs and pids go through the same registers"
)]

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;

/// One instruction of a classic BPF program.
pub(crate) type Instruction = libc::sock_filter;

/// What `clone` returned on this side of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cloned {
    Parent(i32),
    Child,
}

fn checked(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result == -1 { Err(Errno::last()) } else { Ok(result) }
}

/// Takes ownership of a descriptor that the kernel has just handed over, or that the process was started with.
pub(crate) fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: callers pass a number that they received from the kernel in the same function and own nowhere else.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A descriptor by its number, owned by nobody.
pub(crate) fn borrow(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: callers pass one of the fixed numbers of `fds`, which is never -1. Where nothing is open under it, calls
    // on it fail with EBADF; no `OwnedFd` of this crate has such a number, so none can be closed and reused under it.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: RawFd) -> Result<(), Errno> {
    close_range(first as libc::c_uint, libc::c_uint::MAX)
}

/// Closes the descriptors from `first` to `last`.
pub(crate) fn close_span(first: RawFd, last: RawFd) -> Result<(), Errno> {
    close_range(first as libc::c_uint, last as libc::c_uint)
}

fn close_range(first: libc::c_uint, last: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: no pointers. Callers hold no `OwnedFd` of such a number that they would use or drop later.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// Makes `to` a duplicate of `from`, close-on-exec unless it is one of the three standard ones.
pub(crate) fn dup_to(from: RawFd, to: RawFd) -> Result<(), Errno> {
    let flags = if to <= 2 { 0 } else { libc::O_CLOEXEC };
    // SAFETY: no pointers; whatever `to` was is replaced on purpose.
    checked(unsafe { libc::syscall(libc::SYS_dup3, from, to, flags) }).map(drop)
}

/// Puts every signal back to its default but SIGPIPE, which is ignored, and unblocks all.
pub(crate) fn reset_signals() -> Result<(), Errno> {
    for signal in 1..=64 {
        let handler = if signal == libc::SIGPIPE { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: SIG_DFL and SIG_IGN are valid for every signal; the numbers that cannot be changed (KILL, STOP and
        // those of the C library) fail with EINVAL, which is fine.
        let _previous = unsafe { libc::signal(signal, handler) };
    }
    // SAFETY: a zeroed `sigset_t` is a valid value.
    let mut none: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `none` is a live `sigset_t`.
    unsafe { libc::sigemptyset(&raw mut none) };
    // SAFETY: `none` is initialised, the old mask is not asked for.
    checked(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) }.into())
        .map(drop)
}

/// `prctl` with number arguments only.
pub(crate) fn prctl(option: libc::c_int, a: u64, b: u64) -> Result<libc::c_int, Errno> {
    // SAFETY: callers in this crate use only options whose arguments are numbers.
    let result = unsafe { libc::prctl(option, a, b, 0_u64, 0_u64) };
    checked(result.into()).map(|value| value as libc::c_int)
}

/// The address the C library had the kernel remember for this thread's id, where the kernel tells and where it really
/// holds the id (glibc's does, musl's is a lock).
pub(crate) fn thread_id_slot() -> Option<usize> {
    const PR_GET_TID_ADDRESS: libc::c_int = 40;
    let mut address: usize = 0;
    // SAFETY: the option writes one pointer-sized value to the address in its first argument, which is live.
    let result = unsafe { libc::prctl(PR_GET_TID_ADDRESS, &raw mut address, 0_u64, 0_u64, 0_u64) };
    if result != 0 || address == 0 || !address.is_multiple_of(align_of::<libc::pid_t>()) {
        return None;
    }
    // SAFETY: the address is the one that the C library registered with `set_tid_address` for this very thread; it
    // lies in the thread's own control block, which lives as long as the thread.
    let held = unsafe { ptr::read_volatile(address as *const libc::pid_t) };
    (held == nix::unistd::gettid().as_raw()).then_some(address)
}

/// Sets both limits of a resource for this process.
pub(crate) fn set_limit(resource: u32, soft: u64, hard: u64) -> Result<(), Errno> {
    let limit = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    // SAFETY: pid 0 is this process, `limit` is live, the old limit is not asked for.
    checked(unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, resource, &raw const limit, ptr::null_mut::<libc::rlimit64>())
    })
    .map(drop)
}

/// Both limits of a resource of this process.
pub(crate) fn get_limit(resource: u32) -> Result<(u64, u64), Errno> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: pid 0 is this process, no new limit is given, `limit` is live.
    checked(unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, resource, ptr::null::<libc::rlimit64>(), &raw mut limit)
    })?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

/// Empties the permitted, effective and inheritable capability sets.
pub(crate) fn drop_capabilities() -> Result<(), Errno> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    let data = [Data { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: version 3 takes a header and two data structs, all live.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) }).map(drop)
}

/// Installs a seccomp filter on this thread. Needs `no_new_privs` or the capability.
pub(crate) fn install_filter(program: &[Instruction]) -> Result<(), Errno> {
    let Ok(len) = u16::try_from(program.len()) else { return Err(Errno::E2BIG) };
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: `program` and the instructions behind it are live, and the kernel only reads them.
    checked(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) })
        .map(drop)
}

/// Enters the Landlock domain of a ruleset once more; the descriptor stays usable.
pub(crate) fn landlock_restrict(ruleset: RawFd) -> Result<(), Errno> {
    // SAFETY: no pointers.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) }).map(drop)
}

/// Forks such that the new process is a sibling of this one: a child of this process's own parent.
///
/// `thread_id_slot` is where the C library keeps the thread's id; the kernel writes the child's into it. None of the C
/// library's fork handlers run. They exist to make locks usable that other threads may hold; here there are none.
pub(crate) fn clone_as_sibling(thread_id_slot: Option<usize>) -> Result<Cloned, Errno> {
    let flags = (libc::CLONE_PARENT | libc::SIGCHLD) as libc::c_ulong;
    let (flags, slot) = match thread_id_slot {
        Some(slot) => (flags | libc::CLONE_CHILD_SETTID as libc::c_ulong, slot),
        None => (flags, 0),
    };
    // The order of the last two arguments (child's id slot, thread-local storage) differs between the two.
    #[cfg(target_arch = "x86_64")]
    let (fourth, fifth) = (slot, 0_usize);
    #[cfg(target_arch = "aarch64")]
    let (fourth, fifth) = (0_usize, slot);
    // SAFETY: without CLONE_VM and with a null stack this is fork: the child gets a copy of the memory and goes on
    // here. The caller asserts that this process has one thread, so no lock is held by a thread that the child lacks.
    // The slot is this thread's own id field (`thread_id_slot`), in the child's copy of the memory.
    let pid = checked(unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, fourth, fifth) })?;
    Ok(if pid == 0 { Cloned::Child } else { Cloned::Parent(pid as i32) })
}

/// `fork` for probes that end in `exit_now`; the child may do anything async-signal-safe, and more while single-threaded.
pub(crate) fn fork() -> Result<Cloned, Errno> {
    // SAFETY: callers assert that the process has one thread, so the child may go on as usual.
    let pid = checked(unsafe { libc::fork() }.into())?;
    Ok(if pid == 0 { Cloned::Child } else { Cloned::Parent(pid as i32) })
}

/// Ends the process at once: no destructors, no exit handlers, no flushing. A forked child must run none of its zygote's.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: always allowed.
    unsafe { libc::_exit(code) }
}
