//! Strips each file named on the command line and prints what became of it, one JSON object a line.

use codemode_strip::{StripResult, strip};

#[expect(clippy::print_stdout, reason = "its purpose")]
fn main() -> std::io::Result<()> {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let answer = match strip(&String::from_utf8_lossy(&bytes)) {
            StripResult::Stripped { shape, source, hints } => {
                serde_json::json!({ "file": path, "shape": format!("{shape:?}"), "source": source, "hints": hints })
            }
            StripResult::Refused { message, line, column } => {
                serde_json::json!({ "file": path, "refused": message, "line": line, "column": column })
            }
        };
        println!("{answer}");
    }
    Ok(())
}
