//! Short ways to make events.

use codemode_events::{
    AssistantMessage, AssistantMessageEvent, CodeDispatch, CodeDispatchStart, ContentBlock, Event, Json,
    Source, ToolCall, ToolCallRequest, ToolMessage, ToolResult, TurnEnd, TurnOutcome, TurnStart, UserMessage,
};

pub(crate) fn turn_start(turn: &str) -> Event {
    TurnStart { turn_id: turn.to_owned() }.into()
}

pub(crate) fn turn_end(turn: &str) -> Event {
    TurnEnd { turn_id: turn.to_owned(), outcome: TurnOutcome::Completed, message: None }.into()
}

pub(crate) fn user(text: &str) -> Event {
    UserMessage { content: vec![ContentBlock::text(text)], source: Source::user() }.into()
}

pub(crate) fn assistant(text: &str, calls: &[&str]) -> Event {
    let request = |call: &&str| ToolCallRequest {
        call_id: (*call).to_owned(),
        name: "echo".to_owned(),
        arguments: arguments(),
    };
    let message = AssistantMessage {
        content: vec![ContentBlock::text(text)],
        tool_calls: calls.iter().map(request).collect(),
    };
    AssistantMessageEvent { message, usage: None }.into()
}

pub(crate) fn call(call: &str) -> Event {
    ToolCall { call_id: call.to_owned(), name: "echo".to_owned(), arguments: arguments() }.into()
}

pub(crate) fn result(number: u64, call: &str) -> Event {
    let message = ToolMessage {
        call_id: call.to_owned(),
        name: "echo".to_owned(),
        content: vec![ContentBlock::text("done")],
        is_error: false,
    };
    ToolResult { call: number, message, error: None, meta: None }.into()
}

pub(crate) fn start(root: &str, parent: &str, sub: &str) -> Event {
    CodeDispatchStart {
        root_call_id: root.to_owned(),
        parent_call_id: parent.to_owned(),
        sub_call_id: sub.to_owned(),
        name: "echo".to_owned(),
        arguments: arguments(),
    }
    .into()
}

pub(crate) fn end(root: &str, parent: &str, sub: &str) -> Event {
    CodeDispatch {
        root_call_id: root.to_owned(),
        parent_call_id: parent.to_owned(),
        sub_call_id: sub.to_owned(),
        name: "echo".to_owned(),
        arguments: arguments(),
        is_error: false,
        content: vec![ContentBlock::text("done")],
        error: None,
    }
    .into()
}

pub(crate) fn arguments() -> Json {
    Json::parse(r#"{"a":1}"#).expect("it is JSON")
}
