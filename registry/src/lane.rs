//! The ordered lane: calls are started and committed one at a time in the order in which they came; only their bodies
//! overlap, as many as fit, and only those that say they may.
//!
//! [`Lane`] decides and is pure; `drive` does what it decides. Programs' calls and a model's native calls go through
//! lanes of the same kind.

mod drive;

use std::collections::VecDeque;

pub(crate) use drive::{Work, drive};

/// Names one call in its lane.
pub(crate) type Ticket = u64;

/// Whether a call's body may overlap with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// With other parallel ones.
    Parallel,
    /// With none.
    Exclusive,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Commit the oldest started call; its body has settled.
    Commit(Ticket),
    /// Start the oldest queued call.
    Start(Ticket),
    /// Nothing, until a call comes or a body settles.
    Sleep,
}

#[derive(Debug)]
struct Started {
    ticket: Ticket,
    settled: bool,
}

/// The state of one lane.
#[derive(Debug)]
pub(crate) struct Lane {
    queue: VecDeque<Ticket>,
    /// Started and not committed, oldest first.
    started: VecDeque<Started>,
    /// Bodies that have not settled.
    running: usize,
    /// An exclusive call is started and not committed.
    exclusive: bool,
    running_max: usize,
}

impl Lane {
    /// An empty lane for at most `running_max` bodies at once.
    pub(crate) fn new(running_max: usize) -> Self {
        Self { queue: VecDeque::new(), started: VecDeque::new(), running: 0, exclusive: false, running_max }
    }

    /// A call comes.
    pub(crate) fn submit(&mut self, ticket: Ticket) {
        self.queue.push_back(ticket);
    }

    /// A started call's body has settled.
    pub(crate) fn settle(&mut self, ticket: Ticket) {
        if let Some(started) =
            self.started.iter_mut().find(|started| started.ticket == ticket && !started.settled)
        {
            started.settled = true;
            self.running -= 1;
        }
    }

    /// Decides, and takes the step as done. `classify` is asked right before a start and never earlier.
    pub(crate) fn next(&mut self, classify: impl FnOnce(Ticket) -> Class) -> Step {
        if let Some(oldest) = self.started.front().filter(|oldest| oldest.settled) {
            let ticket = oldest.ticket;
            self.started.pop_front();
            return Step::Commit(ticket);
        }
        // After every commit the barrier is open again: an exclusive call is alone in the lane.
        self.exclusive &= !self.started.is_empty();
        let Some(ticket) = self.queue.front().copied() else { return Step::Sleep };
        if self.exclusive || self.running >= self.running_max {
            return Step::Sleep;
        }
        match classify(ticket) {
            Class::Exclusive if !self.started.is_empty() => return Step::Sleep,
            Class::Exclusive => self.exclusive = true,
            Class::Parallel => {}
        }
        self.queue.pop_front();
        self.started.push_back(Started { ticket, settled: false });
        self.running += 1;
        Step::Start(ticket)
    }

    /// Takes every call out that has not started.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = Ticket> + '_ {
        self.queue.drain(..)
    }

    /// Whether nothing is queued and nothing started.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.started.is_empty()
    }
}

#[cfg(test)]
mod tests;
