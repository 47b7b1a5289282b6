//! The mapping from schemas to TypeScript, row by row.

use serde_json::{Value, json};

use super::declarations;
use crate::names::{Given, filled};
use crate::signature::ToolSignature;

/// The type of a schema as an output, definitions before it, on the column where it would stand alone.
fn type_of(schema: Value) -> String {
    let tool = ToolSignature::new("t", "", None, Some(schema));
    let declared = declarations(&tool);
    let names = Given::new(&[]).give(&declared.wanted);
    let output = filled(&declared.output, &names);
    let output = output.strip_prefix("  t: ").and_then(|text| text.strip_suffix(";\n")).expect("a member");
    filled(&declared.aliases, &names) + &output.replace("\n  ", "\n")
}

fn check(schema: Value, expected: &str) {
    let shown = schema.to_string();
    assert_eq!(type_of(schema), expected, "{shown}");
}

#[test]
fn each_node_of_the_author_subset_has_its_text_218() {
    check(json!({"type": "string"}), "string");
    check(json!({"type": "boolean"}), "boolean");
    check(json!({"type": "null"}), "null");
    check(json!({"type": "number"}), "number");
    check(json!({"type": "integer"}), "number");
    check(json!({"const": "a"}), "\"a\"");
    check(json!({"type": "integer", "const": 3, "enum": [3, 4]}), "3");
    check(json!({"const": null}), "null");
    check(json!({"type": "string", "enum": ["a", "b\"c"]}), "\"a\" | \"b\\\"c\"");
    check(json!({"enum": [1, 1.5, true, null]}), "1 | 1.5 | true | null");
    check(json!({"oneOf": [{"type": "string"}, {"type": "number"}]}), "string | number");
    check(
        json!({"oneOf": [{"type": "string"}, {"oneOf": [{"type": "integer"}, {"type": "number"}]}]}),
        "string | number | number",
    );
    check(json!({"type": "array", "items": {"type": "string"}}), "string[]");
    check(json!({"type": "array", "items": {"type": "array", "items": {"type": "null"}}}), "null[][]");
    check(json!({"type": "array", "items": {"enum": ["a", "b"]}}), "(\"a\" | \"b\")[]");
    check(json!({"type": "array", "items": {"const": "a|b"}}), "(\"a|b\")[]");
    check(json!({"type": "array"}), "JsonValue[]");
    check(json!({}), "JsonValue");
    check(json!({"type": "object"}), "Record<string, JsonValue>");
    check(json!({"type": "object", "additionalProperties": true}), "Record<string, JsonValue>");
    check(
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
        "Record<string, never>",
    );
}

#[test]
fn an_object_is_written_over_lines_219() {
    check(
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "  Where\n it */ is "},
                "odd-name": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
            },
            "required": ["path"],
            "additionalProperties": false,
        }),
        "{\n  /** Where it *\\/ is */\n  path: string;\n  \"odd-name\"?: {\n    n: number;\n  } & Record<string, JsonValue>;\n}",
    );
}

#[test]
fn what_cannot_be_said_is_unknown_and_nothing_else_is_220() {
    check(json!("text"), "unknown /* not a schema */");
    check(json!({"type": "file"}), "unknown /* no type is called \"file\" */");
    check(json!({"enum": []}), "unknown /* no value that is listed fits */");
    check(json!({"type": "integer", "enum": ["a"]}), "unknown /* no value that is listed fits */");
    check(json!({"anyOf": []}), "unknown /* no alternative is given */");
    check(json!({"$ref": 5}), "unknown /* `$ref` is not a string */");
    check(
        json!({"$ref": "http://127.0.0.1:9/*/x"}),
        "unknown /* $ref http://127.0.0.1:9/*\\/x is not in this schema */",
    );
    check(
        json!({"type": "object", "properties": {"a": {"$ref": "#/b"}, "c": {"type": "string"}}, "required": ["a", "c"]}),
        "{\n  a: unknown /* $ref #/b leads nowhere */;\n  c: string;\n} & Record<string, JsonValue>",
    );
}

#[test]
fn a_union_of_any_depth_is_flat_220() {
    let mut schema = json!({"type": "null"});
    for _ in 0..5_000 {
        // By hand: `json!` copies what it is given, by recursion.
        schema = Value::Object(
            [("oneOf".to_owned(), Value::Array(vec![json!({"type": "string"}), schema]))]
                .into_iter()
                .collect(),
        );
    }
    let tool = ToolSignature::new("t", "", None, Some(schema));
    let output = declarations(&tool).output;
    assert_eq!(output, format!("  t: {}null;\n", "string | ".repeat(5_000)));
}

#[test]
fn schemas_of_the_wild_have_faithful_types() {
    check(json!({"type": ["string", "null"]}), "string | null");
    check(json!({"type": ["integer", "number"]}), "number");
    check(json!({"type": "string", "nullable": true}), "string | null");
    check(json!({"enum": ["a"], "nullable": true}), "\"a\" | null");
    check(json!({"anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "null"}]}), "number | null");
    check(json!({"oneOf": [{"type": "string"}]}), "string");
    check(json!({"type": "string", "pattern": "^a"}), "string");
    check(json!({"properties": {"a": {}}}), "{\n  a?: JsonValue;\n} & Record<string, JsonValue>");
    check(json!({"type": "object", "required": ["a"]}), "{\n  a: JsonValue;\n} & Record<string, JsonValue>");
    check(json!({"type": "object", "additionalProperties": {"type": "number"}}), "Record<string, number>");
    check(
        json!({"type": "object", "patternProperties": {"^a": {"type": "number"}}}),
        "Record<string, number | JsonValue>",
    );
    check(
        json!({"type": "object", "patternProperties": {"^a": {"type": "number"}}, "additionalProperties": false}),
        "Record<string, number>",
    );
    check(
        json!({"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "number"}}),
        "{ [key in \"a\" | \"b\"]?: number }",
    );
    check(json!({"prefixItems": [{"type": "string"}], "items": false, "minItems": 1}), "[string]");
    check(json!({"prefixItems": [{"enum": [1, 2]}], "items": {"type": "null"}}), "[(1 | 2)?, ...null[]]");
    check(json!({"items": [{"type": "string"}], "additionalItems": false}), "[string?]");
    check(json!({"items": false}), "[]");
    check(json!({"allOf": [{"type": "string"}, {"minLength": 1}]}), "string");
    check(
        json!({"allOf": [{"properties": {"a": {"type": "null"}}}, {"anyOf": [{"properties": {"b": true}}, {"items": true}]}]}),
        "{\n  a?: null;\n} & ({\n  b?: JsonValue;\n} & Record<string, JsonValue> | JsonValue[]) & Record<string, JsonValue>",
    );
    check(json!({"type": "string", "oneOf": [{"const": "a"}, {"const": "b"}]}), "\"a\" | \"b\"");
    check(json!({"const": {"kind": ["v1"]}}), "{\"kind\": [\"v1\"]}");
    check(json!(false), "never");
    check(
        json!({"properties": {"toString": {"type": "null"}}, "additionalProperties": false}),
        "{\n  toString?: null | Object[\"toString\"];\n}",
    );
}

#[test]
fn references_are_names_where_they_have_to_be() {
    check(
        json!({"$defs": {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}, "$ref": "#/$defs/Tree"}),
        "type TTree = TTree[];\nTTree",
    );
    check(
        json!({"$defs": {"Map": {"additionalProperties": {"$ref": "#/$defs/Map"}}}, "$ref": "#/$defs/Map"}),
        "type TMap = { [key: string]: TMap };\nTMap",
    );
    check(json!({"$defs": {"A": {"enum": ["x"]}}, "$ref": "#/$defs/A"}), "\"x\"");
    check(
        json!({"properties": {"next": {"$ref": "#"}}}),
        "type TOutput = {\n  next?: TOutput;\n} & Record<string, JsonValue>;\nTOutput",
    );
    check(
        json!({"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "string"}]}}, "$ref": "#/$defs/A"}),
        "type TA = unknown /* refers to itself */ | string;\nTA",
    );
    check(
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"A": {"type": "string"}},
               "properties": {"a": {"$ref": "#/definitions/A", "type": "number"}}, "additionalProperties": false}),
        "{\n  a?: string;\n}",
    );
    check(
        json!({"$defs": {"Inner": {"$id": "urn:inner", "$defs": {"X": {"type": "null"}}, "properties": {"x": {"$ref": "#/$defs/X"}},
               "additionalProperties": false}}, "properties": {"i": {"$ref": "urn:inner"}}, "additionalProperties": false}),
        "type TUrnInner = {\n  x?: null;\n};\n{\n  i?: TUrnInner;\n}",
    );
}
