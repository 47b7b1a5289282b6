//! Writes `docs/registry-configuration.md` and `deploy/config/registry.example.toml`, or with `--check` says what is not current.
#![expect(clippy::print_stderr, reason = "a command line tool's report")]

use std::path::Path;
use std::process::ExitCode;

use codemode_registry::config::reference;

fn main() -> ExitCode {
    let check = std::env::args().skip(1).any(|arg| arg == "--check");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut code = ExitCode::SUCCESS;
    for (file, text) in [
        ("docs/registry-configuration.md", reference::markdown()),
        ("deploy/config/registry.example.toml", reference::example_toml()),
    ] {
        let path = root.join(file);
        if check {
            if std::fs::read_to_string(&path).unwrap_or_default() != text {
                eprintln!(
                    "not current: {file}; run `cargo run -p codemode-registry --example registry_config_reference`"
                );
                code = ExitCode::FAILURE;
            }
            continue;
        }
        let folder = path.parent().unwrap_or(&root);
        if let Err(error) = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text)) {
            eprintln!("cannot write {file}: {error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}
