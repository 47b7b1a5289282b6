//! A private executor: started for one command on a socket of its own, ended with it.
//!
//! It is told to watch its standard input, which this process holds open and never writes to: however this process ends,
//! the executor sees the end of that pipe, settles its runs and goes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::anyhow;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::args::ConnectArgs;
use crate::exit::Problem;

/// Exit code of an executor whose configuration is wrong (`EX_USAGE`).
const EXECUTOR_USAGE: i32 = 64;
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

/// The running executor.
pub(crate) struct LocalExecutor {
    child: Child,
    /// What it watches. Kept apart from `child`, whose `wait` would close it.
    lifeline: Option<ChildStdin>,
    address: String,
    log: Arc<Mutex<Vec<u8>>>,
    log_task: JoinHandle<()>,
    /// Holds the socket; removed when dropped.
    _directory: TempDir,
}

impl LocalExecutor {
    /// Starts it and waits until it listens.
    pub(crate) async fn start(args: &ConnectArgs) -> Result<Self, Problem> {
        let binary = find_binary(args.executor_bin.as_deref())?;
        let directory = socket_directory()
            .map_err(|error| Problem::unavailable(error).context("no directory for a socket"))?;
        let socket = directory.path().join("executor.sock");
        let address = format!("unix:{}", socket.display());
        let mut command = Command::new(&binary);
        command.args(["--listen", &address, "--parent-watch"]);
        for name in NOT_FOR_PRIVATE {
            command.env_remove(name);
        }
        if let Some(config) = &args.executor_config {
            command.arg("--config").arg(config);
        }
        // A group of its own: Ctrl-C at the terminal is this process's to handle.
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            Problem::unavailable(error).context(format!("cannot start `{}`", binary.display()))
        })?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let log_task = tokio::spawn(keep_log(child.stderr.take(), Arc::clone(&log), args.verbose));
        let executor =
            Self { lifeline: child.stdin.take(), child, address, log, log_task, _directory: directory };
        executor.until_listening().await
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    async fn until_listening(mut self) -> Result<Self, Problem> {
        let listening = said_listening(self.child.stdout.take());
        let mut usage = false;
        let problem = tokio::select! {
            true = listening => return Ok(self),
            status = self.child.wait() => match status {
                Ok(status) => {
                    // Its configuration is wrong, and the command line names it.
                    usage = status.code() == Some(EXECUTOR_USAGE);
                    anyhow!("the private executor ended with {status} before it listened")
                }
                Err(error) => error.into(),
            },
            () = tokio::time::sleep(START_MAX) => {
                anyhow!("the private executor did not listen within {}ms", START_MAX.as_millis())
            }
        };
        let problem = match usage {
            true => Problem::usage(problem),
            false => Problem::unavailable(problem),
        };
        Err(self.failed(problem).await)
    }

    /// Ends it and adds the end of its log to the problem.
    pub(crate) async fn failed(self, problem: Problem) -> Problem {
        let log = Arc::clone(&self.log);
        self.end().await;
        let log =
            String::from_utf8_lossy(&log.lock().unwrap_or_else(PoisonError::into_inner)).trim().to_owned();
        if log.is_empty() { problem } else { problem.hint(format!("the executor's log ends with\n{log}")) }
    }

    /// Lets it settle and go; kills it where it does not.
    pub(crate) async fn end(mut self) {
        drop(self.lifeline.take());
        if tokio::time::timeout(END_MAX, self.child.wait()).await.is_err() {
            // Gone already is as good.
            let _ = self.child.kill().await;
        }
        // The end of its log, unless a child of its own still holds the pipe.
        let _ = tokio::time::timeout(Duration::from_millis(100), self.log_task).await;
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

fn find_binary(given: Option<&Path>) -> Result<PathBuf, Problem> {
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
    found.ok_or_else(|| {
        Problem::unavailable(anyhow!("no executor: `{BINARY}` is neither beside this command nor on the PATH"))
            .hint("build it with `make build`, name it with `--executor-bin FILE`, or use a running one with `--executor ADDR`")
    })
}
