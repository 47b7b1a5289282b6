//! Processes made ahead of their runs: forked, locked down, their hello sent, waiting for the one program that each
//! will ever get. Taking one saves its run the fork and the lockdown.
//!
//! They have the limits of the runs before them. A run with other limits gets a process made for it, and when several
//! in a row want others, what is made ahead follows. Owns which ones may still be used; [`mod@super::line`] makes them.

use std::collections::VecDeque;
use std::task::Poll;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Forked, Limits};

/// Runs in a row that want the same other limits before what is made ahead follows them: callers that take turns must
/// not cost each other a process every time.
const IN_A_ROW: u32 = 2;

/// The processes made ahead of one engine.
#[derive(Debug)]
pub(super) struct Ahead {
    wanted: usize,
    shelf: Mutex<Shelf>,
    /// Something was taken or became useless: for the keeper.
    pub(super) changed: Notify,
}

#[derive(Debug)]
struct Shelf {
    ready: VecDeque<Forked>,
    /// No longer to be used, to be ended by the keeper.
    useless: Vec<Forked>,
    /// What is made has these.
    limits: Limits,
    /// Other limits, and how many runs in a row wanted just these.
    candidate: Option<(Limits, u32)>,
    /// Changes when what was made before must not be used any more.
    epoch: u64,
    /// A run took one since this was asked last.
    used: bool,
}

/// What the keeper shall make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) limits: Limits,
    epoch: u64,
}

impl Ahead {
    /// Keeps `wanted` processes, at first with these limits.
    pub(super) fn new(wanted: usize, limits: Limits) -> Self {
        let (ready, useless) = (VecDeque::new(), Vec::new());
        let shelf = Shelf { ready, useless, limits, candidate: None, epoch: 0, used: false };
        Self { wanted, shelf: Mutex::new(shelf), changed: Notify::new() }
    }

    /// A process with just these limits, if one is there.
    pub(super) fn take(&self, limits: Limits) -> Option<Forked> {
        if self.wanted == 0 {
            return None;
        }
        let mut shelf = self.shelf.lock();
        self.changed.notify_one();
        if !shelf.follow(limits) {
            return None;
        }
        while let Some(forked) = shelf.ready.pop_front() {
            if forked.process.is_running() {
                shelf.used = true;
                return Some(forked);
            }
            shelf.useless.push(forked);
        }
        None
    }

    /// Resolves when one of them has ended, which is useless then. Cancel-safe.
    pub(super) async fn one_ended(&self) {
        std::future::poll_fn(|context| {
            let mut shelf = self.shelf.lock();
            let ended = |forked: &Forked| forked.process.poll_ended(context).is_ready();
            match shelf.ready.iter().position(ended) {
                Some(index) => {
                    let forked = shelf.ready.remove(index);
                    shelf.useless.extend(forked);
                    Poll::Ready(())
                }
                None => Poll::Pending,
            }
        })
        .await;
    }

    /// Nothing that was made so far is used any more.
    pub(super) fn expire(&self) {
        if self.shelf.lock().expire() {
            self.changed.notify_one();
        }
    }

    /// What is to be made next; `None` while there is enough.
    pub(super) fn order(&self) -> Option<Order> {
        let shelf = self.shelf.lock();
        (shelf.ready.len() < self.wanted).then_some(Order { limits: shelf.limits, epoch: shelf.epoch })
    }

    /// Puts a process on the shelf; or aside, if what was ordered is not wanted any more.
    pub(super) fn put(&self, order: Order, forked: Forked) {
        let mut shelf = self.shelf.lock();
        if order.epoch == shelf.epoch {
            shelf.ready.push_back(forked);
        } else {
            shelf.useless.push(forked);
        }
    }

    /// Whether a run took one since this was asked last: they are worth making.
    pub(super) fn was_used(&self) -> bool {
        std::mem::take(&mut self.shelf.lock().used)
    }

    /// What the keeper has to end.
    pub(super) fn useless(&self) -> Vec<Forked> {
        std::mem::take(&mut self.shelf.lock().useless)
    }
}

impl Shelf {
    /// Whether a run with these limits is served from here.
    fn follow(&mut self, limits: Limits) -> bool {
        if limits == self.limits {
            self.candidate = None;
            return true;
        }
        let before = self.candidate.filter(|(wanted, _)| *wanted == limits).map_or(0, |(_, runs)| runs);
        if before + 1 < IN_A_ROW {
            self.candidate = Some((limits, before + 1));
            return false;
        }
        self.limits = limits;
        self.candidate = None;
        self.expire();
        false
    }

    /// False if nothing was there.
    fn expire(&mut self) -> bool {
        self.epoch += 1;
        let some = !self.ready.is_empty();
        self.useless.extend(self.ready.drain(..));
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Limits = Limits { cpu_seconds: 61, data_bytes: 1 };
    const OTHER: Limits = Limits { cpu_seconds: 2, data_bytes: 1 };

    fn ordered(ahead: &Ahead) -> Limits {
        ahead.order().expect("an empty shelf wants one").limits
    }

    #[test]
    fn a_change_of_limits_is_followed_when_it_lasts() {
        let ahead = Ahead::new(1, USUAL);
        assert!(ahead.take(OTHER).is_none() && ordered(&ahead) == USUAL);
        assert!(ahead.take(USUAL).is_none(), "nothing is made yet");
        assert!(ahead.take(OTHER).is_none() && ordered(&ahead) == USUAL, "turns do not count as a change");
        assert!(ahead.take(OTHER).is_none() && ordered(&ahead) == OTHER);
    }

    #[test]
    fn a_change_is_of_one_kind() {
        let third = Limits { cpu_seconds: 3, data_bytes: 1 };
        let ahead = Ahead::new(1, USUAL);
        for limits in [OTHER, third, OTHER, third] {
            assert!(ahead.take(limits).is_none());
            assert_eq!(ordered(&ahead), USUAL, "two callers that take turns are no change");
        }
    }

    #[test]
    fn none_are_wanted_where_none_are_configured() {
        let ahead = Ahead::new(0, USUAL);
        assert!(ahead.take(USUAL).is_none() && ahead.order().is_none());
    }

    #[test]
    fn what_was_ordered_before_the_end_of_an_epoch_is_another_order() {
        let ahead = Ahead::new(1, USUAL);
        let before = ahead.order();
        ahead.expire();
        assert_ne!(ahead.order(), before);
    }
}
