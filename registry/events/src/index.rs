//! What has to be known of a log to judge its next event. Pure: rebuilt from the entries, no I/O, no time.
//!
//! `check` looks and never changes anything; `apply` takes an event that `check` has let pass. Calls, turns and
//! approvals are judged here, a program's calls in `dispatch`.

mod dispatch;

use std::collections::{BTreeMap, HashMap};

use self::dispatch::Dispatches;
use crate::event::{
    ApprovalAnswered, ApprovalAsked, Event, Header, HeaderReason, RequestHeader, ToolCall, ToolResult,
    TurnEnd, TurnStart,
};
use crate::refusal::Refusal;

/// The state of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    turn: Option<Turn>,
    /// Calls by the number of their entry; none once they have their result.
    calls: BTreeMap<u64, Option<ToolCall>>,
    dispatches: Dispatches,
    /// Every approval that was asked for, with the number of its entry.
    approvals: HashMap<String, u64>,
    /// Those without an answer, by that number.
    approvals_open: BTreeMap<u64, ApprovalAsked>,
    header: Option<Header>,
    /// Whether the log was resumed and no header has been logged since.
    resumed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Turn {
    id: String,
    steps: u32,
    step_open: bool,
}

/// What has begun and not ended, each in the order of its beginning. After a crash, what is to be put right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenWork {
    /// The open turn.
    pub turn: Option<String>,
    /// The step that is open in it.
    pub step: Option<u32>,
    /// Calls without a result, with their numbers.
    pub calls: Vec<(u64, ToolCall)>,
    /// Starts of sub-calls without an end.
    pub dispatches: Vec<crate::event::CodeDispatchStart>,
    /// Approvals without an answer.
    pub approvals: Vec<ApprovalAsked>,
}

impl Index {
    /// Whether `event` may be the next one.
    pub(crate) fn check(&self, event: &Event) -> Result<(), Refusal> {
        match event {
            Event::TurnStart(event) => self.check_turn_start(event),
            Event::TurnEnd(event) => self.check_turn_end(event),
            Event::StepStart(event) => self.check_step(event.step, true),
            Event::StepEnd(event) => self.check_step(event.step, false),
            Event::RequestHeader(event) => self.check_header(event),
            Event::UserMessage(event) => non_empty("user/message", "source.kind", &event.source.kind),
            Event::AssistantMessage(event) => {
                let mut calls = event.message.tool_calls.iter();
                calls.try_for_each(|call| non_empty("assistant/message", "callId", &call.call_id))
            }
            Event::ToolCall(event) => {
                non_empty("tool/call", "callId", &event.call_id)?;
                non_empty("tool/call", "name", &event.name)
            }
            Event::ToolResult(event) => self.check_result(event),
            Event::CodeDispatchStart(event) => {
                self.inside_turn("tool/code-dispatch-start")?;
                self.dispatches.check_start(event)
            }
            Event::CodeDispatch(event) => {
                self.inside_turn("tool/code-dispatch")?;
                self.dispatches.check_end(event)
            }
            Event::ApprovalAsked(event) => self.check_asked(event),
            Event::ApprovalAnswered(event) => self.check_answered(event),
            Event::Unknown(_) => Err(Refusal::UnknownType { tag: event.tag().to_owned() }),
        }
    }

    /// The same for an event read back: the log does not say where it was resumed, so a header that differs from the one
    /// before may have either reason.
    pub(crate) fn check_again(&self, event: &Event) -> Result<(), Refusal> {
        match self.check(event) {
            Err(Refusal::HeaderReason { expected: HeaderReason::Change }) if is_resume(event) => Ok(()),
            outcome => outcome,
        }
    }

    /// Takes an event that was let pass, as entry `seq`.
    pub(crate) fn apply(&mut self, seq: u64, event: &Event) {
        match event {
            Event::TurnStart(event) => {
                self.turn = Some(Turn { id: event.turn_id.clone(), steps: 0, step_open: false });
            }
            Event::TurnEnd(_) => self.turn = None,
            Event::StepStart(event) => self.set_step(event.step, true),
            Event::StepEnd(event) => self.set_step(event.step, false),
            Event::RequestHeader(event) => {
                self.header = Some(event.header.clone());
                self.resumed = false;
            }
            Event::ToolCall(event) => {
                self.calls.insert(seq, Some(event.clone()));
            }
            Event::ToolResult(event) => {
                self.calls.insert(event.call, None);
            }
            Event::CodeDispatchStart(event) => self.dispatches.start(seq, event),
            Event::CodeDispatch(event) => self.dispatches.end(event),
            Event::ApprovalAsked(event) => {
                self.approvals.insert(event.approval_id.clone(), seq);
                self.approvals_open.insert(seq, event.clone());
            }
            Event::ApprovalAnswered(event) => {
                if let Some(asked) = self.approvals.get(&event.approval_id) {
                    self.approvals_open.remove(asked);
                }
            }
            Event::UserMessage(_) | Event::AssistantMessage(_) | Event::Unknown(_) => {}
        }
    }

    /// Says that what was applied so far was read back: the next header that differs is one of a resumed session.
    pub(crate) fn mark_resumed(&mut self) {
        self.resumed = true;
    }

    /// Why `header` would be logged now; none if it is the one in force.
    pub(crate) fn header_reason(&self, header: &Header) -> Option<HeaderReason> {
        match &self.header {
            None => Some(HeaderReason::Initial),
            Some(in_force) if in_force == header => None,
            Some(_) if self.resumed => Some(HeaderReason::Resume),
            Some(_) => Some(HeaderReason::Change),
        }
    }

    /// What has begun and not ended.
    pub(crate) fn open_work(&self) -> OpenWork {
        let open = |(seq, call): (&u64, &Option<ToolCall>)| Some((*seq, call.clone()?));
        OpenWork {
            turn: self.turn.as_ref().map(|turn| turn.id.clone()),
            step: self.turn.as_ref().and_then(|turn| turn.step_open.then_some(turn.steps)),
            calls: self.calls.iter().filter_map(open).collect(),
            dispatches: self.dispatches.open(),
            approvals: self.approvals_open.values().cloned().collect(),
        }
    }

    fn inside_turn(&self, event: &'static str) -> Result<(), Refusal> {
        if self.turn.is_some() { Ok(()) } else { Err(Refusal::NoOpenTurn { event }) }
    }

    fn check_turn_start(&self, event: &TurnStart) -> Result<(), Refusal> {
        non_empty("turn/start", "turnId", &event.turn_id)?;
        match &self.turn {
            None => Ok(()),
            Some(turn) => Err(Refusal::TurnOpen { open: turn.id.clone() }),
        }
    }

    fn check_turn_end(&self, event: &TurnEnd) -> Result<(), Refusal> {
        non_empty("turn/end", "turnId", &event.turn_id)?;
        let Some(turn) = &self.turn else { return Err(Refusal::NoOpenTurn { event: "turn/end" }) };
        if turn.id != event.turn_id {
            return Err(Refusal::WrongTurn { open: turn.id.clone(), given: event.turn_id.clone() });
        }
        match self.dispatches.first_open() {
            None => Ok(()),
            Some(sub_call) => Err(Refusal::DispatchOpen { sub_call: sub_call.to_owned() }),
        }
    }

    fn check_step(&self, given: u32, starts: bool) -> Result<(), Refusal> {
        let event = if starts { "step/start" } else { "step/end" };
        let Some(turn) = &self.turn else { return Err(Refusal::NoOpenTurn { event }) };
        let in_order = if starts {
            !turn.step_open && turn.steps.checked_add(1) == Some(given)
        } else {
            turn.step_open && turn.steps == given
        };
        if in_order {
            return Ok(());
        }
        let expected = match (turn.step_open, turn.steps.checked_add(1)) {
            (true, _) => format!("step {} is open", turn.steps),
            (false, Some(next)) => format!("step {next} comes next"),
            (false, None) => "no further step can start".to_owned(),
        };
        Err(Refusal::StepOrder { given, expected })
    }

    fn set_step(&mut self, step: u32, open: bool) {
        if let Some(turn) = &mut self.turn {
            turn.steps = step;
            turn.step_open = open;
        }
    }

    fn check_header(&self, event: &RequestHeader) -> Result<(), Refusal> {
        if event.header.system.as_ref().is_some_and(String::is_empty) {
            return Err(Refusal::HeaderNotCanonical { field: "system" });
        }
        if event.header.tools.as_ref().is_some_and(Vec::is_empty) {
            return Err(Refusal::HeaderNotCanonical { field: "tools" });
        }
        match self.header_reason(&event.header) {
            None => Err(Refusal::HeaderUnchanged),
            Some(expected) if expected == event.reason => Ok(()),
            Some(expected) => Err(Refusal::HeaderReason { expected }),
        }
    }

    fn check_result(&self, event: &ToolResult) -> Result<(), Refusal> {
        let given = &event.message.call_id;
        non_empty("tool/result", "message.callId", given)?;
        match self.calls.get(&event.call) {
            None => Err(Refusal::NoSuchCall { call: event.call }),
            Some(None) => Err(Refusal::AlreadyAnswered { call: event.call }),
            Some(Some(call)) if call.call_id == *given => Ok(()),
            Some(Some(call)) => {
                let expected = call.call_id.clone();
                Err(Refusal::WrongCallId { call: event.call, expected, given: given.clone() })
            }
        }
    }

    fn check_asked(&self, event: &ApprovalAsked) -> Result<(), Refusal> {
        non_empty("approval/asked", "approvalId", &event.approval_id)?;
        non_empty("approval/asked", "callId", &event.call_id)?;
        if self.approvals.contains_key(&event.approval_id) {
            return Err(Refusal::AlreadyAsked { approval: event.approval_id.clone() });
        }
        Ok(())
    }

    fn check_answered(&self, event: &ApprovalAnswered) -> Result<(), Refusal> {
        non_empty("approval/answered", "approvalId", &event.approval_id)?;
        let asked = self.approvals.get(&event.approval_id);
        if asked.is_some_and(|asked| self.approvals_open.contains_key(asked)) {
            return Ok(());
        }
        Err(Refusal::NotAsked { approval: event.approval_id.clone() })
    }
}

pub(super) fn non_empty(event: &'static str, field: &'static str, id: &str) -> Result<(), Refusal> {
    if id.is_empty() { Err(Refusal::EmptyId { event, field }) } else { Ok(()) }
}

fn is_resume(event: &Event) -> bool {
    matches!(event, Event::RequestHeader(RequestHeader { reason: HeaderReason::Resume, .. }))
}
