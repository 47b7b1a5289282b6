//! The executor's binary: arguments, the order of start and end, exit codes. Everything else is the library's.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Parser as _;
use clap::error::ErrorKind;
use codemode_executor::config::options::Options;
use codemode_executor::config::{Config, ConfigFaults, EXIT_CONFIG, EXIT_UNAVAILABLE};
use codemode_executor::context::Context;
use codemode_executor::server::{self, Bound};
use codemode_executor::supervisor::{Supervisor, orphans};
use codemode_executor::telemetry;
use codemode_wire::LayerState;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, umask};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

fn main() -> ExitCode {
    let config = match configure() {
        Ok(config) => config,
        Err(code) => return code,
    };
    telemetry::init_logging(&config);
    match protect().and_then(|()| run(config)) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn configure() -> Result<Config, ExitCode> {
    let options = Options::try_parse().map_err(|error| {
        let _ = error.print();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
            _ => ExitCode::from(EXIT_CONFIG),
        }
    })?;
    let config = options
        .with_file()
        .map_err(|fault| ConfigFaults(vec![fault]))
        .and_then(|options| Config::validate(&options, &beside()));
    config.map_err(|faults| {
        let _ = writeln!(std::io::stderr(), "{faults}");
        ExitCode::from(EXIT_CONFIG)
    })
}

/// The folder of this binary.
fn beside() -> PathBuf {
    let binary = std::env::current_exe().unwrap_or_default();
    binary.parent().map(PathBuf::from).unwrap_or_default()
}

/// What protects the executor itself: a runner of the same user must not read or trace it, nothing of its memory may
/// reach a disk, files it makes are its own, and whatever its children leave behind becomes its child.
fn protect() -> anyhow::Result<()> {
    umask(Mode::from_bits_truncate(0o077));
    nix::sys::prctl::set_dumpable(false).context("cannot make the executor undumpable")?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("cannot forbid core dumps")?;
    nix::sys::prctl::set_child_subreaper(true).context("cannot become a subreaper")?;
    Ok(())
}

fn run(config: Config) -> anyhow::Result<ExitCode> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers()).enable_all().build()?;
    let code = runtime.block_on(start(config));
    // Nothing is left to wait for; a thread stuck in the kernel must not keep the process.
    runtime.shutdown_background();
    code
}

/// Threads that serve: half the cores, as most of a run is its own process's and its zygote's work. On two cores a
/// second thread only takes their time: it is woken for each task that the first would have come to by itself.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

async fn start(config: Config) -> anyhow::Result<ExitCode> {
    let stops = Stops::watch(config.parent_watch)?;
    let bound = Bound::bind(&config.listen).await?;
    let metrics = match config.metrics_listen {
        Some(address) => Some(tokio::net::TcpListener::bind(address).await.context("cannot serve metrics")?),
        None => None,
    };
    let address = bound.address()?;
    let supervisor = match Supervisor::start(&config).await {
        Ok(supervisor) => supervisor,
        Err(error) => {
            tracing::error!("{:#}", anyhow::Error::from(error));
            return Ok(ExitCode::from(EXIT_UNAVAILABLE));
        }
    };
    log_layers(&supervisor);
    tokio::spawn(orphans::watch());
    let context = Context::new(config, supervisor);
    if let Some(listener) = metrics {
        tokio::spawn(server::serve_metrics(Arc::clone(&context), listener));
    }
    let (stop, hurry) = (stops.reached(1), stops.reached(2));
    tracing::info!(address, "listening");
    let served = server::serve(context, bound, announced(address, stop), hurry).await;
    served.context("cannot serve")?;
    Ok(ExitCode::SUCCESS)
}

/// Says which sandbox layers are not in force, and why; those that were turned off more loudly.
fn log_layers(supervisor: &Supervisor) {
    for info in supervisor.engines() {
        let engine = info.engine;
        for report in info.layers.iter().filter(|report| report.state != LayerState::InForce) {
            let (layer, reason) = (report.layer.name(), report.reason.as_str());
            if report.state == LayerState::Off && report.reason.contains("configuration") {
                tracing::warn!(%engine, layer, reason, "a sandbox layer is turned off");
            } else {
                tracing::info!(%engine, layer, reason, "a sandbox layer is not in force");
            }
        }
    }
}

/// Says where the executor listens, in the one line that it writes to stdout, and then waits for the end.
async fn announced(address: String, stop: impl Future<Output = ()>) {
    let mut stdout = std::io::stdout();
    // Who does not read it does not need it.
    let _ = writeln!(stdout, "listening on {address}").and_then(|()| stdout.flush());
    stop.await;
}

/// How often the executor was asked to end.
struct Stops(watch::Receiver<u32>);

impl Stops {
    /// Counts SIGTERM and SIGINT; the end of stdin counts for two, as there is nobody left to wait for.
    fn watch(stdin: bool) -> anyhow::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (count, stops) = watch::channel(0);
        tokio::spawn(async move {
            let mut parent = std::pin::pin!(parent_gone(stdin));
            let mut gone = false;
            loop {
                let by = tokio::select! {
                    _ = terminate.recv() => 1,
                    _ = interrupt.recv() => 1,
                    () = &mut parent, if !gone => { gone = true; 2 }
                };
                count.send_modify(|count| *count += by);
            }
        });
        Ok(Self(stops))
    }

    /// Resolves when the executor was asked to end so often.
    fn reached(&self, wanted: u32) -> impl Future<Output = ()> + Send + use<> {
        let mut stops = self.0.clone();
        async move {
            if stops.wait_for(|count| *count >= wanted).await.is_err() {
                std::future::pending().await
            }
        }
    }
}

/// Resolves at the end of stdin, if that is watched.
async fn parent_gone(watched: bool) {
    if !watched {
        std::future::pending::<()>().await;
    }
    // A thread blocks in this read; the runtime does not wait for it when it ends.
    let mut stdin = tokio::io::stdin();
    let mut rest = [0; 256];
    while stdin.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}
