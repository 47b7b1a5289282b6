//! The registry's binary: arguments, the order of start and end, exit codes. Everything else is the library's.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use codemode_events::{EventStore, MemoryStore, SqliteOptions, SqliteStore};
use codemode_registry::config::live::Live;
use codemode_registry::config::options::Options;
use codemode_registry::config::{
    Config, ConfigFaults, EXIT_CONFIG, EXIT_UNAVAILABLE, LogFormat, StoreChoice,
};
use codemode_registry::server::{self, Bound, programs};
use codemode_registry::service::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

/// Tools for models, and programs that call them.
#[derive(Debug, Parser)]
#[command(name = "codemode-registry", version, args_override_self = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves `codemode.registry.v1`.
    Serve(Box<Serve>),
}

#[derive(Debug, clap::Args)]
struct Serve {
    #[command(flatten)]
    options: Options,
    /// Check the configuration and do nothing else.
    #[arg(long)]
    check: bool,
    /// Print the configuration that would be in force, as TOML, and do nothing else.
    #[arg(long)]
    print_config: bool,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(EXIT_CONFIG),
            };
        }
    };
    match cli.command {
        Command::Serve(serve) => serve_command(*serve),
    }
}

fn serve_command(serve: Serve) -> ExitCode {
    let given = serve.options;
    let checked = given.clone().with_file().map_err(|fault| ConfigFaults(vec![fault]));
    let checked = checked.and_then(|options| Ok((Config::validate(&options)?, options)));
    let (config, options) = match checked {
        Ok(checked) => checked,
        Err(faults) => {
            let _ = writeln!(std::io::stderr(), "{faults}");
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    if serve.print_config {
        let table = toml::to_string(&options.over(Options::defaults())).unwrap_or_default();
        // Who does not read it does not need it.
        let _ = std::io::stdout().write_all(table.as_bytes());
        return ExitCode::SUCCESS;
    }
    if serve.check {
        return ExitCode::SUCCESS;
    }
    init_logging(&config);
    match run(config, given, options) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn init_logging(config: &Config) {
    let filter = EnvFilter::new(&config.log_filter);
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}

fn run(config: Config, given: Options, options: Options) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(start(config, given, options));
    // Nothing is left to wait for; a thread stuck in a file system must not keep the process.
    runtime.shutdown_background();
    code
}

async fn start(config: Config, given: Options, options: Options) -> anyhow::Result<ExitCode> {
    let stops = Stops::watch()?;
    let bound = Bound::bind(&config.listen).await?;
    let address = bound.address()?;
    let store = match open_store(&config.store) {
        Ok(store) => store,
        Err(error) => return Ok(unavailable(&error.context("the store cannot be opened"))),
    };
    let (programs, keeper) = match programs::start(&config.programs).await {
        Ok(started) => started,
        Err(error) => return Ok(unavailable(&error.into())),
    };
    let context = Context::new(&config, |registry| Live::new(given, options, registry), store, programs)?;
    let reloading = tokio::spawn(reload_on_hangup(Arc::clone(context.live()), signal(SignalKind::hangup())?));
    tracing::info!(address, "listening");
    let served =
        server::serve(context, &config, bound, announced(address, stops.reached(1)), stops.reached(2)).await;
    reloading.abort();
    keeper.end().await;
    served.context("cannot serve")?;
    Ok(ExitCode::SUCCESS)
}

fn unavailable(error: &anyhow::Error) -> ExitCode {
    tracing::error!("{error:#}");
    ExitCode::from(EXIT_UNAVAILABLE)
}

fn open_store(choice: &StoreChoice) -> anyhow::Result<Arc<dyn EventStore>> {
    Ok(match choice {
        StoreChoice::Memory => Arc::new(MemoryStore::default()),
        StoreChoice::Sqlite(path) => Arc::new(SqliteStore::open(&SqliteOptions::at(path))?),
    })
}

/// Reads the configuration anew on each SIGHUP; one that cannot be used changes nothing.
async fn reload_on_hangup(live: Arc<Live>, mut hangups: tokio::signal::unix::Signal) {
    while hangups.recv().await.is_some() {
        let live = Arc::clone(&live);
        match tokio::task::spawn_blocking(move || live.reload()).await {
            Ok(Ok(_)) => {}
            Ok(Err(faults)) => tracing::error!("the configuration stays as it was: {faults}"),
            Err(error) => tracing::error!(%error, "the configuration stays as it was"),
        }
    }
}

/// Says where the registry listens, in the one line that it writes to stdout, and then waits for the end.
async fn announced(address: String, stop: impl Future<Output = ()>) {
    let mut stdout = std::io::stdout();
    // Who does not read it does not need it.
    let _ = writeln!(stdout, "listening on {address}").and_then(|()| stdout.flush());
    stop.await;
}

/// How often the registry was asked to end.
struct Stops(watch::Receiver<u32>);

impl Stops {
    /// Counts SIGTERM and SIGINT.
    fn watch() -> anyhow::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (count, stops) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                count.send_modify(|count| *count += 1);
            }
        });
        Ok(Self(stops))
    }

    /// Resolves when the registry was asked to end so often.
    fn reached(&self, wanted: u32) -> impl Future<Output = ()> + Send + use<> {
        let mut stops = self.0.clone();
        async move {
            if stops.wait_for(|count| *count >= wanted).await.is_err() {
                std::future::pending().await
            }
        }
    }
}
