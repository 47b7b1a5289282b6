//! A private executor: started by this process on a socket of its own, ended with it.
//!
//! It is told to watch its standard input, which this process holds open and never writes to: however this process ends,
//! the executor sees the end of that pipe, settles its runs and goes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

const BINARY: &str = "codemode-executor";

/// How the line begins that it writes to its standard output once it takes runs.
const LISTENING: &str = "listening on ";
/// Settings of a service on this machine that must not reach a private one: its ports and its credentials.
const NOT_FOR_PRIVATE: [&str; 5] = [
    "CODEMODE_EXECUTOR_METRICS_LISTEN",
    "CODEMODE_EXECUTOR_TLS_CERT",
    "CODEMODE_EXECUTOR_TLS_KEY",
    "CODEMODE_EXECUTOR_TLS_CLIENT_CA",
    "CODEMODE_EXECUTOR_AUTH_TOKEN_FILE",
];
/// How long it may take until it listens: it boots an engine, on a machine that may be busy.
const START_MAX: Duration = Duration::from_secs(30);
/// How long it may take to settle what it has and go, before it is killed.
const END_MAX: Duration = Duration::from_secs(10);
/// The end of its log, shown where it did not start.
const LOG_BYTES_MAX: usize = 8 << 10;
/// What a socket's path may measure, with some room (`sun_path` has 108 bytes).
const SOCKET_PATH_BYTES_MAX: usize = 100;

/// How to start one.
#[derive(Clone, Debug, Default)]
pub struct LocalOptions {
    /// Its binary. Absent: `codemode-executor` beside the binary of this process, or on the `PATH`.
    pub binary: Option<PathBuf>,
    /// Its configuration file. Absent: its defaults, and what the environment says.
    pub config: Option<PathBuf>,
    /// Whether its log is written to standard error as it comes.
    pub shows_log: bool,
}

/// Why there is no private executor.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// No binary.
    #[error("no executor: `{BINARY}` is neither beside this command nor on the PATH")]
    NoBinary,
    /// No place for its socket.
    #[error("no directory for a socket")]
    NoDirectory(#[source] std::io::Error),
    /// The binary does not start.
    #[error("cannot start `{binary}`")]
    NotStarted {
        /// The binary.
        binary: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// It ended before it listened.
    #[error("the private executor ended with {how} before it listened")]
    Ended {
        /// Its exit status, or why that is not known.
        how: String,
        /// The end of its log.
        log: String,
    },
    /// It took too long.
    #[error("the private executor did not listen within {}ms", START_MAX.as_millis())]
    Late {
        /// The end of its log.
        log: String,
    },
}

impl LocalError {
    /// The end of the executor's log, where there is one.
    #[must_use]
    pub fn log(&self) -> Option<&str> {
        match self {
            Self::Ended { log, .. } | Self::Late { log } => Some(log.as_str()).filter(|log| !log.is_empty()),
            Self::NoBinary | Self::NoDirectory(_) | Self::NotStarted { .. } => None,
        }
    }
}

/// The running executor. Dropping it kills it; [`LocalExecutor::end`] lets it settle.
#[derive(Debug)]
pub struct LocalExecutor {
    child: Child,
    /// What it watches. Kept apart from `child`, whose `wait` would close it.
    lifeline: Option<ChildStdin>,
    address: String,
    log: Arc<Mutex<Vec<u8>>>,
    log_task: JoinHandle<()>,
    options: LocalOptions,
    /// Holds the socket; removed when dropped.
    directory: Arc<TempDir>,
}

impl LocalExecutor {
    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// [`LocalError`]; nothing is left running then.
    pub async fn start(options: &LocalOptions) -> Result<Self, LocalError> {
        let directory = socket_directory().map_err(LocalError::NoDirectory)?;
        Self::start_in(options, Arc::new(directory)).await
    }

    /// Starts another in the place of one that has ended, at the same address.
    ///
    /// # Errors
    /// [`LocalError`]; it can be tried again.
    pub async fn restart(&mut self) -> Result<(), LocalError> {
        *self = Self::start_in(&self.options, Arc::clone(&self.directory)).await?;
        Ok(())
    }

    async fn start_in(options: &LocalOptions, directory: Arc<TempDir>) -> Result<Self, LocalError> {
        let binary = find_binary(options.binary.as_deref())?;
        let socket = directory.path().join("executor.sock");
        let address = format!("unix:{}", socket.display());
        let mut command = Command::new(&binary);
        command.args(["--listen", &address, "--parent-watch"]);
        for name in NOT_FOR_PRIVATE {
            command.env_remove(name);
        }
        if let Some(config) = &options.config {
            command.arg("--config").arg(config);
        }
        // A group of its own: Ctrl-C at the terminal is this process's to handle.
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|source| LocalError::NotStarted { binary, source })?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let log_task = tokio::spawn(keep_log(child.stderr.take(), Arc::clone(&log), options.shows_log));
        let (lifeline, options) = (child.stdin.take(), options.clone());
        Self { child, lifeline, address, log, log_task, options, directory }.until_listening().await
    }

    /// Where it listens, as a client says it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits until it has ended by itself. Safe to cancel.
    pub async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    async fn until_listening(mut self) -> Result<Self, LocalError> {
        let listening = said_listening(self.child.stdout.take());
        let ended = tokio::select! {
            true = listening => return Ok(self),
            how = self.ended() => Some(how),
            () = tokio::time::sleep(START_MAX) => None,
        };
        let log = self.end().await;
        Err(match ended {
            Some(how) => LocalError::Ended { how, log },
            None => LocalError::Late { log },
        })
    }

    /// Lets it settle and go; kills it where it does not. Gives the end of its log.
    pub async fn end(mut self) -> String {
        drop(self.lifeline.take());
        if tokio::time::timeout(END_MAX, self.child.wait()).await.is_err() {
            // Gone already is as good.
            let _ = self.child.kill().await;
        }
        // The end of its log, unless a child of its own still holds the pipe.
        let _ = tokio::time::timeout(Duration::from_millis(100), self.log_task).await;
        String::from_utf8_lossy(&self.log.lock().unwrap_or_else(PoisonError::into_inner)).trim().to_owned()
    }
}

/// Waits for the line; `false` where its standard output ends without it. What it writes later it need not.
async fn said_listening(stdout: Option<ChildStdout>) -> bool {
    let Some(stdout) = stdout else { return false };
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if line.starts_with(LISTENING) {
            return true;
        }
    }
    false
}

/// Reads its log for as long as it writes: a full pipe would stop it.
async fn keep_log(stderr: Option<ChildStderr>, log: Arc<Mutex<Vec<u8>>>, shown: bool) {
    let Some(stderr) = stderr else { return };
    let mut stderr = BufReader::new(stderr);
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        if shown {
            // A closed standard error is no reason to stop reading.
            let _ = std::io::stderr().write_all(&buffer[..count]);
        }
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(&buffer[..count]);
        let excess = log.len().saturating_sub(LOG_BYTES_MAX);
        log.drain(..excess);
    }
}

fn socket_directory() -> std::io::Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("codemode-").tempdir()?;
    if directory.path().as_os_str().len() + "/executor.sock".len() <= SOCKET_PATH_BYTES_MAX {
        return Ok(directory);
    }
    tempfile::Builder::new().prefix("codemode-").tempdir_in("/tmp")
}

fn find_binary(given: Option<&Path>) -> Result<PathBuf, LocalError> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = beside
        .into_iter()
        .chain(std::env::split_paths(&path))
        .map(|dir| dir.join(BINARY))
        .find(|file| file.is_file());
    found.ok_or(LocalError::NoBinary)
}
