//! What happens to each call of a program: start, commit, and what the outer call gets of it.

use std::sync::Arc;

use codemode_events::CodeDispatchStart;
use tokio::sync::oneshot;

use crate::lane::{Class, Work};
use crate::pipeline::{self, CallRequest, Flight, FlightState};
use crate::registry::Registry;
use crate::run_code::IMAGE_SOURCE;
use crate::run_code::bindings::{Gate, Reply, Submission};
use crate::run_code::log_writer::LogWriter;
use crate::signal::Signal;
use crate::tool::{CallContext, CallResult, Content, ContextMessage, ToolError};

/// The calls of one program.
pub(super) struct ProgramCalls {
    pub(super) registry: Registry,
    /// Of the outer call.
    pub(super) outer: CallContext,
    /// Ends the calls: the run's end or the outer call's abort.
    pub(super) over: Signal,
    pub(super) gate: Arc<Gate>,
    /// Absent where nobody keeps a log.
    pub(super) log: Option<LogWriter>,
}

/// A started call.
pub(super) struct Open {
    reply: oneshot::Sender<Reply>,
    /// Its start event, if it was logged.
    logged: Option<CodeDispatchStart>,
}

impl ProgramCalls {
    fn request(&self, submission: &Submission) -> CallRequest {
        let outer = self.outer.call();
        let mut request = CallRequest::new(
            format!("{}:code:{}", outer.call_id(), submission.number),
            &*submission.name,
            submission.arguments.text().clone(),
        );
        request.parsed = Some(submission.arguments.clone());
        request.root_call_id = Some(outer.root_call_id().to_owned());
        request.agent = outer.agent().cloned();
        request.parent = Some(outer.token().clone());
        request.signal = self.over.clone();
        request.surface = Some(Arc::clone(outer.surface()));
        request
    }

    /// Gives the outer call what the sub-call's result leaves behind.
    fn hand_up(&self, result: &CallResult) {
        if !result.is_error() && result.content.iter().any(Content::is_image) {
            self.outer.defer_context(ContextMessage::from_plugin(IMAGE_SOURCE, result.content.clone()));
        }
        for context in &result.contexts {
            self.outer.defer_context(context.clone());
        }
        if result.concludes_turn() {
            self.outer.conclude_turn();
        }
    }

    fn reply_of(&self, name: &str, result: &CallResult) -> Reply {
        if self.over.is_aborted() {
            return Err(self.gate.over(name, "result discarded"));
        }
        match &result.outcome {
            Ok(success) => Ok(success.value.clone()),
            Err(error) => Err(error.message.clone()),
        }
    }
}

impl Work for ProgramCalls {
    type Item = Submission;
    type Open = Open;

    fn class(&self, submission: &Submission) -> Class {
        let surface = self.outer.call().surface();
        if self.registry.is_parallel(surface, &submission.name, &submission.arguments, true) {
            Class::Parallel
        } else {
            Class::Exclusive
        }
    }

    async fn start(&mut self, submission: Submission) -> (Open, Flight) {
        let request = self.request(&submission);
        let logged = match &self.log {
            Some(log) => log.start(&request, self.outer.call().call_id()).await.map(Some),
            None => Ok(None),
        };
        let mut flight = pipeline::begin(&self.registry, request);
        match logged {
            Ok(logged) => {
                pipeline::admit(&self.registry, &mut flight).await;
                (Open { reply: submission.reply, logged }, flight)
            }
            // What cannot be written down is not done.
            Err(fault) => {
                flight.state = FlightState::Final(CallResult::failed(ToolError::plain(fault)));
                (Open { reply: submission.reply, logged: None }, flight)
            }
        }
    }

    async fn commit(&mut self, open: Open, flight: Flight) {
        let call = Arc::clone(&flight.call);
        let result = pipeline::commit(&self.registry, flight).await;
        self.hand_up(&result);
        // A program that is gone does not wait for a reply.
        let _ = open.reply.send(self.reply_of(call.name(), &result));
        if let (Some(log), Some(start)) = (&self.log, open.logged) {
            log.settle(start, call, result).await;
        }
    }

    fn abandon(&mut self, submission: Submission) {
        let _ = submission.reply.send(Err(self.gate.over(&submission.name, "tool call abandoned")));
    }

    fn is_over(&self) -> bool {
        self.over.is_aborted()
    }
}
