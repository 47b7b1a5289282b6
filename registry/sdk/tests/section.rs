//! The section as a whole, by the numbers of the behaviours it has, and what it says beyond its budget.

mod support;

use codemode_sdk::flavor::flavor;
use codemode_sdk::{Language, RUN_CODE, Sdk, SdkOptions, ToolSignature, UnknownLanguage, estimated_tokens};
use serde_json::{Value, json};

use support::{nested, sdk};

fn tool(name: &str, description: &str) -> ToolSignature {
    let schema =
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    ToolSignature::new(name, description, Some(schema), Some(json!({"type": "string"})))
}

fn many(count: usize) -> Vec<ToolSignature> {
    let area = |index: usize| ["github", "files", "mail"][index % 3];
    (0..count)
        .map(|index| tool(&format!("{}_tool_{index}", area(index)), &format!("Does thing {index} well.")))
        .collect()
}

fn within(tools: &[ToolSignature], budget: usize) -> Sdk {
    Sdk::build(tools, SdkOptions { token_budget: Some(budget) })
}

#[test]
fn run_code_is_not_among_what_programs_call_106_117() {
    let sdk = sdk(&[tool(RUN_CODE, ""), tool("other", "")]);
    assert_eq!(sdk.names().collect::<Vec<_>>(), ["other"]);
    assert!(!sdk.text(Language::TypeScript).contains("run_code: "));
    assert!(!sdk.text(Language::Python).contains("def run_code"));
}

#[test]
fn a_deep_output_union_is_shown_109() {
    let schema = nested(5_000, |inner| {
        json!([{"type": "string"}]).as_array().cloned().map(|mut list| {
            list.push(inner);
            ("oneOf", Value::Array(list))
        })
    });
    let sdk = sdk(&[ToolSignature::new("deep", "", None, Some(schema))]);
    assert!(sdk.text(Language::TypeScript).contains(&"string | ".repeat(5_000)));
    assert!(sdk.text(Language::Python).contains(&"str | ".repeat(5_000)));
}

#[test]
fn one_set_is_the_same_bytes_in_any_order_118_221() {
    let tools = many(20);
    let turned: Vec<_> = tools.iter().rev().cloned().collect();
    for language in Language::ALL {
        assert_eq!(sdk(&tools).text(language), sdk(&turned).text(language));
    }
    assert_eq!(sdk(&tools).key(), Sdk::key_of(&turned, SdkOptions::default()));
    assert_ne!(sdk(&tools).key(), sdk(&tools[1..]).key());
    assert_ne!(sdk(&tools).key(), within(&tools, 5).key());
}

#[test]
fn an_unknown_language_is_refused_with_those_that_are_known_120() {
    for name in ["ruby", "constructor", "TypeScript", ""] {
        let error: UnknownLanguage = name.parse::<Language>().expect_err("not a language");
        let known = "(known: \"typescript\", \"python\")";
        assert_eq!(
            error.to_string(),
            format!("no SDK renderer registered for runtime language \"{name}\" {known}")
        );
        let of_schema = error.for_schema();
        assert!(of_schema.starts_with("no run_code schema flavor registered") && of_schema.ends_with(known));
    }
    assert_eq!("python".parse(), Ok(Language::Python));
}

#[test]
fn each_language_has_its_own_wording_121_122() {
    for (language, own, other) in
        [(Language::TypeScript, "TypeScript", "Python"), (Language::Python, "Python", "TypeScript")]
    {
        let sdk = sdk(&[tool("search", "Finds.")]);
        let listed = flavor(language).listed().to_string();
        for text in [sdk.text(language), &listed] {
            assert!(text.contains(own) && !text.contains(other), "{text}");
        }
        assert!(flavor(language).tool.contains("`code`") && flavor(language).tool.contains("`description`"));
        let parameters = flavor(language).parameters();
        assert_eq!(parameters["required"], json!(["code", "description"]));
        assert!(parameters.get("additionalProperties").is_none());
    }
}

#[test]
fn the_section_says_what_a_program_needs_to_know_221() {
    let tools =
        [tool("b", ""), tool("a-b", "Ends ``` here.\n````"), tool("\u{1f680}", ""), tool("\u{e000}", "")];
    let sdk = sdk(&tools);
    let text = sdk.text(Language::TypeScript);
    for phrase in [
        "erasable syntax only",
        "rejects with `ToolCallError`",
        "MAY overlap under `Promise.all`",
        "lossless JSON",
        "two required arguments",
        "`code`",
        "`description`",
        "\n`````ts\n",
        "  \"a-b\": {",
    ] {
        assert!(text.contains(phrase), "{phrase}");
    }
    // In UTF-16 the rocket begins with a surrogate, which is before the private use area.
    assert_eq!(sdk.names().collect::<Vec<_>>(), ["a-b", "b", "\u{1f680}", "\u{e000}"]);
    let empty = support::sdk(&[]);
    assert!(
        empty.text(Language::TypeScript).contains("interface ToolArgsMap {}\n\ninterface ToolOutputMap {}")
    );
    let python = empty.text(Language::Python);
    assert!(
        python.contains("from typing import Protocol\n")
            && python.contains("class Tools(Protocol):\n    pass\n"),
        "{python}"
    );
    let python = sdk.text(Language::Python);
    for phrase in [
        "stubs",
        "`asyncio.gather`",
        "ToolCallError",
        "toolName: str",
        "tools: Tools",
        "two required arguments",
    ] {
        assert!(python.contains(phrase), "{phrase}");
    }
}

#[test]
fn a_set_that_is_carried_over_says_the_same() {
    let mut tools = many(50);
    let before = sdk(&tools);
    let text = before.text(Language::Python).to_owned();
    assert_eq!(before.rebuilt(&tools, SdkOptions::default()).text(Language::Python), text);
    tools[7] = tool("github_tool_7", "Changed.");
    let after = before.rebuilt(&tools, SdkOptions::default());
    for language in Language::ALL {
        assert_eq!(after.text(language), sdk(&tools).text(language));
    }
    assert_ne!(after.key(), before.key());
}

#[test]
fn of_one_name_one_tool_stays_the_same_in_any_order() {
    let (one, other) = (tool("same", "One."), tool("same", "Other."));
    let texts = [[one.clone(), other.clone()], [other, one]]
        .map(|tools| sdk(&tools).text(Language::Python).to_owned());
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn beyond_the_budget_a_catalogue_is_shown_and_shortened_until_it_fits() {
    let tools = many(300);
    let whole = sdk(&tools);
    for language in Language::ALL {
        assert!(
            !within(&tools, whole.estimated_tokens(language)).is_catalogue(language),
            "exactly at the budget"
        );
        let floor = within(&tools, 0).estimated_tokens(language);
        let mut sizes = vec![floor];
        for budget in [floor + 30, floor + 60, floor + 1_500, floor + 5_000] {
            let sdk = within(&tools, budget);
            let text = sdk.text(language);
            assert!(
                sdk.is_catalogue(language) && text.contains("300 tools.") && text.contains("catalog"),
                "{text}"
            );
            assert!(
                sdk.estimated_tokens(language) <= budget,
                "{} > {budget}",
                sdk.estimated_tokens(language)
            );
            assert_eq!(sdk.names().count(), 300);
            sizes.push(sdk.estimated_tokens(language));
        }
        assert!(sizes.is_sorted(), "{sizes:?}");
        let text = |budget| within(&tools, floor + budget).text(language).to_owned();
        assert!(text(60).contains("github_… (100 tools)"), "groups");
        assert!(text(1_500).contains("\nfiles_tool_1\n"), "names");
        assert!(text(5_000).contains("\nfiles_tool_1: Does thing 1 well.\n"), "descriptions");
    }
    assert_eq!(estimated_tokens("abcde"), 2);
}

#[test]
fn few_tools_are_declared_whatever_the_budget() {
    for language in Language::ALL {
        let sdk = within(&[tool("one", "One.")], 0);
        assert!(!sdk.is_catalogue(language) && sdk.text(language).contains("One."));
    }
}

#[test]
fn a_catalogue_ends_no_fence_and_keeps_to_its_budget() {
    let hostile = format!("{} ends it", "`".repeat(90));
    let tools: Vec<_> = (0..200).map(|index| tool(&format!("`````{index}\n"), &hostile)).collect();
    for language in Language::ALL {
        let floor = within(&tools, 0).estimated_tokens(language);
        for extra in [20, 100, 1_000, 5_000] {
            let sdk = within(&tools, floor + extra);
            assert!(sdk.is_catalogue(language) && sdk.estimated_tokens(language) <= floor + extra);
            let (name, body) = support::lex::fences(sdk.text(language)).pop().expect("a fence");
            assert!(name == "text" && body.starts_with("200 tools."), "{name} {body}");
        }
    }
}

#[test]
fn a_catalogue_of_ungrouped_names_counts_what_it_leaves_out() {
    let tools: Vec<_> = (0..500).map(|index| tool(&format!("t{index}"), "")).collect();
    let floor = within(&tools, 0).estimated_tokens(Language::Python);
    let sdk = within(&tools, floor + 100);
    let text = sdk.text(Language::Python);
    let shown = text.lines().filter(|line| line.starts_with('t') && line[1..].parse::<u32>().is_ok()).count();
    assert!(shown > 10 && text.contains(&format!("and {} more tools", 500 - shown)), "{text}");
    assert!(sdk.estimated_tokens(Language::Python) <= floor + 100);
}

#[test]
fn a_search_finds_by_name_before_description_before_argument() {
    let sdk = sdk(&[
        tool("send_mail", "Sends a letter."),
        tool("post", "Puts mail into a box."),
        tool("mail", "Anything."),
        tool("unrelated", "Nothing."),
    ]);
    let names = |query: &str, limit| {
        let found = sdk.search(query, limit);
        (found.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(), found.total)
    };
    assert_eq!(names("Mail", 10), (vec!["mail".to_owned(), "send_mail".to_owned(), "post".to_owned()], 3));
    assert_eq!(names("mail", 1), (vec!["mail".to_owned()], 3));
    assert_eq!(names("query", 10).1, 4);
    assert_eq!(names("", 2).1, 4);
    assert_eq!(names("zebra", 2), (vec![], 0));
    assert_eq!(
        sdk.search("post", 1).to_value(),
        json!({"tools": [{"name": "post", "description": "Puts mail into a box."}], "total": 1})
    );
}

#[test]
fn a_description_is_what_the_whole_text_would_have_said() {
    let sdk = sdk(&[tool("a", "First."), tool("a-b", "Second."), tool("c", "")]);
    let described = sdk.describe(&["a-b", "a", "a", "none"], Language::TypeScript);
    assert_eq!(described.unknown, ["none"]);
    for line in described.declarations.lines() {
        assert!(sdk.text(Language::TypeScript).contains(line), "{line}");
    }
    assert!(described.declarations.contains("  \"a-b\": {") && !described.declarations.contains("  c: {"));
    let python = sdk.describe(&["a"], Language::Python).declarations;
    assert!(
        python.contains("class AArgs(TypedDict):")
            && python.contains("async def a(self, args: AArgs) -> str:")
    );
    assert_eq!(sdk.describe(&["none"], Language::Python).declarations, "");
}

#[test]
fn an_example_is_a_program_that_calls_the_tool() {
    let sdk = sdk(&[tool("search", ""), tool("a-b", "")]);
    let example = |name, language| sdk.example(name, language);
    assert_eq!(
        example("search", Language::TypeScript).as_deref(),
        Some("return await tools.search({ query: \"text\" });")
    );
    assert_eq!(
        example("a-b", Language::Python).as_deref(),
        Some("return await tools[\"a-b\"]({\"query\": \"text\"})")
    );
    assert_eq!(example("none", Language::Python), None);
}
