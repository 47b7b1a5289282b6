//! What to append to a session whose process ended in the middle of its work. Pure.

use crate::content::{ContentBlock, ErrorInfo, ToolMessage};
use crate::event::{
    ApprovalAnswered, ApprovalOutcome, CodeDispatch, CodeDispatchStart, Event, ToolCall, ToolResult, TurnEnd,
    TurnOutcome,
};
use crate::index::OpenWork;

/// What the model reads as the answer to a call that was cut off. It may have acted, so it is not told to try again.
const TEXT: &str = "Error: tool call aborted: the process that ran it ended; it may have had effects";

impl OpenWork {
    /// The events that end everything that is open, in an order that a log takes: approvals are cancelled, a program's
    /// calls and then the model's end as `ABORTED`, and the turn ends as interrupted. Nothing for a log at rest.
    #[must_use]
    pub fn closing_events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for asked in &self.approvals {
            let approval_id = asked.approval_id.clone();
            events.push(ApprovalAnswered { approval_id, outcome: ApprovalOutcome::Cancelled }.into());
        }
        // The innermost calls started last.
        events.extend(self.dispatches.iter().rev().map(|start| dispatch_end(start).into()));
        events.extend(self.calls.iter().map(|(number, call)| result(*number, call).into()));
        if let Some(turn_id) = self.turn.clone() {
            events.push(TurnEnd { turn_id, outcome: TurnOutcome::Interrupted, message: None }.into());
        }
        events
    }
}

fn error() -> ErrorInfo {
    ErrorInfo { name: "AbortError".to_owned(), code: "ABORTED".to_owned() }
}

fn dispatch_end(start: &CodeDispatchStart) -> CodeDispatch {
    let CodeDispatchStart { root_call_id, parent_call_id, sub_call_id, name, arguments } = start.clone();
    CodeDispatch {
        root_call_id,
        parent_call_id,
        sub_call_id,
        name,
        arguments,
        is_error: true,
        content: vec![ContentBlock::text(TEXT)],
        error: Some(error()),
    }
}

fn result(number: u64, call: &ToolCall) -> ToolResult {
    let message = ToolMessage {
        call_id: call.call_id.clone(),
        name: call.name.clone(),
        content: vec![ContentBlock::text(TEXT)],
        is_error: true,
    };
    ToolResult { call: number, message, error: Some(error()), meta: None }
}
