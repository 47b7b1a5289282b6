//! Schemas made to break a generator: deep ones, those that grow when they are written out, large ones.

mod support;

use codemode_sdk::{Language, Sdk, ToolSignature};
use serde_json::{Map, Value, json};

use support::{lex, nested, sdk};

const DEPTH: usize = 100_000;

/// The text in both languages, on a small stack: whatever recurses without a bound overflows it.
fn texts(schema: Value) -> [String; 2] {
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let texts = thread.spawn(move || {
        let sdk: Sdk = sdk(&[ToolSignature::new("t", "", Some(schema), None)]);
        let _ = sdk.example("t", Language::TypeScript);
        Language::ALL.map(|language| sdk.text(language).to_owned())
    });
    let texts = texts.expect("a thread").join().expect("no panic");
    lex::typescript(&lex::fences(&texts[0]).pop().expect("a fence").1).expect("TypeScript");
    lex::python(&lex::fences(&texts[1]).pop().expect("a fence").1).expect("Python");
    texts
}

#[test]
fn any_depth_is_read_220_224() {
    let object =
        |inner: Value, key: &str| Value::Object([(key.to_owned(), inner)].into_iter().collect::<Map<_, _>>());
    let list = |inner: Value| Value::Array(vec![inner]);
    type Level = Box<dyn Fn(Value) -> Option<(&'static str, Value)>>;
    let levels: Vec<(&str, Level)> = vec![
        ("items", Box::new(|inner| Some(("items", inner)))),
        ("additionalProperties", Box::new(|inner| Some(("additionalProperties", inner)))),
        ("properties", Box::new(move |inner| Some(("properties", object(inner, "a"))))),
        ("anyOf", Box::new(move |inner| Some(("anyOf", list(inner))))),
        ("oneOf", Box::new(move |inner| Some(("oneOf", list(inner))))),
        ("allOf", Box::new(move |inner| Some(("allOf", list(inner))))),
        ("prefixItems", Box::new(move |inner| Some(("prefixItems", list(inner))))),
        ("const", Box::new(|inner| Some(("const", inner)))),
        ("default", Box::new(|inner| Some(("default", inner)))),
        ("patternProperties", Box::new(move |inner| Some(("patternProperties", object(inner, "^a"))))),
        ("not", Box::new(|inner| Some(("not", inner)))),
    ];
    for (name, level) in levels {
        let [typescript, python] = texts(nested(DEPTH, level));
        assert!(
            typescript.len() < 1 << 20 && python.len() < 1 << 20,
            "{name}: {} {}",
            typescript.len(),
            python.len()
        );
    }
}

#[test]
fn alternating_alternatives_are_read_at_any_depth() {
    let mut is_all = false;
    let cell = std::cell::Cell::new(false);
    let schema = nested(DEPTH, |inner| {
        cell.set(!cell.get());
        let list = Value::Array(vec![
            Value::Object(Map::from_iter([("type".to_owned(), Value::from("null"))])),
            inner,
        ]);
        Some((if cell.get() { "anyOf" } else { "allOf" }, list))
    });
    is_all |= cell.get();
    texts(schema);
    assert!(!is_all, "an even number of levels");
}

/// Definitions that each refer to the next one twice: written out they would be 2^40 times the last.
#[test]
fn definitions_that_double_do_not_grow() {
    for keyword in ["properties", "allOf", "anyOf"] {
        let reference = |index: usize| json!({"$ref": format!("#/$defs/d{index}")});
        let mut defs = Map::new();
        for index in 0..40 {
            let next = if index == 39 { json!({"type": "string"}) } else { reference(index + 1) };
            let twice = if keyword == "properties" {
                json!({"type": "object", "properties": {"a": next, "b": next}})
            } else {
                json!({keyword: [next, {"properties": {"x": next}}]})
            };
            defs.insert(format!("d{index}"), twice);
        }
        let [typescript, python] = texts(json!({"$defs": defs, "properties": {"root": reference(0)}}));
        assert!(
            typescript.len() < 40_000 && python.len() < 400_000,
            "{keyword}: {} {}",
            typescript.len(),
            python.len()
        );
    }
}

#[test]
fn a_chain_of_references_is_followed_once() {
    let count = 20_000;
    for inner in [false, true] {
        let link = |index: usize| {
            let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
            if inner { json!({"properties": {"next": next}}) } else { next }
        };
        let mut defs: Map<_, _> = (0..count).map(|index| (format!("d{index}"), link(index))).collect();
        defs.insert(format!("d{count}"), json!({"type": "string"}));
        let all = (0..count).map(|index| (format!("p{index}"), json!({"$ref": format!("#/$defs/d{index}")})));
        let schema = json!({"$defs": defs, "properties": Value::Object(all.collect())});
        let [typescript, _] = texts(schema);
        assert!(typescript.contains(if inner { "p0?: TD0;" } else { "p0?: string;" }));
    }
}

#[test]
fn a_chain_of_all_of_is_not_merged_for_ever() {
    let count = 5_000;
    let link = |index: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{}", index + 1)}, {"properties": {format!("f{index}"): {"type": "string"}}}]});
    let mut defs: Map<_, _> = (0..count).map(|index| (format!("d{index}"), link(index))).collect();
    defs.insert(format!("d{count}"), json!({"type": "object", "properties": {"end": {}}}));
    let [_, python] = texts(json!({"$defs": defs, "$ref": "#/$defs/d0"}));
    assert!(python.len() < 16 << 20, "{}", python.len());
}

#[test]
fn a_megabyte_of_anything_has_a_text_of_bounded_size() {
    let branches: Vec<_> = (0..40_000).map(|index| json!({"const": format!("value {index}")})).collect();
    let fields: Map<_, _> = (0..20_000)
        .map(|index| (format!("field_{index}"), json!({"type": "integer", "minimum": 1})))
        .collect();
    let required: Vec<_> = (0..60_000).map(|index| format!("required_{index}")).collect();
    let names: Vec<_> = (0..60_000).map(|index| format!("n{index}")).collect();
    let parts: Vec<_> = (0..10_000).map(|index| json!({"properties": {format!("f{index}"): {"type": "array", "items": {"enum": [1, 2]}}}})).collect();
    for schema in [
        json!({"anyOf": branches}),
        json!({"properties": fields}),
        json!({"type": "object", "required": required}),
        json!({"propertyNames": {"enum": names}, "additionalProperties": {"type": "string"}, "type": "object"}),
        json!({"allOf": parts}),
        json!({"description": "x ".repeat(500_000)}),
        json!({"type": (0..60_000).map(|index| format!("t{index}")).collect::<Vec<_>>()}),
        json!({"$defs": {"A": {"properties": fields}}, "allOf": vec![json!({"$ref": "#/$defs/A"}); 5_000]}),
    ] {
        let [typescript, python] = texts(schema);
        assert!(
            typescript.len() < 10 << 20 && python.len() < 20 << 20,
            "{} {}",
            typescript.len(),
            python.len()
        );
    }
}
