//! Writes `src/generated` from the protos, or with `--check` says what is not current.
//!
//! `cargo run -p codemode-proto --example generate [-- --check]`. Needs no protoc: protox compiles the protos.
#![expect(clippy::print_stderr, reason = "a command line tool's report")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use prost::Message as _;

/// Each contract, and the file that its descriptor goes to: a service's reflection tells of itself alone.
const CONTRACTS: &[(&str, &str)] = &[
    ("codemode/executor/v1/executor.proto", "descriptor.bin"),
    ("codemode/registry/v1/registry.proto", "registry_descriptor.bin"),
];

fn main() -> ExitCode {
    let check = std::env::args().skip(1).any(|arg| arg == "--check");
    let result = if check { stale() } else { write() };
    match result {
        Ok(stale) if stale.is_empty() => ExitCode::SUCCESS,
        Ok(stale) => {
            eprintln!("not current: {stale:?}; run `cargo run -p codemode-proto --example generate`");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn committed() -> PathBuf {
    root().join("src/generated")
}

/// The files as they ought to be, by name.
fn generate() -> Result<BTreeMap<String, Vec<u8>>, Box<dyn Error>> {
    let out = std::env::temp_dir().join(format!("codemode-proto-{}", std::process::id()));
    std::fs::create_dir_all(&out)?;
    let mut files = BTreeMap::new();
    for (proto, descriptor) in CONTRACTS {
        let mut compiler = protox::Compiler::new([root()])?;
        compiler.include_source_info(true).include_imports(true).open_file(proto)?;
        let mut set = compiler.file_descriptor_set();
        tonic_prost_build::configure().bytes(".").out_dir(&out).compile_fds(set.clone())?;
        for file in &mut set.file {
            file.source_code_info = None;
        }
        files.insert((*descriptor).to_owned(), set.encode_to_vec());
    }
    for entry in std::fs::read_dir(&out)? {
        let entry = entry?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?);
    }
    std::fs::remove_dir_all(&out)?;
    Ok(files)
}

fn write() -> Result<Vec<String>, Box<dyn Error>> {
    for (name, bytes) in generate()? {
        std::fs::write(committed().join(name), bytes)?;
    }
    Ok(Vec::new())
}

/// Names of the committed files that differ from what the protos ask for, or that nothing asks for.
pub(crate) fn stale() -> Result<Vec<String>, Box<dyn Error>> {
    let wanted = generate()?;
    let mut stale: Vec<String> = wanted
        .iter()
        .filter(|(name, bytes)| std::fs::read(committed().join(name)).ok().as_ref() != Some(bytes))
        .map(|(name, _)| name.clone())
        .collect();
    for entry in std::fs::read_dir(committed())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !wanted.contains_key(&name) {
            stale.push(name);
        }
    }
    Ok(stale)
}
