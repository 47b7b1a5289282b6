//! Resource limits: those that the zygote and its children share, and a run's own.

use nix::errno::Errno;

use crate::engine::Engine;
use crate::error::{Step, StepError};
use crate::sys;

/// Stack of the only thread. The engines' own stack limits (about 1 MiB) are far below, so that deep recursion is an
/// exception of the program and not a fault of the process.
const STACK_BYTES: u64 = 8 << 20;
/// Descriptors of the zygote while it boots and serves.
const ZYGOTE_DESCRIPTORS: u64 = 16;
/// Descriptors of a run's process: 0 to 3. `poll` refuses more than this many entries, so 0 would break it.
const RUN_DESCRIPTORS: u64 = 4;
/// Address space of a run beyond its data, where it can be bounded: stack, guard pages, page tables' worth of slack.
const ADDRESS_SLACK_BYTES: u64 = 256 << 20;

/// `(resource, largest value)` for the zygote and all its children. `FSIZE` concerns files only, not sockets or pipes.
const COMMON: [(u32, u64); 10] = [
    (libc::RLIMIT_CORE, 0),
    (libc::RLIMIT_FSIZE, 0),
    (libc::RLIMIT_MEMLOCK, 0),
    (libc::RLIMIT_MSGQUEUE, 0),
    (libc::RLIMIT_RTPRIO, 0),
    (libc::RLIMIT_NICE, 0),
    (libc::RLIMIT_LOCKS, 0),
    (libc::RLIMIT_SIGPENDING, 16),
    (libc::RLIMIT_NOFILE, ZYGOTE_DESCRIPTORS),
    (libc::RLIMIT_STACK, STACK_BYTES),
];

/// Sets the common limits and reads each back.
pub(crate) fn confine_common() -> Result<(), StepError> {
    const STEP: &str = "common resource limits";
    for (resource, value) in COMMON {
        let (_, hard) = sys::get_limit(resource).step(STEP)?;
        let value = value.min(hard);
        sys::set_limit(resource, value, value).step(STEP)?;
        if sys::get_limit(resource).step(STEP)? != (value, value) {
            return Err(StepError::new(STEP, Errno::ERANGE));
        }
    }
    Ok(())
}

/// What a run's own limits start from, measured once in the zygote, when its memory is as the children will find it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitsBase {
    data_bytes: u64,
    /// `None` for engines that reserve more address space than can be bounded.
    address_bytes: Option<u64>,
    hard_data: u64,
    hard_address: u64,
    hard_cpu: u64,
}

impl LimitsBase {
    pub(crate) fn measure(engine: Engine, data_bytes: u64, address_bytes: u64) -> Result<Self, StepError> {
        const STEP: &str = "measure resource limits";
        Ok(Self {
            data_bytes,
            address_bytes: (!engine.is_v8()).then_some(address_bytes),
            hard_data: sys::get_limit(libc::RLIMIT_DATA).step(STEP)?.1,
            hard_address: sys::get_limit(libc::RLIMIT_AS).step(STEP)?.1,
            hard_cpu: sys::get_limit(libc::RLIMIT_CPU).step(STEP)?.1,
        })
    }

    /// Sets a run's own limits. Soft before hard for CPU, so that the signal tells which it was.
    pub(crate) fn confine_run(&self, cpu_seconds: u32, data_bytes: u64) -> Result<(), StepError> {
        let cpu = u64::from(cpu_seconds.max(1));
        let (soft, hard) = (cpu.min(self.hard_cpu), (cpu + 1).min(self.hard_cpu));
        sys::set_limit(libc::RLIMIT_CPU, soft, hard).step("limit cpu")?;
        let data = self.data_bytes.saturating_add(data_bytes).min(self.hard_data);
        sys::set_limit(libc::RLIMIT_DATA, data, data).step("limit data")?;
        if let Some(base) = self.address_bytes {
            let address = base.saturating_add(data_bytes).saturating_add(ADDRESS_SLACK_BYTES);
            let address = address.min(self.hard_address);
            sys::set_limit(libc::RLIMIT_AS, address, address).step("limit address space")?;
        }
        sys::set_limit(libc::RLIMIT_NPROC, 0, 0).step("limit processes")?;
        sys::set_limit(libc::RLIMIT_NOFILE, RUN_DESCRIPTORS, RUN_DESCRIPTORS).step("limit descriptors")
    }
}
