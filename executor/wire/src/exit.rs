//! Exit codes of runners, and what each says. Hints only: who holds untrusted code may exit with any.

/// The other side closed its end, or the run is settled: the ordinary end.
pub const DONE: i32 = 0;
/// The executor closed the run's socket.
pub const EXECUTOR_GONE: i32 = 3;
/// The executor sent what cannot be read.
pub const BROKEN_HOST_FRAME: i32 = 4;
/// The kernel gave no random bytes.
pub const NO_RANDOM: i32 = 5;
/// The heap cap was exceeded; the frame before says so.
pub const HEAP: i32 = 6;
/// A second program, or a reply before the first.
pub const PROTOCOL: i32 = 7;
/// The boot script's own functions failed: the stack or the heap gave out under them.
pub const TRUSTED_FAILED: i32 = 8;
/// A step of lockdown or boot failed; the frame before says which.
pub const FAULT: i32 = 9;
/// The control socket or the stripper's stream cannot be used, or carries what cannot be read.
pub const CONTROL: i32 = 10;
/// The engine's or the runner's own code gave up (a panic).
pub const PANIC: i32 = 11;

/// What a run's process says by its exit code, as the end of a sentence about it.
#[must_use]
pub const fn meaning(code: i32) -> Option<&'static str> {
    match code {
        EXECUTOR_GONE => Some("it lost the executor"),
        BROKEN_HOST_FRAME | PROTOCOL => Some("it could not read the executor's messages"),
        NO_RANDOM => Some("the kernel gave it no random bytes"),
        TRUSTED_FAILED | PANIC => Some("the engine failed under this program"),
        _ => None,
    }
}
