//! What is lossless JSON and what is not, fault by fault, and the checker against another parser.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::{StringLiteral, check, check_as, cost_of_str, prefix_of_str, quote};
use crate::limits::JSON_DEPTH_MAX;

#[track_caller]
fn accepts(text: impl AsRef<[u8]>) {
    let text = text.as_ref();
    if let Err(fault) = check(text) {
        panic!("`{}` should be accepted: {fault}", String::from_utf8_lossy(text));
    }
}

/// Refuses the text with exactly these words.
#[track_caller]
fn refuses(text: impl AsRef<[u8]>, words: &str) {
    let text = text.as_ref();
    match check(text) {
        Ok(()) => panic!("`{}` should be refused", String::from_utf8_lossy(text)),
        Err(fault) => assert_eq!(fault.to_string(), words, "`{}`", String::from_utf8_lossy(text)),
    }
}

#[test]
fn accepts_what_json_is() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "1",
        "-1",
        "1.25",
        "-0.5",
        "1e3",
        "1E+3",
        "1e-3",
        "0e0",
        "0.0",
        "\"\"",
        "[]",
        "{}",
        " [ 1 , 2 ]\t\r\n",
        "{ \"a\" : { } , \"b\" : [ ] }",
        "[[],{},[{}]]",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\"",
        "\"\u{7f}\u{2028}\u{2029}é€🚀\u{feff}\"",
        "1e308",
        "1.7976931348623157e308",
        "5e-324",
        "1e-400",
        "-1e-300",
        "{\"__proto__\":1,\"constructor\":2}",
        "{\"a\":1,\"A\":2,\"á\":3}",
        "{\"\":1,\"\\u0000\":2}",
    ] {
        accepts(text);
    }
}

#[test]
fn refuses_what_json_is_not() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "value is not JSON at byte 0: expected a value"),
        (b"  ", "value is not JSON at byte 2: expected a value"),
        (b"\xef\xbb\xbf1", "value is not JSON at byte 0: expected a value"),
        (b"\xc2\xa01", "value is not JSON at byte 0: expected a value"),
        (b"undefined", "value is not JSON at byte 0: expected a value"),
        (b"NaN", "value is not JSON at byte 0: expected a value"),
        (b"-Infinity", "value is not JSON at byte 1: invalid number"),
        (b"nul", "value is not JSON at byte 0: expected a value"),
        (b"nulll", "value is not JSON at byte 4: expected the end of the text"),
        (b"1 2", "value is not JSON at byte 2: expected the end of the text"),
        (b"{}{}", "value is not JSON at byte 2: expected the end of the text"),
        (b"1\0", "value is not JSON at byte 1: expected the end of the text"),
        (b"[1,]", "value[1] is not JSON at byte 3: expected a value"),
        (b"[1 2]", "value[0] is not JSON at byte 3: expected `,` or `]`"),
        (b"[", "value[0] is not JSON at byte 1: expected a value"),
        (b"[1", "value[0] is not JSON at byte 2: expected `,` or `]`"),
        (b"]", "value is not JSON at byte 0: expected a value"),
        (b"[}", "value[0] is not JSON at byte 1: expected a value"),
        (b"{", "value is not JSON at byte 1: expected a key"),
        (b"{1:2}", "value is not JSON at byte 1: expected a key"),
        (b"{\"a\"}", "value.a is not JSON at byte 4: expected `:`"),
        (b"{\"a\":}", "value.a is not JSON at byte 5: expected a value"),
        (b"{\"a\":1,}", "value.a is not JSON at byte 7: expected a key"),
        (b"{\"a\":1]", "value.a is not JSON at byte 6: expected `,` or `}`"),
        (b"{'a':1}", "value is not JSON at byte 1: expected a key"),
        (b"01", "value is not JSON at byte 2: invalid number"),
        (b"-", "value is not JSON at byte 1: invalid number"),
        (b"-01", "value is not JSON at byte 3: invalid number"),
        (b"+1", "value is not JSON at byte 0: expected a value"),
        (b".5", "value is not JSON at byte 0: expected a value"),
        (b"1.", "value is not JSON at byte 2: invalid number"),
        (b"1.e5", "value is not JSON at byte 2: invalid number"),
        (b"1e", "value is not JSON at byte 2: invalid number"),
        (b"1e+", "value is not JSON at byte 3: invalid number"),
        (b"0x10", "value is not JSON at byte 1: expected the end of the text"),
        (b"1_000", "value is not JSON at byte 1: expected the end of the text"),
        (b"10n", "value is not JSON at byte 2: expected the end of the text"),
        (b"\"abc", "value is not JSON at byte 4: unfinished string"),
        (b"\"abc\\", "value is not JSON at byte 4: invalid escape"),
        (b"\"\\x41\"", "value is not JSON at byte 1: invalid escape"),
        (b"\"\\u12g4\"", "value is not JSON at byte 1: invalid escape"),
        (b"\"\\u+123\"", "value is not JSON at byte 1: invalid escape"),
        (b"\"\\u12\"", "value is not JSON at byte 1: invalid escape"),
        (b"\"\\U0041\"", "value is not JSON at byte 1: invalid escape"),
        (b"\"a\nb\"", "value is not JSON at byte 2: raw control character in a string"),
        (b"\"1234567\x1f\"", "value is not JSON at byte 8: raw control character in a string"),
        (b"\"\0\"", "value is not JSON at byte 1: raw control character in a string"),
        (b"// c\n1", "value is not JSON at byte 0: expected a value"),
    ];
    for (text, words) in cases {
        refuses(text, words);
    }
}

#[test]
fn refuses_broken_utf8_where_it_is() {
    refuses(b"\xff", "value is not UTF-8 at byte 0");
    refuses(b"1\xff", "value is not UTF-8 at byte 1");
    refuses(b"{\"a\":[1,\"x\xc3(\"]}", "value.a[1] is not UTF-8 at byte 10");
    refuses(b"\"\xed\xa0\x80\"", "value is not UTF-8 at byte 1");
    refuses(b"\"\xc0\xaf\"", "value is not UTF-8 at byte 1");
    refuses(b"\"\\u12\xff", "value is not UTF-8 at byte 5");
    refuses(b"[tr\xff", "value[0] is not UTF-8 at byte 3");
    // What is wrong before it is said first.
    refuses(b"[1,,    \"some text\xff\"]", "value[1] is not JSON at byte 3: expected a value");
    refuses(b"[-0,\"some text\xff\"]", "value[0] is -0, a negative zero; send 0, or a string");
}

#[test]
fn numbers_are_lossless_or_refused() {
    for text in [
        "9007199254740992",
        "-9007199254740992",
        "9007199254740994",
        "9007199254740991",
        "18014398509481984",
        "123456789012345680000",
        "123456789012345683968",
        "100000000000000000000",
        "1e21",
        "1e+21",
        "18446744073709552000",
        "18446744073709551616",
        "999999999999999",
        "9007199254740993.5",
        "0.1",
        "3.14159265358979312",
    ] {
        accepts(text);
        accepts(format!("-{text}").trim_start_matches("--"));
    }
    accepts("1".to_owned() + &"0".repeat(308));
    accepts(format!("{}", f64::MAX));
    for text in [
        "9007199254740993",
        "-9007199254740993",
        "123456789012345678901",
        "1234567890123456789",
        "18446744073709551615",
        "100000000000000000001",
    ] {
        refuses(text, &format!("value is {text}, which a double cannot hold exactly; send it as a string"));
    }
    for text in ["1e400", "-1e400", "1e309", "1.7976931348623159e308", "1e99999999999999999999"] {
        refuses(text, &format!("value is {text}, which is beyond every double; send it as a string"));
    }
    let long = "9".repeat(400);
    refuses(
        &long,
        &format!("value is {}…, which is beyond every double; send it as a string", "9".repeat(40)),
    );
    refuses(
        format!("{long}.5"),
        &format!("value is {}…, which is beyond every double; send it as a string", "9".repeat(40)),
    );
    for text in ["-0", "-0.0", "-0.000", "-0e5", "-0E-5", "-0.0e+1", "-1e-400", "-1e-99999999999999999999"] {
        refuses(text, &format!("value is {text}, a negative zero; send 0, or a string"));
    }
    let tiny = format!("-0.{}1", "0".repeat(400));
    refuses(&tiny, &format!("value is {}…, a negative zero; send 0, or a string", &tiny[..40]));
    accepts(format!("-0.{}1", "0".repeat(290)));
}

#[test]
fn a_fault_says_where() {
    refuses(
        r#"{"items":[{"id":1},{"id":2},{"id":3},{"id":9007199254740993}]}"#,
        "value.items[3].id is 9007199254740993, which a double cannot hold exactly; send it as a string",
    );
    refuses(
        r#"{"odd key":{"":{"1a":{"a.b":[-0]}}}}"#,
        r#"value["odd key"][""]["1a"]["a.b"][0] is -0, a negative zero; send 0, or a string"#,
    );
    refuses(
        r#"{"é\"\n\ud83d":-0}"#,
        "value[\"é\\\"\\n\u{fffd}\u{fffd}\u{fffd}\"] is -0, a negative zero; send 0, or a string",
    );
    refuses(
        r#"[{"done":{"x":1},"a":[]},{"b":{"c":1},"d":[[],[-0]]}]"#,
        "value[1].d[1][0] is -0, a negative zero; send 0, or a string",
    );
    let fault = check_as("arguments", b"[-0]").expect_err("negative zero");
    assert_eq!(
        (fault.path.as_str(), fault.reason.as_str()),
        ("arguments[0]", "is -0, a negative zero; send 0, or a string")
    );
}

#[test]
fn a_fault_is_bounded_whatever_the_text() {
    let deep = "[".repeat(50_000) + "-0";
    let long_key = format!("{{\"{}\":-0}}", "k".repeat(1_000_000));
    let long_keys = format!("{{\"{}\":", "é".repeat(1000)).repeat(1000) + "-0";
    for text in [deep, long_key, long_keys] {
        let fault = check(text.as_bytes()).expect_err("negative zero").to_string();
        assert!(fault.len() < 700, "{} bytes", fault.len());
        assert!(fault.starts_with("value[") && fault.contains('…'), "{fault}");
    }
}

#[test]
fn keys_are_distinct_within_an_object() {
    refuses(r#"{"a":1,"a":2}"#, "value.a is given twice in its object");
    refuses(r#"{"a":1,"\u0061":2}"#, "value.a is given twice in its object");
    refuses(r#"[{"x":{"b":1,"a":[{"a":1}],"c":3,"a":2}}]"#, "value[0].x.a is given twice in its object");
    refuses(r#"{"😀":1,"\ud83d\ude00":2}"#, r#"value["😀"] is given twice in its object"#);
    refuses(r#"{"\ud83d":1,"\uD83D":2}"#, "value[\"\u{fffd}\u{fffd}\u{fffd}\"] is given twice in its object");
    refuses(r#"{"":1,"":2}"#, r#"value[""] is given twice in its object"#);
    accepts(r#"{"a":{"a":{"a":1}},"b":{"a":1},"c":[{"a":1},{"a":1}]}"#);
    accepts(r#"{"\ud83d":1,"\ude00":2,"\ud83d\ude00":3,"\ufffd":4}"#);
    accepts(r#"{"a\u0000":1,"a":2,"a\u0000b":3}"#);
}

/// An object of `count` keys, and the place of one of them again at its end.
fn keys(count: usize, again: Option<usize>, key: impl Fn(usize) -> String) -> String {
    let mut text = "{".to_owned();
    for index in (0..count).chain(again) {
        write!(text, "{}\"{}\":0", if index == 0 && text.len() == 1 { "" } else { "," }, key(index))
            .expect("writes to a string");
    }
    text + "}"
}

#[test]
fn many_keys_are_compared_in_time() {
    for count in [2, 8, 9, 100, 1_000_000] {
        accepts(keys(count, None, |index| format!("key{index}")));
        for again in [0, count / 2, count - 1] {
            refuses(
                keys(count, Some(again), |index| format!("k{index}")),
                &format!("value.k{again} is given twice in its object"),
            );
        }
    }
    // Equal lengths and long common beginnings, which make comparing slow, and escapes, which fill the side buffer.
    let long = "x".repeat(1000);
    accepts(keys(20_000, None, |index| format!("{long}{index:06}")));
    accepts(keys(200_000, None, |index| format!("\\u0061{index}")));
    refuses(
        keys(200_000, Some(7), |index| format!("\\u0061{index}")),
        "value.a7 is given twice in its object",
    );
}

#[test]
fn depth_is_bounded_without_recursion() {
    let nested = |open: &str, close: &str, depth: usize| open.repeat(depth) + "1" + &close.repeat(depth);
    let max = JSON_DEPTH_MAX as usize;
    accepts(nested("[", "]", 5_000));
    accepts(nested("[", "]", max));
    accepts(nested("{\"a\":", "}", max));
    for text in [
        nested("[", "]", max + 1),
        nested("{\"a\":", "}", max + 1),
        nested("[", "]", 1_000_000),
        nested("[{\"\":", "}]", 500_000),
        "[".repeat(1_000_000),
        "{\"a\":".repeat(1_000_000),
    ] {
        let fault = check(text.as_bytes()).expect_err("too deep");
        assert_eq!(fault.reason, "is nested deeper than 100000 levels");
    }
}

#[test]
fn literals_cost_their_canonical_form() {
    for (text, cost) in [
        ("", 2),
        ("a", 3),
        ("\"", 4),
        ("\\", 4),
        ("\u{8}\t\n\u{c}\r", 12),
        ("\0\u{1f}\u{b}", 20),
        ("é", 4),
        ("€", 5),
        ("🚀", 6),
        ("\u{7f}\u{2028}", 6),
    ] {
        assert_eq!(cost_of_str(text), cost, "{text:?}");
        assert_eq!(quote(text).len() as u64, cost, "{text:?}");
        let quoted = quote(text);
        let literal = StringLiteral::parse(quoted.as_bytes()).expect("a literal");
        assert_eq!((literal.cost(), literal.decode().as_str()), (cost, text));
    }
    assert_eq!(StringLiteral::parse(br#""\ud83d""#).expect("a literal").cost(), 8);
    // Forged escapes never cost less than what they carry.
    assert_eq!(StringLiteral::parse(br#""\u0061\/""#).expect("a literal").cost(), 10);
}

#[test]
fn literals_decode() {
    let decode = |text: &str| StringLiteral::parse(text.as_bytes()).expect("a literal").decode();
    assert_eq!(decode(r#""\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC""#), "\"\\/\u{8}\u{c}\n\r\tAé€");
    assert_eq!(decode(r#""\ud83d\ude00""#), "😀");
    assert_eq!(decode(r#""a\ud83db""#), "a\u{fffd}b");
    assert_eq!(decode(r#""\ude00\ud83d""#), "\u{fffd}\u{fffd}");
    assert_eq!(decode(r#""\ud83d\ud83d\ude00""#), "\u{fffd}😀");
    assert_eq!(decode(r#""\ud83d\n""#), "\u{fffd}\n");
}

#[test]
fn literals_are_nothing_else() {
    for text in [
        "",
        "\"",
        "a",
        "\"a",
        "a\"",
        " \"a\"",
        "\"a\" ",
        "\"a\"\"b\"",
        "\"a\",\"b\"",
        "\"a\\\"",
        "null",
        "\"\n\"",
    ] {
        assert!(StringLiteral::parse(text.as_bytes()).is_err(), "{text:?}");
    }
    assert!(StringLiteral::parse(b"\"\xff\"").is_err());
    assert!(StringLiteral::parse(b"\"\xed\xa0\xbd\"").is_err());
}

#[test]
fn a_prefix_ends_between_characters() {
    let quotes = "\"".repeat(10_000);
    assert_eq!(prefix_of_str(&quotes, 32).expect("room"), ("\"".repeat(15).as_str(), 32));
    assert_eq!(prefix_of_str(&quotes, 33).expect("room").1, 32);
    for (text, budget, expected, cost) in [
        ("abc", 5, "abc", 5),
        ("abc", 4, "ab", 4),
        ("abc", 2, "", 2),
        ("é", 3, "", 2),
        ("a€", 5, "a", 3),
        ("🚀", 5, "", 2),
        ("🚀", 6, "🚀", 6),
        ("a\0", 8, "a", 3),
        ("a\0", 9, "a\0", 9),
    ] {
        assert_eq!(prefix_of_str(text, budget), Some((expected, cost)), "{text:?} in {budget}");
        let literal = quote(text);
        let literal = StringLiteral::parse(literal.as_bytes()).expect("a literal");
        assert_eq!(literal.prefix(budget), Some((expected.to_owned(), cost)), "{text:?} in {budget}");
    }
    let forged = StringLiteral::parse(br#""x\ud83d\ude00y""#).expect("a literal");
    assert_eq!(forged.prefix(14), Some(("x".to_owned(), 3)));
    assert_eq!(forged.prefix(15), Some(("x😀".to_owned(), 15)));
    assert_eq!(forged.prefix(u64::MAX), Some(("x😀y".to_owned(), 16)));
    let half = StringLiteral::parse(br#""ab\ud83d""#).expect("a literal");
    assert_eq!(half.prefix(9), Some(("ab".to_owned(), 4)));
    assert_eq!(half.prefix(10), Some(("ab\u{fffd}".to_owned(), 10)));
    for budget in [0, 1] {
        assert_eq!(half.prefix(budget), None);
        assert_eq!(prefix_of_str("a", budget), None);
    }
}

/// Any JSON text, as a tree would print it, with escapes and white space as they come.
fn any_text() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| n.to_string()),
        "-?[0-9]{1,25}([.][0-9]{1,3})?([eE][-+]?[0-9]{1,3})?",
        any::<String>().prop_map(|s| quote(&s)),
        r#""(\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}|[a-zé€🚀 ]){0,8}""#,
    ];
    scalar.prop_recursive(5, 40, 6, |inner| {
        let key = prop_oneof!["[ab]{0,2}", Just("\\u0061".to_owned()), Just("\\ud83d".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| format!("[{}]", items.join(" ,\n"))),
            prop::collection::vec((key, inner), 0..6).prop_map(|entries| {
                let entries: Vec<String> = entries.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
                format!("{{ {} }}", entries.join(","))
            }),
        ]
    })
}

/// What [`check`] refuses and a grammar checker does not, judged by a second, plain implementation.
fn lossy(text: &str) -> bool {
    fn number_lossy(literal: &str) -> bool {
        let double: f64 = literal.parse().expect("a number");
        let integer = !literal.contains(['.', 'e', 'E']);
        double.is_infinite()
            || (double == 0.0 && double.is_sign_negative())
            || (integer && format!("{double}") != literal && format!("{double:.0}") != literal)
    }
    let mut rest = text;
    let mut in_string = false;
    let mut number = String::new();
    while let Some(c) = rest.chars().next() {
        if in_string {
            let skip = if c == '\\' { 2 } else { c.len_utf8() };
            in_string = c != '"';
            rest = &rest[skip..];
            continue;
        }
        if c.is_ascii_digit()
            || (matches!(c, '-' | '+' | '.' | 'E' | 'e') && (c == '-' || !number.is_empty()))
        {
            number.push(c);
        } else if !number.is_empty() {
            if number_lossy(&number) {
                return true;
            }
            number.clear();
        }
        in_string = c == '"';
        rest = &rest[c.len_utf8()..];
    }
    !number.is_empty() && number_lossy(&number)
}

/// Whether an object has a key twice: parsed with every key kept.
fn doubled(text: &str) -> bool {
    use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
    struct Probe(bool);
    impl<'de> Deserialize<'de> for Probe {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            struct V;
            impl<'de> Visitor<'de> for V {
                type Value = Probe;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("JSON")
                }
                fn visit_unit<E>(self) -> Result<Probe, E> {
                    Ok(Probe(false))
                }
                fn visit_bool<E>(self, _: bool) -> Result<Probe, E> {
                    Ok(Probe(false))
                }
                fn visit_f64<E>(self, _: f64) -> Result<Probe, E> {
                    Ok(Probe(false))
                }
                fn visit_i64<E>(self, _: i64) -> Result<Probe, E> {
                    Ok(Probe(false))
                }
                fn visit_u64<E>(self, _: u64) -> Result<Probe, E> {
                    Ok(Probe(false))
                }
                fn visit_str<E>(self, _: &str) -> Result<Probe, E> {
                    Ok(Probe(false))
                }
                fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Probe, A::Error> {
                    let mut found = false;
                    while let Some(Probe(inner)) = seq.next_element()? {
                        found |= inner;
                    }
                    Ok(Probe(found))
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Probe, A::Error> {
                    let mut found = false;
                    let mut seen = std::collections::HashSet::new();
                    while let Some((key, Probe(inner))) = map.next_entry::<String, Probe>()? {
                        found |= inner | !seen.insert(key);
                    }
                    Ok(Probe(found))
                }
            }
            d.deserialize_any(V)
        }
    }
    serde_json::from_str::<Probe>(text).is_ok_and(|Probe(found)| found)
}

proptest! {
    /// Where serde_json reads a text, and every number and key is fine, so does the checker, and else not. Numbers
    /// beyond every double and half surrogates are out of serde_json's reach and have tests of their own.
    #[test]
    fn agrees_with_serde_json(text in any_text()) {
        match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(_) => prop_assert_eq!(check(text.as_bytes()).is_ok(), !lossy(&text) && !doubled(&text)),
            Err(error) if error.to_string().contains("number out of range") => prop_assert!(check(text.as_bytes()).is_err()),
            Err(error) if error.to_string().contains("surrogate") || error.to_string().contains("hex escape") => {}
            Err(_) => prop_assert!(check(text.as_bytes()).is_err()),
        }
    }

    /// One byte put in, taken out or changed: the two still agree on the grammar.
    #[test]
    fn agrees_with_serde_json_on_damaged_text(text in any_text(), at in any::<prop::sample::Index>(), byte in any::<u8>(), how in 0..3) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = byte,
            1 => { bytes.remove(at); }
            _ => bytes.insert(at, byte),
        }
        match (serde_json::from_slice::<serde::de::IgnoredAny>(&bytes), check(&bytes)) {
            (Ok(_), Err(fault)) => prop_assert!(!fault.reason.contains("not JSON"), "{}", fault),
            (Err(error), Ok(())) => prop_assert!(false, "{}", error),
            _ => {}
        }
    }

    #[test]
    fn a_literal_survives_its_quotes(text in any::<String>(), budget in 0_u64..64) {
        let quoted = quote(&text);
        prop_assert_eq!(serde_json::from_str::<String>(&quoted).ok(), Some(text.clone()));
        prop_assert_eq!(cost_of_str(&text), quoted.len() as u64);
        let literal = StringLiteral::parse(quoted.as_bytes()).expect("a literal");
        prop_assert_eq!(literal.decode(), text.as_str());
        let of_str = prefix_of_str(&text, budget);
        prop_assert_eq!(literal.prefix(budget), of_str.map(|(text, cost)| (text.to_owned(), cost)));
        if let Some((prefix, cost)) = of_str {
            prop_assert!(text.starts_with(prefix) && cost <= budget && cost == cost_of_str(prefix));
            // The next character would not have fitted.
            if let Some(next) = text[prefix.len()..].chars().next() {
                let longer = format!("{prefix}{next}");
                prop_assert!(cost_of_str(&longer) > budget);
            }
        } else {
            prop_assert!(budget < 2);
        }
    }

    /// However a literal is escaped, its parts cost no less than the canonical form of what they decode to, half
    /// surrogates aside, which decode to less than they cost.
    #[test]
    fn forged_escapes_gain_nothing(literal in r#""(\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}|\\ud83d|\\ude00|[a-zé€🚀]){0,12}""#, budget in 2_u64..64) {
        let literal = StringLiteral::parse(literal.as_bytes()).expect("a literal");
        prop_assert!(cost_of_str(&literal.decode()) <= literal.cost());
        let (prefix, cost) = literal.prefix(budget).expect("room for quotes");
        prop_assert!(cost <= budget && cost_of_str(&prefix) <= cost);
        prop_assert!(literal.decode().starts_with(&prefix));
    }

    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = check(&bytes);
        let _ = StringLiteral::parse(&bytes);
    }
}
