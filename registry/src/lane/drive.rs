//! Does what a lane decides.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};

use crate::lane::{Class, Lane, Step, Ticket};
use crate::pipeline::{self, Call, Flight, FlightState};
use crate::registry::Registry;
use crate::tool::{CallResult, ToolError};

/// What the calls of a lane are and what starting and committing one means.
pub(crate) trait Work: Send + Sync {
    /// A call that waits.
    type Item: Send + Sync;
    /// What is kept of a call between start and commit.
    type Open: Send + Sync;

    /// Whether its body may overlap with others; asked right before the start.
    fn class(&self, item: &Self::Item) -> Class;

    /// Starts a call: everything before its body. Never overlaps with another start or commit.
    fn start(&mut self, item: Self::Item) -> impl Future<Output = (Self::Open, Flight)> + Send;

    /// Commits a call: everything after its body.
    fn commit(&mut self, open: Self::Open, flight: Flight) -> impl Future<Output = ()> + Send;

    /// Takes note of a call that will never start.
    fn abandon(&mut self, item: Self::Item);

    /// Whether no further call may start, for reasons of its own. Once true, it stays true.
    fn is_over(&self) -> bool;
}

struct Driver<'a, W: Work> {
    registry: &'a Registry,
    work: &'a mut W,
    lane: Lane,
    next_ticket: Ticket,
    waiting: HashMap<Ticket, W::Item>,
    open: HashMap<Ticket, W::Open>,
    settled: HashMap<Ticket, Flight>,
    bodies: JoinSet<(Ticket, Flight)>,
    /// Which call a body's task belongs to, for those that end without a word.
    tasks: HashMap<Id, (Ticket, Arc<Call>)>,
}

/// Drives a lane to its end: until the inbox is closed and empty, or `stop` turns true or loses its sender, and every
/// started call is committed. After `stop` nothing is started any more.
///
/// The inbox needs no bound of its own: what comes is bounded by the calls that a runtime lets be pending, or by the
/// calls of one model answer. Dropping the future drops the bodies; whoever wants the calls to end in order aborts them
/// and waits.
pub(crate) async fn drive<W: Work>(
    registry: &Registry,
    work: &mut W,
    running_max: usize,
    mut inbox: mpsc::UnboundedReceiver<W::Item>,
    mut stop: watch::Receiver<bool>,
) {
    let mut driver = Driver {
        registry,
        work,
        lane: Lane::new(running_max),
        next_ticket: 0,
        waiting: HashMap::new(),
        open: HashMap::new(),
        settled: HashMap::new(),
        bodies: JoinSet::new(),
        tasks: HashMap::new(),
    };
    loop {
        let more = driver.take_in(&mut inbox);
        let stopped = *stop.borrow() || stop.has_changed().is_err();
        if stopped || driver.work.is_over() {
            driver.abandon();
        }
        if driver.step().await {
            continue;
        }
        if driver.lane.is_empty() && (stopped || !more) {
            return;
        }
        tokio::select! {
            item = inbox.recv(), if more => {
                if let Some(item) = item {
                    driver.submit(item);
                }
            }
            Some(ended) = driver.bodies.join_next_with_id() => driver.note(ended),
            _ = stop.changed(), if !stopped => {}
        }
    }
}

impl<W: Work> Driver<'_, W> {
    fn submit(&mut self, item: W::Item) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.insert(ticket, item);
        self.lane.submit(ticket);
    }

    /// Takes what is there without waiting; `false` once nothing more can come.
    fn take_in(&mut self, inbox: &mut mpsc::UnboundedReceiver<W::Item>) -> bool {
        while let Some(ended) = self.bodies.try_join_next_with_id() {
            self.note(ended);
        }
        loop {
            match inbox.try_recv() {
                Ok(item) => self.submit(item),
                Err(mpsc::error::TryRecvError::Empty) => return true,
                Err(mpsc::error::TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// One step; `false` if there was none to take.
    async fn step(&mut self) -> bool {
        let (work, waiting) = (&*self.work, &self.waiting);
        let class = |ticket| waiting.get(&ticket).map_or(Class::Exclusive, |item| work.class(item));
        match self.lane.next(class) {
            Step::Sleep => return false,
            Step::Start(ticket) => {
                if let Some(item) = self.waiting.remove(&ticket) {
                    self.start(ticket, item).await;
                }
            }
            Step::Commit(ticket) => {
                if let (Some(open), Some(flight)) = (self.open.remove(&ticket), self.settled.remove(&ticket))
                {
                    self.work.commit(open, flight).await;
                }
            }
        }
        true
    }

    async fn start(&mut self, ticket: Ticket, item: W::Item) {
        let (open, mut flight) = self.work.start(item).await;
        self.open.insert(ticket, open);
        if !flight.is_open() {
            self.settle(ticket, flight);
            return;
        }
        let (registry, call) = (self.registry.clone(), Arc::clone(&flight.call));
        let task = self.bodies.spawn(async move {
            pipeline::dispatch(&registry, &mut flight).await;
            (ticket, flight)
        });
        self.tasks.insert(task.id(), (ticket, call));
    }

    fn settle(&mut self, ticket: Ticket, flight: Flight) {
        self.settled.insert(ticket, flight);
        self.lane.settle(ticket);
    }

    fn note(&mut self, ended: Result<(Id, (Ticket, Flight)), JoinError>) {
        match ended {
            Ok((id, (ticket, flight))) => {
                self.tasks.remove(&id);
                self.settle(ticket, flight);
            }
            // The pipeline catches what bodies and hooks do; this is the registry's own fault, and one call's end.
            Err(error) => {
                if let Some((ticket, call)) = self.tasks.remove(&error.id()) {
                    let result =
                        CallResult::failed(ToolError::plain(format!("tool call broke off: {error}")));
                    self.settle(ticket, Flight { call, tool: None, state: FlightState::Settled(result) });
                }
            }
        }
    }

    fn abandon(&mut self) {
        let tickets: Vec<Ticket> = self.lane.abandon().collect();
        for ticket in tickets {
            if let Some(item) = self.waiting.remove(&ticket) {
                self.work.abandon(item);
            }
        }
    }
}
