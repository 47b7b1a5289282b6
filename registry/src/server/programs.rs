//! Where programs run: executors that were named, or a private one, which is started again when it dies.

use std::sync::Arc;
use std::time::Duration;

use codemode_client::RuntimeError;
use codemode_client::grpc::{GrpcConfig, GrpcRuntime};
use codemode_client::local::{LocalError, LocalExecutor, LocalOptions};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::ProgramsChoice;
use crate::service::Programs;

/// Between two attempts to start a private executor again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Why programs cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    /// No private executor.
    #[error("the private executor does not start{}", log.as_deref().map(|log| format!("; its log ends with\n{log}")).unwrap_or_default())]
    Private {
        /// Why not.
        #[source]
        source: LocalError,
        /// The end of its log.
        log: Option<String>,
    },
    /// An executor cannot be reached.
    #[error("no executor can be used")]
    Executor(#[from] RuntimeError),
}

/// What keeps programs running; [`Keeper::end`] ends a private executor in order.
#[derive(Debug)]
pub struct Keeper {
    stop: CancellationToken,
    watch: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Ends the private executor, if there is one.
    pub async fn end(self) {
        self.stop.cancel();
        if let Some(watch) = self.watch {
            // It has no panic of its own, and nothing more can be done about one.
            let _ = watch.await;
        }
    }
}

/// Gets what runs programs.
///
/// # Errors
/// [`ProgramsError`].
pub async fn start(choice: &ProgramsChoice) -> Result<(Programs, Keeper), ProgramsError> {
    let stop = CancellationToken::new();
    match choice {
        ProgramsChoice::Nowhere => Ok((Programs::default(), Keeper { stop, watch: None })),
        ProgramsChoice::Executors(config, addresses) => {
            let runtime = GrpcRuntime::connect((**config).clone()).await?;
            let programs = Programs { runtime: Some(Arc::new(runtime)), executors: addresses.clone() };
            Ok((programs, Keeper { stop, watch: None }))
        }
        ProgramsChoice::Private(options, connect) => {
            let local = start_private(options).await?;
            let mut config = GrpcConfig::new([local.address()]).map_err(RuntimeError::Config)?;
            config.connect_timeout = *connect;
            let runtime = GrpcRuntime::connect(config).await?;
            let programs =
                Programs { runtime: Some(Arc::new(runtime)), executors: vec!["private".to_owned()] };
            let watch = tokio::spawn(watch(local, stop.clone()));
            Ok((programs, Keeper { stop, watch: Some(watch) }))
        }
    }
}

async fn start_private(options: &LocalOptions) -> Result<LocalExecutor, ProgramsError> {
    let started = LocalExecutor::start(options).await;
    started.map_err(|source| ProgramsError::Private { log: source.log().map(str::to_owned), source })
}

/// Starts the executor again whenever it ends, until `stop`.
async fn watch(mut local: LocalExecutor, stop: CancellationToken) {
    loop {
        let how = tokio::select! {
            how = local.ended() => how,
            () = stop.cancelled() => break,
        };
        tracing::error!(how, "the private executor has ended; it is started again");
        while let Err(error) = local.restart().await {
            tracing::error!(%error, "the private executor does not start");
            tokio::select! {
                () = tokio::time::sleep(RESTART_PAUSE) => {}
                () = stop.cancelled() => break,
            }
        }
        if stop.is_cancelled() {
            break;
        }
    }
    local.end().await;
}
