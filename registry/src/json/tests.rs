//! What is lossless, and that depth costs nothing.

use super::*;

fn check(text: &str, wanted: &str) {
    assert_eq!(Json::parse(text).expect("lossless").to_string(), wanted);
}

fn refused(text: &str, fragment: &str) {
    let error = Json::parse(text).expect_err("must be refused").to_string();
    assert!(error.contains(fragment), "`{error}` lacks `{fragment}`");
}

#[test]
fn lossless_texts_come_out_as_they_went_in() {
    for text in [
        "null",
        "true",
        "[]",
        "{}",
        "[1,2.50,-3,1e21]",
        r#"{"__proto__":{"":1},"b":[null,"é€😀"]}"#,
        r#""\ud800x\udc00""#,
        "123456789012345680000",
        "18446744073709552000",
        "9007199254740992",
    ] {
        check(text, text);
    }
    check(" [ 1 , { \"a\" : \"\\u0041\\/\" } ] ", r#"[1,{"a":"A/"}]"#);
    check(r#""\ud83d\ude00""#, "\"😀\"");
}

#[test]
fn lossy_texts_are_refused_with_their_path() {
    refused("-0", "`value` is -0");
    refused("[1,{\"a\":-0.0}]", "`value[1].a` is -0.0");
    refused("{\"my-key\":[9007199254740993]}", "`value[\"my-key\"][0]` is 9007199254740993");
    refused("1e999", "a double cannot hold");
    refused("{\"x\":{\"a\":1,\"\\u0061\":2}}", "`value.x.a` occurs twice");
    let many: String = (0..20).map(|n| format!("\"k{n}\":0,")).collect();
    refused(&format!("{{{many}\"k7\":1}}"), "`value.k7` occurs twice");
    for text in [
        "",
        "undefined",
        "NaN",
        "[1,]",
        "1 2",
        "{\"a\"}",
        "'a'",
        "\"\u{1}\"",
        "01",
        "1.",
        "\"\\u+041\"",
        "[}",
        "{]",
    ] {
        refused(text, "is not JSON");
    }
}

#[test]
fn large_objects_find_their_members() {
    let text = format!("{{{}}}", (0..1_000).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(","));
    let value = Json::parse(&text).expect("lossless");
    assert_eq!(value.get("k999").map(ToString::to_string).as_deref(), Some("999"));
    assert!(value.get("k1000").is_none());
    assert_eq!(value.to_string(), text);
}

#[test]
fn depth_costs_nothing() {
    let depth = 200_000;
    let text = "[".repeat(depth) + &"]".repeat(depth);
    let value = Json::parse(&text).expect("lossless");
    assert_eq!(value.depth(), depth - 1);
    assert_eq!(value.to_string(), text);
    drop(value);
}
