//! Embeds the web platform's scripts that the boot script loads.
//!
//! The extensions of deno's crates name their scripts by path, to be read while a snapshot is made; without one they
//! would be read from the build machine's registry when the runner starts. This copies the texts into the binary.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The scripts, by crate, without those that nothing here loads: what is not embedded cannot run.
const SCRIPTS: &[(&str, &[&str])] = &[
    ("deno_webidl", &["00_webidl.js"]),
    (
        "deno_web",
        &[
            "00_infra.js",
            "00_url.js",
            "01_console.js",
            "01_dom_exception.js",
            "02_event.js",
            "02_structured_clone.js",
            "02_timers.js",
            "03_abort_signal.js",
            "05_base64.js",
            "08_text_encoding.js",
            "13_message_port.js",
        ],
    ),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let packages = packages();
    let mut table = String::from("&[\n");
    for (package, scripts) in SCRIPTS {
        let folder = &find(&packages, package).folder;
        for script in *scripts {
            let path = folder.join(script);
            assert!(path.is_file(), "`{}` has no script `{script}`", folder.display());
            table.push_str(&format!("    (\"ext:{package}/{script}\", include_str!({path:?})),\n"));
        }
    }
    table.push_str("]\n");
    println!("cargo::rustc-env=CODEMODE_BUILD_ID={:016x}", build_id());
    // What quickjs's facade says of its version imitates a V8; its package's own number tells builds apart.
    println!("cargo::rustc-env=CODEMODE_FACADE_VERSION={}", find(&packages, "v8x").version);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("web_scripts.rs"), table).expect("OUT_DIR can be written");
}

/// Tells this build's sources from any other's: a snapshot fits only the binary that it was made with.
fn build_id() -> u64 {
    let mut hasher = DefaultHasher::new();
    for folder in ["js", "src"] {
        println!("cargo::rerun-if-changed={folder}");
        let mut files: Vec<PathBuf> = fs::read_dir(folder)
            .expect("the crate's folders can be read")
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        for file in files {
            fs::read(file).expect("the crate's files can be read").hash(&mut hasher);
        }
    }
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    fs::read("../../Cargo.lock").unwrap_or_default().hash(&mut hasher);
    env::var("PROFILE").unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

/// A package that this build resolves.
struct Package {
    name: String,
    version: String,
    folder: PathBuf,
}

fn find<'a>(packages: &'a [Package], name: &str) -> &'a Package {
    let found = packages.iter().find(|package| package.name == name);
    found.unwrap_or_else(|| panic!("cargo metadata knows no package `{name}`"))
}

fn packages() -> Vec<Package> {
    let cargo = env::var_os("CARGO").expect("cargo sets CARGO");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--filter-platform", &target])
        .output()
        .expect("cargo metadata can be started");
    assert!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    packages
        .iter()
        .filter_map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str()?);
            Some(Package {
                name: package["name"].as_str()?.to_owned(),
                version: package["version"].as_str()?.to_owned(),
                folder: manifest.parent()?.to_owned(),
            })
        })
        .collect()
}
