//! User id, capabilities, and the process attributes that only go one way.

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Pid, Uid, getppid, setgroups, setresgid, setresuid};

use crate::error::{Step, StepError};
use crate::sys;

const PR_SET_MDWE: libc::c_int = 65;
const PR_MDWE_REFUSE_EXEC_GAIN: u64 = 1;
const PR_GET_MDWE: libc::c_int = 66;
/// More than any kernel has; the kernel ends the loop with EINVAL.
const CAPABILITIES_MAX: u64 = 64;

/// Becomes another user for good, with no groups. The process becomes undumpable by that, which also makes its files in
/// `/proc` root's; it is made dumpable again for the steps that write there.
pub(crate) fn become_user(id: u32) -> Result<(), StepError> {
    const STEP: &str = "drop user id";
    if id == 0 {
        return Err(StepError::new(STEP, Errno::EINVAL));
    }
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&[]).step(STEP)?;
    setresgid(gid, gid, gid).step(STEP)?;
    setresuid(uid, uid, uid).step(STEP)?;
    prctl::set_dumpable(true).step(STEP)?;
    if setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)).is_ok() {
        return Err(StepError::new(STEP, Errno::EPERM));
    }
    Ok(())
}

/// Empties the bounding set, as far as the process may.
pub(crate) fn drop_bounding_set() -> Result<(), Errno> {
    for capability in 0..CAPABILITIES_MAX {
        match sys::prctl(libc::PR_CAPBSET_DROP, capability, 0) {
            Ok(_) => {}
            Err(Errno::EINVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Gives up every capability. Whether the bounding set could be emptied too is for the caller to read back.
pub(crate) fn drop_capabilities() -> Result<(), StepError> {
    let _ = drop_bounding_set();
    // Without CAP_SETPCAP these bits cannot be set; without capabilities nothing depends on them.
    let locked = 0xef_u64; // NOROOT, NO_SETUID_FIXUP, KEEP_CAPS off but locked, NO_CAP_AMBIENT_RAISE; all locked.
    let _ = sys::prctl(libc::PR_SET_SECUREBITS, locked, 0);
    let ambient = sys::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL.cast_unsigned().into(), 0);
    match ambient {
        Ok(_) | Err(Errno::EINVAL) => {}
        Err(errno) => return Err(StepError::new("drop capabilities", errno)),
    }
    sys::drop_capabilities().step("drop capabilities")
}

/// Sets `no_new_privs`, which nothing can unset.
pub(crate) fn no_new_privileges() -> Result<(), StepError> {
    prctl::set_no_new_privs().step("no new privileges")
}

/// Makes the process undumpable and reads it back.
pub(crate) fn undumpable() -> Result<(), StepError> {
    prctl::set_dumpable(false).step("undumpable")?;
    check_undumpable()
}

/// Fails unless the process is undumpable.
pub(crate) fn check_undumpable() -> Result<(), StepError> {
    match prctl::get_dumpable().step("check undumpable")? {
        false => Ok(()),
        true => Err(StepError::new("check undumpable", Errno::EPERM)),
    }
}

/// Memory that is or was writable never becomes executable. Not on all kernels (Linux 6.3); the system call policy
/// says the same with other words.
pub(crate) fn deny_write_execute() -> Result<(), Errno> {
    sys::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0)?;
    let bits = sys::prctl(PR_GET_MDWE, 0, 0)?;
    if u64::try_from(bits).is_ok_and(|bits| bits & PR_MDWE_REFUSE_EXEC_GAIN != 0) {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

/// Turns off speculation that leaks between processes, where the processor and the kernel can. Nothing depends on it.
pub(crate) fn restrain_speculation() {
    const STORE_BYPASS: u64 = 0;
    const INDIRECT_BRANCH: u64 = 1;
    const FORCE_DISABLE: u64 = 1 << 3;
    for control in [STORE_BYPASS, INDIRECT_BRANCH] {
        let _ = sys::prctl(libc::PR_SET_SPECULATION_CTRL, control, FORCE_DISABLE);
    }
}

/// Has the kernel kill this process when its parent's thread dies, and makes sure that it has not died before.
pub(crate) fn die_with(parent: Pid) -> Result<(), StepError> {
    const STEP: &str = "parent death signal";
    prctl::set_pdeathsig(Signal::SIGKILL).step(STEP)?;
    if getppid() == parent { Ok(()) } else { Err(StepError::new(STEP, Errno::ESRCH)) }
}
