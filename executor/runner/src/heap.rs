//! The heap cap: what happens when the engine, or this process's own allocator, runs out.
//!
//! Owns the one way out of an exhausted heap: a frame that names the cap, then the end of the process. A program
//! cannot catch it. The kernel's `RLIMIT_DATA` stands behind the cap.

use deno_core::{JsRuntime, OpState, v8};

use codemode_lockdown::exit_now;
use codemode_wire::exit;
use codemode_wire::message::ChildFrame;

use crate::alloc::{report_exhausted, report_exhaustion_of};
use crate::channel::Channel;

/// Heap limit that the engine boots with, bytes. Kept small: a run's own cap is reached by raising it once, since
/// engines let a limit be raised after boot and not be lowered.
pub(crate) const HEAP_INITIAL_BYTES: usize = 16 << 20;

/// The cap of this process's run, bytes, in the op state.
struct Cap(u64);

/// Arms the cap for this process. Exceeding it ends the run, caught or not: on v8 at once, on quickjs at
/// [`exit_if_exhausted`].
pub(crate) fn cap(runtime: &mut JsRuntime, heap_bytes: u64) {
    report_exhaustion_of(heap_bytes);
    runtime.op_state().borrow_mut().put(Cap(heap_bytes));
    let limit = usize::try_from(heap_bytes).unwrap_or(usize::MAX).max(HEAP_INITIAL_BYTES);
    arm(runtime, limit);
}

/// V8 asks before it gives up: the limit rises to the cap once, and the next time the run is over. In the middle of a
/// collection it gives up without asking.
#[cfg(feature = "v8")]
fn arm(runtime: &mut JsRuntime, limit: usize) {
    runtime.v8_isolate().set_oom_error_handler(gave_up);
    let state = runtime.op_state();
    runtime.add_near_heap_limit_callback(move |current, _initial| {
        if current < limit {
            return limit;
        }
        if let Ok(mut state) = state.try_borrow_mut() {
            report(&mut state);
        }
        exit_now(exit::HEAP)
    });
}

/// QuickJS terminates execution at its limit when no callback is registered. Taking one away is the facade's only way
/// to set the limit after boot.
#[cfg(not(feature = "v8"))]
fn arm(runtime: &mut JsRuntime, limit: usize) {
    runtime.add_near_heap_limit_callback(|current, _initial| current);
    runtime.remove_near_heap_limit_callback(limit);
}

/// V8's last word: it aborts when this returns.
#[cfg(feature = "v8")]
extern "C" fn gave_up(_location: *const std::ffi::c_char, _details: &v8::OomDetails) {
    report_exhausted()
}

/// The engine's callers panic where it, out of heap or of stack, hands them nothing, and a panic inside a callback of
/// the engine would abort. With an exhausted heap that is what failed; else the exit code says that the engine gave up.
pub(crate) fn end_by_panics(runtime: &mut JsRuntime) {
    let handle = runtime.v8_isolate().thread_safe_handle();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if handle.is_execution_terminating() {
            report_exhausted();
        }
        usual(panic);
        exit_now(exit::PANIC);
    }));
}

/// Ends the run if the engine has terminated execution, which nothing but an exhausted heap makes it do. To be asked
/// whenever the engine returns.
pub(crate) fn exit_if_exhausted(isolate: &v8::Isolate) {
    if isolate.is_execution_terminating() {
        report(&mut JsRuntime::op_state_from(isolate).borrow_mut());
    }
}

/// Says that the heap is exhausted and ends the process.
fn report(state: &mut OpState) -> ! {
    let limit = state.try_borrow::<Cap>().map_or(0, |cap| cap.0);
    if let Some(channel) = state.try_borrow_mut::<Channel>() {
        channel.send(&ChildFrame::HeapExhausted { used: limit, limit });
    }
    exit_now(exit::HEAP)
}
