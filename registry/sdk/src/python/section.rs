//! What a model is shown in Python: how to write a program, and the declarations of what it may call.

use std::collections::BTreeSet;

use super::Declarations;
use crate::names::{Given, filled};
use crate::text;

/// Names that the section itself, the types in it and the language use.
const RESERVED: [&str; 15] = [
    "Any",
    "Exception",
    "False",
    "Literal",
    "Never",
    "None",
    "NotRequired",
    "Protocol",
    "Tool",
    "ToolCallError",
    "Tools",
    "True",
    "TypedDict",
    "Catalog",
    "CatalogTool",
];

const INSTRUCTIONS: &str = "\
## Writing programs for `run_code`

`run_code` takes two required arguments: `code`, a program, and `description`, what the program does in 5 to 10 words \
in active voice.

- `code` is the body of an async Python function. Types are advice and not checked. At run time only `tools` and \
`ToolCallError` exist: the `TypedDict` classes below are stubs, so build plain dicts.
- Call a tool with `await tools.name(args)`, and one whose name is no identifier with `await tools[\"its name\"](args)`. \
These declarations exist in programs only; no tool in them can be called in another way.
- A call gives the tool's value, typed below. Arguments must be lossless JSON: dicts with string keys, lists, \
strings, finite numbers, booleans, `None`.
- A call that fails raises `ToolCallError`, which has `toolName` and a readable message; catch it to go on.
- Independent calls that only read MAY overlap under `asyncio.gather`; calls that change something run alone, in the \
order in which they were made. Await one call before another that depends on it.
- Only what the program prints with `print` or returns with `return` comes back to you. Images of successful results \
are attached after the run; no other result of a call enters the conversation.
";

const CATALOG_INSTRUCTIONS: &str = "
There are more tools than are declared here. In a program, `catalog.search` finds tools and `catalog.describe` gives \
their declarations as text: print what you need, then write the program that calls them.
";

const ERROR: &str = "class ToolCallError(Exception):\n    toolName: str\n\n\n";

const CATALOG: &str = "\
class CatalogTool(TypedDict):
    name: str
    description: str


class CatalogSearch(TypedDict):
    query: str
    limit: NotRequired[int]


class CatalogFound(TypedDict):
    tools: list[CatalogTool]
    total: int


class CatalogDescribe(TypedDict):
    names: list[str]


class CatalogDescribed(TypedDict):
    declarations: str
    unknown: list[str]


class Catalog(Protocol):
    async def search(self, args: CatalogSearch) -> CatalogFound:
        \"\"\"The tools that fit a few words best, best first.\"\"\"
    async def describe(self, args: CatalogDescribe) -> CatalogDescribed:
        \"\"\"The declarations of these tools; names that no tool has are in unknown.\"\"\"


class AnyTool(Protocol):
    async def __call__(self, args: dict[str, Any]) -> Any: ...


class Tools(Protocol):
    def __getattr__(self, name: str) -> AnyTool: ...
    def __getitem__(self, name: str) -> AnyTool: ...


catalog: Catalog
tools: Tools";

/// The names that each tool's classes have, in the order in which tools are shown. A method would hide a class of its
/// name, so no class has one.
pub(crate) fn named<'a>(
    tools: impl Iterator<Item = &'a Declarations>,
    tool_names: &[&str],
) -> Vec<Vec<String>> {
    let mut given = Given::new(&[&RESERVED[..], tool_names].concat());
    tools.map(|tool| given.give(&tool.wanted)).collect()
}

/// The whole section. `example` is a program that calls one of the tools.
pub(crate) fn section<'a>(
    tools: impl Iterator<Item = (&'a Declarations, &'a [String])>,
    example: Option<&str>,
) -> String {
    let body = format!("{}\n\ntools: Tools", Declared::of(tools).text(ERROR));
    let example = example.map(example_text).unwrap_or_default();
    format!(
        "{INSTRUCTIONS}{example}\nThe tools that a program may call:\n\n{}",
        text::fenced("python", &body)
    )
}

/// The declarations of some of the tools, as they stand in the section.
pub(crate) fn described<'a>(tools: impl Iterator<Item = (&'a Declarations, &'a [String])>) -> String {
    Declared::of(tools).text("").trim_end().to_owned()
}

/// The section where not all declarations are shown: the catalogue, and how to get at the rest.
pub(crate) fn catalogued(catalogue: &str, example: Option<&str>) -> String {
    let symbols = BTreeSet::from(["Any", "NotRequired", "Protocol", "TypedDict"]);
    let body = format!("{}{ERROR}{CATALOG}", imports(&symbols, false));
    let example = example.map(example_text).unwrap_or_default();
    format!("{INSTRUCTIONS}{example}{CATALOG_INSTRUCTIONS}\n{}\n{catalogue}", text::fenced("python", &body))
}

fn example_text(example: &str) -> String {
    format!("\nA complete program:\n\n{}", text::fenced("python", example))
}

/// Declarations put together.
#[derive(Default)]
struct Declared {
    classes: String,
    members: String,
    has_method: bool,
    is_recursive: bool,
    symbols: BTreeSet<&'static str>,
}

impl Declared {
    fn of<'a>(tools: impl Iterator<Item = (&'a Declarations, &'a [String])>) -> Self {
        let mut declared = Self::default();
        for (tool, names) in tools {
            declared.classes.push_str(&filled(&tool.classes, names));
            declared.members.push_str(&filled(&tool.member, names));
            declared.has_method |= tool.is_method;
            declared.is_recursive |= tool.is_recursive;
            declared.symbols.extend(&tool.symbols);
        }
        declared.symbols.insert("Protocol");
        declared
    }

    fn text(&self, before: &str) -> String {
        let Self { classes, members, .. } = self;
        // Comments are no body.
        let pass = if self.has_method { "" } else { "    pass\n" };
        let imports = imports(&self.symbols, self.is_recursive);
        format!("{imports}{before}{classes}class Tools(Protocol):\n{members}{pass}")
    }
}

fn imports(symbols: &BTreeSet<&'static str>, is_recursive: bool) -> String {
    let late = if is_recursive { "from __future__ import annotations\n\n" } else { "" };
    let symbols: Vec<_> = symbols.iter().copied().collect();
    format!("{late}from typing import {}\n\n\n", symbols.join(", "))
}
