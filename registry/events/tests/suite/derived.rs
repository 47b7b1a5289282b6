//! The model's messages as they are derived from the log.

use codemode_events::{ContentBlock, Entry, Event, Message, Source, UserMessage, messages};

use crate::events::{assistant, call, end, result, start, turn_end, turn_start, user};

/// The derived messages in short: `u:text`, `a:text`, `t:call`.
fn derived(events: impl IntoIterator<Item = Event>) -> Vec<String> {
    let entry = |(seq, event)| Entry { seq, at: 0, v: 1, event };
    let entries: Vec<_> = (1..).zip(events).map(entry).collect();
    let first =
        |content: &[ContentBlock]| content.first().and_then(ContentBlock::as_text).unwrap_or_default();
    let short = |message: &Message| match message {
        Message::User { content, .. } => format!("u:{}", first(content)),
        Message::Assistant(said) => format!("a:{}", first(&said.content)),
        Message::Tool(answer) => format!("t:{}", answer.call_id),
    };
    messages(&entries).iter().map(short).collect()
}

fn context(text: &str) -> Event {
    let source = Source::plugin("tools-code-mode");
    UserMessage { content: vec![ContentBlock::text(text)], source }.into()
}

#[test]
fn a_programs_calls_derive_no_message_176() {
    let events = [
        turn_start("t"),
        user("hello"),
        assistant("let me see", &["c"]),
        call("c"),
        start("c", "c", "c:code:1"),
        end("c", "c", "c:code:1"),
        result(4, "c"),
        assistant("done", &[]),
        turn_end("t"),
    ];
    assert_eq!(derived(events), ["u:hello", "a:let me see", "t:c", "a:done"]);
}

#[test]
fn results_keep_the_order_of_the_log_229() {
    let events = [assistant("", &["a", "b"]), call("a"), call("b"), result(2, "a"), result(3, "b")];
    assert_eq!(derived(events), ["a:", "t:a", "t:b"]);
}

#[test]
fn contexts_come_after_all_results_of_the_step() {
    let events = [
        assistant("", &["a", "b"]),
        context("before any"),
        call("a"),
        result(3, "a"),
        context("between"),
        call("b"),
        result(6, "b"),
        context("after"),
        assistant("next", &[]),
    ];
    assert_eq!(derived(events), ["a:", "t:a", "t:b", "u:before any", "u:between", "u:after", "a:next"]);
}

#[test]
fn a_call_id_that_the_model_repeats_is_waited_for_as_often() {
    let events =
        [assistant("", &["x", "x"]), call("x"), result(2, "x"), context("c"), call("x"), result(5, "x")];
    assert_eq!(derived(events), ["a:", "t:x", "t:x", "u:c"]);
}

#[test]
fn results_that_never_came_are_waited_for_until_the_next_answer() {
    let events = [assistant("", &["a"]), context("c"), assistant("on", &["b"]), context("d")];
    assert_eq!(derived(events), ["a:", "u:c", "a:on", "u:d"]);
}

#[test]
fn messages_say_who_they_are_from() {
    let entry = |(seq, event)| Entry { seq, at: 0, v: 1, event };
    let events = [assistant("hi", &["c"]), call("c"), result(2, "c"), context("x")];
    let entries: Vec<_> = (1..).zip(events).map(entry).collect();
    let json = serde_json::to_string(&messages(&entries)).expect("messages can be said in JSON");
    let expected = concat!(
        r#"[{"role":"assistant","content":[{"type":"text","text":"hi"}],"#,
        r#""toolCalls":[{"callId":"c","name":"echo","arguments":{"a":1}}]},"#,
        r#"{"role":"tool","callId":"c","name":"echo","content":[{"type":"text","text":"done"}],"isError":false},"#,
        r#"{"role":"user","content":[{"type":"text","text":"x"}],"source":{"kind":"plugin","plugin":"tools-code-mode"}}]"#,
    );
    assert_eq!(json, expected);
}
