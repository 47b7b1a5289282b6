//! One child process of the executor, from the moment it is known until it is reaped. Dropping it unreaped (a panic on
//! the way) kills and reaps it all the same: no way leaves a process behind.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::task::{Context, Poll};
use std::time::Duration;

use codemode_lockdown::cgroup::RunGroup;
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::groups;
use super::pidfd::{self, Ended};

/// Between two looks at a process that the reactor does not watch.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Process ids of the children that some [`Process`] answers for.
static KNOWN: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

/// Whether some [`Process`] answers for this child.
pub(crate) fn is_known(pid: i32) -> bool {
    KNOWN.lock().as_ref().is_some_and(|known| known.contains(&pid))
}

/// How many children are answered for.
#[must_use]
pub fn live_children() -> usize {
    KNOWN.lock().as_ref().map_or(0, HashSet::len)
}

/// A child process and the descriptor that stands for it.
#[derive(Debug)]
pub(crate) struct Process {
    pid: i32,
    fd: Option<AsyncFd<OwnedFd>>,
    group: Option<RunGroup>,
}

impl Process {
    /// Takes over our unreaped child. Must run inside a tokio runtime.
    ///
    /// The number may come from a zygote, which is not believed: whatever is no child of ours, or is answered for
    /// already, is refused, for a [`Process`] can be killed.
    pub(crate) fn adopt(pid: i32) -> io::Result<Self> {
        let fd = pidfd::open(pid)?;
        pidfd::check_child(fd.as_fd())?;
        let fd = pidfd::watch(fd, Interest::READABLE)?;
        if !KNOWN.lock().get_or_insert_default().insert(pid) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the process is known already"));
        }
        Ok(Self { pid, fd: Some(fd), group: None })
    }

    /// Gives it the control group that it was put into; the group goes when the process is reaped.
    pub(crate) fn join(&mut self, group: Option<RunGroup>) {
        self.group = group;
    }

    /// Whether it has a control group of its own.
    pub(crate) const fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// Its number, for logs and for the CPU clock only.
    pub(crate) const fn pid(&self) -> i32 {
        self.pid
    }

    fn fd(&self) -> io::Result<&AsyncFd<OwnedFd>> {
        self.fd.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&self) {
        if let Err(error) = self.fd().and_then(|fd| pidfd::kill(fd.as_fd())) {
            tracing::error!(pid = self.pid, %error, "cannot kill a child process");
        }
    }

    /// Whether it has ended, as far as the kernel says at once.
    pub(crate) fn has_ended(&self) -> bool {
        self.fd().map_or(true, |fd| pidfd::is_ended(fd.as_fd()))
    }

    /// Whether it neither has ended nor is stopped by a signal, as far as the kernel says at once.
    pub(crate) fn is_running(&self) -> bool {
        self.fd().is_ok_and(|fd| pidfd::is_running(fd.as_fd()))
    }

    /// As [`Self::ended`], for one waiter at a time.
    pub(crate) fn poll_ended(&self, context: &mut Context<'_>) -> Poll<()> {
        match self.fd() {
            Ok(fd) => fd.poll_read_ready(context).map(drop),
            Err(_) => Poll::Ready(()),
        }
    }

    /// Waits until it has ended. Cancel-safe.
    pub(crate) async fn ended(&self) {
        let Ok(fd) = self.fd() else { return };
        if let Err(error) = fd.readable().await {
            tracing::error!(pid = self.pid, %error, "cannot watch a child process; it is looked at again and again");
            while !self.has_ended() {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }

    /// Waits until it has ended, and reaps it. To be awaited to its end.
    pub(crate) async fn reap(mut self) -> io::Result<Ended> {
        self.ended().await;
        let ended = pidfd::reap(self.fd()?.as_fd());
        let group = self.group.take();
        self.forget();
        let mut ended = ended?;
        if let Some(group) = group {
            match group.oom_kills() {
                Ok(kills) => ended.memory_killed = kills > 0,
                Err(error) => {
                    tracing::warn!(pid = self.pid, %error, "a control group's events cannot be read")
                }
            }
            if let Ok(Some(peak)) = group.memory_peak() {
                ended.peak_memory_bytes = peak;
            }
            groups::remove(&group);
        }
        Ok(ended)
    }

    fn forget(&mut self) {
        self.fd = None;
        if let Some(known) = KNOWN.lock().as_mut() {
            known.remove(&self.pid);
        }
    }

    /// The clock of the CPU time that the process has used.
    pub(crate) fn cpu_clock(&self) -> io::Result<CpuClock> {
        Ok(CpuClock(clock_getcpuclockid(Pid::from_raw(self.pid))?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        let (fd, pid, group) = (fd.into_inner(), self.pid, self.group.take());
        let _ = pidfd::kill(fd.as_fd());
        // Death takes milliseconds, and a destructor cannot wait for it.
        let reaper = std::thread::Builder::new().name("codemode-reaper".to_owned());
        let spawned = reaper.spawn(move || {
            if let Err(error) = pidfd::reap(fd.as_fd()) {
                tracing::error!(pid, %error, "cannot reap a dropped child process");
            }
            if let Some(group) = group {
                groups::remove(&group);
            }
            if let Some(known) = KNOWN.lock().as_mut() {
                known.remove(&pid);
            }
        });
        if let Err(error) = spawned {
            tracing::error!(pid, %error, "cannot reap a dropped child process");
        }
    }
}

/// Reads the CPU time of another process; valid until that is reaped. Steps are one scheduler tick while it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuClock(ClockId);

impl CpuClock {
    /// CPU time used so far, or `None` once the process is reaped.
    pub(crate) fn read(self) -> Option<Duration> {
        let nanos = self.0.now().ok()?;
        let nanos = nix::sys::time::TimeSpec::num_nanoseconds(&nanos);
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
    }
}
