//! The zygotes of one engine: the one that serves, spares behind it, and those that still end. Owns which is which; who
//! decides that one is worn, and boots another, is [`mod@super::line`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::zygote::Zygote;

/// Why a zygote is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wear {
    /// It served its runs.
    Runs,
    /// It served its time.
    Time,
    /// A run's process crashed.
    Crash,
    /// It is gone.
    Gone,
}

/// After how much a zygote is replaced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    pub(super) runs: u64,
    /// Of serving; a spare does not age, as nobody learns anything of it.
    pub(super) after: Duration,
}

/// The zygotes of one engine. When it goes, they serve what they were asked and end.
#[derive(Debug)]
pub(super) struct Stock {
    active: Option<Arc<Zygote>>,
    /// Since when the active one serves.
    since: Instant,
    /// Booted and unused, to take over at once; in `exec` mode, to become runs.
    spare: VecDeque<Arc<Zygote>>,
    /// Every other zygote that may still be alive, for shutdown.
    retired: Vec<Arc<Zygote>>,
}

impl Stock {
    pub(super) fn new() -> Self {
        Self { active: None, since: Instant::now(), spare: VecDeque::new(), retired: Vec::new() }
    }

    /// Adds a zygote that is booted.
    pub(super) fn add(&mut self, zygote: Arc<Zygote>) {
        self.spare.push_back(zygote);
    }

    /// The zygote that serves.
    pub(super) fn active(&self) -> Option<&Arc<Zygote>> {
        self.active.as_ref().filter(|active| !active.is_gone())
    }

    /// Takes a spare for one run, whose process it becomes.
    pub(super) fn take_for_run(&mut self) -> Option<Arc<Zygote>> {
        let taken = self.take_spare()?;
        self.retired.push(Arc::clone(&taken));
        Some(taken)
    }

    fn take_spare(&mut self) -> Option<Arc<Zygote>> {
        while let Some(spare) = self.spare.pop_front() {
            if !spare.is_gone() {
                return Some(spare);
            }
            self.retired.push(spare);
        }
        None
    }

    /// Spares there are.
    pub(super) fn spares(&self) -> usize {
        self.spare.iter().filter(|spare| !spare.is_gone()).count()
    }

    /// Why the active one is to be replaced, if it is.
    pub(super) fn worn(&self, rotation: Rotation) -> Option<Wear> {
        let Some(active) = self.active() else { return Some(Wear::Gone) };
        if active.is_tainted() {
            Some(Wear::Crash)
        } else if self.since.elapsed() >= rotation.after {
            Some(Wear::Time)
        } else {
            (active.forks() >= rotation.runs).then_some(Wear::Runs)
        }
    }

    /// When the active one will have served its time.
    pub(super) fn worn_at(&self, rotation: Rotation) -> Instant {
        self.since + rotation.after
    }

    /// Puts a spare in the active one's place, which serves what it was asked and ends. False without a spare.
    pub(super) fn promote(&mut self) -> bool {
        let Some(next) = self.take_spare() else { return false };
        if let Some(old) = self.active.replace(next) {
            old.retire();
            self.retired.push(old);
        }
        self.since = Instant::now();
        true
    }

    /// Forgets those that are no more.
    pub(super) fn forget(&mut self) {
        let (gone, spare): (VecDeque<_>, _) = self.spare.drain(..).partition(|zygote| zygote.is_gone());
        self.spare = spare;
        self.retired.extend(gone);
        self.retired.retain(|zygote| !zygote.reaped.is_cancelled());
    }

    /// Retires all, and hands them over.
    pub(super) fn close(&mut self) -> Vec<Arc<Zygote>> {
        let Self { active, spare, retired, .. } = self;
        let zygotes: Vec<_> =
            active.take().into_iter().chain(spare.drain(..)).chain(retired.drain(..)).collect();
        for zygote in &zygotes {
            zygote.retire();
        }
        zygotes
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        self.close();
    }
}
