//! The published list of globals: the page names what the conformance case expects, engine by engine. The case asks the
//! engines themselves.

use std::collections::BTreeSet;
use std::path::Path;

use codemode_tests::case::{self, conformance_folder};

/// The page's table: names of the globals that `column` (2 is v8, 3 is quickjs) says yes to.
fn on_the_page(page: &str, column: usize) -> BTreeSet<String> {
    page.lines()
        .skip_while(|line| !line.starts_with("| global |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[column] == "yes").then(|| cells[1].trim_matches('`').to_owned())
        })
        .collect()
}

#[test]
fn the_page_of_globals_is_what_the_case_expects() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/globals.md");
    let page = std::fs::read_to_string(page).expect("docs/globals.md");
    let cases = case::load(&conformance_folder()).expect("the cases load");
    let case = &cases.iter().find(|loaded| loaded.case.id == "W-globals").expect("the case").case;
    // quickjs gives the answer that is not marked.
    for (engine, column) in [(Some("v8"), 2), (None, 3)] {
        let expectation = case
            .expect
            .iter()
            .find(|expectation| expectation.engine.as_deref() == engine)
            .expect("an expectation for each engine");
        let expected: BTreeSet<String> =
            serde_json::from_str(expectation.value.as_deref().expect("a value")).expect("a list of names");
        assert!(expected.len() > 80, "{} globals", expected.len());
        assert_eq!(on_the_page(&page, column), expected, "docs/globals.md, column {column}");
    }
}
