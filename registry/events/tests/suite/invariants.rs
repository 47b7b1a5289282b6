//! The cases of `tests/invariants/cases.json`: events in order, each taken or refused with a code. Another
//! implementation of the log can run the same file.

use std::collections::BTreeSet;

use codemode_events::{AppendError, Event, Json};
use serde::Deserialize;

use crate::stores::Fixture;

const CASES: &str = include_str!("../invariants/cases.json");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    behaviour: u32,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    event: Json,
    /// The refusal's code; none if the event is taken.
    refused: Option<String>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(CASES).expect("the cases are in their form")
}

async fn run(case: &Case) {
    let at = Fixture::memory();
    let log = at.log().await;
    for (number, step) in case.steps.iter().enumerate() {
        let place = format!("{} ({}), step {number}", case.name, case.behaviour);
        let event = Event::from_json(step.event.get()).unwrap_or_else(|error| panic!("{place}: {error}"));
        let before = (log.last(), log.open_work());
        let outcome = match log.append(event).await {
            Ok(_) => None,
            Err(AppendError::Refused(refusal)) => Some(refusal.code().to_owned()),
            Err(error) => panic!("{place}: {error}"),
        };
        assert_eq!(outcome, step.refused, "{place}");
        if outcome.is_some() {
            assert_eq!(
                (log.last(), log.open_work()),
                before,
                "{place}: a refusal leaves everything as it was"
            );
        }
    }
    let (last, open) = (log.last(), log.open_work());
    let log = at.resumed().await;
    assert_eq!((log.last(), log.open_work()), (last, open), "{}: read back", case.name);
}

#[tokio::test]
async fn each_case_holds_206_229_232_233_236() {
    for case in cases() {
        run(&case).await;
    }
}

#[test]
fn each_refusal_has_a_case() {
    let steps = cases().into_iter().flat_map(|case| case.steps);
    let seen: BTreeSet<_> = steps.filter_map(|step| step.refused).collect();
    // Too large for a file of cases: shown in `log`.
    let expected = [
        "already-answered",
        "already-asked",
        "already-started",
        "dispatch-open",
        "empty-id",
        "header-not-canonical",
        "header-reason",
        "header-unchanged",
        "no-open-turn",
        "no-such-call",
        "not-asked",
        "not-started",
        "other-root",
        "own-parent",
        "start-differs",
        "step-order",
        "turn-open",
        "unknown-type",
        "wrong-call-id",
        "wrong-turn",
    ];
    assert!(seen.iter().eq(expected.iter()), "{seen:?}");
}
