//! What the tests share: schema files, deep schemas, and readers of the text that know nothing of how it was written.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod lex;

use std::path::PathBuf;

use codemode_sdk::{Sdk, SdkOptions, ToolSignature};
use serde::Deserialize as _;
use serde_json::Value;

/// An SDK without a budget.
pub(crate) fn sdk(tools: &[ToolSignature]) -> Sdk {
    Sdk::build(tools, SdkOptions::default())
}

/// The folder of tests.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// A JSON file of `schemas`, of any depth.
pub(crate) fn read(name: &str) -> Value {
    let text =
        std::fs::read_to_string(folder().join("schemas").join(name)).expect("a file of the repository");
    let mut reader = serde_json::Deserializer::from_str(&text);
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader).expect("JSON")
}

/// The tools of a `tools/list` result.
pub(crate) fn tools(listed: &Value) -> Vec<ToolSignature> {
    listed["tools"].as_array().into_iter().flatten().map(tool).collect()
}

fn tool(tool: &Value) -> ToolSignature {
    let text = |key: &str| tool[key].as_str().unwrap_or_default();
    let schema = |key: &str| tool.get(key).cloned();
    ToolSignature::new(text("name"), text("description"), schema("inputSchema"), schema("outputSchema"))
}

/// A schema so many levels deep; each level is one member around the level below. Built without recursion.
pub(crate) fn nested(depth: usize, level: impl Fn(Value) -> Option<(&'static str, Value)>) -> Value {
    let mut schema = Value::Object([("type".to_owned(), Value::from("string"))].into_iter().collect());
    for _ in 0..depth {
        let (key, value) = level(schema).expect("a level");
        schema = Value::Object([(key.to_owned(), value)].into_iter().collect());
    }
    schema
}
