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
    /// Finds the executor's own version 2 group. Changes nothing.
    ///
    /// # Errors
    /// Why there is none that would do.
    pub fn detect() -> Result<Self, CgroupError> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|_| CgroupError::NoHierarchy)?;
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|_| CgroupError::NoHierarchy)?;
        let root = own_group(&mounts, &own).ok_or(CgroupError::NoHierarchy)?;
        let hierarchy = Self { root };
        hierarchy.check_controllers()?;
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

    /// Prepares it, once and before the first zygote is started: the executor moves into a leaf, and the controllers are
    /// handed to the groups of the runs. A zygote started later is in that leaf, and so is a run until it is moved.
    ///
    /// # Errors
    /// [`CgroupError::NotDelegated`]: the group belongs to somebody else, or is mounted read-only.
    pub fn prepare(&self) -> Result<(), CgroupError> {
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
        make_anew(&path).map_err(|source| CgroupError::File { path: path.clone(), source })?;
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

/// One of that name was left by an executor that was killed: its counts are not this run's.
fn make_anew(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_dir(path)?;
            fs::create_dir(path)
        }
        other => other,
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
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
mod tests {
    use super::{CgroupError, Hierarchy, RunGroup, own_group};
    use std::fs;
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
    fn a_machine_without_a_hierarchy_says_why() {
        match Hierarchy::detect() {
            Ok(hierarchy) => assert!(hierarchy.root.is_dir()),
            Err(error) => assert!(error.to_string().len() > 20, "{error}"),
        }
    }

    /// The files' names and contents, on a directory that is no control group.
    #[test]
    fn writes_the_limits_and_reads_what_was_used() {
        let root = std::env::temp_dir().join(format!("codemode-cgroup-{}", std::process::id()));
        fs::create_dir_all(&root).expect("a directory");
        let hierarchy = Hierarchy { root: root.clone() };
        let group = hierarchy.create("run-1", 1 << 20).expect("a group");
        let content = |name: &str| fs::read_to_string(group.path.join(name)).expect(name);
        assert_eq!(content("memory.max"), "1048576");
        assert_eq!(content("pids.max"), "1");
        group.add(42).expect("added");
        assert_eq!(content("cgroup.procs"), "42");
        assert_eq!(group.memory_peak().expect("readable"), None);
        fs::write(group.path.join("memory.peak"), "4096\n").expect("written");
        assert_eq!(group.memory_peak().expect("readable"), Some(4096));
        fs::write(group.path.join("memory.events"), "low 0\nmax 3\noom 1\noom_kill 2\n").expect("written");
        assert_eq!(group.oom_kills().expect("readable"), 2);
        assert!(
            matches!(group.remove(), Err(CgroupError::File { .. })),
            "not empty, as long as it is a directory"
        );
        fs::remove_dir_all(root).expect("removed");
    }

    /// A real group: needs no controllers, so it works on a hybrid system too, but it needs root.
    #[test]
    fn kills_what_is_in_a_real_group() {
        let Some(mount) = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
            .into_iter()
            .find(|mount| Path::new(mount).join("cgroup.procs").exists())
        else {
            println!("skipped: no cgroup v2 hierarchy is mounted");
            return;
        };
        let path = Path::new(mount).join(format!("codemode-test-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&path) {
            println!("skipped: `{}` cannot be made: {error}", path.display());
            return;
        }
        let group = RunGroup { path };
        let mut process = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let pid = i32::try_from(process.id()).expect("a process id");
        group.add(pid).expect("moved");
        assert!(group.remove().is_err(), "it is in use");
        group.kill().expect("killed");
        assert!(!process.wait().expect("reaped").success());
        group.remove().expect("empty now");
    }
}
