//! What the kernel says about this process: `/proc/self/status` through a descriptor opened before the file system goes
//! away. The lockdown's own check of what it claims.

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::uio::pread;

use crate::error::{Step, StepError};
use crate::fds::{self, STATUS_FD};
use crate::sys;

const BYTES_MAX: usize = 8192;

/// The fields of interest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcStatus {
    pub(crate) threads: u64,
    /// Private writable memory, bytes: what `RLIMIT_DATA` counts.
    pub(crate) data_bytes: u64,
    /// Address space, bytes: what `RLIMIT_AS` counts.
    pub(crate) address_bytes: u64,
    pub(crate) no_new_privileges: bool,
    /// Inheritable, permitted, effective and ambient, joined.
    pub(crate) capabilities: u64,
    pub(crate) bounding: u64,
}

/// Opens the file under its number.
pub(crate) fn open() -> Result<(), StepError> {
    fds::open_at_number("/proc/self/status", STATUS_FD, "open process status")
}

/// Reads it. A field that is missing or unreadable is an error.
pub(crate) fn read() -> Result<ProcStatus, StepError> {
    let mut bytes = [0_u8; BYTES_MAX];
    let file = sys::borrow(STATUS_FD);
    debug_assert_eq!(file.as_raw_fd(), STATUS_FD);
    let len = pread(file, &mut bytes, 0).step("read process status")?;
    let text = String::from_utf8_lossy(&bytes[..len]);
    parse(&text).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL)).step("read process status")
}

fn parse(text: &str) -> Option<ProcStatus> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let number = |name| field(name)?.split_whitespace().next()?.parse::<u64>().ok();
    let set = |name| u64::from_str_radix(field(name)?, 16).ok();
    Some(ProcStatus {
        threads: number("Threads")?,
        data_bytes: number("VmData")? * 1024,
        address_bytes: number("VmSize")? * 1024,
        no_new_privileges: number("NoNewPrivs")? == 1,
        capabilities: set("CapInh")? | set("CapPrm")? | set("CapEff")? | set("CapAmb")?,
        bounding: set("CapBnd")?,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_the_fields_and_refuses_a_file_without_them() {
        let text = "Name:\tx\nVmSize:\t    2048 kB\nVmData:\t     100 kB\nThreads:\t1\nCapInh:\t0000000000000000\n\
            CapPrm:\t0000000000000001\nCapEff:\t0000000000000002\nCapBnd:\t000001ffffffffff\n\
            CapAmb:\t0000000000000004\nNoNewPrivs:\t1\n";
        let status = parse(text).expect("all fields are there");
        assert_eq!(status.threads, 1);
        assert_eq!(status.data_bytes, 102_400);
        assert_eq!(status.address_bytes, 2_097_152);
        assert!(status.no_new_privileges);
        assert_eq!(status.capabilities, 7);
        assert_eq!(status.bounding, 0x1ff_ffff_ffff);
        assert_eq!(parse(&text.replace("Threads", "Thread")), None);
        assert_eq!(parse(""), None);
    }
}
