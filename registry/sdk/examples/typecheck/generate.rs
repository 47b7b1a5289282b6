//! Schemas of no sense and every shape, from a seed.

use codemode_sdk::ToolSignature;
use serde_json::{Map, Value, json};

const DEPTH_MAX: u32 = 5;
const NAMES: [&str; 24] = [
    "id",
    "name",
    "kind",
    "type",
    "list",
    "not[labels]",
    "a-b",
    "constructor",
    "toString",
    "class",
    "from",
    "größe",
    "名前",
    "new\nline",
    "__x",
    "self",
    "str",
    "Any",
    "0",
    "",
    "*/",
    "\"\"\"",
    "str_",
    "value",
];
const DEFS: [&str; 5] = ["Node", "a/b", "m~n", "sp ace", "List"];

/// So many tools. Equal seeds, equal tools.
pub(crate) fn tools(seed: u64, count: usize) -> Vec<ToolSignature> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..count)
        .map(|index| {
            let name = match random.below(4) {
                0 => format!("tool-{index}"),
                1 => format!("{}{index}", random.of(&NAMES)),
                _ => format!("tool_{index}"),
            };
            let parameters = random.document(true);
            let output = random.document(false);
            ToolSignature::new(
                &name,
                random.of(&["Does a thing.", "*/ ends ``` \"\"\" it \\", ""]),
                parameters,
                output,
            )
        })
        .collect()
}

/// Tools with schemas beyond the depth to which anything is written, in every way to be deep.
pub(crate) fn deep() -> Vec<ToolSignature> {
    type Level = fn(Value) -> Value;
    let levels: [(&str, Level); 5] = [
        ("items", |inner| around("items", inner)),
        ("map", |inner| around("additionalProperties", inner)),
        ("object", |inner| around("properties", around("a", inner))),
        ("tuple", |inner| around("prefixItems", Value::Array(vec![inner]))),
        ("union", |inner| {
            around("anyOf", Value::Array(vec![json!({"type": "null"}), around("items", inner)]))
        }),
    ];
    let tool = |(name, level): (&str, Level)| {
        let schema = (0..300).fold(json!({"type": "string"}), |inner, _| level(inner));
        let parameters = around("properties", around("deep", schema));
        ToolSignature::new(name, "", Some(parameters), None)
    };
    levels.into_iter().map(tool).collect()
}

fn around(key: &str, inner: Value) -> Value {
    Value::Object([(key.to_owned(), inner)].into_iter().collect())
}

/// Xorshift: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        let place = usize::try_from(self.below(list.len() as u64)).unwrap_or(0);
        list[place]
    }

    fn document(&mut self, is_object: bool) -> Option<Value> {
        if self.below(20) == 0 {
            return None;
        }
        let mut schema = if is_object { self.object(0) } else { self.schema(0) };
        if let Value::Object(members) = &mut schema {
            let defs: Map<_, _> = DEFS.iter().map(|name| ((*name).to_owned(), self.schema(2))).collect();
            members.insert("$defs".to_owned(), Value::Object(defs));
        }
        Some(schema)
    }

    fn schema(&mut self, depth: u32) -> Value {
        let kinds = if depth >= DEPTH_MAX { 8 } else { 22 };
        match self.below(kinds) {
            0 => {
                json!({"type": "string", "description": self.of(&["text */", "", "```", "a\u{2028}b \u{202e}"])})
            }
            1 => json!({"type": "integer", "minimum": 1, "default": 3}),
            2 => json!({"type": ["number", "null"]}),
            3 => json!({"type": "boolean", "nullable": true}),
            4 => json!({"enum": ["a", "it's \"so\"", 1, 0.5, null, true, {"k": [1]}]}),
            5 => json!({"const": self.of(&["x", "y", "\\", "\u{0}"])}),
            6 => self
                .of(&["{}", "true", "{\"type\": \"null\"}", "{\"$ref\": \"http://127.0.0.1:9/x\"}"])
                .parse()
                .unwrap_or(Value::Null),
            7 | 8 => {
                json!({"$ref": self.of(&["#/$defs/Node", "#/$defs/a~1b", "#/$defs/m~0n", "#/$defs/sp%20ace", "#/$defs/List", "#"])})
            }
            9 => json!({"type": "array", "items": self.schema(depth + 1)}),
            10 => {
                json!({"type": "array", "prefixItems": [self.schema(depth + 1), self.schema(depth + 1)], "minItems": self.below(3)})
            }
            11 => {
                json!({"type": "array", "items": [self.schema(depth + 1)], "additionalItems": self.schema(depth + 1)})
            }
            12 => json!({"anyOf": [self.schema(depth + 1), self.schema(depth + 1)]}),
            13 => json!({"oneOf": [self.object(depth + 1), self.object(depth + 1), {"type": "null"}]}),
            14 => json!({"allOf": [self.object(depth + 1), self.object(depth + 1)]}),
            15 => json!({"allOf": [self.schema(depth + 1), self.schema(depth + 1)]}),
            16 => json!({"type": "object", "additionalProperties": self.schema(depth + 1)}),
            17 => {
                json!({"type": "object", "patternProperties": {"^x-": self.schema(depth + 1)}, "additionalProperties": false})
            }
            18 => {
                json!({"type": "object", "propertyNames": {"enum": ["a", "b-c"]}, "additionalProperties": self.schema(depth + 1)})
            }
            _ => self.object(depth + 1),
        }
    }

    fn object(&mut self, depth: u32) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for _ in 0..self.below(5) {
            let name = self.of(&NAMES);
            properties.insert(name.to_owned(), self.schema(depth + 1));
            if self.below(2) == 0 {
                required.push(name);
            }
        }
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        match self.below(4) {
            0 => schema["additionalProperties"] = Value::Bool(false),
            1 => schema["additionalProperties"] = self.schema(depth + 1),
            _ => {}
        }
        schema
    }
}
