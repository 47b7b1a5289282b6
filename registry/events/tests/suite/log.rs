//! The writer of a session over each store: order under concurrency, headers, resuming, closing.

use std::sync::Arc;

use codemode_events::{
    AppendError, Event, HeaderReason, Json, Page, Refusal, SessionLog, StoreError, system_clock,
};
use serde_json::json;

use crate::events::{call, end, result, start, turn_end, turn_start, user};
use crate::stores::{Fixture, id, over_each_store};

over_each_store! {
    many_writers_get_consecutive_numbers_in_order,
    a_durable_entry_is_in_the_store,
    header_is_logged_when_it_changes_236,
    header_tools_are_compared_in_order_by_text_236,
    resuming_knows_what_was_open,
    the_earlier_writer_is_fenced,
    a_closed_log_takes_nothing,
    large_and_odd_events_come_back_whole,
    deep_arguments_come_back_whole_156,
    time_never_goes_back,
    an_event_that_is_too_large_is_refused,
    what_a_crash_left_open_can_be_closed,
}

async fn many_writers_get_consecutive_numbers_in_order(at: Fixture) {
    let log = at.log().await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..16 {
        let log = log.clone();
        tasks.spawn(async move {
            let mut numbers = Vec::new();
            for n in 0..50 {
                let event = user(&format!("{task}:{n}"));
                let appended = log.append(event).await.expect("messages are always welcome");
                numbers.push((appended.seq, format!("{task}:{n}")));
            }
            numbers
        });
    }
    let mut expected: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    expected.sort();
    assert_eq!(log.flush().await.expect("the store is well"), 800);
    let entries = log.read(Page { from: 1, records: 1000, bytes: 1 << 30 }).await.expect("it reads");
    assert_eq!(entries.len(), 800);
    for (entry, (seq, text)) in entries.iter().zip(&expected) {
        let Event::UserMessage(message) = &entry.event else { panic!("{entry:?}") };
        assert_eq!(
            (entry.seq, message.content.first().and_then(|b| b.as_text()).as_ref()),
            (*seq, Some(text))
        );
    }
    // What one task appended later has the larger number.
    let mut of_task = [None; 16];
    for (seq, text) in &expected {
        let (task, n) = text.split_once(':').expect("it was made so");
        let (task, n): (usize, u32) = (task.parse().expect("a number"), n.parse().expect("a number"));
        assert!(of_task[task].is_none_or(|before| before < n), "{seq} {text}");
        of_task[task] = Some(n);
    }
}

async fn a_durable_entry_is_in_the_store(at: Fixture) {
    let log = at.log().await;
    for expected in 1..20 {
        assert_eq!(log.append_durable(user("x")).await.expect("it is welcome"), expected);
        assert_eq!(at.store.head(&id("s")).await.expect("it is there").last, expected);
    }
    assert_eq!(log.last(), 19);
}

async fn header_is_logged_when_it_changes_236(at: Fixture) {
    let log = at.log().await;
    let config = || Json::from(json!({"model": "m"}));
    let header = async |log: &SessionLog, system: Option<&str>, tools: Option<Vec<Json>>| {
        let logged = log.request_header(config(), system.map(str::to_owned), tools).await;
        logged.expect("headers are welcome").map(|appended| appended.seq)
    };
    assert_eq!(header(&log, Some(""), Some(Vec::new())).await, Some(1));
    assert_eq!(header(&log, None, None).await, None);
    assert_eq!(header(&log, Some("be brief"), None).await, Some(2));
    assert_eq!(header(&log, Some("be brief"), Some(Vec::new())).await, None);
    log.flush().await.expect("the store is well");
    let log = at.resumed().await;
    assert_eq!(header(&log, Some("be brief"), None).await, None, "unchanged across a resume");
    assert_eq!(header(&log, Some("be long"), None).await, Some(3));
    assert_eq!(header(&log, Some("be brief"), None).await, Some(4));
    log.flush().await.expect("the store is well");
    let mut reasons = Vec::new();
    for entry in log.read(Page::from(1)).await.expect("it reads") {
        let Event::RequestHeader(logged) = entry.event else { panic!("{entry:?}") };
        assert_ne!(logged.header.system.as_deref(), Some(""));
        assert_eq!(logged.header.tools, None);
        reasons.push(logged.reason);
    }
    use HeaderReason::{Change, Initial, Resume};
    assert_eq!(reasons, [Initial, Change, Resume, Change]);
    at.resumed().await;
}

async fn header_tools_are_compared_in_order_by_text_236(at: Fixture) {
    let log = at.log().await;
    let tool = |name: &str| Json::from(json!({ "name": name }));
    let spaced = Json::parse(r#"{"name": "a"}"#).expect("it is JSON");
    let lists = [
        (vec![tool("a"), tool("b")], true),
        (vec![tool("a"), tool("b")], false),
        (vec![tool("b"), tool("a")], true),
        (vec![tool("a"), tool("b")], true),
        (vec![spaced, tool("b")], true),
        (vec![tool("a")], true),
    ];
    for (tools, logged) in lists {
        let appended = log.request_header(Json::from(json!({})), None, Some(tools.clone())).await;
        assert_eq!(appended.expect("headers are welcome").is_some(), logged, "{tools:?}");
    }
}

async fn resuming_knows_what_was_open(at: Fixture) {
    let log = at.log().await;
    for event in [turn_start("t"), call("c"), call("d"), start("c", "c", "c:code:1"), result(3, "d")] {
        log.append(event).await.expect("it is in order");
    }
    let before = log.open_work();
    log.flush().await.expect("the store is well");
    let log = at.resumed().await;
    let open = log.open_work();
    assert_eq!(open, before);
    assert_eq!(open.turn.as_deref(), Some("t"));
    assert_eq!(
        open.calls.iter().map(|(seq, call)| (*seq, call.call_id.as_str())).collect::<Vec<_>>(),
        [(2, "c")]
    );
    assert_eq!(open.dispatches.len(), 1);
    let refused = log.append(turn_end("t")).await;
    assert!(matches!(refused, Err(AppendError::Refused(Refusal::DispatchOpen { .. }))), "{refused:?}");
    for event in [end("c", "c", "c:code:1"), result(2, "c"), turn_end("t")] {
        log.append(event).await.expect("what was open can be put right");
    }
    assert_eq!(log.open_work(), codemode_events::OpenWork::default());
    assert_eq!(log.flush().await.expect("the store is well"), 8);
}

async fn the_earlier_writer_is_fenced(at: Fixture) {
    let first = at.log().await;
    first.append_durable(user("1")).await.expect("it is welcome");
    let second = at.resumed().await;
    let appended = first.append(user("lost")).await.expect("ordered by a writer that cannot know yet");
    assert!(matches!(appended.durable().await, Err(StoreError::Fenced { epoch: 1, .. })));
    let refused = first.append(user("lost")).await;
    assert!(matches!(refused, Err(AppendError::Store(StoreError::Fenced { .. }))), "{refused:?}");
    assert!(first.flush().await.is_err());
    assert!(first.close().await.is_err());
    assert_eq!(second.append_durable(user("2")).await.expect("it has the right"), 2);
    let entries = second.read(Page::from(1)).await.expect("it reads");
    assert_eq!(entries.iter().map(|entry| &entry.event).collect::<Vec<_>>(), [&user("1"), &user("2")]);
}

async fn a_closed_log_takes_nothing(at: Fixture) {
    let log = at.log().await;
    let appended = log.append(user("1")).await.expect("it is welcome");
    log.close().await.expect("the store is well");
    assert_eq!(appended.durable().await.expect("close has waited for it"), 1);
    assert!(matches!(log.append(user("2")).await, Err(AppendError::Closed(_))));
    assert!(matches!(log.close().await, Err(AppendError::Closed(_))));
    let log = at.resumed().await;
    assert_eq!(log.append_durable(user("2")).await.expect("it is open again"), 2);
}

async fn large_and_odd_events_come_back_whole(at: Fixture) {
    let log = at.log().await;
    let mut texts = vec!["\0".to_owned(), "\u{2028}\u{feff}𝕊\r\n\"\\".to_owned(), "x".repeat(20 << 20)];
    texts.push(String::new());
    for text in &texts {
        log.append(user(text)).await.expect("it is welcome");
    }
    let surrogate = Json::parse(r#"{"type":"text","text":"\ud800 \udc00\ud800"}"#).expect("it is JSON");
    let block = codemode_events::ContentBlock::new(surrogate);
    assert_eq!((block.kind().as_deref(), block.as_text()), (Some("text"), None));
    let source = codemode_events::Source::plugin("");
    let odd = codemode_events::UserMessage { content: vec![block], source };
    log.append(odd.clone()).await.expect("it is welcome");
    log.flush().await.expect("the store is well");
    let log = at.resumed().await;
    for (from, text) in (1..).zip(&texts) {
        let entries = log.read(Page { from, records: 1, bytes: 1 }).await.expect("it reads");
        assert!(entries.iter().map(|entry| &entry.event).eq([&user(text)]), "{} bytes", text.len());
    }
    let entries = log.read(Page::from(5)).await.expect("it reads");
    assert_eq!(entries.first().map(|entry| entry.event.clone()), Some(odd.into()));
}

async fn deep_arguments_come_back_whole_156(at: Fixture) {
    let mut log = at.log().await;
    for depth in [5_000, 200_000] {
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let arguments = Json::parse(text).expect("it is JSON");
        let event = codemode_events::ToolCall { call_id: "c".to_owned(), name: "t".to_owned(), arguments };
        let seq = log.append_durable(event.clone()).await.expect("it is welcome");
        log = at.resumed().await;
        let entries = log.read(Page::from(seq)).await.expect("it reads");
        assert!(entries.iter().map(|entry| &entry.event).eq([&event.into()]), "depth {depth}");
    }
}

async fn time_never_goes_back(at: Fixture) {
    let times = parking_lot::Mutex::new([30, 10, u64::MAX, 40, 5].into_iter());
    let clock = Arc::new(move || times.lock().next().unwrap_or(0));
    let log = SessionLog::create(Arc::clone(&at.store), &id("s"), clock).await.expect("it is new");
    for _ in 0..4 {
        log.append(user("x")).await.expect("it is welcome");
    }
    log.flush().await.expect("the store is well");
    let entries = log.read(Page::from(1)).await.expect("it reads");
    let latest = u64::MAX >> 1;
    assert_eq!(entries.iter().map(|entry| entry.at).collect::<Vec<_>>(), [10, latest, latest, latest]);
    let log = SessionLog::resume(Arc::clone(&at.store), &id("s"), system_clock()).await.expect("it is there");
    assert_eq!(log.append(user("x")).await.expect("it is welcome").at, latest);
}

async fn an_event_that_is_too_large_is_refused(at: Fixture) {
    let log = at.log().await;
    let refused = log.append(user(&"x".repeat(codemode_events::EVENT_BYTES_MAX))).await;
    let Err(AppendError::Refused(refusal)) = refused else { panic!("{refused:?}") };
    assert_eq!(refusal.code(), "too-large");
    assert_eq!(log.append_durable(user("small")).await.expect("it is welcome"), 1);
}

async fn what_a_crash_left_open_can_be_closed(at: Fixture) {
    let log = at.log().await;
    assert!(log.open_work().closing_events().is_empty());
    let asked = codemode_events::ApprovalAsked {
        approval_id: "a".to_owned(),
        call_id: "c:code:2".to_owned(),
        name: "echo".to_owned(),
        arguments: crate::events::arguments(),
        reason: None,
    };
    let events = [
        turn_start("t"),
        codemode_events::StepStart { step: 1 }.into(),
        crate::events::assistant("", &["c", "d"]),
        call("c"),
        call("d"),
        start("c", "c", "c:code:1"),
        start("c", "c:code:1", "c:code:2"),
        asked.into(),
        result(5, "d"),
    ];
    for event in events {
        log.append(event).await.expect("it is in order");
    }
    log.flush().await.expect("the store is well");
    let log = at.resumed().await;
    for event in log.open_work().closing_events() {
        log.append(event).await.expect("it closes what is open");
    }
    assert_eq!(log.open_work(), codemode_events::OpenWork::default());
    log.flush().await.expect("the store is well");
    let entries = log.read(Page::from(10)).await.expect("it reads");
    let tags: Vec<_> = entries.iter().map(|entry| entry.event.tag()).collect();
    let expected =
        ["approval/answered", "tool/code-dispatch", "tool/code-dispatch", "tool/result", "turn/end"];
    assert_eq!(tags, expected);
}
