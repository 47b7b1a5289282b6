//! The start-up snapshot of the v8 engine: the program's world as it stands after boot, made once when the product is
//! built, so that a process for a single run (`spawn: exec`) need not build it anew.
//!
//! The file stands beside the runner and is as trusted as the runner itself. It begins with the build's id: one that
//! was made by another build is ignored, and the engine boots the slow way. quickjs has none.

use std::path::PathBuf;

/// What a snapshot file begins with.
const MAGIC: &str = concat!("codemode-snapshot ", env!("CODEMODE_BUILD_ID"), "\n");
/// Ending of the snapshot's name; the rest is the runner's own.
const SUFFIX: &str = ".snapshot";

/// The snapshot beside this runner, if there is one of this build. It lives as long as the process.
pub(crate) fn load(jitless: bool) -> Option<&'static [u8]> {
    // A snapshot carries the flags it was made with.
    if cfg!(not(feature = "v8")) || jitless {
        return None;
    }
    let mut path = std::env::current_exe().ok()?.into_os_string();
    path.push(SUFFIX);
    let bytes = std::fs::read(PathBuf::from(path)).ok()?;
    let bytes: &'static [u8] = Box::leak(bytes.into_boxed_slice());
    bytes.strip_prefix(MAGIC.as_bytes())
}

/// Makes the snapshot and prints it.
#[cfg(feature = "v8")]
pub(crate) fn write() -> std::process::ExitCode {
    use std::io::Write;

    use std::process::ExitCode;

    match create() {
        Ok(snapshot) => {
            let mut out = std::io::stdout().lock();
            let written = out.write_all(MAGIC.as_bytes()).and_then(|()| out.write_all(&snapshot));
            if written.and_then(|()| out.flush()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// There is none to make.
#[cfg(not(feature = "v8"))]
pub(crate) fn write() -> std::process::ExitCode {
    std::process::ExitCode::from(crate::EXIT_USAGE)
}

/// The program's world as a snapshot.
#[cfg(feature = "v8")]
fn create() -> Result<Box<[u8]>, crate::engine::BootError> {
    use deno_core::{JsRuntimeForSnapshot, RuntimeOptions};

    use crate::engine::{boot_for_snapshot, extensions, platform, set_flags};

    set_flags(false);
    let mut runtime = JsRuntimeForSnapshot::new(RuntimeOptions {
        extensions: extensions(true),
        v8_platform: Some(platform()),
        ..Default::default()
    });
    boot_for_snapshot(&mut runtime)?;
    Ok(runtime.snapshot())
}
