//! An allocator that counts, for each thread, the bytes that are live and the most there ever were.
#![expect(
    unsafe_code,
    reason = "`GlobalAlloc` can only be implemented with it; every call goes on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn add(bytes: usize) {
    // A thread that is going away has no counters any more, and nobody asks for them.
    let _ = LIVE.try_with(|live| {
        live.set(live.get().saturating_add(bytes));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

fn remove(bytes: usize) {
    let _ = LIVE.try_with(|live| live.set(live.get().saturating_sub(bytes)));
}

// SAFETY: every method hands its arguments to the system allocator unchanged and returns what that returned.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises for this call are the system allocator's conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: as above; the pointer came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // The old and the new block may stand beside each other for a moment.
        add(new_size);
        remove(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// The most bytes that `work` had allocated on this thread at one time, beyond what there was before.
pub(crate) fn peak_of(work: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    work();
    PEAK.get() - before
}
