//! What is compared: one observation against the expectations of its case, and against what holds for every run.

use std::fmt::Write as _;
use std::time::Duration;

use codemode_proto::detail::Detail;
use codemode_proto::executor_v1 as v1;
use codemode_proto::executor_v1::FailureKind;
use codemode_wire::json::cost_of_str;
use serde_json::Value;
use tonic::Code;

use crate::case::{Expectation, Request, assemble};
use crate::run::Observation;

/// Failure kinds as cases write them.
pub const FAILURE_KINDS: [&str; 6] =
    ["exception", "timeout", "abort", "worker-exit", "invalid-output", "output-limit"];

/// What a run may take beyond its wall budget on a machine that is busy with other cases. How exact the executor is,
/// `make bench` measures.
const WALL_SLACK: Duration = Duration::from_secs(10);
/// Bytes of a text that a report shows.
const SHOWN_BYTES: usize = 400;

/// A failure kind as cases write it.
#[must_use]
pub fn kind_name(kind: i32) -> &'static str {
    match FailureKind::try_from(kind) {
        Ok(FailureKind::Exception) => "exception",
        Ok(FailureKind::Timeout) => "timeout",
        Ok(FailureKind::Abort) => "abort",
        Ok(FailureKind::WorkerExit) => "worker-exit",
        Ok(FailureKind::InvalidOutput) => "invalid-output",
        Ok(FailureKind::OutputLimit) => "output-limit",
        Ok(FailureKind::Unspecified) | Err(_) => "no kind",
    }
}

/// A status code as the contract writes it.
#[must_use]
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// What came of a run, in one line.
#[must_use]
pub fn summary(seen: &Observation) -> String {
    if let Some((code, message)) = &seen.status {
        return format!("{} {}", code_name(*code), shorten(message));
    }
    let Some(outcome) = &seen.outcome else { return "no outcome".to_owned() };
    match (&outcome.failure, &outcome.value_json) {
        (Some(failure), _) => {
            let mut text = kind_name(failure.kind).to_owned();
            if !failure.detail.is_empty() {
                let _ = write!(text, " ({})", failure.detail);
            }
            if let Some(position) = &failure.position {
                let _ = write!(text, " at {}:{}", position.line, position.column);
            }
            text + ": " + &shorten(&failure.message)
        }
        (None, Some(value)) => format!("value {}", shorten(&String::from_utf8_lossy(value))),
        (None, None) => "no value".to_owned(),
    }
}

/// What must be equal where runs are to come out the same: everything but times.
#[must_use]
pub fn identity(seen: &Observation) -> (String, Vec<String>) {
    let logs = seen.outcome.as_ref().map(|outcome| outcome.logs.clone()).unwrap_or_default();
    (summary(seen), logs)
}

/// A text, cut for a report.
#[must_use]
pub fn shorten(text: &str) -> String {
    if text.len() <= SHOWN_BYTES {
        return text.to_owned();
    }
    format!("{}… ({} bytes)", &text[..text.floor_char_boundary(SHOWN_BYTES)], text.len())
}

/// The first expectation that holds, or for each the list of what does not.
///
/// # Errors
/// The mismatches of every expectation, in order.
pub fn judge(seen: &Observation, expect: &[Expectation], engine: &str) -> Result<usize, Vec<Vec<String>>> {
    let mut mismatches = Vec::new();
    for (index, expectation) in expect.iter().enumerate() {
        if expectation.engine.as_deref().is_some_and(|name| name != engine) {
            mismatches.push(vec![format!("only for {}", expectation.engine.as_deref().unwrap_or_default())]);
            continue;
        }
        let mut check = Check { seen, faults: Vec::new() };
        check.all(expectation);
        if check.faults.is_empty() {
            return Ok(index);
        }
        mismatches.push(check.faults);
    }
    Err(mismatches)
}

/// What holds for every run, whatever its case expects.
#[must_use]
pub fn violations(seen: &Observation, request: &Request) -> Vec<String> {
    let mut found = seen.violations.clone();
    if let Some(wall) = request.budgets.wall_ms.map(Duration::from_millis)
        && seen.wall > wall + WALL_SLACK
    {
        found.push(format!("took {:?} of a wall budget of {wall:?}", seen.wall));
    }
    let Some(outcome) = &seen.outcome else {
        if seen.status.is_none() && found.is_empty() {
            found.push("neither an outcome nor a status".to_owned());
        }
        return found;
    };
    found.extend(outcome_violations(outcome, seen, request));
    found
}

fn outcome_violations(outcome: &v1::Outcome, seen: &Observation, request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(value) = &outcome.value_json
        && let Err(fault) = codemode_wire::json::check(value)
    {
        found.push(format!("the value is not lossless JSON: {fault}"));
    }
    if let Some(failure) = &outcome.failure {
        if outcome.value_json.is_some() {
            found.push("a failure and a value".to_owned());
        }
        if !failure.detail.is_empty() {
            let detail = Detail::ALL.iter().find(|detail| detail.word() == failure.detail);
            match detail {
                None => found.push(format!("unknown detail word `{}`", failure.detail)),
                Some(detail) if detail.kind() as i32 != failure.kind => {
                    found.push(format!("detail `{}` with kind {}", failure.detail, kind_name(failure.kind)));
                }
                Some(_) => {}
            }
        }
        if kind_name(failure.kind) == "no kind" {
            found.push(format!("failure kind {}", failure.kind));
        }
    }
    let limited = outcome.failure.as_ref().is_some_and(|f| f.kind == FailureKind::OutputLimit as i32);
    if !limited && outcome.logs != seen.streamed {
        found.push(format!(
            "{} log entries were streamed, the outcome has others: {:?}",
            seen.streamed.len(),
            outcome.logs
        ));
    }
    if limited && !cut_short(&outcome.logs, &seen.streamed) {
        found.push("the outcome's log entries are no beginning of those streamed".to_owned());
    }
    let ledger = ledger_bytes(outcome);
    if let Some(cap) = request.budgets.output_bytes
        && ledger > cap
    {
        found.push(format!("{ledger} bytes of output under a cap of {cap}"));
    }
    match &outcome.usage {
        None => found.push("no usage".to_owned()),
        Some(usage) if usage.binding_calls != seen.calls.len() as u64 && outcome.failure.is_none() => {
            found.push(format!("usage counts {} calls, {} arrived", usage.binding_calls, seen.calls.len()));
        }
        // Half surrogates cost more on the ledger than what is left of them in the outcome.
        Some(usage) if usage.output_bytes < ledger => {
            found.push(format!("usage says {} bytes of output, there are {ledger}", usage.output_bytes));
        }
        Some(_) => {}
    }
    found
}

/// Whether `kept` is a beginning of `streamed`, its last entry possibly cut.
fn cut_short(kept: &[String], streamed: &[String]) -> bool {
    let Some((last, whole)) = kept.split_last() else { return true };
    // What is not streamed any more may still be in the outcome, but never the other way round.
    whole.iter().zip(streamed).all(|(kept, streamed)| kept == streamed)
        && streamed
            .get(whole.len())
            .is_none_or(|streamed| streamed.starts_with(last.as_str()) || last.starts_with(streamed.as_str()))
}

/// What logs and value or message come to: the ledger of the contract, from what was received.
#[must_use]
pub fn ledger_bytes(outcome: &v1::Outcome) -> u64 {
    let entries: u64 = outcome.logs.iter().map(|entry| cost_of_str(entry)).sum();
    let commas = outcome.logs.len().saturating_sub(1) as u64;
    let last = match (&outcome.failure, &outcome.value_json) {
        (Some(failure), _) => cost_of_str(&failure.message),
        (None, Some(value)) => value.len() as u64,
        (None, None) => 0,
    };
    // A failure message that does not fit at all is empty and costs its quotes only.
    2 + entries + commas + last
}

/// Compares one observation with one expectation.
struct Check<'a> {
    seen: &'a Observation,
    faults: Vec<String>,
}

impl Check<'_> {
    fn fault(&mut self, what: impl Into<String>) {
        self.faults.push(what.into());
    }

    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, expected: Option<&T>, got: &T) {
        if let Some(expected) = expected
            && expected != got
        {
            let (expected, got) = (shorten(&format!("{expected:?}")), shorten(&format!("{got:?}")));
            self.fault(format!("{what}: expected {expected}, got {got}"));
        }
    }

    fn all(&mut self, expected: &Expectation) {
        let seen = self.seen;
        if let Some(status) = &expected.status {
            return self.status(status, &expected.status_contains);
        }
        let Some(outcome) = &seen.outcome else {
            return self.fault(format!("no outcome: {}", summary(seen)));
        };
        if expected.failure.is_empty() {
            if outcome.failure.is_some() {
                return self.fault(format!("failed: {}", summary(seen)));
            }
            self.value(expected, outcome.value_json.as_deref());
        } else {
            match &outcome.failure {
                Some(failure) => self.failure(expected, failure),
                None => return self.fault(format!("did not fail: {}", summary(seen))),
            }
        }
        self.logs(expected, &outcome.logs);
        for text in &expected.hints_contain {
            if !contains_any_case(&outcome.hints.join("\n"), text) {
                self.fault(format!("no hint has `{text}`: {:?}", outcome.hints));
            }
        }
        let ledger = ledger_bytes(outcome);
        self.equal("bytes of output", expected.output_bytes.as_ref(), &ledger);
        if expected.output_bytes_max.is_some_and(|max| ledger > max) {
            self.fault(format!("{ledger} bytes of output"));
        }
        self.calls(expected);
        self.times(expected, outcome);
    }

    fn status(&mut self, expected: &str, fragments: &[String]) {
        match &self.seen.status {
            None => self.fault(format!("expected the status {expected}, got {}", summary(self.seen))),
            Some((code, message)) => {
                if code_name(*code) != expected {
                    self.fault(format!("expected the status {expected}, got {} {message}", code_name(*code)));
                }
                for fragment in fragments {
                    if !contains_any_case(message, fragment) {
                        self.fault(format!("the status does not say `{fragment}`: {message}"));
                    }
                }
            }
        }
    }

    fn value(&mut self, expected: &Expectation, value: Option<&[u8]>) {
        let Some(value) = value else {
            if !expected.no_value {
                self.fault("no value");
            }
            return;
        };
        let text = String::from_utf8_lossy(value);
        if expected.no_value {
            return self.fault(format!("a value: {}", shorten(&text)));
        }
        if let Some(json) = &expected.value {
            match serde_json::from_str::<Value>(&text) {
                Ok(got) if serde_json::from_str(json).is_ok_and(|expected: Value| alike(&expected, &got)) => {
                }
                Ok(_) => self.fault(format!("value: expected {json}, got {}", shorten(&text))),
                Err(error) => self.fault(format!("value {} is not JSON: {error}", shorten(&text))),
            }
        }
        let exact = expected.value_text.clone().or_else(|| expected.value_parts.as_deref().map(assemble));
        if exact.as_ref().is_some_and(|exact| *exact != text) {
            let exact = exact.unwrap_or_default();
            self.fault(format!("value text: expected {}, got {}", shorten(&exact), shorten(&text)));
        }
        if let Some(start) = &expected.value_starts_with
            && !text.starts_with(start.as_str())
        {
            self.fault(format!("value does not start with {start}: {}", shorten(&text)));
        }
        for fragment in &expected.value_contains {
            if !text.contains(fragment.as_str()) {
                self.fault(format!("value lacks {fragment}: {}", shorten(&text)));
            }
        }
        for fragment in &expected.value_excludes {
            if text.contains(fragment.as_str()) {
                self.fault(format!("value has {fragment}: {}", shorten(&text)));
            }
        }
    }

    fn failure(&mut self, expected: &Expectation, failure: &v1::Failure) {
        let kind = kind_name(failure.kind);
        if !expected.failure.iter().any(|name| name == kind) {
            self.fault(format!("expected {}, got {}", expected.failure.join(" or "), summary(self.seen)));
        }
        if !expected.detail.is_empty() && !expected.detail.contains(&failure.detail) {
            self.fault(format!("expected detail {}, got `{}`", expected.detail.join(" or "), failure.detail));
        }
        self.equal("message", expected.message.as_ref(), &failure.message);
        for fragment in &expected.message_contains {
            if !contains_any_case(&failure.message, fragment) {
                self.fault(format!("the message does not say `{fragment}`: {}", shorten(&failure.message)));
            }
        }
        for fragment in &expected.message_excludes {
            if contains_any_case(&failure.message, fragment) {
                self.fault(format!("the message says `{fragment}`: {}", shorten(&failure.message)));
            }
        }
        let position = failure.position.clone().unwrap_or_default();
        self.equal("line", expected.line.as_ref(), &position.line);
        self.equal("column", expected.column.as_ref(), &position.column);
        if let Some(text) = &expected.excerpt_contains
            && !position.excerpt.contains(text.as_str())
        {
            self.fault(format!("the excerpt lacks `{text}`: {}", position.excerpt));
        }
        self.equal("error name", expected.error_name.as_ref(), &failure.error_name);
        self.equal("limit", expected.limit.map(Some).as_ref(), &failure.limit);
        self.equal("signal", expected.signal.map(Some).as_ref(), &failure.signal);
        if let Some(least) = expected.used_min
            && failure.used.is_none_or(|used| used < least)
        {
            self.fault(format!("used: expected at least {least}, got {:?}", failure.used));
        }
    }

    fn logs(&mut self, expected: &Expectation, logs: &[String]) {
        self.equal("logs", expected.logs.as_ref(), &logs.to_vec());
        self.equal("number of log entries", expected.logs_count.as_ref(), &logs.len());
        self.equal(
            "bytes of the log entries",
            expected.logs_bytes.as_ref(),
            &logs.iter().map(String::len).collect(),
        );
        if let Some(start) = &expected.logs_start
            && !logs.starts_with(start)
        {
            self.fault(format!(
                "logs: expected to start with {start:?}, got {}",
                shorten(&format!("{logs:?}"))
            ));
        }
        for text in &expected.logs_contain {
            if !logs.iter().any(|entry| entry.contains(text.as_str())) {
                self.fault(format!("no log entry has `{text}`: {}", shorten(&format!("{logs:?}"))));
            }
        }
        for text in &expected.logs_exclude {
            if logs.iter().any(|entry| entry.contains(text.as_str())) {
                self.fault(format!("a log entry has `{text}`: {}", shorten(&format!("{logs:?}"))));
            }
        }
    }

    fn calls(&mut self, expected: &Expectation) {
        let seen = self.seen;
        self.equal("calls", expected.calls.as_ref(), &seen.calls);
        self.equal("number of calls", expected.calls_count.as_ref(), &seen.calls.len());
        if expected.calls_max.is_some_and(|most| seen.calls.len() > most) {
            self.fault(format!("{} calls", seen.calls.len()));
        }
    }

    fn times(&mut self, expected: &Expectation, outcome: &v1::Outcome) {
        let wall = self.seen.wall;
        if expected.wall_ms_max.is_some_and(|most| wall > Duration::from_millis(most)) {
            self.fault(format!("took {wall:?}"));
        }
        if expected.wall_ms_min.is_some_and(|least| wall < Duration::from_millis(least)) {
            self.fault(format!("took only {wall:?}"));
        }
        let compute = outcome.usage.as_ref().map_or(0, |usage| usage.cpu_us) / 1000;
        if expected.compute_ms_max.is_some_and(|most| compute > most) {
            self.fault(format!("used {compute} ms of CPU time"));
        }
    }
}

fn contains_any_case(text: &str, fragment: &str) -> bool {
    text.to_lowercase().contains(&fragment.to_lowercase())
}

/// Equal as JSON: order of members and form of numbers do not matter.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| alike(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(value: &str, logs: &[&str]) -> Observation {
        let outcome = v1::Outcome {
            value_json: Some(value.as_bytes().to_vec().into()),
            logs: logs.iter().map(|&entry| entry.to_owned()).collect(),
            usage: Some(v1::Usage { output_bytes: 1 << 20, ..v1::Usage::default() }),
            ..v1::Outcome::default()
        };
        let streamed = outcome.logs.clone();
        Observation { outcome: Some(outcome), streamed, ..Observation::default() }
    }

    fn failed(kind: FailureKind, message: &str) -> Observation {
        let failure =
            v1::Failure { kind: kind as i32, message: message.to_owned(), ..v1::Failure::default() };
        let outcome = v1::Outcome { failure: Some(failure), ..v1::Outcome::default() };
        Observation { outcome: Some(outcome), ..Observation::default() }
    }

    fn expects(toml: &str) -> Vec<Expectation> {
        vec![toml::from_str(toml).expect("an expectation")]
    }

    #[test]
    fn values_are_compared_as_json() {
        let seen = completed(r#"{"b":1.0,"a":[true]}"#, &[]);
        assert_eq!(judge(&seen, &expects(r#"value = '{"a": [true], "b": 1}'"#), "v8"), Ok(0));
        assert!(judge(&seen, &expects(r#"value = '{"a": [true]}'"#), "v8").is_err());
        assert!(judge(&seen, &expects(r#"value_text = '{"a":[true],"b":1}'"#), "v8").is_err());
        assert!(judge(&seen, &expects("no_value = true"), "v8").is_err());
        assert!(judge(&seen, &expects(r#"failure = ["exception"]"#), "v8").is_err());
    }

    #[test]
    fn failures_are_never_taken_for_one_another() {
        let seen = failed(FailureKind::Timeout, "Compute budget exhausted (5ms busy)");
        assert_eq!(
            judge(&seen, &expects("failure = ['timeout']\nmessage_contains = ['compute BUDGET']"), "v8"),
            Ok(0)
        );
        for other in [
            "failure = ['abort', 'worker-exit']",
            "failure = ['timeout']\ndetail = ['wall_ms']",
            "failure = ['timeout']\nline = 1",
            "value = '1'",
        ] {
            assert!(judge(&seen, &expects(other), "v8").is_err(), "{other}");
        }
    }

    #[test]
    fn expectations_of_another_engine_do_not_count() {
        let seen = completed("1", &[]);
        let only = expects("value = '1'\nengine = 'quickjs'\nreason = 'why'");
        assert!(judge(&seen, &only, "v8").is_err());
        assert_eq!(judge(&seen, &only, "quickjs"), Ok(0));
    }

    #[test]
    fn what_no_run_may_do_is_found() {
        let request = Request::default();
        assert_eq!(violations(&completed("1", &["a"]), &request), Vec::<String>::new());
        assert_eq!(violations(&completed("-0", &["a"]), &request).len(), 1);
        let mut lost = completed("1", &["a"]);
        lost.streamed.push("b".to_owned());
        assert_eq!(violations(&lost, &request).len(), 1);
        let mut both = failed(FailureKind::Timeout, "x");
        let outcome = both.outcome.as_mut().expect("an outcome");
        outcome.value_json = Some(b"1".to_vec().into());
        outcome.failure.as_mut().expect("a failure").detail = "syntax".to_owned();
        assert_eq!(violations(&both, &request).len(), 3, "a value, a foreign detail, no usage");
        let tight = Request {
            budgets: crate::case::Budgets { output_bytes: Some(5), ..crate::case::Budgets::default() },
            ..Request::default()
        };
        assert_eq!(violations(&completed("1", &["abc"]), &tight).len(), 1);
    }

    #[test]
    fn the_ledger_is_the_contracts() {
        let ledger = |seen: Observation| ledger_bytes(&seen.outcome.expect("an outcome"));
        assert_eq!(ledger(completed("\"xy\"", &["abc"])), 11);
        assert_eq!(ledger(completed("\"€\"", &[])), 7);
        assert_eq!(ledger(completed("1", &["", "\n\""])), 2 + 2 + 1 + 6 + 1);
        assert_eq!(ledger(failed(FailureKind::OutputLimit, "")), 4);
    }
}
