//! Writes programs for real type checkers: the SDK of every schema file and of generated ones, with calls that have to
//! be accepted and calls that have to be refused. `scripts/typecheck-sdk.sh` runs it, and the checkers on what it wrote.
//!
//! `typecheck SCHEMAS OUT`. Prints `N M K`: files in TypeScript, files in Python, expected refusals.
#![expect(clippy::print_stdout, reason = "the counts are the output")]

mod generate;

use std::collections::HashSet;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use codemode_sdk::{Language, Sdk, SdkOptions, ToolSignature};
use serde::Deserialize as _;
use serde_json::Value;

/// Generated schemas, in files of so many tools. The seed is fixed: the same files on every machine.
const GENERATED_FILES: u64 = 16;
const GENERATED_TOOLS: usize = 25;

/// Wrong calls that a wider type lets through in Python, as is documented: one a line.
const ACCEPTED: &str = include_str!("accepted.txt");

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(schemas), Some(out)) = (arguments.next(), arguments.next()) else {
        return Err("usage: typecheck SCHEMAS OUT".into());
    };
    let (schemas, out) = (Path::new(&schemas), Path::new(&out));
    let mut written = Written::default();
    let cases: Vec<Value> = serde_json::from_str(&fs::read_to_string(schemas.join("expect.json"))?)?;
    let calls: Vec<Value> = serde_json::from_str(&fs::read_to_string(schemas.join("calls.json"))?)?;
    for case in &cases {
        let file = text(&case["file"]);
        let listed: Value = deep(&fs::read_to_string(schemas.join(file))?)?;
        let tools: Vec<_> = listed["tools"].as_array().into_iter().flatten().map(signature).collect();
        let calls: Vec<_> = calls.iter().filter(|call| text(&call["file"]) == file).collect();
        let stem = file.trim_end_matches(".json").replace('-', "_");
        written.typescript(out, &stem, &tools, case)?;
        written.python(out, &stem, &tools, &calls)?;
    }
    for file in 0..GENERATED_FILES {
        let tools = generate::tools(file + 1, GENERATED_TOOLS);
        let stem = format!("generated_{file}");
        written.typescript(out, &stem, &tools, &Value::Null)?;
        written.python(out, &stem, &tools, &[])?;
    }
    written.typescript(out, "deep", &generate::deep(), &Value::Null)?;
    written.python(out, "deep", &generate::deep(), &[])?;
    println!("{} {} {}", written.typescript, written.python, written.refusals);
    Ok(())
}

#[derive(Default)]
struct Written {
    typescript: usize,
    python: usize,
    refusals: usize,
}

impl Written {
    fn typescript(
        &mut self,
        out: &Path,
        stem: &str,
        tools: &[ToolSignature],
        case: &Value,
    ) -> Result<(), Box<dyn Error>> {
        let sdk = Sdk::build(tools, SdkOptions::default());
        let mut program = format!("export {{}};\n{}\n", declarations(sdk.text(Language::TypeScript)));
        for call in strings(&case["good_calls"]) {
            writeln!(program, "await ({call});")?;
        }
        for name in sdk.names() {
            let Some(example) = sdk.example(name, Language::TypeScript) else { continue };
            writeln!(program, "{}", example)?;
        }
        for call in strings(&case["bad_calls"]) {
            self.refusal(&mut program, &format!("await ({call});"))?;
        }
        for tool in tools.iter().filter(|tool| has_fields(tool)) {
            self.refusal(&mut program, &format!("await tools[{}](5);", one_line(tool.name())))?;
        }
        for (index, (tool, field)) in tools.iter().flat_map(scalar_fields).enumerate() {
            let of = format!("ToolArgsMap[{}][{}]", one_line(tool), one_line(field));
            self.refusal(&mut program, &format!("export const wrong_{index}: {of} = {{ not: \"it\" }};"))?;
        }
        self.refusal(&mut program, "await tools[\"no such tool\"]({});")?;
        self.typescript += 1;
        Ok(fs::write(out.join(format!("{stem}.ts")), program.replace("return await ", "await "))?)
    }

    fn refusal(&mut self, program: &mut String, call: &str) -> Result<(), Box<dyn Error>> {
        self.refusals += 1;
        Ok(writeln!(program, "// @ts-expect-error\n{call}")?)
    }

    fn python(
        &mut self,
        out: &Path,
        stem: &str,
        tools: &[ToolSignature],
        calls: &[&Value],
    ) -> Result<(), Box<dyn Error>> {
        let sdk = Sdk::build(tools, SdkOptions::default());
        let body = declarations(sdk.text(Language::Python));
        let mut program = format!("{body}\n\n");
        let methods: HashSet<_> = body
            .lines()
            .filter_map(|line| line.strip_prefix("    async def ")?.split_once('(').map(|(name, _)| name))
            .collect();
        // Tools that are no methods stand in comments: their types are checked as those of functions.
        for (index, line) in body.lines().filter_map(|line| line.strip_prefix("    # tools[")).enumerate() {
            let types = line.split_once("\"](args: ").map_or(line, |(_, types)| types);
            writeln!(program, "async def other_{index}(args: {types}:\n    raise NotImplementedError\n")?;
        }
        writeln!(program, "async def program() -> None:\n    pass")?;
        for name in sdk.names().filter(|name| methods.contains(name)) {
            let Some(example) = sdk.example(name, Language::Python) else { continue };
            writeln!(program, "    {}", example.replace("return await ", "await "))?;
        }
        let is_shown =
            |call: &&&Value| methods.contains(text(&call["tool"])) && call["cast"] != Value::Bool(true);
        for call in calls.iter().filter(is_shown) {
            let line = format!("await tools.{}({})", text(&call["tool"]), literal(&call["args"]));
            let is_bad = text(&call["kind"]) == "bad";
            if is_bad && !ACCEPTED.lines().any(|accepted| accepted == line) {
                self.refusals += 1;
                writeln!(program, "    {line}  # type: ignore")?;
            } else {
                writeln!(program, "    {line}")?;
            }
        }
        for tool in tools.iter().filter(|tool| has_fields(tool) && methods.contains(tool.name())) {
            self.refusals += 1;
            writeln!(program, "    await tools.{}(5)  # type: ignore[arg-type]", tool.name())?;
        }
        self.python += 1;
        Ok(fs::write(out.join(format!("{stem}.py")), program)?)
    }
}

/// A value of any depth.
fn deep(text: &str) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader)
}

/// What is between the last fence's lines.
fn declarations(section: &str) -> &str {
    let end = section.trim_end().rfind('\n').unwrap_or(0);
    let fence = section[end..].trim();
    let start = section[..end].rfind(&format!("\n{fence}")).unwrap_or(0);
    section[start + 1..end].split_once('\n').map_or("", |(_, body)| body)
}

/// A literal; the directive above a call holds for one line, and this ends one too.
fn one_line(name: &str) -> String {
    Value::from(name).to_string().replace('\u{2028}', "\\u2028")
}

/// The fields of a tool's arguments that are scalars and nothing else.
fn scalar_fields(tool: &ToolSignature) -> impl Iterator<Item = (&str, &str)> {
    let properties = tool.parameters().and_then(|schema| schema["properties"].as_object());
    let is_scalar = |schema: &Value| {
        ["string", "number", "integer", "boolean"].contains(&text(&schema["type"]))
            && schema.get("enum").is_none()
    };
    let fields = properties.into_iter().flatten().filter(move |(_, schema)| is_scalar(schema));
    fields.map(|(name, _)| (tool.name(), name.as_str()))
}

fn has_fields(tool: &ToolSignature) -> bool {
    let schema = tool.parameters();
    let has = |key: &str| {
        schema.and_then(|schema| schema.get(key)).and_then(Value::as_object).is_some_and(|m| !m.is_empty())
    };
    schema.and_then(|schema| schema.get("type")) == Some(&Value::from("object")) && has("properties")
}

fn signature(tool: &Value) -> ToolSignature {
    ToolSignature::new(
        text(&tool["name"]),
        text(&tool["description"]),
        tool.get("inputSchema").cloned(),
        tool.get("outputSchema").cloned(),
    )
}

fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let pairs = members
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), literal(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}
