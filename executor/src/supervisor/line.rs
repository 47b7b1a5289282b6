//! One engine's supply of processes: a zygote that serves, a spare behind it, and what is made ahead of runs. Owns when
//! a zygote is replaced and who keeps the stock full.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codemode_wire::Layer;
use codemode_wire::control::ForkRequest;
use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::ahead::{Ahead, Order};
use super::groups::Groups;
use super::zygote::{BootError, BootPlan, EngineInfo, ForkError, Zygote};
use super::{Forked, Limits, random};
use crate::config::Config;

/// How often a fork is tried with another zygote when one turns out to be gone.
const FORK_ATTEMPTS: usize = 3;
/// First pause after something could not be made; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(50);
/// Longest pause between two tries to make something.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// In `exec` mode, processes that are booted ahead.
const EXEC_AHEAD: usize = 2;

/// Where a line says whether it is dry.
#[derive(Debug)]
pub(super) struct Gauge {
    pub(super) bit: u32,
    pub(super) dry: Arc<watch::Sender<u32>>,
}

impl Gauge {
    fn set(&self, dry: bool) {
        self.dry.send_if_modified(|bits| {
            let new = if dry { *bits | self.bit } else { *bits & !self.bit };
            std::mem::replace(bits, new) != new
        });
    }
}

/// Why a zygote is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wear {
    /// It served its runs.
    Runs,
    /// It served its time.
    Time,
    /// A run's process crashed.
    Crash,
}

/// One engine's supply of processes.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) plan: BootPlan,
    groups: Arc<Groups>,
    /// For the hello of what is made ahead.
    lockdown_deadline: Duration,
    rotate_runs: u64,
    rotate_after: Duration,
    stock: Mutex<Stock>,
    /// Something about the stock changed, or should: for the keeper.
    check: Arc<Notify>,
    /// A zygote was put in stock: for those who wait for one.
    stocked: watch::Sender<u64>,
    ahead: Ahead,
    info: Mutex<Option<Arc<EngineInfo>>>,
    keepers: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Stock {
    active: Option<Arc<Zygote>>,
    /// Booted and unused, to take over at once.
    spare: VecDeque<Arc<Zygote>>,
    /// Every zygote that may still be alive, for shutdown.
    retired: Vec<Arc<Zygote>>,
}

impl Line {
    /// Boots a first zygote.
    ///
    /// # Errors
    /// The runner does not come up, or lacks a required layer.
    pub(super) async fn start(
        plan: BootPlan,
        groups: Arc<Groups>,
        config: &Config,
    ) -> Result<Arc<Self>, BootError> {
        let line = Self {
            plan,
            groups,
            lockdown_deadline: config.lockdown,
            rotate_runs: config.rotate_runs,
            rotate_after: config.rotate_after,
            stock: Mutex::default(),
            check: Arc::default(),
            stocked: watch::Sender::new(0),
            ahead: Ahead::new(config.processes_ahead as usize, Limits::of(&config.budgets)),
            info: Mutex::new(None),
            keepers: Mutex::default(),
        };
        line.boot_one().await?;
        Ok(Arc::new(line))
    }

    /// Keeps the stock full from now on, until `stop`.
    pub(super) fn keep_full(self: &Arc<Self>, stop: &CancellationToken, gauge: Gauge) {
        let keepers = [
            tokio::spawn(Arc::clone(self).keep(stop.clone(), gauge)),
            tokio::spawn(Arc::clone(self).keep_ahead(stop.clone())),
        ];
        self.keepers.lock().extend(keepers);
    }

    /// What keeps the stock full; each ends after `stop` when its processes are reaped.
    pub(super) fn keepers(&self) -> Vec<tokio::task::JoinHandle<()>> {
        std::mem::take(&mut self.keepers.lock())
    }

    /// What the engine says of itself.
    pub(super) fn info(&self) -> Option<Arc<EngineInfo>> {
        self.info.lock().clone()
    }

    /// One process: made ahead, or made now. To be awaited to its end.
    pub(super) async fn fork(&self, limits: Limits) -> Result<Forked, ForkError> {
        if let Some(forked) = self.ahead.take(limits) {
            return Ok(forked);
        }
        for _ in 0..FORK_ATTEMPTS {
            let zygote = self.take(self.plan.boot_deadline).await.ok_or(ForkError::Gone)?;
            match self.make(&zygote, limits, false).await {
                Err(ForkError::Gone) => {}
                made => return made,
            }
        }
        Err(ForkError::Gone)
    }

    /// Has this zygote make one process.
    async fn make(&self, zygote: &Zygote, limits: Limits, ahead: bool) -> Result<Forked, ForkError> {
        let Limits { cpu_seconds, data_bytes } = limits;
        let request = ForkRequest { nonce: random()?, cpu_seconds, data_bytes, ahead };
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut process =
            zygote.fork(&request, OwnedFd::from(theirs)).await.inspect_err(|_| self.check.notify_one())?;
        self.forked(zygote);
        let pid = process.pid();
        let group = self.groups.place(pid, data_bytes);
        process.join(group.map_err(|source| ForkError::Group { pid, source })?);
        // What the executor applies itself no runner can confirm.
        let expected = zygote.in_force.without(Layer::Cgroup);
        Ok(Forked { process, stream: UnixStream::from_std(ours)?, nonce: request.nonce, expected })
    }

    /// Keeps as many processes made ahead as are wanted until `stop`.
    async fn keep_ahead(self: Arc<Self>, stop: CancellationToken) {
        let mut stocked = self.stocked.subscribe();
        let mut pause = PAUSE;
        while !stop.is_cancelled() {
            self.end_useless().await;
            stocked.borrow_and_update();
            let Some((order, zygote)) = self.ahead.order().and_then(|order| Some((order, self.pick()?)))
            else {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = self.ahead.changed.notified() => {}
                    // The line lives as long as its keeper.
                    _ = stocked.changed() => {}
                }
                continue;
            };
            match self.make_ahead(&zygote, order).await {
                Ok(()) => pause = PAUSE,
                Err(error) => {
                    self.report("a process cannot be made ahead", &error);
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = tokio::time::sleep(pause) => {}
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
        self.ahead.expire();
        self.end_useless().await;
    }

    /// Makes one ahead. What it says is for its run to judge; only that it says something is waited for.
    async fn make_ahead(&self, zygote: &Zygote, order: Order) -> Result<(), ForkError> {
        let forked = self.make(zygote, order.limits, true).await?;
        let said = tokio::time::timeout(self.lockdown_deadline, forked.stream.readable()).await;
        if matches!(said, Ok(Ok(()))) {
            self.ahead.put(order, forked);
            return Ok(());
        }
        forked.end().await;
        Err(ForkError::Silent)
    }

    async fn end_useless(&self) {
        for forked in self.ahead.useless() {
            forked.end().await;
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
            self.rotate(Wear::Runs);
        }
    }

    /// Puts the spare in the active one's place; the keeper boots the next spare. Without a spare the active one stays
    /// until there is one. What it made ahead goes with it, unless it has just made enough.
    pub(super) fn rotate(&self, wear: Wear) {
        if self.plan.single_use {
            return;
        }
        if wear != Wear::Runs {
            self.ahead.expire();
        }
        let mut stock = self.stock.lock();
        if !stock.spare.is_empty() {
            tracing::debug!(engine = %self.plan.engine, ?wear, "zygote rotated");
            stock.promote();
        } else if let (Some(active), true) = (&stock.active, wear != Wear::Runs) {
            active.taint();
        }
        drop(stock);
        self.check.notify_one();
    }

    /// Keeps the stock full until `stop`.
    async fn keep(self: Arc<Self>, stop: CancellationToken, gauge: Gauge) {
        let mut pause = PAUSE;
        while !stop.is_cancelled() {
            let wanted = self.wants_another();
            gauge.set(self.is_dry());
            if !wanted {
                let rotation = self.rotation_due();
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = self.check.notified() => {}
                    () = tokio::time::sleep_until(rotation.into()) => self.rotate(Wear::Time),
                }
                continue;
            }
            match self.boot_one().await {
                Ok(()) => pause = PAUSE,
                Err(error) => {
                    self.report("a zygote does not boot", &error);
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = tokio::time::sleep(pause) => {}
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
        self.close().await;
    }

    fn report(&self, what: &'static str, error: &(dyn std::error::Error + 'static)) {
        tracing::error!(engine = %self.plan.engine, error, what);
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
            if stock.active.as_ref().is_some_and(|active| active.is_tainted()) {
                self.ahead.expire();
            }
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
