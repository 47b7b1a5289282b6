//! One engine's supply of processes: a zygote that serves, a spare behind it, and what is made ahead of runs. Owns when
//! a zygote is replaced and who keeps the stock full.
//!
//! Locks are taken in one order: the stock's, then the shelf's.

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
use super::pause::Pause;
use super::stock::{Rotation, Stock, Wear};
use super::zygote::{BootError, BootPlan, EngineInfo, ForkError, Zygote};
use super::{Forked, Limits, random};
use crate::config::Config;

/// How often a fork is tried with another zygote when one turns out to be gone.
const FORK_ATTEMPTS: usize = 3;
/// Time that never comes, as far as rotation goes.
const FAR: Duration = Duration::from_secs(24 * 3600);

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

/// One engine's supply of processes.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) plan: BootPlan,
    groups: Arc<Groups>,
    /// For the hello of what is made ahead.
    lockdown_deadline: Duration,
    rotation: Rotation,
    /// Spares to keep.
    spares: usize,
    stock: Mutex<Stock>,
    /// Something about the stock changed, or should: for the keeper.
    check: Arc<Notify>,
    /// A zygote was put in stock: for those who wait for one.
    stocked: watch::Sender<u64>,
    ahead: Ahead,
    info: Mutex<Option<Arc<EngineInfo>>>,
    keepers: Mutex<Vec<tokio::task::JoinHandle<()>>>,
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
        let ahead = config.processes_ahead as usize;
        // What is booted for one run only is ahead of it already.
        let (ahead, spares) = if plan.single_use { (0, ahead.max(1)) } else { (ahead, 1) };
        let line = Self {
            plan,
            groups,
            lockdown_deadline: config.lockdown,
            rotation: Rotation { runs: config.rotate_runs, after: config.rotate_after },
            spares,
            stock: Mutex::new(Stock::new()),
            check: Arc::default(),
            stocked: watch::Sender::new(0),
            ahead: Ahead::new(ahead, Limits::of(&config.budgets)),
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
        let nonce = random().map_err(ForkError::Random)?;
        let request = ForkRequest { nonce, cpu_seconds, data_bytes, ahead };
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut process =
            zygote.fork(&request, OwnedFd::from(theirs)).await.inspect_err(|_| self.check.notify_one())?;
        if !self.plan.single_use && zygote.forks() >= self.rotation.runs {
            self.rotate();
        }
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
        let mut pause = Pause::new();
        while !stop.is_cancelled() {
            if self.end_useless().await {
                pause.wait(&stop).await;
            }
            stocked.borrow_and_update();
            let Some((order, zygote)) =
                self.ahead.order().and_then(|order| Some((order, self.pick_untainted()?)))
            else {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = self.ahead.changed.notified() => {}
                    () = self.ahead.one_ended() => {}
                    // The line lives as long as its keeper.
                    _ = stocked.changed() => {}
                }
                continue;
            };
            match self.make_ahead(&zygote, order, &stop).await {
                Ok(()) => pause.reset(),
                Err(ForkError::Gone) => {}
                Err(error) => {
                    self.report("a process cannot be made ahead", &error);
                    pause.wait(&stop).await;
                }
            }
        }
        self.ahead.expire();
        self.end_useless().await;
    }

    /// Makes one ahead. What it says is for its run to judge; only that it says something is waited for.
    async fn make_ahead(
        &self,
        zygote: &Zygote,
        order: Order,
        stop: &CancellationToken,
    ) -> Result<(), ForkError> {
        let forked = self.make(zygote, order.limits, true).await?;
        let said = tokio::select! {
            () = stop.cancelled() => None,
            said = tokio::time::timeout(self.lockdown_deadline, forked.stream.readable()) => Some(said),
        };
        match said {
            Some(Ok(Ok(()))) => self.ahead.put(order, forked),
            None => {
                forked.end().await;
            }
            Some(_) => {
                forked.end().await;
                return Err(ForkError::Silent);
            }
        }
        Ok(())
    }

    /// Ends what is not to be used any more. True if one of them had ended by itself.
    async fn end_useless(&self) -> bool {
        let mut lost = false;
        for forked in self.ahead.useless() {
            lost |= forked.end().await;
        }
        lost
    }

    /// Boots one zygote into stock.
    async fn boot_one(&self) -> Result<(), BootError> {
        let zygote = Zygote::boot(&self.plan, Arc::clone(&self.check)).await?;
        *self.info.lock() = Some(Arc::clone(&zygote.info));
        self.stock.lock().add(zygote);
        self.rotate();
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
        if self.plan.single_use {
            let spare = self.stock.lock().take_spare();
            self.check.notify_one();
            return spare;
        }
        let mut stock = self.stock.lock();
        if stock.active().is_none() {
            self.replace(&mut stock, Wear::Gone);
        }
        stock.active().cloned()
    }

    /// As [`Self::pick`], for processes that are kept: none with a layout that a crash may have shown to somebody.
    fn pick_untainted(&self) -> Option<Arc<Zygote>> {
        self.pick().filter(|zygote| !zygote.is_tainted())
    }

    /// A run's process crashed.
    pub(super) fn crashed(&self) {
        let mut stock = self.stock.lock();
        if let Some(active) = stock.active() {
            active.taint();
            self.replace(&mut stock, Wear::Crash);
        }
    }

    /// Replaces the active zygote if it is worn.
    fn rotate(&self) {
        let mut stock = self.stock.lock();
        if let (false, Some(wear)) = (self.plan.single_use, stock.worn(self.rotation)) {
            self.replace(&mut stock, wear);
        }
    }

    /// Puts the spare in the active one's place; the keeper boots the next spare. Without a spare the active one stays
    /// until there is one. What it made ahead goes with it, unless it has just made enough.
    fn replace(&self, stock: &mut Stock, wear: Wear) {
        if stock.promote() {
            tracing::debug!(engine = %self.plan.engine, ?wear, "zygote rotated");
        }
        if wear != Wear::Runs {
            self.ahead.expire();
        }
        self.check.notify_one();
    }

    /// Keeps the stock full until `stop`.
    async fn keep(self: Arc<Self>, stop: CancellationToken, gauge: Gauge) {
        let mut pause = Pause::new();
        let mut failing = false;
        while !stop.is_cancelled() {
            let lacking = self.tend();
            // In `exec` mode there is often none for the moment that the next one takes to boot.
            gauge.set(self.is_dry() && (failing || !self.plan.single_use));
            if !lacking {
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = self.check.notified() => {}
                    () = tokio::time::sleep_until(self.rotation_due().into()) => {}
                }
                continue;
            }
            let booted = self.boot_one().await;
            failing = booted.is_err();
            match booted {
                Ok(()) => pause.reset(),
                Err(error) => {
                    self.report("a zygote does not boot", &error);
                    pause.wait(&stop).await;
                }
            }
        }
        let zygotes = self.stock.lock().close();
        for zygote in zygotes {
            zygote.reaped.cancelled().await;
        }
    }

    fn report(&self, what: &str, error: &(dyn std::error::Error + 'static)) {
        tracing::error!(engine = %self.plan.engine, error, "{what}");
    }

    /// Replaces what is worn, and can be. True if the stock lacks a zygote.
    fn tend(&self) -> bool {
        let mut stock = self.stock.lock();
        stock.forget();
        let serves = !self.plan.single_use;
        if let (true, 1.., Some(wear)) = (serves, stock.spares(), stock.worn(self.rotation)) {
            self.replace(&mut stock, wear);
        }
        stock.spares() < self.spares || (serves && stock.active().is_none())
    }

    fn is_dry(&self) -> bool {
        let stock = self.stock.lock();
        stock.active().is_none() && stock.spares() == 0
    }

    fn rotation_due(&self) -> Instant {
        let far = Instant::now() + FAR;
        if self.plan.single_use { far } else { self.stock.lock().worn_at(self.rotation).min(far) }
    }
}
