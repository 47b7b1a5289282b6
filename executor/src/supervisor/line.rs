//! One engine's supply of processes: a zygote that serves, a spare behind it, and what is made ahead of runs. Owns when
//! a zygote is replaced and who keeps the stock full.
//!
//! Locks are taken in one order: the stock's, then the shelf's.

use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use codemode_wire::Layer;
use codemode_wire::control::ForkRequest;
use futures::future::join_all;
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
/// Zygotes that are booted in a row without a process made by one of them, before there are pauses between them: one
/// that serves, its spare, and one more.
const FRUITLESS_BOOTS: u64 = 3;
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

/// A zygote for one request.
struct Picked {
    zygote: Arc<Zygote>,
    single_use: bool,
}

impl Drop for Picked {
    fn drop(&mut self) {
        if self.single_use {
            // If it was not asked, nobody else will.
            self.zygote.retire();
        }
    }
}

/// Counts somebody who waits.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
    /// When a zygote was put in stock last: for those who wait for one.
    stocked: watch::Sender<Instant>,
    /// Runs that want a zygote, and whose turn it is.
    waiting: AtomicUsize,
    turn: tokio::sync::Mutex<()>,
    ahead: Ahead,
    /// Zygotes booted since one of them made a process.
    fruitless: AtomicU64,
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
            stocked: watch::Sender::new(Instant::now()),
            waiting: AtomicUsize::new(0),
            turn: tokio::sync::Mutex::default(),
            ahead: Ahead::new(ahead, Limits::of(&config.budgets)),
            fruitless: AtomicU64::new(0),
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

    /// One process: made ahead, or made now. Dropped early, it ends what was made.
    pub(super) async fn fork(&self, limits: Limits) -> Result<Forked, ForkError> {
        if let Some(forked) = self.ahead.take(limits) {
            return Ok(forked);
        }
        for _ in 0..FORK_ATTEMPTS {
            let picked = self.take().await?;
            match self.make(&picked.zygote, limits, false).await {
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
        self.fruitless.store(0, Ordering::Relaxed);
        if zygote.forks() >= self.rotation.runs {
            self.rotate(&mut self.stock.lock());
            self.check.notify_one();
        }
        let pid = process.pid();
        let group = self.groups.place(pid, data_bytes);
        process.join(group.map_err(|source| ForkError::Group { pid, source })?);
        // What the executor applies itself no runner can confirm.
        let expected = zygote.in_force.without(Layer::Cgroup);
        let stream = UnixStream::from_std(ours)?;
        Ok(Forked { process, stream, nonce: request.nonce, expected, maker: zygote.id })
    }

    /// Keeps as many processes made ahead as are wanted until `stop`.
    async fn keep_ahead(self: Arc<Self>, stop: CancellationToken) {
        let mut stocked = self.stocked.subscribe();
        let mut pause = Pause::new();
        while !stop.is_cancelled() {
            if self.ahead.was_used() {
                pause.reset();
            }
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
                Ok(()) => {}
                // It ended in its own time; the next one is asked.
                Err(ForkError::Gone) if zygote.forks() > 0 => {}
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
        self.fruitless.fetch_add(1, Ordering::Relaxed);
        {
            let mut stock = self.stock.lock();
            stock.add(zygote);
            self.rotate(&mut stock);
        }
        self.stocked.send_replace(Instant::now());
        Ok(())
    }

    /// A zygote to ask: the active one, or in `exec` mode one of its own. Who came first is served first; it fails when
    /// none came up for as long as a boot may take.
    async fn take(&self) -> Result<Picked, ForkError> {
        let (came, patience) = (Instant::now(), self.plan.boot_deadline);
        let _waiting = Waiting::enter(&self.waiting);
        let _turn = self.turn.lock().await;
        let mut stocked = self.stocked.subscribe();
        loop {
            let last = *stocked.borrow_and_update();
            if let Some(zygote) = self.pick() {
                return Ok(Picked { zygote, single_use: self.plan.single_use });
            }
            self.check.notify_one();
            let until = last.max(came) + patience;
            if tokio::time::timeout_at(until.into(), stocked.changed()).await.is_err() {
                return Err(ForkError::NoneReady(patience));
            }
        }
    }

    fn pick(&self) -> Option<Arc<Zygote>> {
        let mut stock = self.stock.lock();
        if self.plan.single_use {
            self.check.notify_one();
            return stock.take_for_run();
        }
        if stock.active().is_none() {
            self.rotate(&mut stock);
            self.check.notify_one();
        }
        stock.active().cloned()
    }

    /// As [`Self::pick`], for processes that are kept: none with a layout that a crash may have shown to somebody.
    fn pick_untainted(&self) -> Option<Arc<Zygote>> {
        self.pick().filter(|zygote| !zygote.is_tainted())
    }

    /// A process of that zygote crashed. What others made may be used on.
    pub(super) fn crashed(&self, maker: u64) {
        let mut stock = self.stock.lock();
        if let Some(active) = stock.active().filter(|active| active.id == maker) {
            active.taint();
        }
        self.rotate(&mut stock);
        // It may be one that was replaced for its runs, whose last processes are still there.
        self.ahead.expire();
        self.check.notify_one();
    }

    /// Puts a spare in the active zygote's place if that is worn. Without a spare the active one stays until there is
    /// one. What it made ahead goes with it, unless it has just made enough.
    fn rotate(&self, stock: &mut Stock) {
        let Some(wear) = stock.worn(self.rotation).filter(|_| !self.plan.single_use) else { return };
        let promoted = stock.promote();
        if promoted {
            tracing::debug!(engine = %self.plan.engine, ?wear, "zygote rotated");
        }
        if wear == Wear::Gone || (promoted && wear != Wear::Runs) {
            self.ahead.expire();
        }
    }

    /// Keeps the stock full until `stop`.
    async fn keep(self: Arc<Self>, stop: CancellationToken, gauge: Gauge) {
        let mut pause = Pause::new();
        let mut failing = false;
        while !stop.is_cancelled() {
            let lacking = self.tend(&gauge, failing);
            if lacking == 0 {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = self.check.notified() => {}
                    () = tokio::time::sleep_until(self.rotation_due().into()) => {}
                }
                continue;
            }
            match self.fruitless.load(Ordering::Relaxed) {
                0 => pause.reset(),
                FRUITLESS_BOOTS.. => pause.wait(&stop).await,
                _ => {}
            }
            let booted = self.boot_watched(lacking, &gauge, failing, &stop).await;
            failing = booted.is_err();
            match booted {
                Ok(()) | Err(BootError::Stopped) => {}
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

    /// Boots so many, and looks after the others meanwhile: a boot may hang until its deadline.
    async fn boot_watched(
        &self,
        count: usize,
        gauge: &Gauge,
        failing: bool,
        stop: &CancellationToken,
    ) -> Result<(), BootError> {
        let at_once = std::thread::available_parallelism().map_or(1, NonZero::get).min(count);
        let mut booting = std::pin::pin!(join_all((0..at_once).map(|_| self.boot_one())));
        loop {
            tokio::select! {
                booted = &mut booting => return booted.into_iter().collect(),
                // What boots ends with its future.
                () = stop.cancelled() => return Err(BootError::Stopped),
                () = self.check.notified() => {
                    self.tend(gauge, failing);
                }
            }
        }
    }

    /// Replaces what is worn, and can be, and says whether there is any. Answers how many the stock lacks.
    fn tend(&self, gauge: &Gauge, failing: bool) -> usize {
        let mut stock = self.stock.lock();
        stock.forget();
        self.rotate(&mut stock);
        let serves = !self.plan.single_use;
        let dry = stock.active().is_none() && stock.spares() == 0;
        // In `exec` mode there is often none for the moment that the next one takes to boot.
        gauge.set(dry && (failing || serves));
        let waiting = if serves { 0 } else { self.waiting.load(Ordering::Relaxed) };
        let wanted = self.spares + waiting + usize::from(serves && stock.active().is_none());
        wanted.saturating_sub(stock.spares())
    }

    fn rotation_due(&self) -> Instant {
        let far = Instant::now() + FAR;
        if self.plan.single_use { far } else { self.stock.lock().worn_at(self.rotation).min(far) }
    }
}
