//! A lockdown step that failed: its name and the kernel's reason. Nothing goes on after one.

use nix::errno::Errno;

/// A named step and the error number it failed with. It fits the fault frames of the wire as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lockdown step `{step}` failed: {}", Errno::from_raw(*errno))]
pub struct StepError {
    /// The step, one of a fixed set of words.
    pub step: &'static str,
    /// The error number; 0 where a check failed that is not a system call's.
    pub errno: i32,
}

impl StepError {
    pub(crate) const fn new(step: &'static str, errno: Errno) -> Self {
        Self { step, errno: errno as i32 }
    }
}

/// Names the step that an error belongs to.
pub(crate) trait Step<T> {
    fn step(self, step: &'static str) -> Result<T, StepError>;
}

impl<T> Step<T> for Result<T, Errno> {
    fn step(self, step: &'static str) -> Result<T, StepError> {
        self.map_err(|errno| StepError::new(step, errno))
    }
}

impl<T> Step<T> for std::io::Result<T> {
    fn step(self, step: &'static str) -> Result<T, StepError> {
        self.map_err(|error| StepError { step, errno: error.raw_os_error().unwrap_or(0) })
    }
}
