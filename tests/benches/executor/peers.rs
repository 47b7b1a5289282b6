//! What the executor is compared with: a worker thread of Node, a process of Node, a process of Deno; each per run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::json;

use crate::options::Options;
use crate::report::Report;
use crate::samples::Samples;

/// The script of the worker threads.
const WORKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/executor/peers/worker.mjs");
/// Where peers are installed.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench/peers");

/// The peers that there are.
#[derive(Debug)]
pub(crate) struct Peers {
    node: Option<PathBuf>,
    deno: Option<PathBuf>,
}

/// One run in a worker thread of Node.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct WorkerRun {
    /// From its making to its end, milliseconds.
    pub(crate) total_ms: f64,
    /// The program alone.
    pub(crate) run_ms: f64,
}

fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().next().unwrap_or_default().to_owned())
}

/// Deno from the Python package that carries its binary, in an environment of its own.
fn install_deno(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    let run = |program: &Path, arguments: &[&str]| -> anyhow::Result<()> {
        let output =
            Command::new(program).args(arguments).current_dir(folder).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    };
    run(Path::new("python3"), &["-m", "venv", "deno"])?;
    run(&folder.join("deno/bin/pip"), &["install", "--quiet", "deno"])
}

impl Peers {
    /// Looks for them, installs what can be installed, and says which there are.
    pub(crate) fn find(options: &Options, report: &mut Report) -> Self {
        let mut named = |name: &str, candidates: &[PathBuf]| {
            let found = candidates.iter().find_map(|path| Some((path.clone(), version(path)?)));
            if let Some((_, version)) = &found {
                report.line(format!("peer {name}: {version}"));
                report.note(name, version.as_str());
            }
            found.map(|(path, _)| path)
        };
        let node = named("node", &["node".into()]);
        let candidates = ["deno".into(), Path::new(FOLDER).join("deno/bin/deno")];
        let mut deno = named("deno", &candidates);
        let mut why = "not installed".to_owned();
        if deno.is_none() && !options.no_install {
            match install_deno(Path::new(FOLDER)) {
                Ok(()) => deno = named("deno", &candidates),
                Err(error) => why = format!("cannot be installed: {error:#}"),
            }
        }
        if node.is_none() {
            report.line("peer node: not installed; what is compared with it is left out");
        }
        if deno.is_none() {
            report.line(format!("peer deno: {why}; what is compared with it is left out"));
        }
        Self { node, deno }
    }

    /// Runs a program so often, each time in a fresh worker thread of one Node process, the first two not counted.
    pub(crate) fn workers(&self, program: &str, times: u32) -> anyhow::Result<Option<Vec<WorkerRun>>> {
        const WARM_UP: u32 = 2;
        let Some(node) = &self.node else { return Ok(None) };
        let order = json!({"program": program, "times": times + WARM_UP}).to_string();
        let output = Command::new(node).arg(WORKER).arg(order).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "node: {}", String::from_utf8_lossy(&output.stderr));
        let mut runs: Vec<WorkerRun> = serde_json::from_slice(&output.stdout).context("what node printed")?;
        Ok(Some(runs.split_off(WARM_UP as usize)))
    }

    /// A process of Node for each run.
    pub(crate) fn node_processes(
        &self,
        program: &str,
        times: u32,
        samples: &mut Samples,
    ) -> anyhow::Result<()> {
        let Some(node) = &self.node else { return Ok(()) };
        let script = format!("(async () => {{ {program} }})().then((v) => console.log(JSON.stringify(v)))");
        processes(Command::new(node).arg("-e").arg(script), times, samples)
    }

    /// A process of Deno for each run.
    pub(crate) fn deno_processes(
        &self,
        program: &str,
        times: u32,
        samples: &mut Samples,
    ) -> anyhow::Result<()> {
        let Some(deno) = &self.deno else { return Ok(()) };
        let file = Path::new(FOLDER).join("program.ts");
        std::fs::create_dir_all(FOLDER)?;
        let script = format!("(async () => {{ {program} }})().then((v) => console.log(JSON.stringify(v)))");
        std::fs::write(&file, script)?;
        let mut command = Command::new(deno);
        command
            .args(["run", "--no-remote", "--no-config", "--quiet"])
            .arg(file)
            .env("DENO_NO_UPDATE_CHECK", "1");
        processes(&mut command, times, samples)
    }
}

/// Starts a command so often and waits for its end each time; the first is not counted.
fn processes(command: &mut Command, times: u32, samples: &mut Samples) -> anyhow::Result<()> {
    command.stdin(Stdio::null());
    for count in 0..=times {
        let began = Instant::now();
        let output = command.output()?;
        let took = began.elapsed();
        ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        if count > 0 {
            samples.push(took);
        }
    }
    Ok(())
}
