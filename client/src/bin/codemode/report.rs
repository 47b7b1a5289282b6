//! The texts that an outcome becomes. Pure; nothing is printed here.

use std::fmt::Write as _;
use std::time::Duration;

use codemode_client::{Failure, JsonError, JsonText, Outcome, Phases, Usage};
use serde::Serialize;
use serde::de::{Deserializer as _, Visitor};

/// `--json`: the one object, on one line. Names are the contract's in camel case, times are microseconds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    run_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a JsonText>,
    logs: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureReport<'a>>,
    usage: UsageReport<'a>,
}

#[derive(Serialize)]
struct FailureReport<'a> {
    kind: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<DetailReport<'a>>,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct DetailReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_name: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageReport<'a> {
    cpu_us: u64,
    wall_us: u64,
    peak_memory_bytes: u64,
    binding_calls: u64,
    output_bytes: u64,
    layers: &'a [String],
    phases: PhasesReport,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhasesReport {
    admission_us: u64,
    strip_us: u64,
    fork_us: u64,
    lockdown_us: u64,
    run_us: u64,
    settle_us: u64,
}

/// The object of `--json`, without a newline.
pub(crate) fn json(outcome: &Outcome) -> Result<String, JsonError> {
    let report = Report {
        run_id: outcome.run_id.to_string(),
        value: outcome.value.as_ref(),
        logs: &outcome.logs,
        failure: outcome.failure.as_ref().map(failure_report),
        usage: usage_report(&outcome.usage),
    };
    JsonText::of(&report).map(JsonText::into_string)
}

fn failure_report(failure: &Failure) -> FailureReport<'_> {
    let position = failure.position.as_ref();
    let detail = DetailReport {
        cause: failure.cause.as_deref(),
        limit: failure.limit,
        used: failure.used,
        signal: failure.signal,
        line: position.map(|position| position.line),
        column: position.map(|position| position.column),
        excerpt: position.map(|position| position.excerpt.as_str()).filter(|excerpt| !excerpt.is_empty()),
        error_name: failure.error_name.as_deref(),
    };
    FailureReport {
        kind: failure.kind.as_str(),
        message: &failure.message,
        detail: (detail != DetailReport::default()).then_some(detail),
    }
}

fn usage_report(usage: &Usage) -> UsageReport<'_> {
    let Phases { admission_us, strip_us, fork_us, lockdown_us, run_us, settle_us } = usage.phases;
    UsageReport {
        cpu_us: usage.cpu_us,
        wall_us: usage.wall_us,
        peak_memory_bytes: usage.peak_memory_bytes,
        binding_calls: usage.binding_calls,
        output_bytes: usage.output_bytes,
        layers: &usage.layers,
        phases: PhasesReport { admission_us, strip_us, fork_us, lockdown_us, run_us, settle_us },
    }
}

/// A value for people: a string as it is (half surrogates as U+FFFD), anything else indented by two.
pub(crate) fn value(value: &JsonText) -> String {
    string(value).unwrap_or_else(|| indented(value))
}

fn string(value: &JsonText) -> Option<String> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = String;
        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a string")
        }
        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }
    if !value.as_str().trim_start().starts_with('"') {
        return None;
    }
    // As bytes, because half surrogates fit no Rust string.
    serde_json::Deserializer::from_str(value.as_str()).deserialize_bytes(Bytes).ok()
}

/// The text as `JSON.stringify(value, null, 2)` lays it out. One pass over the text: depth costs memory for the indents only.
fn indented(value: &JsonText) -> String {
    let text = value.as_str();
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    // Begin of a container of which nothing is written yet but its bracket.
    let mut opened = false;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let token = &rest[..token_len(rest, first)];
        rest = &rest[token.len()..];
        match first {
            ' ' | '\t' | '\n' | '\r' => continue,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !opened {
                    new_line(&mut out, depth);
                }
                opened = false;
            }
            _ if opened => {
                new_line(&mut out, depth);
                opened = false;
            }
            _ => {}
        }
        out.push_str(token);
        match first {
            '{' | '[' => {
                depth += 1;
                opened = true;
            }
            ',' => new_line(&mut out, depth),
            ':' => out.push(' '),
            _ => {}
        }
    }
    out
}

/// Indents beyond this depth stand still: the whitespace of a value nested by the thousand would outgrow it by far.
const INDENT_DEPTH_MAX: usize = 64;

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(INDENT_DEPTH_MAX)));
}

/// Bytes of the token that `rest`, which begins with `first`, begins with.
fn token_len(rest: &str, first: char) -> usize {
    match first {
        '"' => {
            let mut escaped = false;
            let end = rest.bytes().skip(1).position(|byte| {
                let ends = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        }
        '{' | '}' | '[' | ']' | ',' | ':' | ' ' | '\t' | '\n' | '\r' => 1,
        _ => rest.find([',', '}', ']', ' ', '\t', '\n', '\r']).unwrap_or(rest.len()),
    }
}

/// A failure for people, several lines.
pub(crate) fn failure(failure: &Failure) -> String {
    let mut text = format!("{}: {}\n", failure.kind, failure.message);
    // Writing to a string cannot fail.
    let _ = match (failure.limit, failure.used) {
        (Some(limit), Some(used)) => {
            writeln!(text, "  {}: limit {limit}, used {used}", failure.cause.as_deref().unwrap_or("budget"))
        }
        (Some(limit), None) => {
            writeln!(text, "  {}: limit {limit}", failure.cause.as_deref().unwrap_or("budget"))
        }
        _ => Ok(()),
    };
    if let Some(position) = &failure.position {
        let _ = writeln!(text, "  at line {}, column {}", position.line, position.column);
        for line in position.excerpt.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// What a run spent, on one line.
pub(crate) fn usage(usage: &Usage) -> String {
    let phases = &usage.phases;
    let mut text = format!(
        "{} elapsed, {} CPU, {} peak memory, {} calls, {} B output",
        duration(Duration::from_micros(usage.wall_us)),
        duration(Duration::from_micros(usage.cpu_us)),
        bytes(usage.peak_memory_bytes),
        usage.binding_calls,
        usage.output_bytes
    );
    let parts = [
        ("admission", phases.admission_us),
        ("strip", phases.strip_us),
        ("fork", phases.fork_us),
        ("lockdown", phases.lockdown_us),
        ("run", phases.run_us),
        ("settle", phases.settle_us),
    ];
    if parts.iter().any(|(_, us)| *us > 0) {
        let parts: Vec<_> = parts
            .iter()
            .map(|(name, us)| format!("{name} {}", duration(Duration::from_micros(*us))))
            .collect();
        let _ = write!(text, " ({})", parts.join(", "));
    }
    text
}

/// A duration in the unit that reads best.
pub(crate) fn duration(duration: Duration) -> String {
    match duration.as_micros() {
        micros @ ..1_000 => format!("{micros} us"),
        micros @ ..10_000_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        micros => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// Bytes in the unit that reads best.
fn bytes(bytes: u64) -> String {
    match bytes {
        ..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20),
    }
}

/// Text of a program's making, fit for a terminal: control characters other than tab and newline become visible pictures,
/// so that a program cannot steer the terminal.
pub(crate) fn for_terminal(text: &str) -> String {
    let harmless = |character: char| match character {
        '\t' | '\n' => character,
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'),
        '\u{7f}'..='\u{9f}' => '\u{2421}',
        _ => character,
    };
    text.chars().map(harmless).collect()
}

#[cfg(test)]
mod tests {
    use codemode_client::{FailureKind, Position, RunId};
    use proptest::prelude::*;

    use super::*;

    fn text(json: &str) -> JsonText {
        JsonText::parse(json).expect("well-formed")
    }

    fn outcome() -> Outcome {
        let run_id: RunId = "0b0e3e5c-7a52-4c5e-8a83-3f5f3f0f8a11".parse().expect("a UUID");
        Outcome { run_id, value: None, logs: vec![], failure: None, usage: Usage::default(), hints: vec![] }
    }

    fn check_json(outcome: &Outcome, wanted: &str) {
        let got = json(outcome).expect("has a form");
        let (head, usage) = got.split_once(",\"usage\":").expect("usage comes last");
        assert_eq!(head, format!("{{\"runId\":\"0b0e3e5c-7a52-4c5e-8a83-3f5f3f0f8a11\",{wanted}"));
        assert!(usage.starts_with("{\"cpuUs\":0,\"wallUs\":0,\"peakMemoryBytes\":0,"), "{usage}");
    }

    #[test]
    fn json_leaves_out_what_is_not_there() {
        check_json(&outcome(), "\"logs\":[]");
        let null = Outcome { value: Some(JsonText::null()), ..outcome() };
        check_json(&null, "\"value\":null,\"logs\":[]");
        let bare = Outcome { failure: Some(Failure::new(FailureKind::WorkerExit, "m")), ..outcome() };
        check_json(&bare, "\"logs\":[],\"failure\":{\"kind\":\"worker-exit\",\"message\":\"m\"}");
    }

    #[test]
    fn json_has_every_part_of_a_failure() {
        let failure = Failure {
            kind: FailureKind::Exception,
            message: "m".to_owned(),
            cause: Some("throw".to_owned()),
            limit: Some(1),
            used: Some(2),
            signal: Some(9),
            position: Some(Position { line: 3, column: 4, excerpt: "x".to_owned() }),
            error_name: Some("TypeError".to_owned()),
        };
        let wanted = r#""logs":["a"],"failure":{"kind":"exception","message":"m","detail":{"cause":"throw","limit":1,"used":2,"signal":9,"line":3,"column":4,"excerpt":"x","errorName":"TypeError"}}"#;
        check_json(&Outcome { logs: vec!["a".to_owned()], failure: Some(failure), ..outcome() }, wanted);
    }

    #[test]
    fn json_passes_values_untouched() {
        let value = format!("{}{}{}", "[".repeat(50_000), r#"{"a":"\ud800","a":1e999}"#, "]".repeat(50_000));
        let got = json(&Outcome { value: Some(text(&value)), ..outcome() }).expect("has a form");
        assert!(got.contains(&value));
    }

    #[test]
    fn values_are_shown_for_people() {
        for (json, wanted) in [
            (r#""a\n\"b\"""#, "a\n\"b\""),
            (r#" "x" "#, "x"),
            (r#""\ud83d\ude00""#, "\u{1f600}"),
            ("null", "null"),
            ("-1.50e3", "-1.50e3"),
            ("[]", "[]"),
            ("[{},[ ]]", "[\n  {},\n  []\n]"),
            (
                r#"{"a":{"b,]}\"":[1,2]},"c":null}"#,
                "{\n  \"a\": {\n    \"b,]}\\\"\": [\n      1,\n      2\n    ]\n  },\n  \"c\": null\n}",
            ),
        ] {
            assert_eq!(value(&text(json)), wanted, "{json}");
        }
        assert!(value(&text(r#""a\ud800b""#)).contains('\u{fffd}'));
    }

    #[test]
    fn depth_is_no_matter() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(
            value(&text(&deep)).chars().filter(|character| !character.is_whitespace()).count(),
            200_000
        );
    }

    proptest! {
        /// Indenting says the same value, and the same text as serde_json's own.
        #[test]
        fn indenting_agrees_with_serde_json(value in arbitrary_json()) {
            let compact = text(&value.to_string());
            prop_assert_eq!(indented(&compact), serde_json::to_string_pretty(&value).expect("has a form"));
            prop_assert_eq!(indented(&text(&indented(&compact))), indented(&compact));
        }
    }

    fn arbitrary_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
                prop::collection::hash_map(any::<String>(), inner, 0..8)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn a_failure_shows_its_numbers_and_its_place() {
        let mut shown = Failure::new(FailureKind::Timeout, "compute budget exhausted (100ms busy)");
        shown.cause = Some("compute_ms".to_owned());
        shown.limit = Some(100);
        shown.used = Some(103);
        shown.position = Some(Position { line: 2, column: 5, excerpt: "2 | x.y\n  |   ^".to_owned() });
        let wanted = "timeout: compute budget exhausted (100ms busy)\n  compute_ms: limit 100, used 103\n  \
                      at line 2, column 5\n  2 | x.y\n    |   ^\n";
        assert_eq!(failure(&shown), wanted);
    }

    #[test]
    fn durations_and_bytes_read_well() {
        for (micros, wanted) in [
            (0, "0 us"),
            (999, "999 us"),
            (1_250, "1.2 ms"),
            (9_999_999, "9999.9 ms"),
            (12_300_000, "12.3 s"),
        ] {
            assert_eq!(duration(Duration::from_micros(micros)), wanted);
        }
        for (count, wanted) in [(0, "0 B"), (2_048, "2 KiB"), (3 << 19, "1.5 MiB")] {
            assert_eq!(bytes(count), wanted);
        }
    }

    #[test]
    fn a_program_cannot_steer_the_terminal() {
        assert_eq!(
            for_terminal("a\tb\n\u{1b}[2J\r\u{9b}é\u{1f600}"),
            "a\tb\n\u{241b}[2J\u{240d}\u{2421}é\u{1f600}"
        );
    }
}
