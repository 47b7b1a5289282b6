//! How the SDK's cost grows: `cargo bench -p codemode-sdk`. Prints times, best of several passes, and the ratios that
//! show whether ten times the tools cost ten times the time. Machines differ: nothing here fails for being slow.
#![expect(clippy::print_stdout, reason = "the figures are the output")]

use std::hint::black_box;
use std::time::Instant;

use codemode_sdk::{Language, Sdk, SdkOptions, ToolSignature};
use serde_json::{Map, Value, json};

const PASSES: usize = 3;

/// A tool as servers have them: some scalars, a list of objects, a reference, an output.
fn tool(index: usize, description: &str) -> ToolSignature {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where it is, from the root of the project."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
            "mode": {"type": "string", "enum": ["fast", "careful"]},
            "edits": {"type": "array", "items": {"type": "object", "properties": {
                "old": {"type": "string"}, "new": {"type": "string"}}, "required": ["old", "new"]}},
            "filter": {"$ref": "#/$defs/Filter"},
        },
        "required": ["path"],
        "$defs": {"Filter": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/Filter"}}]}},
    });
    let output = json!({"type": "object", "properties": {"ok": {"type": "boolean"}, "text": {"type": ["string", "null"]}}});
    ToolSignature::new(&format!("tool_{index}"), description, Some(parameters), Some(output))
}

fn tools(count: usize) -> Vec<ToolSignature> {
    (0..count).map(|index| tool(index, "Does one thing, and does it well.")).collect()
}

fn milliseconds(mut work: impl FnMut()) -> f64 {
    let pass = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..PASSES).map(pass).fold(f64::INFINITY, f64::min)
}

fn growth(language: Language) {
    println!("\n{language}: all declarations, from nothing");
    let mut before = None;
    for count in [10, 100, 1_000, 10_000] {
        let tools = tools(count);
        let time = milliseconds(|| {
            black_box(Sdk::build(&tools, SdkOptions::default()).text(language));
        });
        let ratio =
            before.map_or(String::new(), |before: f64| format!("{:>6.1} times the time", time / before));
        println!("{count:>8} tools {time:>10.3} ms{ratio}");
        before = Some(time);
    }
}

fn assembly(language: Language) {
    println!("\n{language}: 500 tools");
    let mut tools = tools(500);
    let cold = milliseconds(|| {
        black_box(Sdk::build(&tools, SdkOptions::default()).text(language));
    });
    let sdk = Sdk::build(&tools, SdkOptions::default());
    let _ = sdk.text(language);
    let unchanged = milliseconds(|| {
        black_box(Sdk::key_of(&tools, SdkOptions::default()) == sdk.key() && !sdk.text(language).is_empty());
    });
    tools[250] = tool(250, "Does another thing.");
    let changed = milliseconds(|| {
        black_box(sdk.rebuilt(&tools, SdkOptions::default()).text(language));
    });
    println!(
        "    cold {cold:>8.3} ms (target < 20), unchanged {unchanged:>8.3} ms (target < 1), one changed {changed:>8.3} ms"
    );
}

/// Schemas of about a megabyte, each of one shape.
fn megabytes() {
    let many = |count: usize, item: &dyn Fn(usize) -> Value| (0..count).map(item).collect::<Vec<_>>();
    let fields: Map<_, _> = (0..18_000)
        .map(|index| (format!("field_{index}"), json!({"type": "integer", "minimum": 1})))
        .collect();
    let reference = |index: usize| json!({"$ref": format!("#/$defs/d{}", index + 1)});
    let chain: Map<_, _> = (0..15_000)
        .map(|index| (format!("d{index}"), json!({"properties": {"next": reference(index)}})))
        .collect();
    let merged: Map<_, _> = (0..8_000)
        .map(|index| {
            (
                format!("d{index}"),
                json!({"allOf": [reference(index), {"properties": {format!("f{index}"): {}}}]}),
            )
        })
        .collect();
    let shapes = [
        ("one object", json!({"properties": fields})),
        ("alternatives", json!({"anyOf": many(35_000, &|index| json!({"const": format!("value {index}")}))})),
        ("a chain of references", json!({"$defs": chain, "$ref": "#/$defs/d0"})),
        ("a chain of allOf", json!({"$defs": merged, "$ref": "#/$defs/d0"})),
        (
            "allOf of one large definition",
            json!({"$defs": {"A": {"properties": fields}}, "allOf": vec![json!({"$ref": "#/$defs/A"}); 15_000]}),
        ),
        ("empty schemas", json!({"anyOf": vec![json!({}); 300_000]})),
        ("a description", json!({"description": "word ".repeat(200_000)})),
    ];
    println!("\nschemas of a megabyte (target < 1000 ms)");
    for (name, schema) in shapes {
        let tools = [ToolSignature::new("t", "", Some(schema), None)];
        for language in Language::ALL {
            let mut size = 0;
            let time = milliseconds(|| {
                let sdk = Sdk::build(&tools, SdkOptions::default());
                size = black_box(sdk.text(language)).len();
            });
            println!("{name:<32} {:<11} {time:>8.1} ms {size:>10} bytes of text", language.name());
        }
    }
}

fn main() {
    for language in Language::ALL {
        growth(language);
        assembly(language);
    }
    megabytes();
}
