//! Prints the SDK of a `tools/list` result: `cargo run -p codemode-sdk --example sdk_text -- FILE LANGUAGE [BUDGET]`.
#![expect(clippy::print_stdout, reason = "the text is the output")]

use std::error::Error;

use codemode_sdk::{Sdk, SdkOptions, ToolSignature};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: sdk_text FILE LANGUAGE [BUDGET]")?;
    let language = arguments.next().as_deref().unwrap_or("typescript").parse()?;
    let token_budget = arguments.next().map(|budget| budget.parse()).transpose()?;
    let listed: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let tools: Vec<_> = listed["tools"].as_array().into_iter().flatten().map(signature).collect();
    print!("{}", Sdk::build(&tools, SdkOptions { token_budget }).text(language));
    Ok(())
}

fn signature(tool: &Value) -> ToolSignature {
    let text = |key: &str| tool[key].as_str().unwrap_or_default();
    ToolSignature::new(
        text("name"),
        text("description"),
        tool.get("inputSchema").cloned(),
        tool.get("outputSchema").cloned(),
    )
}
