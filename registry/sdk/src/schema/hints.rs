//! What a schema says that a type does not, in a few words: `default: 10`, `1 to 100`, `format: date-time`.

use serde_json::{Map, Value};

use crate::text;

/// Longest default and pattern that is shown, bytes; cut ones would be wrong ones.
const VALUE_BYTES_MAX: usize = 100;
/// Bounds of this size and more only repeat the width of an integer.
const BOUND_MAX: f64 = 9_007_199_254_740_992.0;
/// Formats that say how a number is stored, not what it may be.
const WIDTHS: [&str; 10] =
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double"];

/// Words that no hint is made of, the commonest.
const WITHOUT_HINT: [&str; 10] = [
    "type",
    "description",
    "properties",
    "items",
    "required",
    "enum",
    "title",
    "additionalProperties",
    "$ref",
    "anyOf",
];

pub(super) fn hints(schema: &Map<String, Value>) -> Vec<String> {
    let mut hints = Vec::new();
    // Most schemas say nothing more, and looking every word up would be most of the work on them.
    if schema.keys().all(|key| WITHOUT_HINT.contains(&key.as_str())) {
        return hints;
    }
    if schema.get("deprecated") == Some(&Value::Bool(true)) {
        hints.push("deprecated".to_owned());
    }
    if let Some(value) = schema.get("default").and_then(|value| text::compact(value, VALUE_BYTES_MAX)) {
        hints.push(format!("default: {value}"));
    }
    hints.extend(range(schema, "minimum", "maximum", ""));
    hints.extend(exclusive(schema));
    if let Some(step) = schema.get("multipleOf").and_then(Value::as_number) {
        hints.push(format!("a multiple of {}", text::number(step)));
    }
    hints.extend(range(schema, "minLength", "maxLength", " characters"));
    hints.extend(range(schema, "minItems", "maxItems", " items"));
    hints.extend(range(schema, "minProperties", "maxProperties", " keys"));
    if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
        hints.push("no item twice".to_owned());
    }
    for (key, words) in [("format", "format: "), ("contentEncoding", "encoding: "), ("pattern", "pattern: ")]
    {
        let value = schema.get(key).and_then(Value::as_str);
        hints.extend(
            value
                .filter(|value| value.len() <= VALUE_BYTES_MAX && !WIDTHS.contains(value))
                .map(|value| format!("{words}{value}")),
        );
    }
    hints
}

fn range(schema: &Map<String, Value>, low: &str, high: &str, unit: &str) -> Option<String> {
    let exclusive = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let low = bound(schema, low).filter(|_| !exclusive("exclusiveMinimum"));
    let high = bound(schema, high).filter(|_| !exclusive("exclusiveMaximum"));
    Some(match (low, high) {
        (Some(low), Some(high)) if low == high => format!("exactly {}", counted(&low, unit)),
        (Some(low), Some(high)) => format!("{low} to {}", counted(&high, unit)),
        (Some(low), None) => format!("at least {}", counted(&low, unit)),
        (None, Some(high)) => format!("at most {}", counted(&high, unit)),
        (None, None) => return None,
    })
}

fn counted(count: &str, unit: &str) -> String {
    if count == "1" { format!("1{}", unit.trim_end_matches('s')) } else { format!("{count}{unit}") }
}

/// Both ways to exclude a bound: a number of its own, or `true` beside `minimum` (draft 4).
fn exclusive(schema: &Map<String, Value>) -> Vec<String> {
    let sides = [("exclusiveMinimum", "minimum", "more than"), ("exclusiveMaximum", "maximum", "less than")];
    let of = |(key, draft_4, words): (&str, &str, &str)| {
        let key = if schema.get(key) == Some(&Value::Bool(true)) { draft_4 } else { key };
        bound(schema, key).map(|value| format!("{words} {value}"))
    };
    sides.into_iter().filter_map(of).collect()
}

fn bound(schema: &Map<String, Value>, key: &str) -> Option<String> {
    let number = schema.get(key)?.as_number()?;
    number.as_f64().filter(|value| value.abs() < BOUND_MAX).map(|_| text::number(number))
}
