//! What the end of a process means, when the executor did not end it and the process said nothing. Pure table.
//!
//! Everything here was decided by the kernel or by untrusted code: an exit code is a hint, a signal is a fact.

use codemode_proto::detail::Detail;
use codemode_wire::exit;

use super::budget::Budgets;
use crate::outcome::Failure;

/// CPU time short of the hard limit that still counts as reaching it, milliseconds: one scheduler tick and rounding.
const TICK_MS: u64 = 20;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

/// Why the process ended, and whether its channel ended inside a frame.
#[must_use]
pub fn attribute(exit: Exit, inside_frame: bool, cpu_ms: u64, budgets: &Budgets) -> Failure {
    match exit {
        Exit::Code(_) if inside_frame => {
            Failure::new(Detail::Protocol, "protocol violation: the process exited inside a frame")
        }
        Exit::Code(code) => {
            let meaning = exit::meaning(code).map(|meaning| format!(": {meaning}")).unwrap_or_default();
            Failure::new(Detail::Exit, format!("worker exited with code {code} before completing{meaning}"))
        }
        Exit::Signal(libc::SIGSYS) => Failure::new(
            Detail::ForbiddenSyscall,
            "worker ended by SIGSYS: it made a system call that the sandbox forbids",
        )
        .with_signal(libc::SIGSYS),
        Exit::Signal(libc::SIGXCPU) => compute(budgets, cpu_ms).with_signal(libc::SIGXCPU),
        Exit::Signal(libc::SIGKILL) if cpu_ms + TICK_MS >= hard_cpu_ms(budgets) => {
            compute(budgets, cpu_ms).with_signal(libc::SIGKILL)
        }
        Exit::Signal(libc::SIGKILL) => Failure::new(
            Detail::Signal,
            "worker ended by SIGKILL, not sent by the executor: the machine ran out of memory, or an operator did it",
        )
        .with_signal(libc::SIGKILL),
        Exit::Signal(signal) => {
            let message = format!("worker ended by {} before completing", signal_name(signal));
            Failure::new(Detail::Signal, message).with_signal(signal)
        }
    }
}

/// The kernel killed the process because its control group was out of memory.
#[must_use]
pub fn memory(budgets: &Budgets) -> Failure {
    let limit = budgets.heap_bytes;
    let message = format!("heap budget exhausted ({limit} bytes): the kernel killed the process");
    Failure::new(Detail::HeapBytes, message).with_numbers(limit, None).with_signal(libc::SIGKILL)
}

/// The compute budget is spent.
#[must_use]
pub fn compute(budgets: &Budgets, cpu_ms: u64) -> Failure {
    let limit = budgets.compute_ms;
    Failure::new(Detail::ComputeMs, format!("compute budget exhausted ({limit}ms busy)"))
        .with_numbers(limit, Some(cpu_ms))
}

/// Soft limit of `RLIMIT_CPU` for a budget, seconds: the kernel's backstop comes after the executor's own end.
#[must_use]
pub fn soft_cpu_seconds(budgets: &Budgets) -> u32 {
    u32::try_from(budgets.compute_ms.div_ceil(1000) + 1).unwrap_or(u32::MAX - 1)
}

fn hard_cpu_ms(budgets: &Budgets) -> u64 {
    (u64::from(soft_cpu_seconds(budgets)) + 1) * 1000
}

/// Whether the end suggests that the program tried to break its process, so that layouts it may have learnt should not
/// be used again.
#[must_use]
pub const fn is_crash(exit: Exit) -> bool {
    matches!(
        exit,
        Exit::Code(exit::PANIC)
            | Exit::Signal(
                libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGSYS | libc::SIGABRT | libc::SIGTRAP
            )
    )
}

fn signal_name(signal: i32) -> String {
    nix::sys::signal::Signal::try_from(signal)
        .map_or_else(|_| format!("signal {signal}"), |name| name.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGETS: Budgets = Budgets {
        compute_ms: 300,
        wall_ms: 1,
        output_bytes: 4,
        heap_bytes: 1,
        binding_calls: 0,
        pending_calls: 1,
        pending_argument_bytes: 1,
        log_entry_bytes: 1,
    };

    #[test]
    fn the_table() {
        let table = [
            (Exit::Code(7), false, 0, "exit", "worker exited with code 7 before completing"),
            (Exit::Code(0), false, 0, "exit", "worker exited with code 0 before completing"),
            (Exit::Code(0), true, 0, "protocol", "protocol violation: the process exited inside a frame"),
            (Exit::Signal(libc::SIGSYS), true, 0, "forbidden_syscall", "worker ended by SIGSYS: "),
            (Exit::Signal(libc::SIGXCPU), false, 2000, "compute_ms", "compute budget exhausted (300ms busy)"),
            (Exit::Signal(libc::SIGKILL), false, 2990, "compute_ms", "compute budget exhausted (300ms busy)"),
            (Exit::Signal(libc::SIGKILL), false, 2000, "signal", "worker ended by SIGKILL, not sent by"),
            (Exit::Signal(libc::SIGSEGV), false, 0, "signal", "worker ended by SIGSEGV before completing"),
            (Exit::Signal(64), false, 0, "signal", "worker ended by signal 64 before completing"),
        ];
        for (exit, inside, cpu, detail, message) in table {
            let failure = attribute(exit, inside, cpu, &BUDGETS);
            assert_eq!(failure.detail.word(), detail, "{exit:?}");
            assert!(failure.message.starts_with(message), "{exit:?}: {}", failure.message);
            let signal = if let Exit::Signal(signal) = exit { Some(signal) } else { None };
            assert_eq!(failure.signal, signal);
        }
    }

    #[test]
    fn what_looks_like_an_attempt_is_a_crash() {
        for exit in [Exit::Code(exit::PANIC), Exit::Signal(libc::SIGSEGV), Exit::Signal(libc::SIGSYS)] {
            assert!(is_crash(exit), "{exit:?}");
        }
        for exit in [Exit::Code(exit::DONE), Exit::Code(exit::HEAP), Exit::Signal(libc::SIGKILL)] {
            assert!(!is_crash(exit), "{exit:?}");
        }
    }

    #[test]
    fn the_kernels_backstop_comes_after_the_budget() {
        for (ms, seconds) in [(1, 2), (1000, 2), (1001, 3), (60_000, 61), (u64::MAX / 2, u32::MAX - 1)] {
            assert_eq!(soft_cpu_seconds(&Budgets { compute_ms: ms, ..BUDGETS }), seconds);
        }
    }
}
