//! The stable JSON of every event: each line of the fixture reads and is written back byte for byte.

use std::collections::BTreeSet;

use codemode_events::{Entry, Event, Json, Record};

const FIXTURE: &str = include_str!("../shapes/events.jsonl");

/// Every type this version writes.
const TYPES: [&str; 13] = [
    "approval/answered",
    "approval/asked",
    "assistant/message",
    "request/header",
    "step/end",
    "step/start",
    "tool/call",
    "tool/code-dispatch",
    "tool/code-dispatch-start",
    "tool/result",
    "turn/end",
    "turn/start",
    "user/message",
];

/// An entry of the fixture by the way a store takes: as a record.
fn read(line: &str) -> Entry {
    #[derive(serde::Deserialize)]
    struct Envelope {
        seq: u64,
        at: u64,
        v: u32,
        event: Json,
    }
    let kept: Envelope = serde_json::from_str(line).expect("the fixture is JSON");
    let record = Record { seq: kept.seq, at: kept.at, v: kept.v, event: kept.event.get().to_owned() };
    record.entry().unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn each_shape_is_written_as_it_is_read() {
    let mut seen = BTreeSet::new();
    for line in FIXTURE.lines() {
        let entry = read(line);
        assert_eq!(serde_json::to_string(&entry).expect("entries can be said in JSON"), line);
        if !matches!(entry.event, Event::Unknown(_)) {
            let again: Entry = serde_json::from_str(line).expect("a known entry is read as JSON too");
            assert_eq!(again, entry);
            seen.insert(entry.event.tag().to_owned());
        }
    }
    assert!(seen.iter().eq(TYPES.iter()), "{seen:?}");
}

#[test]
fn what_a_later_version_wrote_is_kept_as_it_is() {
    let unknown: Vec<_> =
        FIXTURE.lines().map(read).filter(|entry| matches!(entry.event, Event::Unknown(_))).collect();
    let tags: Vec<_> = unknown.iter().map(|entry| entry.event.tag()).collect();
    assert_eq!(tags, ["step/skipped", "turn/start"]);
    let Some(Entry { event: Event::Unknown(event), .. }) = unknown.first() else { panic!("{unknown:?}") };
    assert_eq!(event.json().get(), r#"{"type":"step/skipped","why":{"deep":[1]}}"#);
}

#[test]
fn what_is_no_event_is_refused() {
    for text in
        ["", "{}", "[]", "1", "null", r#"{"type":1}"#, r#"{"type":"turn/start"}"#, r#"{"type":"x"} x"#]
    {
        let record = Record { seq: 7, at: 0, v: 1, event: text.to_owned() };
        let error = record.entry().expect_err(text);
        assert_eq!(error.seq, 7);
    }
    let later = Record { seq: 1, at: 0, v: 2, event: r#"{"turnId":"t"}"#.to_owned() };
    later.entry().expect_err("even a later version's event has a type");
}
