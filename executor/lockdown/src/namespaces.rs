//! Own namespaces and an empty root directory, by whichever way the process's rights allow.

use std::fs;

use codemode_wire::{Layer, LayerSet};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, chdir, chroot, getegid, geteuid, pipe2, pivot_root, read};

use crate::error::{Step, StepError};
use crate::sys::{self, Cloned};

/// The layers that are about namespaces.
pub(crate) const LAYERS: [Layer; 4] =
    [Layer::UserNamespace, Layer::EmptyRoot, Layer::NetworkNamespace, Layer::MiscNamespaces];

/// How the process is set apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Not at all.
    No,
    /// With its rights as they are (inside a user namespace of its own if that is among the layers).
    Namespaces(LayerSet),
    /// By changing its root to a directory that no longer exists.
    DeadRoot,
}

impl Apart {
    /// The layers it puts in force.
    pub(crate) fn layers(self) -> LayerSet {
        match self {
            Self::No => LayerSet::EMPTY,
            Self::Namespaces(layers) => layers,
            Self::DeadRoot => LayerSet::EMPTY.with(Layer::EmptyRoot),
        }
    }

    /// Whether it needs rights that are gone with the user id.
    pub(crate) fn before_user_drop(self) -> bool {
        match self {
            Self::No => false,
            Self::Namespaces(layers) => !layers.contains(Layer::UserNamespace),
            Self::DeadRoot => true,
        }
    }

    /// Does it.
    pub(crate) fn enter(self) -> Result<(), StepError> {
        match self {
            Self::No => Ok(()),
            Self::Namespaces(layers) => enter_namespaces(layers),
            Self::DeadRoot => enter_dead_root(),
        }
    }
}

fn enter_namespaces(layers: LayerSet) -> Result<(), StepError> {
    let mut flags = CloneFlags::empty();
    for layer in layers.iter() {
        flags |= match layer {
            Layer::UserNamespace => CloneFlags::CLONE_NEWUSER,
            Layer::EmptyRoot => CloneFlags::CLONE_NEWNS,
            Layer::NetworkNamespace => CloneFlags::CLONE_NEWNET,
            Layer::MiscNamespaces => {
                CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWCGROUP
            }
            _ => CloneFlags::empty(),
        };
    }
    let (uid, gid) = (geteuid(), getegid());
    unshare(flags).step("unshare namespaces")?;
    if layers.contains(Layer::UserNamespace) {
        // The same ids inside as outside: nothing in there is root.
        fs::write("/proc/self/setgroups", "deny").step("deny groups")?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")).step("map user id")?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).step("map group id")?;
    }
    if layers.contains(Layer::EmptyRoot) { enter_empty_root() } else { Ok(()) }
}

/// Makes an empty read-only file system the root of the own mount namespace and lets the old one go.
fn enter_empty_root() -> Result<(), StepError> {
    /// Any directory that surely exists will do: what lies under it is not looked at again.
    const PLACE: &str = "/proc";
    const NONE: Option<&str> = None;
    let locked = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE).step("make mounts private")?;
    mount(Some("none"), PLACE, Some("tmpfs"), locked, Some("size=4k,nr_inodes=2,mode=0555"))
        .step("mount empty root")?;
    chdir(PLACE).step("enter empty root")?;
    pivot_root(".", ".").step("pivot root")?;
    umount2(".", MntFlags::MNT_DETACH).step("let old root go")?;
    chdir("/").step("enter empty root")?;
    let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(NONE, "/", NONE, read_only | locked, NONE).step("make root read-only")
}

/// Changes the root to the `/proc` directory of a process that then dies. Such a directory is empty for ever and nothing
/// can be made in it; it needs `CAP_SYS_CHROOT` only, no writable place and no mount.
fn enter_dead_root() -> Result<(), StepError> {
    const STEP: &str = "dead root";
    let (alive, hold) = pipe2(OFlag::O_CLOEXEC).step(STEP)?;
    match sys::fork().step(STEP)? {
        Cloned::Child => {
            drop(hold);
            // Returns when the parent has let go of its end.
            let _ = read(&alive, &mut [0_u8; 1]);
            sys::exit_now(0)
        }
        Cloned::Parent(pid) => {
            let entered = chroot(format!("/proc/{pid}/fdinfo").as_str()).and_then(|()| chdir("/"));
            drop(hold);
            let pid = Pid::from_raw(pid);
            let _ = kill(pid, Signal::SIGKILL);
            waitpid(pid, None).step(STEP)?;
            entered.step(STEP)?;
        }
    }
    // The directory must be dead now: looking anything up in it must fail.
    match fs::read_dir("/").and_then(|mut entries| entries.next().transpose()) {
        Ok(None) | Err(_) => Ok(()),
        Ok(Some(_)) => Err(StepError::new(STEP, Errno::ENOTEMPTY)),
    }
}
