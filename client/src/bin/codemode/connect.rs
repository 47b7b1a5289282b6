//! Gets a runtime: on the executors that were named, or on a private one.

use std::path::Path;
use std::time::Duration;

use codemode_client::grpc::{GrpcConfig, GrpcRuntime, Identity};
use codemode_client::local::{LocalError, LocalExecutor, LocalOptions};

use crate::args::ConnectArgs;
use crate::exit::Problem;

/// A runtime with the executor that it may own.
pub(crate) struct Connected {
    pub(crate) runtime: GrpcRuntime,
    local: Option<LocalExecutor>,
}

impl Connected {
    /// Ends the private executor, if there is one.
    pub(crate) async fn end(self) {
        if let Some(local) = self.local {
            local.end().await;
        }
    }
}

/// Connects; starts a private executor where none was named.
pub(crate) async fn connect(args: &ConnectArgs) -> Result<Connected, Problem> {
    if args.executor.is_empty() {
        return connect_local(args).await;
    }
    let runtime = GrpcRuntime::connect(config(args, &args.executor)?).await?;
    Ok(Connected { runtime, local: None })
}

async fn connect_local(args: &ConnectArgs) -> Result<Connected, Problem> {
    let options = LocalOptions {
        binary: args.executor_bin.clone(),
        config: args.executor_config.clone(),
        shows_log: args.verbose,
    };
    let local = LocalExecutor::start(&options).await.map_err(not_started)?;
    // Credentials are for executors that were named.
    let connected = match GrpcConfig::new([local.address()]) {
        Ok(config) => GrpcRuntime::connect(config).await.map_err(Problem::from),
        Err(error) => Err(Problem::usage(error)),
    };
    match connected {
        Ok(runtime) => Ok(Connected { runtime, local: Some(local) }),
        Err(problem) => {
            let log = local.end().await;
            Err(with_log(problem, &log))
        }
    }
}

fn not_started(error: LocalError) -> Problem {
    let log = error.log().unwrap_or_default().to_owned();
    let has_binary = !matches!(error, LocalError::NoBinary);
    let problem = match error {
        LocalError::Misconfigured { .. } => Problem::usage(error),
        _ => Problem::unavailable(error),
    };
    let problem = with_log(problem, &log);
    if has_binary {
        return problem;
    }
    problem.hint(
        "build it with `make build`, name it with `--executor-bin FILE`, or use a running one with `--executor ADDR`",
    )
}

fn with_log(problem: Problem, log: &str) -> Problem {
    if log.is_empty() { problem } else { problem.hint(format!("the executor's log ends with\n{log}")) }
}

/// The settings that the arguments make, for these addresses.
pub(crate) fn config(args: &ConnectArgs, addresses: &[impl AsRef<str>]) -> Result<GrpcConfig, Problem> {
    let mut config = GrpcConfig::new(addresses).map_err(Problem::usage)?;
    config.connect_timeout = Duration::from_millis(args.connect_ms);
    if let Some(ca) = &args.ca {
        config = config.with_ca(read(ca)?).map_err(Problem::usage)?;
    }
    if let (Some(certificate), Some(key)) = (&args.cert, &args.key) {
        let identity = Identity { certificate_pem: read(certificate)?, key_pem: read(key)? };
        config = config.with_identity(identity).map_err(Problem::usage)?;
    }
    match token(args)? {
        Some(token) => config.with_bearer_token(&token).map_err(Problem::usage),
        None => Ok(config),
    }
}

fn token(args: &ConnectArgs) -> Result<Option<String>, Problem> {
    let Some(file) = &args.token_file else { return Ok(args.token.clone()) };
    let token = String::from_utf8_lossy(&read(file)?).trim().to_owned();
    Ok(Some(token))
}

fn read(file: &Path) -> Result<Vec<u8>, Problem> {
    std::fs::read(file)
        .map_err(|error| Problem::usage(error).context(format!("cannot read `{}`", file.display())))
}
