//! The process's own allocator: the system's, but a run that it cannot serve ends by naming its heap cap.
//!
//! Without it a failed allocation of Rust code (a reply's text, a frame) would abort, and the outcome could only name a
//! signal. The engine's own allocations do not pass here; the engine reports its exhaustion itself.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait; the raw write must not allocate")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use codemode_lockdown::{RUN_FD, exit_now};
use codemode_wire::exit;

/// Bytes of a `HeapExhausted` frame: header, used, limit. The test below holds it to the wire's encoding.
const FRAME_BYTES: usize = 21;
/// The frame's kind; as above.
const FRAME_KIND: u8 = 8;

/// The run's cap, bytes; 0 until a run begins.
static CAP: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Reporting = Reporting;

/// From here on a failed allocation ends the run as heap exhaustion over `cap` bytes.
pub(crate) fn report_exhaustion_of(cap: u64) {
    CAP.store(cap, Ordering::Relaxed);
}

/// Ends the run as heap exhaustion, without allocating: for handlers that are called when there is nothing left.
pub(crate) fn report_exhausted() -> ! {
    let cap = CAP.load(Ordering::Relaxed);
    exhausted(cap, cap)
}

struct Reporting;

/// Hands on what the system gave; ends the run if that is nothing.
fn checked(memory: *mut u8, bytes: usize) -> *mut u8 {
    let cap = CAP.load(Ordering::Relaxed);
    if memory.is_null() && cap != 0 {
        exhausted(cap.max(bytes as u64), cap);
    }
    memory
}

/// The frame, built without allocating.
fn frame(used: u64, cap: u64) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[0] = 16;
    frame[4] = FRAME_KIND;
    frame[5..13].copy_from_slice(&used.to_le_bytes());
    frame[13..21].copy_from_slice(&cap.to_le_bytes());
    frame
}

fn exhausted(bytes: u64, cap: u64) -> ! {
    let frame = frame(bytes, cap);
    // SAFETY: the buffer lives across the call and is as long as said. If the write fails, the exit code tells.
    unsafe { libc::write(RUN_FD, frame.as_ptr().cast(), frame.len()) };
    exit_now(exit::HEAP)
}

// SAFETY: every method hands its arguments on to the system's allocator unchanged, under the caller's own guarantees,
// and answers what that answers.
unsafe impl GlobalAlloc for Reporting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's guarantees are the callee's.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.realloc(memory, layout, new_size) }, new_size)
    }
}

#[cfg(test)]
mod tests {
    use codemode_wire::message::ChildFrame;

    #[test]
    fn the_frame_is_the_wires() {
        let encoded = ChildFrame::HeapExhausted { used: 7, limit: 9 }.encode();
        assert_eq!(super::frame(7, 9).as_slice(), encoded.as_slice());
    }
}
