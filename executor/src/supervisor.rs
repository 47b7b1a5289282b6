//! Owns every child process: one zygote for each engine with a spare behind it, what is made ahead of runs, the
//! stripping processes, and the run processes until their runs have reaped them. Start reading here; [`mod@line`] holds
//! one engine's supply, [`mod@stock`] its zygotes, [`zygote`] the conversation with one, [`process`] the life of a
//! child, [`strip`] the stripping processes.
//!
//! Zygotes are rotated (after so many runs, so much time, and at once after a crash), because all children of one share
//! their memory layout: what one run learnt of addresses must not help a later one.

mod ahead;
mod groups;
mod line;
pub mod orphans;
mod outgoing;
mod pause;
pub(crate) mod pidfd;
pub mod process;
mod spawn;
mod stderr;
mod stock;
pub mod strip;
pub mod zygote;

use std::path::Path;
use std::sync::Arc;

use codemode_wire::control::BootRequest;
use codemode_wire::{Layer, LayerSet};
use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use groups::Groups;
use line::{Gauge, Line};
pub(crate) use outgoing::Outgoing;
pub(crate) use process::{CpuClock, Process};
use strip::{StripError, StripPlan, Stripped, Stripper};
use zygote::{BootError, BootPlan, EngineInfo, ForkError};

use crate::config::{Config, Engine, Spawn};
use crate::run::attribution::soft_cpu_seconds;
use crate::run::budget::Budgets;

/// What a run's process may allocate beside its heap and three times its output (as a string of the engine's, as JSON
/// text, as a frame), bytes.
const NATIVE_SLACK_BYTES: u64 = 64 << 20;
/// What a frame may be longer than the largest value it carries, bytes; a program frame has all its names in it.
pub(crate) const FRAME_OVERHEAD_BYTES: u32 = 2 << 20;

/// A run's process that has not said yet that it is locked down. It has no program, and this type cannot send one.
#[derive(Debug)]
pub(crate) struct Forked {
    pub(crate) process: Process,
    pub(crate) stream: UnixStream,
    /// To be echoed in its hello.
    pub(crate) nonce: [u8; 16],
    /// Layers that must be in its hello.
    pub(crate) expected: LayerSet,
    /// The zygote that made it, [`Zygote::id`](zygote::Zygote).
    pub(crate) maker: u64,
}

impl Forked {
    /// Ends and reaps a process that no run wants. True if it had ended by itself, which is somebody's fault.
    async fn end(self) -> bool {
        let Self { process, .. } = self;
        let (pid, lost) = (process.pid(), process.has_ended());
        process.kill();
        match process.reap().await {
            Ok(ended) if lost => {
                tracing::warn!(pid, exit = ?ended.exit, "a process ended before a run had it")
            }
            Ok(_) => {}
            Err(error) => tracing::error!(pid, %error, "cannot reap a process that no run had"),
        }
        lost
    }
}

/// Bytes from the kernel's generator.
pub(crate) fn random() -> std::io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// The kernel's limits of a run's process, which it is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    /// `RLIMIT_CPU`, seconds.
    cpu_seconds: u32,
    /// `RLIMIT_DATA` above what its zygote uses, bytes.
    data_bytes: u64,
}

impl Limits {
    fn of(budgets: &Budgets) -> Self {
        let output = budgets.output_bytes.saturating_mul(3);
        let data_bytes = budgets.heap_bytes.saturating_add(output).saturating_add(NATIVE_SLACK_BYTES);
        Self { cpu_seconds: soft_cpu_seconds(budgets), data_bytes }
    }
}

/// What did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An engine's runner.
    #[error("engine `{engine}` does not come up")]
    Engine {
        /// Which.
        engine: Engine,
        /// Why.
        source: BootError,
    },
    /// A stripping process.
    #[error("the stripping process does not come up")]
    Stripper {
        /// Why.
        source: BootError,
    },
}

/// Every child process and what makes them.
#[derive(Debug)]
pub struct Supervisor {
    engines: Vec<(Engine, Arc<Line>)>,
    stripper: Stripper,
    stripper_keepers: Mutex<Vec<strip::Keeper>>,
    stop: CancellationToken,
    dry: watch::Receiver<u32>,
}

impl Supervisor {
    /// Boots all engines and the stripping processes.
    ///
    /// # Errors
    /// The first that does not come up, or lacks a required layer: then nothing is served at all.
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        let stop = CancellationToken::new();
        // What has come up ends again if something after it does not.
        let unless_started = stop.clone().drop_guard();
        let groups = Arc::new(Groups::start(config.layers_off));
        let mut engines = Vec::new();
        for (engine, path) in &config.runners {
            let line =
                Line::start(boot_plan(config, *engine, path, &groups), Arc::clone(&groups), config).await;
            let line = line.map_err(|source| StartError::Engine { engine: *engine, source })?;
            engines.push((*engine, line));
        }
        let (sender, dry) = watch::channel(0);
        let sender = Arc::new(sender);
        for (index, (_, line)) in engines.iter().enumerate() {
            let gauge = Gauge { bit: 1 << index, dry: Arc::clone(&sender) };
            line.keep_full(&stop, gauge);
        }
        let stripper = Stripper::start(&strip_plan(config), &stop).await;
        let (stripper, keepers) = stripper.map_err(|source| StartError::Stripper { source })?;
        let stop = unless_started.disarm();
        Ok(Self { engines, stripper, stripper_keepers: Mutex::new(keepers), stop, dry })
    }

    /// The engines without a zygote that serves, a bit for each; zero means ready.
    #[must_use]
    pub fn dry(&self) -> watch::Receiver<u32> {
        self.dry.clone()
    }

    /// What the engines say of themselves, in the configuration's order.
    #[must_use]
    pub fn engines(&self) -> Vec<Arc<EngineInfo>> {
        self.engines.iter().filter_map(|(_, line)| line.info()).collect()
    }

    fn line(&self, engine: Engine) -> Option<&Arc<Line>> {
        self.engines.iter().find(|(name, _)| *name == engine).map(|(_, line)| line)
    }

    /// What one engine says of itself; `None` if it is not configured.
    #[must_use]
    pub fn engine(&self, engine: Engine) -> Option<Arc<EngineInfo>> {
        self.line(engine)?.info()
    }

    /// Erases types. Cancel-safe.
    ///
    /// # Errors
    /// The stripping process cannot be used.
    pub async fn strip(&self, program: &Arc<str>) -> Result<Arc<Stripped>, StripError> {
        self.stripper.strip(program).await
    }

    /// Makes one process. Dropped early, it ends what was made.
    pub(crate) async fn fork(&self, engine: Engine, budgets: &Budgets) -> Result<Forked, ForkError> {
        self.line(engine).ok_or(ForkError::Gone)?.fork(Limits::of(budgets)).await
    }

    /// A run's process crashed: what it may have learnt about memory layouts is made worthless.
    pub(crate) fn crashed(&self, engine: Engine, maker: u64) {
        if let Some(line) = self.line(engine) {
            line.crashed(maker);
        }
    }

    /// Ends zygotes and the stripping processes, and returns when they are reaped. Runs must have ended before.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        let mut keepers = std::mem::take(&mut *self.stripper_keepers.lock());
        keepers.extend(self.engines.iter().flat_map(|(_, line)| line.keepers()));
        for keeper in keepers {
            if let Err(error) = keeper.await {
                tracing::error!(%error, "a keeper of child processes failed");
            }
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn boot_plan(config: &Config, engine: Engine, path: &Path, groups: &Groups) -> BootPlan {
    BootPlan {
        engine,
        path: Arc::from(path),
        request: boot_request(config),
        required: config.required_layers,
        cgroup: groups.report().clone(),
        boot_deadline: config.boot,
        control_deadline: config.control,
        single_use: config.spawn == Spawn::Exec,
    }
}

fn boot_request(config: &Config) -> BootRequest {
    BootRequest {
        layers_off: config.layers_off,
        jitless: config.jitless,
        frame_bytes_max: config.frame_bytes_max + FRAME_OVERHEAD_BYTES,
        uid: config.uid,
    }
}

fn strip_plan(config: &Config) -> StripPlan {
    StripPlan {
        path: Arc::from(config.strip_runner.as_path()),
        request: boot_request(config),
        // No control group is made for it; the rest it has like every run's process.
        required: config.required_layers.without(Layer::Cgroup),
        boot_deadline: config.boot,
        cpu: config.strip,
        answer_bytes_max: config.program_bytes_max.saturating_mul(2).saturating_add(FRAME_OVERHEAD_BYTES),
        cache_bytes: config.strip_cache_bytes,
    }
}
