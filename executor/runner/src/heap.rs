//! The heap cap: what happens when the engine, or this process's own allocator, runs out.
//!
//! Owns the one way out of an exhausted heap: a frame that names the cap, then the end of the process. A program
//! cannot catch it. The kernel's `RLIMIT_DATA` stands behind the cap.

use deno_core::JsRuntime;

use codemode_wire::message::ChildFrame;

use crate::channel::Channel;
use crate::sys::exit_now;

/// Heap limit that the engine boots with, bytes. Kept small: a run's own cap is reached by raising it once, since
/// engines let a limit be raised after boot and not be lowered.
pub(crate) const HEAP_INITIAL_BYTES: usize = 16 << 20;

/// Longest text that is compiled before the cap is armed, bytes: it compiles in far less than the initial limit.
pub(crate) const COMPILE_UNCAPPED_BYTES_MAX: usize = 64 << 10;

/// Exit code after the heap frame.
const EXIT_HEAP: i32 = 6;

/// Arms the cap for this process: the engine's limit rises to it once, and the next time the run is over.
pub(crate) fn cap(runtime: &mut JsRuntime, heap_bytes: u64) {
    let cap = usize::try_from(heap_bytes).unwrap_or(usize::MAX).max(HEAP_INITIAL_BYTES);
    let state = runtime.op_state();
    runtime.add_near_heap_limit_callback(move |current, _initial| {
        if current < cap {
            return cap;
        }
        if let Ok(mut state) = state.try_borrow_mut() {
            report(state.borrow_mut::<Channel>(), current as u64, heap_bytes);
        }
        exit_now(EXIT_HEAP)
    });
}

/// Says that the heap is exhausted and ends the process.
fn report(channel: &mut Channel, used: u64, limit: u64) -> ! {
    channel.send(&ChildFrame::HeapExhausted { used, limit });
    exit_now(EXIT_HEAP)
}
