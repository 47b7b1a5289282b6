//! Owns every child process: one zygote for each engine with a spare behind it, the stripping process, and the run
//! processes until their runs have reaped them. Start reading here; [`zygote`] holds the conversation with a zygote,
//! [`process`] the life of a child, [`strip`] the stripping process.
//!
//! Zygotes are rotated (after so many runs, so much time, and at once after a crash), because all children of one share
//! their memory layout: what one run learnt of addresses must not help a later one.

mod groups;
pub mod orphans;
mod outgoing;
pub(crate) mod pidfd;
pub mod process;
mod spawn;
mod stderr;
pub mod strip;
pub mod zygote;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codemode_wire::control::{BootRequest, ForkRequest};
use codemode_wire::{Layer, LayerSet};
use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use groups::Groups;
pub(crate) use outgoing::Outgoing;
pub(crate) use process::{CpuClock, Process};
use strip::{StripError, StripPlan, Stripped, Stripper};
use zygote::{BootError, BootPlan, EngineInfo, ForkError, Zygote};

use crate::config::{Config, Engine, Spawn};
use crate::run::attribution::soft_cpu_seconds;
use crate::run::budget::Budgets;

/// How often a fork is tried with another zygote when one turns out to be gone.
const FORK_ATTEMPTS: usize = 3;
/// First pause after a zygote could not be booted; it doubles up to [`BOOT_PAUSE_MAX`].
const BOOT_PAUSE: Duration = Duration::from_millis(50);
/// Longest pause between two tries to boot a zygote.
const BOOT_PAUSE_MAX: Duration = Duration::from_secs(5);
/// In `exec` mode, processes that are booted ahead.
const EXEC_AHEAD: usize = 2;
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
}

/// Every child process and what makes them.
#[derive(Debug)]
pub struct Supervisor {
    engines: Vec<(Engine, Arc<Line>)>,
    groups: Groups,
    stripper: Stripper,
    stripper_keeper: Mutex<Option<strip::Keeper>>,
    stop: CancellationToken,
    dry: watch::Receiver<u32>,
}

/// Where a line says whether it is dry.
#[derive(Debug)]
struct Gauge {
    bit: u32,
    dry: Arc<watch::Sender<u32>>,
}

impl Gauge {
    fn set(&self, dry: bool) {
        self.dry.send_if_modified(|bits| {
            let new = if dry { *bits | self.bit } else { *bits & !self.bit };
            std::mem::replace(bits, new) != new
        });
    }
}

/// One engine's supply of zygotes.
#[derive(Debug)]
struct Line {
    plan: BootPlan,
    rotate_runs: u64,
    rotate_after: Duration,
    stock: Mutex<Stock>,
    /// Something about the stock changed, or should: for the keeper.
    check: Arc<Notify>,
    /// A zygote was put in stock: for those who wait for one.
    stocked: watch::Sender<u64>,
    info: Mutex<Option<Arc<EngineInfo>>>,
    keeper: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Stock {
    active: Option<Arc<Zygote>>,
    /// Booted and unused, to take over at once.
    spare: VecDeque<Arc<Zygote>>,
    /// Every zygote that may still be alive, for shutdown.
    retired: Vec<Arc<Zygote>>,
}

impl Supervisor {
    /// Boots all engines and the stripping process.
    ///
    /// # Errors
    /// The first engine that does not come up, or lacks a required layer: then nothing is served at all.
    pub async fn start(config: &Config) -> Result<Self, (Engine, BootError)> {
        let stop = CancellationToken::new();
        let groups = Groups::start(config.layers_off);
        let mut engines = Vec::new();
        for (engine, path) in &config.runners {
            let plan = BootPlan {
                engine: *engine,
                path: Arc::from(path.as_path()),
                request: boot_request(config),
                required: config.required_layers,
                cgroup: groups.report().clone(),
                boot_deadline: config.boot,
                control_deadline: config.control,
                single_use: config.spawn == Spawn::Exec,
            };
            let line = Arc::new(Line::new(plan, config));
            line.boot_one().await.map_err(|error| (*engine, error))?;
            engines.push((*engine, line));
        }
        let (sender, dry) = watch::channel(0);
        let sender = Arc::new(sender);
        for (index, (_, line)) in engines.iter().enumerate() {
            let gauge = Gauge { bit: 1 << index, dry: Arc::clone(&sender) };
            let keeper = tokio::spawn(Arc::clone(line).keep(stop.clone(), gauge));
            *line.keeper.lock() = Some(keeper);
        }
        let (stripper, keeper) = Stripper::start(strip_plan(config), stop.clone());
        Ok(Self { engines, groups, stripper, stripper_keeper: Mutex::new(Some(keeper)), stop, dry })
    }

    /// The engines without a zygote that serves, a bit for each; zero means ready.
    #[must_use]
    pub fn dry(&self) -> watch::Receiver<u32> {
        self.dry.clone()
    }

    /// What the engines say of themselves, in the configuration's order.
    #[must_use]
    pub fn engines(&self) -> Vec<Arc<EngineInfo>> {
        self.engines.iter().filter_map(|(_, line)| line.info.lock().clone()).collect()
    }

    fn line(&self, engine: Engine) -> Option<&Arc<Line>> {
        self.engines.iter().find(|(name, _)| *name == engine).map(|(_, line)| line)
    }

    /// What one engine says of itself; `None` if it is not configured.
    #[must_use]
    pub fn engine(&self, engine: Engine) -> Option<Arc<EngineInfo>> {
        self.line(engine)?.info.lock().clone()
    }

    /// Erases types. Cancel-safe.
    ///
    /// # Errors
    /// The stripping process cannot be used.
    pub async fn strip(&self, program: &Arc<str>) -> Result<Arc<Stripped>, StripError> {
        self.stripper.strip(program).await
    }

    /// Makes one process. To be awaited to its end.
    pub(crate) async fn fork(&self, engine: Engine, budgets: &Budgets) -> Result<Forked, ForkError> {
        let line = self.line(engine).ok_or(ForkError::Gone)?;
        let mut request = ForkRequest {
            nonce: [0; 16],
            cpu_seconds: soft_cpu_seconds(budgets),
            data_bytes: data_bytes(budgets),
        };
        getrandom::fill(&mut request.nonce).map_err(|error| std::io::Error::other(error.to_string()))?;
        for _ in 0..FORK_ATTEMPTS {
            let zygote = line.take(line.plan.boot_deadline).await.ok_or(ForkError::Gone)?;
            let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            match zygote.fork(&request, OwnedFd::from(theirs)).await {
                Ok(mut process) => {
                    line.forked(&zygote);
                    let pid = process.pid();
                    let group = self.groups.place(pid, request.data_bytes);
                    process.join(group.map_err(|source| ForkError::Group { pid, source })?);
                    let stream = UnixStream::from_std(ours)?;
                    // What the executor applies itself no runner can confirm.
                    let expected = zygote.in_force.without(Layer::Cgroup);
                    return Ok(Forked { process, stream, nonce: request.nonce, expected });
                }
                Err(ForkError::Gone) => line.check.notify_one(),
                Err(other) => return Err(other),
            }
        }
        Err(ForkError::Gone)
    }

    /// A run's process crashed: what it may have learnt about memory layouts is made worthless.
    pub(crate) fn crashed(&self, engine: Engine) {
        if let Some(line) = self.line(engine) {
            line.rotate("a run's process crashed");
        }
    }

    /// Ends zygotes and the stripping process, and returns when they are reaped. Runs must have ended before.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        let stripper = self.stripper_keeper.lock().take();
        let mut keepers: Vec<_> = stripper.into_iter().collect();
        keepers.extend(self.engines.iter().filter_map(|(_, line)| line.keeper.lock().take()));
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

fn boot_request(config: &Config) -> BootRequest {
    BootRequest {
        layers_off: config.layers_off,
        jitless: config.jitless,
        heap_bytes_max: config.budgets.heap_bytes,
        frame_bytes_max: config.frame_bytes_max + FRAME_OVERHEAD_BYTES,
        uid: config.uid,
    }
}

fn strip_plan(config: &Config) -> StripPlan {
    StripPlan {
        path: Arc::from(config.strip_runner.as_path()),
        request: boot_request(config),
        deadline: config.strip,
        answer_bytes_max: config.program_bytes_max.saturating_mul(2).saturating_add(FRAME_OVERHEAD_BYTES),
        cache_bytes: config.strip_cache_bytes,
    }
}

/// `RLIMIT_DATA` of a run's process above what its zygote uses.
fn data_bytes(budgets: &Budgets) -> u64 {
    budgets
        .heap_bytes
        .saturating_add(budgets.output_bytes.saturating_mul(3))
        .saturating_add(NATIVE_SLACK_BYTES)
}

impl Line {
    fn new(plan: BootPlan, config: &Config) -> Self {
        Self {
            plan,
            rotate_runs: config.rotate_runs,
            rotate_after: config.rotate_after,
            stock: Mutex::default(),
            check: Arc::default(),
            stocked: watch::Sender::new(0),
            info: Mutex::new(None),
            keeper: Mutex::new(None),
        }
    }

    /// Boots one zygote into stock.
    async fn boot_one(&self) -> Result<(), BootError> {
        let zygote = Zygote::boot(&self.plan, Arc::clone(&self.check)).await?;
        *self.info.lock() = Some(Arc::clone(&zygote.info));
        {
            let mut stock = self.stock.lock();
            if stock.active.is_none() && !self.plan.single_use {
                stock.active = Some(zygote);
            } else {
                stock.spare.push_back(zygote);
            }
        }
        self.stocked.send_modify(|count| *count += 1);
        Ok(())
    }

    /// A zygote to ask: the active one, or in `exec` mode one of its own. Waits for one at most `patience`.
    async fn take(&self, patience: Duration) -> Option<Arc<Zygote>> {
        let mut stocked = self.stocked.subscribe();
        let waiting = async {
            loop {
                stocked.borrow_and_update();
                if let Some(zygote) = self.pick() {
                    return Some(zygote);
                }
                self.check.notify_one();
                stocked.changed().await.ok()?;
            }
        };
        tokio::time::timeout(patience, waiting).await.ok().flatten()
    }

    fn pick(&self) -> Option<Arc<Zygote>> {
        let mut stock = self.stock.lock();
        if self.plan.single_use {
            let zygote = loop {
                let zygote = stock.spare.pop_front()?;
                if !zygote.is_gone() {
                    break zygote;
                }
            };
            self.check.notify_one();
            return Some(zygote);
        }
        if stock.active.as_ref().is_some_and(|active| active.is_gone()) {
            stock.promote();
            self.check.notify_one();
        }
        stock.active.clone()
    }

    fn forked(&self, zygote: &Zygote) {
        if !self.plan.single_use && zygote.forks() >= self.rotate_runs {
            self.rotate("it served its runs");
        }
    }

    /// Puts the spare in the active one's place; the keeper boots the next spare. Without a spare the active one stays
    /// until there is one.
    fn rotate(&self, why: &'static str) {
        if self.plan.single_use {
            return;
        }
        let mut stock = self.stock.lock();
        if !stock.spare.is_empty() {
            tracing::debug!(engine = %self.plan.engine, why, "zygote rotated");
            stock.promote();
        } else if let Some(active) = &stock.active {
            active.taint();
        }
        drop(stock);
        self.check.notify_one();
    }

    /// Keeps the stock full until `stop`.
    async fn keep(self: Arc<Self>, stop: CancellationToken, gauge: Gauge) {
        let mut pause = BOOT_PAUSE;
        while !stop.is_cancelled() {
            let wanted = self.wants_another();
            gauge.set(self.is_dry());
            if !wanted {
                let rotation = self.rotation_due();
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = self.check.notified() => {}
                    () = tokio::time::sleep_until(rotation.into()) => self.rotate("it served its time"),
                }
                continue;
            }
            match self.boot_one().await {
                Ok(()) => pause = BOOT_PAUSE,
                Err(error) => {
                    self.report(&error);
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = tokio::time::sleep(pause) => {}
                    }
                    pause = (pause * 2).min(BOOT_PAUSE_MAX);
                }
            }
        }
        self.close().await;
    }

    fn report(&self, error: &BootError) {
        let error: &dyn std::error::Error = error;
        tracing::error!(engine = %self.plan.engine, error, "a zygote does not boot");
    }

    /// Whether the stock lacks a zygote; also forgets the dead.
    fn wants_another(&self) -> bool {
        let mut stock = self.stock.lock();
        stock.spare.retain(|zygote| !zygote.is_gone());
        stock.retired.retain(|zygote| !zygote.reaped.is_cancelled());
        if self.plan.single_use {
            return stock.spare.len() < EXEC_AHEAD;
        }
        if stock.active.as_ref().is_none_or(|active| active.is_gone()) {
            stock.promote();
        }
        let worn = stock.active.as_ref().is_some_and(|active| {
            active.is_tainted()
                || active.forks() >= self.rotate_runs
                || active.born.elapsed() >= self.rotate_after
        });
        if worn && !stock.spare.is_empty() {
            stock.promote();
        }
        stock.active.is_none() || stock.spare.is_empty()
    }

    fn is_dry(&self) -> bool {
        let stock = self.stock.lock();
        stock.active.as_ref().is_none_or(|active| active.is_gone()) && stock.spare.is_empty()
    }

    fn rotation_due(&self) -> Instant {
        let born = self.stock.lock().active.as_ref().map_or_else(Instant::now, |active| active.born);
        let far = Duration::from_secs(24 * 3600);
        if self.plan.single_use { Instant::now() + far } else { born + self.rotate_after.min(far) }
    }

    /// Retires every zygote and waits until each is reaped.
    async fn close(&self) {
        let zygotes: Vec<Arc<Zygote>> = {
            let mut stock = self.stock.lock();
            let Stock { active, spare, retired } = &mut *stock;
            active.take().into_iter().chain(spare.drain(..)).chain(retired.drain(..)).collect()
        };
        for zygote in &zygotes {
            zygote.retire();
        }
        for zygote in zygotes {
            zygote.reaped.cancelled().await;
        }
    }
}

impl Stock {
    /// The active zygote serves what it was asked and ends; the spare takes its place.
    fn promote(&mut self) {
        if let Some(old) = self.active.take() {
            old.retire();
            self.retired.push(old);
        }
        while let Some(next) = self.spare.pop_front() {
            if !next.is_gone() {
                self.active = Some(next);
                return;
            }
        }
    }
}
