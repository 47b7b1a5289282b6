//! Control groups (version 2 only): one per run, made and removed by the executor.
//!
//! Not for the runner: it has no file system. A container usually mounts the hierarchy read-only; where it is delegated
//! (a systemd unit with `Delegate=yes`, containerd's `cgroup_writable`, a bare host as root) a run gets its own
//! memory and process bound, an exact peak, and a kill that leaves nothing behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why there are no control groups to be had, in words for `Describe`.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// `/proc/self/cgroup` names no version 2 group, or nothing is mounted for it.
    #[error("no cgroup v2 hierarchy is mounted that this process belongs to")]
    NoHierarchy,
    /// The own group cannot hand out controllers or have children.
    #[error("`{path}` is not delegated to this process: {source}")]
    NotDelegated {
        /// The group.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The hierarchy exists but without this controller (a hybrid system with version 1 mounts, usually).
    #[error("the cgroup v2 hierarchy at `{path}` has no `{controller}` controller")]
    NoController {
        /// The group.
        path: PathBuf,
        /// The controller.
        controller: &'static str,
    },
    /// A file of a run's group could not be read or written.
    #[error("cgroup file `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// Where the executor itself goes: a group with processes of its own cannot hand out controllers.
const EXECUTOR_GROUP: &str = "executor";
/// Processes in a run's group: itself. It could not make another if it tried.
const RUN_PROCESSES: u64 = 1;

/// A delegated group under which runs get theirs.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    root: PathBuf,
}

/// One run's group. Must be removed with [`RunGroup::remove`] once its process is reaped.
#[derive(Debug)]
pub struct RunGroup {
    path: PathBuf,
}

impl Hierarchy {
    /// Finds the executor's own version 2 group and prepares it: the executor moves into a leaf, and the controllers
    /// are handed to the groups of the runs.
    ///
    /// # Errors
    /// Why it cannot be done here.
    pub fn detect() -> Result<Self, CgroupError> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|_| CgroupError::NoHierarchy)?;
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|_| CgroupError::NoHierarchy)?;
        let root = own_group(&mounts, &own).ok_or(CgroupError::NoHierarchy)?;
        let hierarchy = Self { root };
        hierarchy.check_controllers()?;
        hierarchy.delegate()?;
        Ok(hierarchy)
    }

    fn check_controllers(&self) -> Result<(), CgroupError> {
        let found = read(&self.root.join("cgroup.controllers"))?;
        for controller in CONTROLLERS {
            if !found.split_whitespace().any(|name| name == controller) {
                return Err(CgroupError::NoController { path: self.root.clone(), controller });
            }
        }
        Ok(())
    }

    fn delegate(&self) -> Result<(), CgroupError> {
        let not_delegated = |source| CgroupError::NotDelegated { path: self.root.clone(), source };
        let leaf = self.root.join(EXECUTOR_GROUP);
        make(&leaf).map_err(not_delegated)?;
        fs::write(leaf.join("cgroup.procs"), std::process::id().to_string()).map_err(not_delegated)?;
        let controllers = CONTROLLERS.map(|name| format!("+{name}")).join(" ");
        fs::write(self.root.join("cgroup.subtree_control"), controllers).map_err(not_delegated)
    }

    /// Makes a group for a run, with a bound on its memory (swap included) and on its processes.
    ///
    /// # Errors
    /// The file that refused. A group that was made is removed again.
    pub fn create(&self, name: &str, memory_bytes: u64) -> Result<RunGroup, CgroupError> {
        let path = self.root.join(name);
        make(&path).map_err(|source| CgroupError::File { path: path.clone(), source })?;
        let group = RunGroup { path };
        let limited = group
            .write("memory.max", &memory_bytes.to_string())
            .and_then(|()| group.write_if_there("memory.swap.max", "0"))
            .and_then(|()| group.write("pids.max", &RUN_PROCESSES.to_string()));
        match limited {
            Ok(()) => Ok(group),
            Err(error) => {
                let _ = group.remove();
                Err(error)
            }
        }
    }
}

impl RunGroup {
    /// Moves a process in. Do it before the process gets its program.
    ///
    /// # Errors
    /// The file that refused; the process may be gone.
    pub fn add(&self, pid: i32) -> Result<(), CgroupError> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Most memory that the group has had, bytes; `None` before Linux 5.19.
    ///
    /// # Errors
    /// The file that cannot be read.
    pub fn memory_peak(&self) -> Result<Option<u64>, CgroupError> {
        let path = self.path.join("memory.peak");
        if !path.exists() {
            return Ok(None);
        }
        Ok(read(&path)?.trim().parse().ok())
    }

    /// How often the kernel killed something in the group for want of memory.
    ///
    /// # Errors
    /// The file that cannot be read.
    pub fn oom_kills(&self) -> Result<u64, CgroupError> {
        let events = read(&self.path.join("memory.events"))?;
        Ok(events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "))
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0))
    }

    /// Kills all that is in the group (Linux 5.14).
    ///
    /// # Errors
    /// The file that refused.
    pub fn kill(&self) -> Result<(), CgroupError> {
        self.write("cgroup.kill", "1")
    }

    /// Removes the group. Fails with `EBUSY` while an unreaped process is in it, and can then be tried again.
    ///
    /// # Errors
    /// The directory that could not be removed.
    pub fn remove(&self) -> Result<(), CgroupError> {
        fs::remove_dir(&self.path).map_err(|source| CgroupError::File { path: self.path.clone(), source })
    }

    fn write(&self, file: &str, value: &str) -> Result<(), CgroupError> {
        let path = self.path.join(file);
        fs::write(&path, value).map_err(|source| CgroupError::File { path, source })
    }

    fn write_if_there(&self, file: &str, value: &str) -> Result<(), CgroupError> {
        if self.path.join(file).exists() { self.write(file, value) } else { Ok(()) }
    }
}

fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn read(path: &Path) -> Result<String, CgroupError> {
    fs::read_to_string(path).map_err(|source| CgroupError::File { path: path.to_owned(), source })
}

/// The directory of the process's own version 2 group, from `mountinfo` and `cgroup` of `/proc/self`.
fn own_group(mounts: &str, own: &str) -> Option<PathBuf> {
    let group = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (mount_root, mount_point) = mounts.lines().find_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        if kind.split(' ').next()? != "cgroup2" {
            return None;
        }
        let mut fields = fields.split(' ').skip(3);
        Some((fields.next()?, fields.next()?))
    })?;
    // In a container with a cgroup namespace both are `/`; without one the mount may show a part of the hierarchy.
    let below = Path::new(group).strip_prefix(mount_root).unwrap_or(Path::new(""));
    Some(Path::new(mount_point).join(below))
}

#[cfg(test)]
mod tests {
    use super::{CgroupError, Hierarchy, own_group};
    use std::path::Path;

    const MOUNTS: &str = "29 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n\
        30 22 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    #[test]
    fn finds_the_own_group() {
        let check = |own: &str, expected: Option<&str>| {
            assert_eq!(own_group(MOUNTS, own).as_deref(), expected.map(Path::new), "{own}");
        };
        check("0::/\n", Some("/sys/fs/cgroup/"));
        check(
            "5:memory:/x\n0::/system.slice/codemode.service\n",
            Some("/sys/fs/cgroup/system.slice/codemode.service"),
        );
        check("5:memory:/x\n", None);
        assert_eq!(own_group("30 22 0:27 / /c rw - cgroup cgroup rw,memory\n", "0::/\n"), None);
        let part = "29 22 0:26 /pod /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(own_group(part, "0::/pod/a").as_deref(), Some(Path::new("/sys/fs/cgroup/a")));
    }

    #[test]
    fn a_machine_without_delegation_says_why() {
        // Whatever this machine has, the answer is one of the two: a hierarchy, or a reason in words.
        match Hierarchy::detect() {
            Ok(hierarchy) => assert!(hierarchy.root.is_dir()),
            Err(error) => {
                assert!(!matches!(error, CgroupError::File { .. }), "{error}");
                assert!(!error.to_string().is_empty());
            }
        }
    }
}
