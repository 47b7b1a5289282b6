//! The schema files of `tests/schemas`, held to what their `EXPECT.md` says of all of them, and to lines of text that
//! `fragments.json` asks for in each. That calls type-check is shown by `scripts/typecheck-sdk.sh`.

mod support;

use std::collections::BTreeSet;

use codemode_sdk::{Language, ToolSignature};
use serde_json::Value;

use support::{folder, lex, read, sdk, tools};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn cases() -> Vec<Value> {
    read("expect.json").as_array().cloned().expect("a list")
}

/// The expectations, and the body of each language's declarations.
fn each(mut check: impl FnMut(&Value, &[ToolSignature], [&str; 2])) {
    for case in cases() {
        let tools = tools(&read(text(&case["file"])));
        let sdk = sdk(&tools);
        let bodies = Language::ALL.map(|language| lex::fences(sdk.text(language)).pop().expect("a fence").1);
        check(&case, &tools, [&bodies[0], &bodies[1]]);
    }
}

#[test]
fn every_file_is_expected_and_every_expectation_has_its_file() {
    let expected: BTreeSet<_> = cases().iter().map(|case| text(&case["file"]).to_owned()).collect();
    let others = ["expect.json", "calls.json", "fragments.json"];
    let files = std::fs::read_dir(folder().join("schemas")).expect("a folder");
    let files = files.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
    let files: BTreeSet<_> =
        files.filter(|name| name.ends_with(".json") && !others.contains(&name.as_str())).collect();
    assert_eq!(files, expected);
}

#[test]
fn every_file_gives_the_same_bytes_in_any_order() {
    each(|case, tools, _| {
        let turned: Vec<_> = tools.iter().rev().cloned().collect();
        for language in Language::ALL {
            assert_eq!(sdk(tools).text(language), sdk(&turned).text(language), "{}", case["file"]);
        }
    });
}

#[test]
fn every_file_is_read_by_who_knows_nothing_of_it() {
    each(|case, _, [typescript, python]| {
        lex::typescript(typescript).unwrap_or_else(|why| panic!("{}: {why}", case["file"]));
        lex::python(python).unwrap_or_else(|why| panic!("{}: {why}", case["file"]));
    });
}

#[test]
fn every_tool_in_is_a_tool_out() {
    each(|case, tools, [typescript, python]| {
        let sdk = sdk(tools);
        let names: BTreeSet<_> = tools.iter().map(ToolSignature::name).collect();
        assert_eq!(Some(tools.len() as u64), case["tools"].as_u64(), "{}", case["file"]);
        assert_eq!(sdk.names().collect::<BTreeSet<_>>(), names, "{}", case["file"]);
        // Members of the maps are the lines that are indented once and no comments.
        let members = |map: &str| {
            let body = typescript.split(&format!("interface {map} {{\n")).nth(1).expect("a map");
            let body = body.split("\n}\n").next().expect("its end");
            let is_member = |line: &&str| {
                line.starts_with("  ")
                    && !line.starts_with("   ")
                    && !line.starts_with("  /**")
                    && !line.starts_with("  }")
            };
            body.lines().filter(is_member).count()
        };
        assert_eq!(members("ToolArgsMap"), names.len(), "{}", case["file"]);
        assert_eq!(members("ToolOutputMap"), names.len(), "{}", case["file"]);
        let is_tool = |line: &&str| line.starts_with("    async def ") || line.starts_with("    # tools[");
        let protocol = python.split("class Tools(Protocol):\n").nth(1).expect("a protocol");
        assert_eq!(protocol.lines().filter(is_tool).count(), names.len(), "{}", case["file"]);
    });
}

#[test]
fn every_expected_line_is_there() {
    let fragments = read("fragments.json");
    let fragments = fragments.as_object().expect("an object");
    let (mut used, mut missing) = (BTreeSet::new(), Vec::new());
    each(|case, _, bodies| {
        let Some(expected) = fragments.get(text(&case["id"])) else { return };
        used.insert(text(&case["id"]).to_owned());
        for (language, body) in Language::ALL.iter().zip(bodies) {
            for fragment in expected[language.name()].as_array().into_iter().flatten() {
                if !body.contains(text(fragment)) {
                    missing.push(format!("{}, {language}: no {fragment}", case["file"]));
                }
            }
        }
    });
    assert!(missing.is_empty(), "{missing:#?}");
    assert_eq!(used.len(), fragments.len(), "fragments of cases that are not there");
}

#[test]
fn no_name_is_lost_on_the_way_to_an_example() {
    each(|case, tools, _| {
        let sdk = sdk(tools);
        for name in sdk.names() {
            let example = sdk.example(name, Language::TypeScript);
            let example = example.unwrap_or_else(|| panic!("{}: no example of {name:?}", case["file"]));
            lex::typescript(&example).unwrap_or_else(|why| panic!("{}: {why}: {example}", case["file"]));
        }
    });
}
