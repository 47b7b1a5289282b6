//! Landlock: a domain with every right handled and none granted.

use std::os::fd::{AsRawFd, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use nix::errno::Errno;

use crate::error::{Step, StepError};
use crate::fds::RULESET_FD;
use crate::sys;

/// The newest interface of the kernel's whose rights are handled. Older kernels handle what they know of it.
const NEWEST: ABI = ABI::V10;
/// The first that can keep a process from signalling those outside its domain (Linux 6.12).
const COMPLETE: ABI = ABI::V6;

/// How the zygote's domain came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    /// Files, TCP ports, abstract sockets and signals. A ruleset for the children's own domains stands at its number.
    Complete,
    /// This kernel knows only part of it, which is in force.
    Partial { abi: i32 },
    /// There is no Landlock, and why.
    Absent(&'static str),
}

/// Enters a domain without any right, and prepares the one that each child enters besides: siblings within one domain
/// could signal each other.
pub(crate) fn enter() -> Result<Domain, StepError> {
    const STEP: &str = "landlock";
    let status = nothing_allowed()
        .and_then(|ruleset| ruleset.no_new_privs(false).restrict_self())
        .map_err(|error| StepError::new(STEP, errno_of(&error)))?;
    let abi = match status.landlock {
        LandlockStatus::NotImplemented => {
            return Ok(Domain::Absent("the kernel has no Landlock (Linux 5.13)"));
        }
        LandlockStatus::NotEnabled => {
            return Ok(Domain::Absent(
                "the kernel's Landlock is not enabled; add it to the `lsm=` boot parameter",
            ));
        }
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
    };
    if abi < COMPLETE {
        return Ok(Domain::Partial { abi: abi as i32 });
    }
    let ruleset: Option<OwnedFd> =
        scopes_only().map_err(|error| StepError::new(STEP, errno_of(&error)))?.into();
    let ruleset = ruleset.ok_or(StepError::new(STEP, Errno::ENOSYS))?;
    if ruleset.as_raw_fd() == RULESET_FD {
        std::mem::forget(ruleset);
    } else {
        sys::dup_to(ruleset.as_raw_fd(), RULESET_FD).step(STEP)?;
    }
    Ok(Domain::Complete)
}

fn nothing_allowed() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}

fn scopes_only() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::from_all(COMPLETE))?
        .create()
}

/// The error number somewhere behind an error of the crate.
fn errno_of(error: &RulesetError) -> Errno {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = source {
        if let Some(io) = current.downcast_ref::<std::io::Error>()
            && let Some(number) = io.raw_os_error()
        {
            return Errno::from_raw(number);
        }
        source = current.source();
    }
    Errno::EINVAL
}
