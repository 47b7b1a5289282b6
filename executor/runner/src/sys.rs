//! The runner's own raw calls: what an engine reads from its environment, and memory that is to be forked well.
//!
//! Everything that confines the process is in `codemode-lockdown`; nothing here does.
#![expect(unsafe_code, reason = "raw calls without a safe wrapper; each block names its reason")]

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::BorrowedFd;

/// Sets what engines read from the environment, which is empty: for the quickjs facade no bytecode cache on disk (it
/// would load what it finds there as code) and no WebAssembly interpreter; for both the time zone, UTC.
pub(crate) fn set_engine_environment() {
    // SAFETY: called first in `main`, before any other thread or any reader of the environment exists.
    unsafe { std::env::set_var("V82JSC_NO_BC_CACHE", "1") };
    // SAFETY: as above.
    unsafe { std::env::set_var("QJS_NO_WASM", "1") };
    // SAFETY: as above.
    unsafe { std::env::set_var("TZ", "UTC") };
}

/// Undoes V8's `MADV_DONTFORK` on every mapping of this process, listed by `maps`, so that a forked child has the
/// engine's pages.
///
/// # Errors
/// If the list cannot be read, or a mapping not be marked: a child would die of touching it.
pub(crate) fn mark_forkable(maps: BorrowedFd<'_>) -> io::Result<()> {
    let mut list = File::from(maps.try_clone_to_owned()?);
    list.seek(SeekFrom::Start(0))?;
    let mut text = String::new();
    list.read_to_string(&mut text)?;
    for line in text.lines() {
        let Some((from, to)) = mapping(line) else { continue };
        // SAFETY: the range is a mapping of this process; DOFORK changes no content and no protection.
        let marked = unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_DOFORK) };
        if marked != 0 && !is_kernels(line) {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Sizes of blocks that holes in the C heap are filled with, bytes, the large ones first: powers of two, then every
/// size that the allocator tells apart.
fn hole_sizes() -> impl Iterator<Item = usize> {
    let large = (10..=16).rev().map(|power| 1_usize << power);
    large.chain((24..1024).step_by(16).rev())
}

/// Bytes that holes are filled with, at most: booting leaves a few megabytes of them.
const HOLES_BYTES_MAX: usize = 64 << 20;

/// Fills the holes that booting left in the C heap, for good. What a forked child allocates is then new and side by
/// side; out of the holes it would be strewn over pages that the child has to copy one by one.
///
/// `mallinfo2` is in glibc from 2.33 on. An allocator without a heap that ends at the break has no holes that this
/// finds.
pub(crate) fn fill_heap_holes() {
    // SAFETY: only asks the allocator; there is one thread.
    let info = unsafe { libc::mallinfo2() };
    // SAFETY: with 0 it only asks the kernel.
    let end = unsafe { libc::sbrk(0) };
    fill_below((end as usize).saturating_sub(info.keepcost), HOLES_BYTES_MAX);
}

/// Allocates what the allocator has below an address, for good, and not more than `bytes_max`. Answers how much.
fn fill_below(holes_end: usize, bytes_max: usize) -> usize {
    let mut filled = 0;
    for size in hole_sizes() {
        while filled + size <= bytes_max {
            // SAFETY: the block is never used, and freed below at most once.
            let block = unsafe { libc::malloc(size) };
            if block.is_null() {
                return filled;
            }
            if block as usize >= holes_end {
                // SAFETY: it was allocated just before and nothing points to it.
                unsafe { libc::free(block) };
                break;
            }
            filled += size;
        }
    }
    filled
}

/// Whether a line is of a mapping that is the kernel's own, which cannot be marked. The names are those that
/// `arch_vma_name` and `special_mapping_name` answer in the kernel's source.
fn is_kernels(line: &str) -> bool {
    let name = line.split_ascii_whitespace().nth(5).unwrap_or_default();
    ["[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "[uprobes]"].contains(&name)
}

/// First and last address of one line of `/proc/self/maps`.
fn mapping(line: &str) -> Option<(usize, usize)> {
    let (from, to) = line.split_once(' ')?.0.split_once('-')?;
    Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_mappings_are_known_by_their_names() {
        let line =
            |name: &str| format!("7ffc00000000-7ffc00004000 r--p 00000000 00:00 0                  {name}");
        for name in ["[vvar]", "[vvar_vclock]", "[vdso]", "[vsyscall]", "[uprobes]"] {
            assert!(is_kernels(&line(name)), "{name}");
        }
        for name in ["", "[heap]", "[stack]", "[anon:v8]", "/lib/x [vdso].so"] {
            assert!(!is_kernels(&line(name)), "{name}");
        }
        assert_eq!(mapping(&line("")), Some((0x7ffc_0000_0000, 0x7ffc_0000_4000)));
    }

    #[test]
    fn holes_are_filled_from_the_large_to_the_small_and_within_bounds() {
        let sizes: Vec<_> = hole_sizes().collect();
        assert!(sizes.windows(2).all(|pair| pair[0] > pair[1]), "{sizes:?}");
        assert_eq!(fill_below(0, 1 << 20), 0, "nothing lies there");
        let filled = fill_below(usize::MAX, 1 << 20);
        assert!(
            (1 << 20) - filled < 24,
            "all memory is a hole, and what is left is smaller than any block: {filled}"
        );
    }
}
