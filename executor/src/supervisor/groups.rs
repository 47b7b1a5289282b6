//! Control groups of runs: one for each process where the hierarchy is delegated to the executor, none elsewhere.
//!
//! The runner cannot make its own: it has no file system. So this layer is the executor's to apply and to report.
//! Owns whether there is one; [`Process`](super::Process) owns a run's group and removes it with the process.

use codemode_lockdown::cgroup::{CgroupError, Hierarchy, RunGroup};
use codemode_wire::{Layer, LayerReport, LayerSet, LayerState};

/// What a group may hold beyond what its process may allocate, bytes: page tables, sockets, the pages it shares.
const KERNEL_SLACK_BYTES: u64 = 64 << 20;

/// Where runs get their groups, and how the layer stands.
#[derive(Debug)]
pub(crate) struct Groups {
    hierarchy: Option<Hierarchy>,
    report: LayerReport,
}

impl Groups {
    /// Looks for a delegated hierarchy and moves the executor into a leaf of it. To be called before anything is spawned.
    pub(crate) fn start(layers_off: LayerSet) -> Self {
        if layers_off.contains(Layer::Cgroup) {
            return Self::without(LayerState::Off, "turned off by configuration".to_owned());
        }
        match Hierarchy::detect().and_then(|hierarchy| hierarchy.prepare().map(|()| hierarchy)) {
            Ok(hierarchy) => Self {
                hierarchy: Some(hierarchy),
                report: LayerReport {
                    layer: Layer::Cgroup,
                    state: LayerState::InForce,
                    reason: String::new(),
                },
            },
            Err(error) => Self::without(LayerState::Unavailable, error.to_string()),
        }
    }

    fn without(state: LayerState, reason: String) -> Self {
        Self { hierarchy: None, report: LayerReport { layer: Layer::Cgroup, state, reason } }
    }

    /// How the layer stands.
    pub(crate) const fn report(&self) -> &LayerReport {
        &self.report
    }

    /// Puts a run's process, which has no program yet, into a group of its own. `None` where there are no groups.
    ///
    /// # Errors
    /// The file that refused. The layer was promised, so the process must not get a program.
    pub(crate) fn place(&self, pid: i32, data_bytes: u64) -> Result<Option<RunGroup>, CgroupError> {
        let Some(hierarchy) = &self.hierarchy else { return Ok(None) };
        let group = hierarchy.create(&format!("run-{pid}"), data_bytes.saturating_add(KERNEL_SLACK_BYTES))?;
        match group.add(pid) {
            Ok(()) => Ok(Some(group)),
            Err(error) => {
                remove(&group);
                Err(error)
            }
        }
    }
}

/// Removes a group whose process is reaped, and says so if that fails.
pub(crate) fn remove(group: &RunGroup) {
    if let Err(error) = group.remove() {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, "cannot remove a run's control group");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turned_off_is_no_failure() {
        let groups = Groups::start(LayerSet::EMPTY.with(Layer::Cgroup));
        assert_eq!(groups.report().state, LayerState::Off);
        assert!(groups.place(1, 1).expect("no group is no error").is_none());
    }
}
