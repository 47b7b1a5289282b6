//! The native calls of one step: as many bodies at once as may overlap, results in the model's order.

use std::sync::Arc;

use codemode_client::JsonText;
use codemode_events::{AppendError, ToolCall, ToolResult};
use tokio::sync::{mpsc, watch};

use crate::agent::{Agent, record};
use crate::json::quote;
use crate::lane::{self, Class, Work};
use crate::pipeline::{self, CallRequest, Flight, FlightState};
use crate::present::Surface;
use crate::registry::Registry;
use crate::signal::Signal;
use crate::tool::{Arguments, CallResult, ContextMessage, ToolError};

/// A call as a model asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// The model's id of the call.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments. What the model sent that is no JSON is a JSON string here.
    pub arguments: JsonText,
}

impl ModelCall {
    /// Takes arguments as a model sends them: nothing means `{}`; what is no JSON is kept as text and fails validation.
    #[must_use]
    pub fn new(call_id: impl Into<String>, name: impl Into<String>, arguments: &str) -> Self {
        let text = if arguments.trim().is_empty() { "{}" } else { arguments.trim() };
        let kept = || JsonText::parse(quote(text)).unwrap_or_else(|_| JsonText::null());
        let arguments = JsonText::parse(text).unwrap_or_else(|_| kept());
        Self { call_id: call_id.into(), name: name.into(), arguments }
    }
}

/// How a step's calls ended.
#[derive(Clone, Debug)]
pub enum StepEnd {
    /// Every call has the result that it came to.
    Completed,
    /// It was aborted: calls that had not started have a result that says so.
    Aborted,
    /// The session log failed: what had started was drained, calls that had not have no result, and the turn ends.
    Failed(AppendError),
}

/// What a step's calls came to.
#[derive(Clone, Debug)]
pub struct StepOutcome {
    /// Results in the model's order, each with its call's id.
    pub results: Vec<(String, CallResult)>,
    /// Messages to be appended now that all results are there. After an abort they wait for the next turn.
    pub contexts: Vec<ContextMessage>,
    /// Whether the turn ends after this step.
    pub concludes_turn: bool,
    /// How it ended.
    pub end: StepEnd,
}

/// Makes the native calls of one step and writes each call and each result to the agent's log.
///
/// `surface` is that of the assembly which the model answered. A fired `signal` ends the step in order.
pub async fn run_step(
    registry: &Registry,
    agent: &Agent,
    surface: &Arc<Surface>,
    calls: Vec<ModelCall>,
    signal: Signal,
) -> StepOutcome {
    let running_max = surface.settings().max_parallel_tool_calls;
    let (inbox, received) = mpsc::unbounded_channel();
    for call in calls {
        // The receiver is right here.
        let _ = inbox.send(call);
    }
    drop(inbox);
    let (stop, stopped) = watch::channel(signal.is_aborted());
    let mut work = StepCalls {
        registry: registry.clone(),
        agent: agent.clone(),
        surface: Arc::clone(surface),
        signal: signal.clone(),
        unstarted: Vec::new(),
        results: Vec::new(),
        fault: None,
    };
    {
        let drive = lane::drive(registry, &mut work, running_max, received, stopped);
        tokio::pin!(drive);
        tokio::select! {
            () = &mut drive => {}
            _ = signal.aborted() => {
                // The lane may have ended already.
                let _ = stop.send(true);
                drive.await;
            }
        }
    }
    work.finish().await
}

/// Appends the contexts of a step as messages, in order.
///
/// # Errors
/// What the log says; contexts after the one that failed are not appended.
pub async fn append_contexts(agent: &Agent, contexts: &[ContextMessage]) -> Result<(), AppendError> {
    let Some(log) = agent.log() else { return Ok(()) };
    for context in contexts {
        // Ordered is enough: whatever is durable later is durable in order.
        drop(log.append(record::user_message(context)).await?);
    }
    Ok(())
}

struct StepCalls {
    registry: Registry,
    agent: Agent,
    surface: Arc<Surface>,
    signal: Signal,
    unstarted: Vec<ModelCall>,
    results: Vec<(String, CallResult)>,
    fault: Option<AppendError>,
}

struct Open {
    call: ModelCall,
    /// The number of its event; absent without a log.
    seq: Option<u64>,
}

impl StepCalls {
    /// Writes the call; `None` without a log, or when the log fails.
    async fn log_call(&mut self, call: &ModelCall) -> Option<u64> {
        let log = self.agent.log()?;
        let event = ToolCall {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            arguments: record::json(&call.arguments),
        };
        match log.append(event).await {
            Ok(appended) => Some(appended.seq),
            Err(error) => {
                self.fault.get_or_insert(error);
                None
            }
        }
    }

    async fn log_result(&mut self, open: &Open, result: &CallResult) {
        let (Some(log), Some(seq)) = (self.agent.log(), open.seq) else { return };
        let event = ToolResult {
            call: seq,
            message: record::message(&open.call.call_id, &open.call.name, result),
            error: record::error(result),
            meta: result.meta.as_ref().map(record::json),
        };
        if let Err(error) = log.append(event).await {
            self.fault.get_or_insert(error);
        }
    }

    async fn finish(mut self) -> StepOutcome {
        if self.fault.is_none() {
            for call in std::mem::take(&mut self.unstarted) {
                let seq = self.log_call(&call).await;
                let (open, result) = (Open { call, seq }, CallResult::failed(ToolError::aborted(false)));
                self.log_result(&open, &result).await;
                self.results.push((open.call.call_id, result));
            }
        }
        let contexts = self.results.iter().flat_map(|(_, result)| result.contexts.clone()).collect();
        let concludes_turn = self.results.iter().any(|(_, result)| result.concludes_turn());
        let end = match self.fault {
            Some(error) => StepEnd::Failed(error),
            None if self.signal.is_aborted() => StepEnd::Aborted,
            None => StepEnd::Completed,
        };
        StepOutcome { results: self.results, contexts, concludes_turn, end }
    }
}

impl Work for StepCalls {
    type Item = ModelCall;
    type Open = Open;

    fn class(&self, call: &ModelCall) -> Class {
        let Ok(arguments) = Arguments::parse(call.arguments.clone()) else { return Class::Exclusive };
        if self.registry.is_parallel(&self.surface, &call.name, &arguments, false) {
            Class::Parallel
        } else {
            Class::Exclusive
        }
    }

    async fn start(&mut self, call: ModelCall) -> (Open, Flight) {
        let seq = self.log_call(&call).await;
        let request = CallRequest::new(call.call_id.clone(), call.name.clone(), call.arguments.clone())
            .by(self.agent.clone())
            .with_signal(self.signal.clone())
            .with_surface(Arc::clone(&self.surface));
        let mut flight = pipeline::begin(&self.registry, request);
        match &self.fault {
            None => pipeline::admit(&self.registry, &mut flight).await,
            // What cannot be written down is not done.
            Some(error) => {
                flight.state = FlightState::Final(CallResult::failed(ToolError::plain(error.to_string())))
            }
        }
        (Open { call, seq }, flight)
    }

    async fn commit(&mut self, open: Open, flight: Flight) {
        let result = pipeline::commit(&self.registry, flight).await;
        self.log_result(&open, &result).await;
        self.results.push((open.call.call_id, result));
    }

    fn abandon(&mut self, call: ModelCall) {
        self.unstarted.push(call);
    }

    fn is_over(&self) -> bool {
        self.fault.is_some() || self.signal.is_aborted()
    }
}
