//! Words of the policy file and the numbers they stand for on this architecture.

/// Number of a system call. Names that an architecture does not have are unknown there.
pub(super) fn syscall(name: &str) -> Option<u32> {
    let number =
        SYSCALLS.iter().chain(ONLY_HERE).find_map(|(known, number)| (*known == name).then_some(*number))?;
    u32::try_from(number).ok()
}

/// An error number.
pub(super) fn errno(name: &str) -> Option<i32> {
    Some(match name {
        "EACCES" => libc::EACCES,
        "EINVAL" => libc::EINVAL,
        "ENOENT" => libc::ENOENT,
        "ENOSYS" => libc::ENOSYS,
        "ENOTTY" => libc::ENOTTY,
        "EPERM" => libc::EPERM,
        _ => return None,
    })
}

/// A flag or option.
pub(super) fn constant(name: &str) -> Option<u64> {
    CONSTANTS.iter().find_map(|(known, value)| (*known == name).then_some(*value))
}

macro_rules! syscalls {
    ($($name:literal => $number:ident),* $(,)?) => { &[$(($name, libc::$number)),*] };
}

const SYSCALLS: &[(&str, libc::c_long)] = syscalls![
    "brk" => SYS_brk,
    "clock_gettime" => SYS_clock_gettime,
    "clock_nanosleep" => SYS_clock_nanosleep,
    "clone" => SYS_clone,
    "clone3" => SYS_clone3,
    "close" => SYS_close,
    "close_range" => SYS_close_range,
    "dup3" => SYS_dup3,
    "exit" => SYS_exit,
    "exit_group" => SYS_exit_group,
    "faccessat" => SYS_faccessat,
    "faccessat2" => SYS_faccessat2,
    "fcntl" => SYS_fcntl,
    "fstat" => SYS_fstat,
    "futex" => SYS_futex,
    "getcwd" => SYS_getcwd,
    "getpid" => SYS_getpid,
    "getppid" => SYS_getppid,
    "getrandom" => SYS_getrandom,
    "getrusage" => SYS_getrusage,
    "gettid" => SYS_gettid,
    "gettimeofday" => SYS_gettimeofday,
    "ioctl" => SYS_ioctl,
    "landlock_restrict_self" => SYS_landlock_restrict_self,
    "madvise" => SYS_madvise,
    "membarrier" => SYS_membarrier,
    "mmap" => SYS_mmap,
    "mprotect" => SYS_mprotect,
    "mremap" => SYS_mremap,
    "munmap" => SYS_munmap,
    "nanosleep" => SYS_nanosleep,
    "newfstatat" => SYS_newfstatat,
    "openat" => SYS_openat,
    "openat2" => SYS_openat2,
    "pkey_alloc" => SYS_pkey_alloc,
    "pkey_free" => SYS_pkey_free,
    "pkey_mprotect" => SYS_pkey_mprotect,
    "ppoll" => SYS_ppoll,
    "prctl" => SYS_prctl,
    "prlimit64" => SYS_prlimit64,
    "read" => SYS_read,
    "readlinkat" => SYS_readlinkat,
    "recvmsg" => SYS_recvmsg,
    "restart_syscall" => SYS_restart_syscall,
    "rseq" => SYS_rseq,
    "rt_sigaction" => SYS_rt_sigaction,
    "rt_sigprocmask" => SYS_rt_sigprocmask,
    "rt_sigreturn" => SYS_rt_sigreturn,
    "sched_getaffinity" => SYS_sched_getaffinity,
    "sched_yield" => SYS_sched_yield,
    "seccomp" => SYS_seccomp,
    "sigaltstack" => SYS_sigaltstack,
    "statx" => SYS_statx,
    "sysinfo" => SYS_sysinfo,
    "tgkill" => SYS_tgkill,
    "uname" => SYS_uname,
    "write" => SYS_write,
];

#[cfg(target_arch = "x86_64")]
const ONLY_HERE: &[(&str, libc::c_long)] = syscalls![
    "access" => SYS_access,
    "lstat" => SYS_lstat,
    "open" => SYS_open,
    "poll" => SYS_poll,
    "readlink" => SYS_readlink,
    "stat" => SYS_stat,
    "time" => SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const ONLY_HERE: &[(&str, libc::c_long)] = &[];

/// As the kernel's headers have them. All are small and not negative.
macro_rules! constants {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), libc::$name as u64)),*] };
}

const CONSTANTS: &[(&str, u64)] = constants![
    CLOCK_BOOTTIME,
    CLOCK_MONOTONIC,
    CLOCK_MONOTONIC_COARSE,
    CLOCK_PROCESS_CPUTIME_ID,
    CLOCK_REALTIME,
    CLOCK_REALTIME_COARSE,
    CLOCK_THREAD_CPUTIME_ID,
    CLONE_CHILD_SETTID,
    CLONE_PARENT,
    F_GETFD,
    FUTEX_CLOCK_REALTIME,
    FUTEX_PRIVATE_FLAG,
    FUTEX_WAIT,
    FUTEX_WAIT_BITSET,
    FUTEX_WAKE,
    FUTEX_WAKE_BITSET,
    GRND_INSECURE,
    GRND_NONBLOCK,
    MADV_DODUMP,
    MADV_DONTDUMP,
    MADV_DONTFORK,
    MADV_DONTNEED,
    MADV_FREE,
    MADV_HUGEPAGE,
    MADV_NOHUGEPAGE,
    MADV_NORMAL,
    MAP_ANONYMOUS,
    MAP_DROPPABLE,
    MAP_FIXED,
    MAP_FIXED_NOREPLACE,
    MAP_NORESERVE,
    MAP_PRIVATE,
    MAP_STACK,
    MREMAP_MAYMOVE,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
    PR_GET_DUMPABLE,
    PR_SET_PDEATHSIG,
    SECCOMP_SET_MODE_FILTER,
    SIGABRT,
    SIGCHLD,
];
