//! Schemas beyond the subset, the author's shorthand, and what is hostile. The subset itself is in `tests/cases`.

use super::*;

fn violations(schema: &str, value: &str) -> Vec<String> {
    let schema = Schema::parse(schema).expect("lossless");
    assert_eq!(schema.warning(), None);
    schema.violations_of_value(&Json::parse(value).expect("lossless"))
}

#[test]
fn what_is_beyond_the_subset_is_validated_by_the_library() {
    let schema = r##"{"type":"object","properties":{"n":{"type":["integer","null"],"minimum":3}},"$defs":{"a":{"type":"string"}},
        "patternProperties":{"^s":{"$ref":"#/$defs/a"}}}"##;
    assert!(violations(schema, r#"{"n":3,"s1":"x"}"#).is_empty());
    assert!(violations(schema, r#"{"n":null}"#).is_empty());
    let found = violations(schema, r#"{"n":2,"s1":5}"#).join("\n");
    assert!(found.contains("\"value.n\"") && found.contains("\"value.s1\""), "{found}");
    assert!(violations("true", "1").is_empty());
    assert_eq!(violations("false", "1").len(), 1);
}

#[test]
fn what_does_not_compile_is_a_warning_and_validates_nothing() {
    for text in [
        r#"{"type":"strng"}"#,
        r##"{"$ref":"#/$defs/missing"}"##,
        r#"{"$ref":"http://127.0.0.1:9/x.json"}"#,
        r#"{"$ref":"file:///etc/passwd"}"#,
        r#"{"$schema":"https://example.com/own-dialect","type":["string"]}"#,
        r#"{"pattern":"(","type":"string"}"#,
        "[]",
        "null",
        "\"x\"",
    ] {
        let schema = Schema::parse(text).expect("lossless");
        let warning = schema.warning().unwrap_or_else(|| panic!("{text} compiled"));
        assert!(warning.contains("not validated"), "{warning}");
        assert!(schema.violations_of_value(&Json::parse("1").expect("lossless")).is_empty());
    }
}

#[test]
fn deep_and_recursive_schemas_and_values_are_survived() {
    let nested = |depth: usize, inner: &str| {
        format!("{}{inner}{}", r#"{"anyOf":[{"type":"null"},"#.repeat(depth), "]}".repeat(depth))
    };
    let deep = Schema::parse(&nested(3_000, r#"{"type":"string"}"#)).expect("lossless");
    // Each level of the text is two of the tree.
    assert!(deep.warning().is_some_and(|warning| warning.contains("levels deep")));
    let fair = Schema::parse(&nested(100, r#"{"type":"string"}"#)).expect("lossless");
    assert_eq!(fair.warning(), None);
    assert!(fair.violations_of_value(&Json::parse("\"x\"").expect("lossless")).is_empty());
    assert!(!fair.violations_of_value(&Json::parse("1").expect("lossless")).is_empty());
    let recursive = r##"{"$ref":"#/$defs/l","$defs":{"l":{"type":["array"],"items":{"$ref":"#/$defs/l"}}}}"##;
    let value = "[".repeat(10_000) + &"]".repeat(10_000);
    assert!(violations(recursive, &value).is_empty());
    // A schema that refers to nothing but itself says nothing; it only must not loop.
    let loops = Schema::parse(r##"{"$ref":"#"}"##).expect("lossless");
    drop(loops.violations_of_value(&Json::parse("1").expect("lossless")));
    let chain: String = (0..100).map(|n| format!(r##""c{n}":{{"$ref":"#/$defs/c{}"}},"##, n + 1)).collect();
    let long = format!(
        r##"{{"$ref":"#/$defs/c0","$defs":{{{chain}"c100":{{"type":["array"],"items":{{"$ref":"#/$defs/c0"}}}}}}}}"##
    );
    let fair = "[".repeat(400) + &"]".repeat(400);
    assert!(violations(&long, &fair).is_empty());
    assert!(violations(&long, &value)[0].contains("too deep"));
    let too_deep = "[".repeat(60_000) + &"]".repeat(60_000);
    assert!(violations(recursive, &too_deep)[0].contains("too deep"));
}

#[test]
fn half_surrogates_do_not_stop_the_library() {
    assert!(violations(r#"{"type":["string"],"minLength":1}"#, r#""\ud800""#).is_empty());
}

#[test]
fn subset_schemas_5000_deep_are_checked_and_held_against_values_183() {
    let depth = 5_000;
    let schema = r#"{"type":"array","items":"#.repeat(depth) + r#"{"type":"string"}"# + &"}".repeat(depth);
    let value = |inner: &str| "[".repeat(depth) + inner + &"]".repeat(depth);
    assert!(violations(&schema, &value("\"x\"")).is_empty());
    let found = violations(&schema, &value("1"));
    assert!(found.len() == 1 && found[0].ends_with("must be a string"), "{found:?}");
}

fn author(text: &str) -> Result<String, String> {
    compile_author(&Json::parse(text).expect("lossless")).map_err(|fault| fault.to_string())
}

#[test]
fn the_shorthand_marks_what_is_required_and_leaves_the_root_open_216() {
    let compiled = author(
        r#"{"path":{"type":"string","required":true,"description":"where"},
            "options":{"type":"object","additionalProperties":false,"properties":{"deep":{"type":"boolean","required":true}}}}"#,
    )
    .expect("a schema");
    assert_eq!(
        compiled,
        concat!(
            r#"{"type":"object","properties":{"path":{"type":"string","description":"where"},"#,
            r#""options":{"type":"object","additionalProperties":false,"properties":{"deep":{"type":"boolean"}},"required":["deep"]}},"#,
            r#""required":["path"]}"#
        )
    );
    assert!(Schema::declared(&compiled).is_ok());
}

#[test]
fn the_shorthand_is_strict_216() {
    for (text, fragment) in [
        (r#"{"a":{"type":"object"}}"#, "must say `additionalProperties`"),
        (r#"{"a":{"oneOf":[{"type":"string"}]}}"#, "fewer than two branches"),
        (r#"{"a":{"type":"array","items":{"type":"string","required":true}}}"#, "must not say `required`"),
        (r#"{"a":{"type":"string","minLength":1}}"#, "unknown key `minLength`"),
        (r#"{"a":{}}"#, "neither `type` nor `oneOf`"),
        (r#"{"a":{"type":"string","required":1}}"#, "not a boolean"),
        (r#"{"a":1}"#, "must be an object"),
        ("[]", "must be an object"),
    ] {
        let error = author(text).expect_err("must be refused");
        assert!(error.contains(fragment), "`{error}` lacks `{fragment}`");
    }
}
