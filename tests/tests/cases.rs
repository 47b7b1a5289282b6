//! The conformance data itself: well formed, complete, and consistent. Runs nothing.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use codemode_tests::case::{self, conformance_folder};
use codemode_tests::suite;
use serde::Deserialize;

/// Behaviours of the reference that an executor can have, numbered from 1.
const BEHAVIOURS: u32 = 104;

#[test]
fn every_case_loads() {
    let cases = case::load(&conformance_folder()).expect("the cases load");
    assert!(cases.len() > 400, "{} cases", cases.len());
}

#[test]
fn every_program_file_is_used() {
    assert_eq!(case::unused_programs(&conformance_folder()).expect("readable"), Vec::<PathBuf>::new());
}

#[test]
fn every_file_is_of_its_schema() {
    let folder = conformance_folder();
    let mut schemas = boon::Schemas::new();
    let location = folder.join("case.schema.json").to_string_lossy().into_owned();
    let schema = boon::Compiler::new().compile(&location, &mut schemas).expect("a schema");
    let is_valid = |text: &str| {
        let table: toml::Table = toml::from_str(text).expect("TOML");
        let json = serde_json::to_value(table).expect("the data model of JSON");
        schemas.validate(&json, schema).map_err(|error| error.to_string())
    };
    for file in case::case_files(&folder).expect("readable") {
        let text = std::fs::read_to_string(&file).expect("readable");
        if let Err(error) = is_valid(&text) {
            panic!("{}: {error}", file.display());
        }
    }
    for wrong in [
        "[[case]]\nid = 'A'\nprogram = '1'",
        "[[case]]\nid = 'A'\nprogram = '1'\nexpect = [{ valeu = '1' }]",
        "[[case]]\nid = 'A'\nexpect = [{ value = '1' }]",
        "[[case]]\nid = 'A'\nprogram = '1'\nexpect = [{ failure = ['worker_exit'] }]",
        "[[case]]\nid = 'A'\nprogram = '1'\nexpect = [{ value = '1', engine = 'v8' }]",
    ] {
        assert!(is_valid(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_format_refuses_what_it_does_not_know() {
    let parse = |text: &str| toml::from_str::<case::CaseFile>(text);
    assert!(parse("[[case]]\nid = 'A'\nprogram = '1'\nexpect = [{ value = '1' }]").is_ok());
    for wrong in [
        "[[case]]\nid = 'A'\nprogramm = '1'\nexpect = []",
        "[[case]]\nid = 'A'\nprogram = '1'\nexpect = [{ valeu = '1' }]",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_page_of_differences_is_current() {
    let cases = case::load(&conformance_folder()).expect("the cases load");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/engine-differences.md");
    let written = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        written == suite::differences_page(&cases),
        "`docs/engine-differences.md` is not current: cargo run -p codemode-tests --bin conformance -- --write-differences"
    );
}

/// `behaviours.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    behaviour: Vec<Behaviour>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Behaviour {
    number: u32,
    #[serde(default)]
    cases: Vec<String>,
    /// `crate/path.rs::function` of tests that are no cases.
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    not_applicable: String,
}

#[test]
fn every_behaviour_has_a_case_a_test_or_a_reason() {
    let text = std::fs::read_to_string(conformance_folder().join("behaviours.toml")).expect("readable");
    let index: Index = toml::from_str(&text).expect("the index");
    let numbers: Vec<u32> = index.behaviour.iter().map(|behaviour| behaviour.number).collect();
    assert_eq!(numbers, (1..=BEHAVIOURS).collect::<Vec<_>>(), "each number once, in order");

    let mut claimed: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let cases = case::load(&conformance_folder()).expect("the cases load");
    for loaded in &cases {
        for number in &loaded.case.behaviours {
            claimed.entry(*number).or_default().push(loaded.case.id.clone());
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = HashMap::new();
    for behaviour in &index.behaviour {
        let number = behaviour.number;
        let mut claim = claimed.remove(&number).unwrap_or_default();
        claim.sort();
        assert_eq!(behaviour.cases, claim, "behaviour {number}: what cases say and what the index says");
        let covered = !(behaviour.cases.is_empty() && behaviour.tests.is_empty());
        assert!(
            covered == behaviour.not_applicable.is_empty(),
            "behaviour {number}: covered, or a reason why not"
        );
        for test in &behaviour.tests {
            let (file, function) = test.split_once("::").expect("FILE::FUNCTION");
            let source = sources
                .entry(file.to_owned())
                .or_insert_with(|| std::fs::read_to_string(root.join(file)).unwrap_or_default());
            assert!(
                source.contains(&format!("fn {function}(")),
                "behaviour {number}: no `{function}` in `{file}`"
            );
        }
    }
    assert!(claimed.is_empty(), "behaviours that are not in the index: {claimed:?}");
}
