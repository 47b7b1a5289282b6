//! What a model is shown in TypeScript: how to write a program, and the declarations of what it may call.

use super::Declarations;
use crate::names::{Given, filled};
use crate::text;

/// Names that the section itself and the types in it use.
const RESERVED: [&str; 12] = [
    "JsonValue",
    "ToolArgsMap",
    "ToolOutputMap",
    "ToolName",
    "ToolCallError",
    "Record",
    "Promise",
    "Error",
    "Object",
    "Tool",
    "Catalog",
    "String",
];

pub(crate) const JSON_VALUE: &str =
    "type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };";

const INSTRUCTIONS: &str = "\
## Writing programs for `run_code`

`run_code` takes two required arguments: `code`, a program, and `description`, what the program does in 5 to 10 words \
in active voice.

- `code` is the body of an async TypeScript function, in erasable syntax only (no `enum`, no `namespace`). Types are \
advice: they are erased, not checked.
- Call a tool with `await tools.name(args)`, and one whose name is no identifier with `await tools[\"its name\"](args)`. \
These declarations exist in programs only; no tool in them can be called in another way.
- A call resolves to the tool's value, typed below. Arguments must be lossless JSON: no `undefined`, functions, \
dates, `NaN` or the like.
- A call that fails rejects with `ToolCallError`, which has `toolName` and a readable `message`; catch it to go on.
- Independent calls that only read MAY overlap under `Promise.all`; calls that change something run alone, in the \
order in which they were made. Await one call before another that depends on it.
- Only what the program prints with `console.log` or returns comes back to you. Images of successful results are \
attached after the run; no other result of a call enters the conversation.
";

const ERROR: &str = "\
declare class ToolCallError extends Error {
  readonly name: \"ToolCallError\";
  readonly toolName: ToolName;
}";

const TOOLS: &str = "\
declare const tools: { [Name in ToolName]: (args: ToolArgsMap[Name]) => Promise<ToolOutputMap[Name]> };";

/// Tools whose names are given, in the order in which they are shown.
pub(crate) fn named<'a>(tools: impl Iterator<Item = &'a Declarations>) -> Vec<Vec<String>> {
    let mut given = Given::new(&RESERVED);
    tools.map(|tool| given.give(&tool.wanted)).collect()
}

/// The whole section. `example` is a program that calls one of the tools.
pub(crate) fn section<'a>(
    tools: impl Iterator<Item = (&'a Declarations, &'a [String])>,
    example: Option<&str>,
) -> String {
    let (aliases, maps) = maps(tools);
    let body = [JSON_VALUE, &aliases, &maps, "type ToolName = keyof ToolOutputMap;", ERROR, TOOLS]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n");
    let example = example.map(example_text).unwrap_or_default();
    format!("{INSTRUCTIONS}{example}\nThe tools that a program may call:\n\n{}", text::fenced("ts", &body))
}

/// The declarations of some of the tools, as they stand in the section.
pub(crate) fn described<'a>(tools: impl Iterator<Item = (&'a Declarations, &'a [String])>) -> String {
    let (aliases, maps) = maps(tools);
    if aliases.is_empty() { maps } else { format!("{aliases}\n\n{maps}") }
}

fn maps<'a>(tools: impl Iterator<Item = (&'a Declarations, &'a [String])>) -> (String, String) {
    let (mut aliases, mut arguments, mut outputs) = (String::new(), String::new(), String::new());
    for (tool, names) in tools {
        aliases.push_str(&filled(&tool.aliases, names));
        arguments.push_str(&filled(&tool.arguments, names));
        outputs.push_str(&filled(&tool.output, names));
    }
    let interface = |name: &str, members: &str| match members {
        "" => format!("interface {name} {{}}"),
        _ => format!("interface {name} {{\n{members}}}"),
    };
    let maps = [interface("ToolArgsMap", &arguments), interface("ToolOutputMap", &outputs)].join("\n\n");
    (aliases.trim_end().to_owned(), maps)
}

/// The section where not all declarations are shown: the catalogue, and how to get at the rest.
pub(crate) fn catalogued(catalogue: &str, example: Option<&str>) -> String {
    let body = [JSON_VALUE, "type ToolName = string;", ERROR, CATALOG, ANY_TOOL].join("\n\n");
    let example = example.map(example_text).unwrap_or_default();
    format!("{INSTRUCTIONS}{example}{CATALOG_INSTRUCTIONS}\n{}\n{catalogue}", text::fenced("ts", &body))
}

fn example_text(example: &str) -> String {
    format!("\nA complete program:\n\n{}", text::fenced("ts", example))
}

const CATALOG_INSTRUCTIONS: &str = "
There are more tools than are declared here. In a program, `catalog.search` finds tools and `catalog.describe` gives \
their declarations as text: print what you need, then write the program that calls them.
";

const CATALOG: &str = "\
declare const catalog: {
  /** The tools that fit a few words best, best first. */
  search(args: { query: string; limit?: number }): Promise<{ tools: { name: string; description: string }[]; total: number }>;
  /** The declarations of these tools; names that no tool has are in `unknown`. */
  describe(args: { names: string[] }): Promise<{ declarations: string; unknown: string[] }>;
};";

const ANY_TOOL: &str = "\
declare const tools: { [name: string]: (args: Record<string, JsonValue>) => Promise<any> };";
