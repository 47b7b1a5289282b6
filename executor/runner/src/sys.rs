//! The runner's own raw calls: leaving at once, and making an engine's pages survive a fork.
//!
//! Everything that confines the process is in `codemode-lockdown`; nothing here does.
#![expect(unsafe_code, reason = "raw calls without a safe wrapper; each block names its reason")]

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::BorrowedFd;

/// Ends the process without destructors, exit handlers or buffered output: a forked child must run none of its
/// zygote's.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any number, touches no memory and does not return.
    unsafe { libc::_exit(code) }
}

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
/// If the list cannot be read.
pub(crate) fn mark_forkable(maps: BorrowedFd<'_>) -> io::Result<()> {
    let mut list = File::from(maps.try_clone_to_owned()?);
    list.seek(SeekFrom::Start(0))?;
    let mut text = String::new();
    list.read_to_string(&mut text)?;
    for (from, to) in text.lines().filter_map(mapping) {
        // SAFETY: the range is a mapping of this process; DOFORK changes no content and no protection. Kernel
        // mappings (vvar, vsyscall) answer EINVAL, which is of no consequence.
        unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_DOFORK) };
    }
    Ok(())
}

/// First and last address of one line of `/proc/self/maps`.
fn mapping(line: &str) -> Option<(usize, usize)> {
    let (from, to) = line.split_once(' ')?.0.split_once('-')?;
    Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
}
