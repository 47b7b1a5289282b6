//! Strips each file named on the command line and prints what became of it, one JSON object a line. `-` reads programs
//! from standard input, one JSON string a line.

use std::io::BufRead;

use codemode_strip::{StripResult, strip};
use serde_json::{Value, json};

fn answer(name: &str, program: &str) -> Value {
    match strip(program) {
        StripResult::Stripped { shape, source, hints } => {
            json!({ "file": name, "shape": format!("{shape:?}"), "source": source, "hints": hints })
        }
        StripResult::Refused { message, line, column } => {
            json!({ "file": name, "refused": message, "line": line, "column": column })
        }
    }
}

#[expect(clippy::print_stdout, reason = "its purpose")]
fn main() -> std::io::Result<()> {
    for path in std::env::args().skip(1) {
        if path != "-" {
            println!("{}", answer(&path, &String::from_utf8_lossy(&std::fs::read(&path)?)));
            continue;
        }
        for line in std::io::stdin().lock().lines() {
            let program: String = serde_json::from_str(&line?)?;
            println!("{}", answer("-", &program));
        }
    }
    Ok(())
}
