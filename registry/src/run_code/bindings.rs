//! What a program can call, and the order in which its calls reach the lane.
//!
//! A runtime carries out calls on tasks of their own, so these may arrive in any order; but it tells its observer of each
//! call in the order in which the program made them. So each call has a seat from then on, and goes to the lane only when
//! all seats before it are taken or empty for good.

use std::collections::VecDeque;
use std::sync::Arc;

use codemode_client::{BindingError, CallContext, JsonText, Namespace, RunEvent, RunObserver};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::signal::Signal;
use crate::tool::Arguments;

/// The program's global, and the class of the errors that failing calls reject with.
pub(super) const GLOBAL: &str = "tools";
const ERROR_CLASS: &str = "ToolCallError";
const ERROR_MEMBER: &str = "toolName";

/// What a program is given for a call: the tool's value, or nothing but a message.
pub(super) type Reply = Result<JsonText, String>;

/// A call on its way to the lane.
#[derive(Debug)]
pub(super) struct Submission {
    /// From 1, without gaps, in the order of the program.
    pub(super) number: u64,
    pub(super) name: Arc<str>,
    pub(super) arguments: Arguments,
    pub(super) reply: oneshot::Sender<Reply>,
}

#[derive(Debug)]
struct Seat {
    /// The runtime's number of the call.
    call_id: u64,
    taken: Option<(Arc<str>, Arguments, oneshot::Sender<Reply>)>,
}

/// The one door between a program and the lane.
#[derive(Debug)]
pub(super) struct Gate {
    state: Mutex<GateState>,
    /// Fires when the run is over or its outer call aborted.
    over: Signal,
}

#[derive(Debug)]
struct GateState {
    seats: VecDeque<Seat>,
    submitted: u64,
    /// Gone once the run is over.
    lane: Option<mpsc::UnboundedSender<Submission>>,
}

impl Gate {
    pub(super) fn new(over: Signal, lane: mpsc::UnboundedSender<Submission>) -> Arc<Self> {
        let state = GateState { seats: VecDeque::new(), submitted: 0, lane: Some(lane) };
        Arc::new(Self { state: Mutex::new(state), over })
    }

    /// The namespace of these tools.
    pub(super) fn namespace<'a>(self: &Arc<Self>, names: impl Iterator<Item = &'a Arc<str>>) -> Namespace {
        let empty = Namespace::new(GLOBAL).with_error_class(ERROR_CLASS, ERROR_MEMBER);
        names.fold(empty, |namespace, name| {
            let gate = Arc::clone(self);
            namespace.function(&**name, move |arguments, call| Arc::clone(&gate).carry_out(arguments, call))
        })
    }

    /// Lets nobody in any more.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.lane = None;
        state.seats.clear();
    }

    /// What a call is told when the run is over.
    pub(super) fn over(&self, name: &str, what: &str) -> String {
        let reason = self.over.reason().unwrap_or("run_code settled");
        format!("run_code run is over ({reason}); {name} {what}")
    }

    async fn carry_out(
        self: Arc<Self>,
        arguments: JsonText,
        call: CallContext,
    ) -> Result<JsonText, BindingError> {
        let name = Arc::clone(&call.name);
        if self.over.is_aborted() {
            self.leave(call.call_id);
            return Err(BindingError::new(self.over(&name, "not dispatched")));
        }
        let arguments = match Arguments::parse(arguments) {
            Ok(arguments) => arguments,
            Err(lossy) => {
                self.leave(call.call_id);
                return Err(BindingError::new(format!(
                    "tool arguments must be lossless JSON (pass one arguments object, e.g. {{}}): {lossy}"
                )));
            }
        };
        let (reply, replied) = oneshot::channel();
        self.take_seat(call.call_id, (Arc::clone(&name), arguments, reply));
        match replied.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(message)) => Err(BindingError::new(message)),
            // The lane is gone, and this call with it.
            Err(_) => Err(BindingError::new(self.over(&name, "tool call abandoned"))),
        }
    }

    fn take_seat(&self, call_id: u64, taken: (Arc<str>, Arguments, oneshot::Sender<Reply>)) {
        let mut state = self.state.lock();
        match state.seats.iter_mut().find(|seat| seat.call_id == call_id) {
            Some(seat) => seat.taken = Some(taken),
            // A runtime without observers: the calls come in the order in which they come.
            None => state.seats.push_back(Seat { call_id, taken: Some(taken) }),
        }
        state.let_in();
    }

    fn leave(&self, call_id: u64) {
        let mut state = self.state.lock();
        state.seats.retain(|seat| seat.call_id != call_id || seat.taken.is_some());
        state.let_in();
    }
}

impl GateState {
    /// Sends on whoever has nobody before them.
    fn let_in(&mut self) {
        while let Some(seat) = self.seats.front_mut() {
            let Some((name, arguments, reply)) = seat.taken.take() else { return };
            self.seats.pop_front();
            let Some(lane) = &self.lane else { continue };
            self.submitted += 1;
            // A lane that is gone drops the reply, which the caller notices.
            let _ = lane.send(Submission { number: self.submitted, name, arguments, reply });
        }
    }
}

#[cfg(test)]
mod tests;

impl RunObserver for Gate {
    fn on_event(&self, event: RunEvent<'_>) {
        match event {
            RunEvent::CallStarted { call_id, global, .. } if global == GLOBAL => {
                let mut state = self.state.lock();
                if state.lane.is_some() {
                    state.seats.push_back(Seat { call_id, taken: None });
                }
            }
            // A call that settled without having taken its seat never will, e.g. one of an unknown function.
            RunEvent::CallSettled { call_id, global, .. } if global == GLOBAL => self.leave(call_id),
            _ => {}
        }
    }
}
