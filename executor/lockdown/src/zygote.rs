//! The zygote's own lockdown: what can be given up before the engine boots, what after, and the fork.

use std::fs;
use std::os::fd::BorrowedFd;

use codemode_wire::control::BootRequest;
use codemode_wire::{Layer, LayerReport, LayerSet, LayerState};
use nix::errno::Errno;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, chdir, geteuid, getppid, setsid};

use crate::bpf::{self, Program};
use crate::domain::{self, Domain};
use crate::engine::{Engine, Role};
use crate::error::{Step, StepError};
use crate::fds::{self, MAPS_FD, RUN_FD, UNUSED_FD};
use crate::limits::{self, LimitsBase};
use crate::policy::{Phase, Policy};
use crate::probe::{self, Way};
use crate::proc_status::{self, ProcStatus};
use crate::sys::{self, Cloned};
use crate::{namespaces, privileges};

/// Makes the zygote the first victim when the machine runs out of memory; its children inherit it.
const OOM_SCORE_ADJUSTMENT: &str = "900";
/// Name of the program and its role.
const ARGUMENTS_MAX: usize = 2;

/// How the layers stand so far. A layer that is never marked is a mistake, and reported as not in force.
#[derive(Debug, Default)]
struct Standing {
    reports: Vec<LayerReport>,
}

impl Standing {
    fn mark(&mut self, layer: Layer, state: LayerState, reason: impl Into<String>) {
        self.reports.retain(|report| report.layer != layer);
        self.reports.push(LayerReport { layer, state, reason: reason.into() });
    }

    fn in_force(&mut self, layer: Layer) {
        self.mark(layer, LayerState::InForce, "");
    }

    fn unavailable(&mut self, layer: Layer, reason: impl Into<String>) {
        self.mark(layer, LayerState::Unavailable, reason);
    }

    fn is_in_force(&self, layer: Layer) -> bool {
        self.reports.iter().any(|report| report.layer == layer && report.state == LayerState::InForce)
    }

    /// One report per layer, in the order of the layers.
    fn finish(mut self) -> Vec<LayerReport> {
        for layer in Layer::ALL {
            if !self.reports.iter().any(|report| report.layer == layer) {
                self.unavailable(layer, "no step of the lockdown answers for it");
            }
        }
        self.reports.sort_by_key(|report| report.layer);
        self.reports
    }
}

/// A runner that has given up what it can before its engine boots.
#[derive(Debug)]
pub struct Confined {
    engine: Engine,
    role: Role,
    off: LayerSet,
    parent: Pid,
    standing: Standing,
}

/// The first stage. Call it with one thread, after the boot request has been read and before the engine boots.
///
/// Afterwards there is no file system where that could be had, no capability, no other user's right, and no way to get any of
/// it back; memory and time are still free, and all system calls.
///
/// # Errors
/// The first step that failed. The process is then half confined and must exit.
pub fn confine_zygote(boot: &BootRequest, engine: Engine, role: Role) -> Result<Confined, StepError> {
    let off = boot.layers_off;
    let parent = getppid();
    let mut standing = Standing::default();
    for layer in off.iter() {
        standing.mark(layer, LayerState::Off, "turned off by configuration");
    }
    proc_status::open()?;
    assert_single_thread()?;
    // Advice to the kernel, not a wall; the file is out of reach once the user id or the root has changed.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJUSTMENT);
    report_environment(&mut standing);
    detach()?;
    if engine.is_v8() {
        fds::open_at_number("/proc/self/maps", MAPS_FD, "open mappings")?;
    }

    let drop_to = (geteuid().is_root() && !off.contains(Layer::UidDrop)).then_some(boot.uid);
    set_apart(&mut standing, off, drop_to)?;
    confine_privileges(&mut standing, off, engine)?;
    if !off.contains(Layer::Rlimits) {
        limits::confine_common()?;
        standing.in_force(Layer::Rlimits);
    }
    if !off.contains(Layer::ParentDeathSignal) {
        // Last of all that could clear it, which is every change of ids.
        privileges::die_with(parent)?;
        standing.in_force(Layer::ParentDeathSignal);
    }
    Ok(Confined { engine, role, off, parent, standing })
}

fn assert_single_thread() -> Result<ProcStatus, StepError> {
    let status = proc_status::read()?;
    if status.threads == 1 { Ok(status) } else { Err(StepError::new("single thread", Errno::EBUSY)) }
}

/// The environment that the process was started with, not the one that it may have set for its engine since.
fn report_environment(standing: &mut Standing) {
    if standing.reports.iter().any(|report| report.layer == Layer::Environment) {
        return;
    }
    let arguments = std::env::args_os().len();
    match fs::read("/proc/self/environ") {
        Ok(bytes) if bytes.is_empty() && arguments <= ARGUMENTS_MAX => standing.in_force(Layer::Environment),
        Ok(bytes) => standing.unavailable(
            Layer::Environment,
            format!("started with {} bytes of environment and {arguments} arguments", bytes.len()),
        ),
        Err(error) => standing.unavailable(Layer::Environment, format!("cannot be read back: {error}")),
    }
}

/// Leaves the session, the directory, and whatever signal handling was inherited.
fn detach() -> Result<(), StepError> {
    setsid().step("new session")?;
    umask(Mode::from_bits_truncate(0o077));
    chdir("/").step("change directory")?;
    sys::reset_signals().step("reset signals")
}

fn set_apart(standing: &mut Standing, off: LayerSet, drop_to: Option<u32>) -> Result<(), StepError> {
    let Way { apart, missing } = probe::find_way(off, drop_to)?;
    probe::set_apart(apart, drop_to)?;
    for layer in namespaces::LAYERS.into_iter().filter(|layer| apart.layers().contains(*layer)) {
        standing.in_force(layer);
    }
    for (layer, reason) in missing {
        standing.unavailable(layer, reason);
    }
    if drop_to.is_some() {
        standing.in_force(Layer::UidDrop);
    } else if !off.contains(Layer::UidDrop) {
        let reason = format!(
            "the executor runs as user {} and so does the runner; start it as root for a user of its own",
            geteuid()
        );
        standing.unavailable(Layer::UidDrop, reason);
    }
    Ok(())
}

fn confine_privileges(standing: &mut Standing, off: LayerSet, engine: Engine) -> Result<(), StepError> {
    if !off.contains(Layer::Capabilities) {
        privileges::drop_capabilities()?;
    }
    if !off.contains(Layer::NoNewPrivileges) {
        privileges::no_new_privileges()?;
    }
    if !off.contains(Layer::NonDumpable) {
        privileges::undumpable()?;
        standing.in_force(Layer::NonDumpable);
    }
    if !off.contains(Layer::NoExecMemory) {
        confine_memory(standing, off, engine);
    }
    privileges::restrain_speculation();
    let status = proc_status::read()?;
    if !off.contains(Layer::NoNewPrivileges) {
        if !status.no_new_privileges {
            return Err(StepError::new("no new privileges", Errno::EPERM));
        }
        standing.in_force(Layer::NoNewPrivileges);
    }
    if !off.contains(Layer::Capabilities) {
        if status.capabilities != 0 {
            return Err(StepError::new("drop capabilities", Errno::EPERM));
        }
        if status.bounding == 0 {
            standing.in_force(Layer::Capabilities);
        } else {
            standing.unavailable(
                Layer::Capabilities,
                "the process has none and can gain none, but its bounding set is not empty and emptying it takes \
                 CAP_SETPCAP; drop all capabilities in the container's settings",
            );
        }
    }
    Ok(())
}

fn confine_memory(standing: &mut Standing, off: LayerSet, engine: Engine) {
    if engine.compiles() {
        let reason = "the engine compiles to machine code; `v8.jitless` or quickjs does without";
        standing.mark(Layer::NoExecMemory, LayerState::Off, reason);
        return;
    }
    match privileges::deny_write_execute() {
        Ok(()) => standing.in_force(Layer::NoExecMemory),
        // The allowlist's argument rules say the same.
        Err(_) if !off.contains(Layer::Seccomp) => standing.in_force(Layer::NoExecMemory),
        Err(errno) => standing.unavailable(
            Layer::NoExecMemory,
            format!(
                "the kernel has no PR_SET_MDWE (Linux 6.3) and the system call allowlist is off: {}",
                errno.desc()
            ),
        ),
    }
}

impl Confined {
    /// V8 only: the list of the process's own mappings, opened while there was a file system. It can be read, after `lseek` to
    /// its beginning again, until [`Self::seal`] closes it.
    #[must_use]
    pub fn maps(&self) -> Option<BorrowedFd<'static>> {
        self.engine.is_v8().then(|| sys::borrow(MAPS_FD))
    }

    /// The second stage: Landlock and the system call allowlist. Call it after the engine has booted, with one thread.
    ///
    /// # Errors
    /// The first step that failed; the process must exit.
    pub fn seal(self) -> Result<Sealed, StepError> {
        let Self { engine, role, off, parent, mut standing } = self;
        let status = assert_single_thread()?;
        let base = LimitsBase::measure(engine, status.data_bytes, status.address_bytes)?;
        if !off.contains(Layer::NonDumpable) {
            privileges::check_undumpable()?;
        }
        let thread_id_slot = sys::thread_id_slot();
        let own_domain = !off.contains(Layer::Landlock) && enter_domain(&mut standing)?;
        if role != Role::Strip {
            sys::close_span(RUN_FD, RUN_FD).step("close descriptors")?;
        }
        sys::close_span(MAPS_FD, MAPS_FD).step("close descriptors")?;
        sys::close_from(UNUSED_FD).step("close descriptors")?;
        if !off.contains(Layer::Descriptors) {
            standing.in_force(Layer::Descriptors);
        }
        standing_of_cgroup(&mut standing, off);
        let filters = if off.contains(Layer::Seccomp) { None } else { Some(Filters::compile(engine)?) };
        if let Some(filters) = &filters {
            sys::install_filter(filters.zygote.instructions()).step("install filter")?;
            standing.in_force(Layer::Seccomp);
        }
        let layers = Layer::ALL.into_iter().filter(|layer| standing.is_in_force(*layer)).collect();
        let reports = standing.finish();
        let delta = filters.map(|filters| filters.delta);
        Ok(Sealed { parent, layers, reports, base, own_domain, delta, thread_id_slot })
    }
}

/// Whether the children get domains of their own.
fn enter_domain(standing: &mut Standing) -> Result<bool, StepError> {
    match domain::enter()? {
        Domain::Complete => {
            standing.in_force(Layer::Landlock);
            return Ok(true);
        }
        Domain::Partial { abi } => standing.unavailable(
            Layer::Landlock,
            format!("in part: the kernel's Landlock (version {abi}) knows no scopes for signals and abstract sockets (Linux 6.12)"),
        ),
        Domain::Absent(reason) => standing.unavailable(Layer::Landlock, reason),
    }
    Ok(false)
}

fn standing_of_cgroup(standing: &mut Standing, off: LayerSet) {
    if !off.contains(Layer::Cgroup) {
        standing.unavailable(
            Layer::Cgroup,
            "not the runner's to say: the executor places runs in control groups",
        );
    }
}

/// Both filters, compiled before the first of them is in force.
struct Filters {
    zygote: Program,
    delta: Program,
}

impl Filters {
    fn compile(engine: Engine) -> Result<Self, StepError> {
        // Neither fails with the policy that this crate was built with; tests see to that.
        let invalid = StepError::new("compile filter", Errno::EINVAL);
        let policy = Policy::load().map_err(|_| invalid)?;
        let zygote = bpf::allowlist(&policy.verdicts(engine, Phase::Zygote)).map_err(|_| invalid)?;
        let delta = bpf::delta(&policy.delta(engine)).map_err(|_| invalid)?;
        Ok(Self { zygote, delta })
    }
}

/// A runner that has given up all that its children can share. The only thing that can fork a run's process.
#[derive(Debug)]
pub struct Sealed {
    pub(crate) parent: Pid,
    pub(crate) layers: LayerSet,
    reports: Vec<LayerReport>,
    pub(crate) base: LimitsBase,
    pub(crate) own_domain: bool,
    pub(crate) delta: Option<Program>,
    thread_id_slot: Option<usize>,
}

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The zygote; the new process is the executor's child, not its own.
    Zygote {
        /// The new process.
        pid: i32,
    },
    /// The new process.
    Child,
}

impl Sealed {
    /// How each layer will stand in a child: one report per layer, in their order. The cgroup layer is the executor's to say.
    #[must_use]
    pub fn reports(&self) -> &[LayerReport] {
        &self.reports
    }

    /// The layers in force.
    #[must_use]
    pub const fn layers(&self) -> LayerSet {
        self.layers
    }

    /// Makes a process for a run. It is the executor's child, so that the executor alone can reap it.
    ///
    /// [`Confined::seal`] has asserted that there is one thread, and its filter forbids making another.
    ///
    /// # Errors
    /// `fork`, with the kernel's reason.
    pub fn fork(&self) -> Result<Fork, StepError> {
        match sys::clone_as_sibling(self.thread_id_slot).step("fork")? {
            Cloned::Parent(pid) => Ok(Fork::Zygote { pid }),
            Cloned::Child => Ok(Fork::Child),
        }
    }
}
