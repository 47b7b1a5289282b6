//! The mapping from schemas to Python, row by row.

use serde_json::{Value, json};

use super::declarations;
use crate::names::{Given, filled};
use crate::signature::ToolSignature;

/// Classes of a schema as an output, and its type behind them.
fn type_of(tool: &str, schema: Value) -> String {
    let tool = ToolSignature::new(tool, "", None, Some(schema));
    let declared = declarations(&tool);
    let names = Given::new(&[]).give(&declared.wanted);
    let member = filled(&declared.member, &names);
    let output =
        member.rsplit_once("-> ").map_or("", |(_, output)| output.trim_end().trim_end_matches(": ..."));
    filled(&declared.classes, &names) + output
}

fn check(schema: Value, expected: &str) {
    let shown = schema.to_string();
    assert_eq!(type_of("t", schema), expected, "{shown}");
}

fn field(name: &str) -> String {
    type_of("t", json!({"properties": {name: {"type": "string"}}, "additionalProperties": false}))
}

#[test]
fn each_node_has_its_text_222() {
    check(json!({"type": "string"}), "str");
    check(json!({"type": "number"}), "float");
    check(json!({"type": "integer"}), "int");
    check(json!({"type": "boolean"}), "bool");
    check(json!({"type": "null"}), "None");
    check(json!({}), "Any");
    check(json!({"type": "array"}), "list[Any]");
    check(json!({"type": "array", "items": {"type": "string"}}), "list[str]");
    check(json!({"oneOf": [{"type": "string"}, {"type": "null"}]}), "str | None");
    check(json!({"enum": ["a", true, false, 1, null]}), "Literal[\"a\", True, False, 1, None]");
    check(json!({"const": "q\" \\ \0 \u{2028} \n 🚀"}), "Literal[\"q\\\" \\\\ \\u0000 \\u2028 \\n 🚀\"]");
    check(json!({"const": 1_152_921_504_606_846_976_u64}), "Literal[1152921504606846976]");
    check(json!({"const": 1e21}), "Literal[1000000000000000000000]");
    check(json!({"enum": [0.5, 2.0, -0.0]}), "Literal[2, 0] | float");
    check(json!({"enum": [{"a": 1}, "x"]}), "Literal[\"x\"] | dict[str, Any]");
    check(json!({"type": "object"}), "dict[str, Any]");
    check(json!({"type": "object", "additionalProperties": {"type": "integer"}}), "dict[str, int]");
    check(json!(false), "Never");
    check(json!(5), "Any");
}

#[test]
fn members_are_methods_or_comments_at_their_place_223() {
    let member = |name: &str, description: &str| {
        declarations(&ToolSignature::new(name, description, None, None)).member
    };
    assert_eq!(member("plain", ""), "    async def plain(self, args: dict[str, Any]) -> Any: ...\n");
    assert_eq!(
        member("plain", "Ends \"\"\" it\\"),
        "    async def plain(self, args: dict[str, Any]) -> Any:\n        \"\"\"Ends \\\"\\\"\\\" it\\\\\"\"\"\n"
    );
    for name in ["a-b", "class", "_x", "", "名前", "list", "a\nb"] {
        let member = member(name, "What it\ndoes.");
        let lines: Vec<_> = member.lines().collect();
        assert_eq!(lines.len(), 2, "{member}");
        assert!(lines[0].starts_with("    # tools[\"") && lines[1] == "    #   What it does.", "{member}");
    }
}

#[test]
fn classes_are_named_after_the_way_to_them_224() {
    check(
        json!({
            "type": "object",
            "properties": {
                "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string", "description": "What\nwas"}}, "required": ["old"], "additionalProperties": false}},
                "to": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"type": "integer"}}}]},
            },
        }),
        "class TOutputEdits(TypedDict):\n    # What was\n    old: str\n\n\n\
         class TOutputTo2(TypedDict):\n    x: NotRequired[int]\n    # Additional keys are allowed.\n\n\n\
         class TOutput(TypedDict):\n    edits: NotRequired[list[TOutputEdits]]\n    to: NotRequired[None | TOutputTo2]\n    # Additional keys are allowed.\n\n\nTOutput",
    );
    // `a_b` and `aB` are one name; the second has the next number that is free.
    check(
        json!({"properties": {"a_b": {"type": "object", "additionalProperties": false}, "aB": {"type": "object", "additionalProperties": false},
               "a_b2": {"type": "object", "additionalProperties": false}}, "additionalProperties": false}),
        "class TOutputAB(TypedDict):\n    pass\n\n\nclass TOutputAB2(TypedDict):\n    pass\n\n\nclass TOutputAB22(TypedDict):\n    pass\n\n\n\
         class TOutput(TypedDict):\n    a_b: NotRequired[TOutputAB]\n    aB: NotRequired[TOutputAB2]\n    a_b2: NotRequired[TOutputAB22]\n\n\nTOutput",
    );
    let closed = json!({"type": "object", "additionalProperties": false});
    assert!(type_of("1st", closed.clone()).ends_with("\nTool1stOutput"));
    assert!(type_of("ﬁle", closed.clone()).ends_with("\nFIleOutput"));
    // Cut before a character of two units, not through it.
    let long = type_of(&format!("{}𐐀𐐀", "x".repeat(118)), closed);
    assert!(long.ends_with(&format!("\nX{}𐐀", "x".repeat(117))), "{long}");
}

#[test]
fn a_field_that_no_class_can_have_makes_a_dict_225() {
    for name in ["a-b", "1a", "", "class", "None", "__x", "__debug__", "ﬁ", "a b", "a\u{301}"] {
        assert_eq!(field(name), "dict[str, Any]", "{name}");
    }
    for name in ["match", "type", "_", "case", "__meta__", "größe", "名前", "_x"] {
        assert_eq!(
            field(name),
            format!("class TOutput(TypedDict):\n    {name}: NotRequired[str]\n\n\nTOutput")
        );
    }
    check(
        json!({"type": "object", "additionalProperties": false}),
        "class TOutput(TypedDict):\n    pass\n\n\nTOutput",
    );
}

#[test]
fn lists_in_lists_end_before_the_parser_does_226() {
    let mut schema = json!({"type": "string"});
    for _ in 0..200 {
        schema = json!({"type": "array", "items": schema});
    }
    let text = type_of("t", schema.clone());
    assert_eq!(text, format!("{}Any{}", "list[".repeat(180), "]".repeat(180)));
    let text = type_of("t", json!({"properties": {"a": schema}, "additionalProperties": false}));
    assert!(text.contains(&format!("{}Any{}", "list[".repeat(179), "]".repeat(179))), "{text}");
    assert!(!text.contains(&"list[".repeat(180)), "{text}");
}

#[test]
fn schemas_of_the_wild_have_faithful_types() {
    check(json!({"type": ["string", "null"]}), "str | None");
    check(json!({"type": "object", "propertyNames": {"enum": ["a"]}}), "dict[Literal[\"a\"], Any]");
    check(json!({"prefixItems": [{"type": "string"}], "items": {"type": "null"}}), "list[str | None]");
    check(
        json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"a": {"const": "x"}, "b": {}}}]}),
        "class TOutput(TypedDict):\n    a: Literal[\"x\"]\n    b: NotRequired[Any]\n    # Additional keys are allowed.\n\n\nTOutput",
    );
    check(
        json!({"$defs": {"T": {"type": "array", "items": {"$ref": "#/$defs/T"}}}, "$ref": "#/$defs/T"}),
        "type TT = list[TT]\n\n\nTT",
    );
    check(
        json!({"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}, "additionalProperties": false}),
        "class TOutput(TypedDict):\n    # $ref http://127.0.0.1:9/x is not in this schema\n    a: NotRequired[Any]\n\n\nTOutput",
    );
}
