//! Whatever the tools are: there is a text, it is the same in any order, and nothing in it gets out of its place.

mod support;

use codemode_sdk::{Language, Sdk, SdkOptions, ToolSignature};
use proptest::prelude::*;
use serde_json::{Map, Value};

use support::{lex, sdk};

/// Text that generators break on, and any other.
fn text() -> impl Strategy<Value = String> {
    let hostile = prop::sample::select(vec![
        "*/",
        "/*",
        "//",
        "\"\"\"",
        "'''",
        "`",
        "```",
        "````\n",
        "\n```\n## System\n",
        "\\",
        "\"",
        "#",
        "\u{2028}",
        "\u{2029}",
        "\u{feff}",
        "\u{202e}",
        "\u{2066}",
        "\0",
        "\r",
        "\n",
        "\u{85}",
        "\u{1b}[31m",
        "${x}",
        "{{x}}",
        "\u{1}0\u{2}",
        "é",
        "e\u{301}",
        "🚀",
        "__proto__",
    ]);
    prop::collection::vec(prop_oneof![hostile.prop_map(str::to_owned), "[a-z]{1,6}", any::<String>()], 0..4)
        .prop_map(|parts| parts.concat())
}

fn keyword() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "additionalItems",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "anyOf",
        "oneOf",
        "allOf",
        "enum",
        "const",
        "$ref",
        "$defs",
        "$id",
        "$anchor",
        "nullable",
        "description",
        "default",
        "pattern",
        "format",
        "minItems",
        "maxItems",
        "minimum",
        "exclusiveMinimum",
        "deprecated",
        "$dynamicRef",
    ])
    .prop_map(str::to_owned)
}

fn word() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        "string",
        "number",
        "integer",
        "boolean",
        "null",
        "array",
        "object",
        "file",
        "#",
        "#/$defs/a",
        "#/$defs/b",
        "#/properties/a",
        "#a",
        "#/$defs/a~1b/0",
        "#/items",
        "https://127.0.0.1:9/x#/y",
    ])
    .prop_map(Value::from)
}

/// JSON in which most is where a schema has it, and some is not.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => word(),
        2 => text().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(6, 48, 5, |inner| {
        let key = prop_oneof![5 => keyword(), 1 => prop::sample::select(vec!["a".to_owned(), "b".to_owned()]), 1 => text()];
        prop_oneof![
            3 => prop::collection::vec((key, inner.clone()), 0..5).prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::Array),
        ]
    })
}

fn tool() -> impl Strategy<Value = ToolSignature> {
    (text(), text(), prop::option::of(schema()), prop::option::of(schema())).prop_map(
        |(name, description, parameters, output)| ToolSignature::new(&name, &description, parameters, output),
    )
}

/// Fails unless every fence of a section holds what it should, and the text around it is ours.
fn check_section(sdk: &Sdk, language: Language) -> Result<(), TestCaseError> {
    let text = sdk.text(language);
    for (name, body) in lex::fences(text) {
        let read = match name.as_str() {
            "ts" => lex::typescript(&body),
            "python" => lex::python(&body),
            "text" => continue,
            other => return Err(TestCaseError::fail(format!("a fence of {other}:\n{text}"))),
        };
        read.map_err(|why| TestCaseError::fail(format!("{why}\n{body}")))?;
    }
    let headings = text.lines().filter(|line| line.starts_with('#')).count();
    prop_assert_eq!(headings, 1, "{}", text);
    prop_assert!(
        !text.contains(['\u{1}', '\u{2}', '\u{202e}', '\u{2066}', '\u{2028}', '\u{1b}', '\0']),
        "{:?}",
        text
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_tools_have_a_text_that_nothing_gets_out_of(tools in prop::collection::vec(tool(), 0..4), budget in prop::option::of(0usize..2_000)) {
        let sdk = Sdk::build(&tools, SdkOptions { token_budget: budget });
        for language in Language::ALL {
            check_section(&sdk, language)?;
            let names: Vec<_> = sdk.names().collect();
            let described = sdk.describe(&names, language);
            let read = if language == Language::Python { lex::python } else { lex::typescript };
            read(&described.declarations).map_err(TestCaseError::fail)?;
            for name in names {
                if let Some(example) = sdk.example(name, language) {
                    read(&example).map_err(TestCaseError::fail)?;
                }
            }
        }
    }

    #[test]
    fn any_order_gives_the_same_bytes(tools in prop::collection::vec(tool(), 0..6), turn in 0usize..6) {
        let mut turned = tools.clone();
        turned.reverse();
        let turn = turn.min(turned.len());
        turned.rotate_left(turn);
        for language in Language::ALL {
            let built = sdk(&turned);
            let (straight, again) = (sdk(&tools), built.rebuilt(&tools, SdkOptions::default()));
            prop_assert_eq!(straight.text(language), built.text(language));
            prop_assert_eq!(again.text(language), built.text(language));
        }
    }

    #[test]
    fn every_tool_is_declared_once_under_its_own_name(names in prop::collection::btree_set(text(), 0..6)) {
        let tools: Vec<_> = names.iter().map(|name| ToolSignature::new(name, "", None, None)).collect();
        let sdk = sdk(&tools);
        let fences = lex::fences(sdk.text(Language::TypeScript));
        let (_, body) = fences.last().expect("a fence");
        let arguments = body.split("interface ToolArgsMap ").nth(1).and_then(|text| text.split("interface").next()).unwrap_or_default();
        let declared: Vec<String> = arguments
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.strip_suffix(": Record<string, JsonValue>;"))
            .map(|key| serde_json::from_str(key).unwrap_or_else(|_| key.to_owned()))
            .collect();
        prop_assert_eq!(declared.iter().map(String::as_str).collect::<Vec<_>>(), sdk.names().collect::<Vec<_>>());
    }
}
