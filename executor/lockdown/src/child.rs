//! The rest of the lockdown, in a run's process: what cannot be shared or would bind the zygote too.
//!
//! Between the fork and the end of [`Sealed::confine_child`]: system calls only. No allocation, no lock, no logging; every
//! microsecond here is paid by every run (`README.md` has the figures).

use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

use codemode_wire::control::ForkRequest;
use codemode_wire::{Layer, LayerSet};
use nix::unistd::getpid;

use crate::error::{Step, StepError};
use crate::fds::{self, CONTROL_FD, RULESET_FD, RUN_FD};
use crate::privileges;
use crate::sys;
use crate::zygote::Sealed;

/// A run's own limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildPlan {
    /// `RLIMIT_CPU`, seconds: the soft limit; the hard one is a second more. 0 counts as 1.
    pub cpu_seconds: u32,
    /// `RLIMIT_DATA` above what the zygote used when it was sealed, bytes.
    pub data_bytes: u64,
}

impl From<&ForkRequest> for ChildPlan {
    fn from(request: &ForkRequest) -> Self {
        Self { cpu_seconds: request.cpu_seconds, data_bytes: request.data_bytes }
    }
}

/// Proof that this process is locked down; with it comes the run's socket.
#[derive(Debug)]
pub struct Locked {
    layers: LayerSet,
}

impl Locked {
    /// The layers in force, for the hello.
    #[must_use]
    pub const fn layers(&self) -> LayerSet {
        self.layers
    }

    /// The run's socket. It cannot be closed, and need not be: the process ends by `_exit`.
    #[must_use]
    pub fn run(&self) -> BorrowedFd<'static> {
        fds::run_socket()
    }
}

impl Sealed {
    /// Finishes the lockdown in a run's process: right after [`Sealed::fork`], or in the one process of the `once` and
    /// `strip` roles. For the latter `run` is `None`: the stream already stands in the socket's place.
    ///
    /// # Errors
    /// The first step that failed. The process must not be given a program; it reports the step on
    /// [`crate::run_socket`], which holds the socket from the first step on, and exits.
    pub fn confine_child(self, run: Option<OwnedFd>, plan: &ChildPlan) -> Result<Locked, StepError> {
        self.confine_child_watched(run, plan, |_| {})
    }

    /// [`Self::confine_child`], telling each step after it is done: for measuring.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub fn confine_child_watched(
        mut self,
        run: Option<OwnedFd>,
        plan: &ChildPlan,
        mut done: impl FnMut(&'static str),
    ) -> Result<Locked, StepError> {
        if let Some(run) = run {
            // Usually it has the number already: the zygote keeps it free, and the kernel hands out the lowest.
            let run = run.into_raw_fd();
            if run.as_raw_fd() != RUN_FD {
                sys::dup_to(run, RUN_FD).step("run socket")?;
            }
            done("run socket");
        }
        if self.own_domain {
            sys::landlock_restrict(RULESET_FD).step("own landlock domain")?;
            done("own landlock domain");
        }
        sys::close_from(CONTROL_FD).step("close descriptors")?;
        done("close descriptors");
        if self.layers.contains(Layer::ParentDeathSignal) {
            privileges::die_with(self.parent)?;
            done("parent death signal");
        }
        if self.layers.contains(Layer::Rlimits) {
            self.base.confine_run(plan.cpu_seconds, plan.data_bytes)?;
            done("limits");
        }
        if self.layers.contains(Layer::NonDumpable) {
            privileges::check_undumpable()?;
            done("check undumpable");
        }
        if let Some(delta) = &mut self.delta {
            delta.set_own_id(getpid().as_raw().unsigned_abs());
            sys::install_filter(delta.instructions()).step("install own filter")?;
            done("install own filter");
        }
        let layers = self.layers;
        // Frees nothing and closes nothing: the heap is about to be the program's, and `close` is forbidden now.
        std::mem::forget(self);
        Ok(Locked { layers })
    }
}
