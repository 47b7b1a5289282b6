//! The executor under test: a real process of the real binary, with a configuration and a socket of its own in a
//! folder that goes with it.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use codemode_proto::executor_v1::executor_client::ExecutorClient;
use codemode_proto::executor_v1::{DescribeRequest, DescribeResponse};
use hyper_util::rt::TokioIo;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};

/// The generated client, with no bound on messages but the executor's own.
pub type Client = ExecutorClient<Channel>;

/// Largest message either way, bytes; above every frame limit that a case configures.
const MESSAGE_BYTES_MAX: usize = 512 << 20;
/// How long a fresh executor may take until it answers.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long one may take to end after SIGTERM when it is dropped; then it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Where the binaries are, instead of beside the test's own.
const BIN_DIR_VARIABLE: &str = "CODEMODE_BIN_DIR";

/// A running executor.
#[derive(Debug)]
pub struct Executor {
    child: Child,
    folder: tempfile::TempDir,
}

/// The folder of the binaries under test.
///
/// # Errors
/// If neither the environment nor the place of this program says.
pub fn binary_folder() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os(BIN_DIR_VARIABLE) {
        return Ok(PathBuf::from(folder));
    }
    // target/PROFILE/deps/TEST for tests, target/PROFILE/conformance for the program.
    let own = std::env::current_exe().context("find this program")?;
    let folder = own.parent().context("a program has a folder")?;
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    Ok(folder.to_owned())
}

/// The binary of that name.
///
/// # Errors
/// If it was not built; says how.
pub fn binary(name: &str) -> anyhow::Result<PathBuf> {
    let path = binary_folder()?.join(name);
    if !path.is_file() {
        bail!("`{}` is not there: build it, or set {BIN_DIR_VARIABLE}", path.display());
    }
    Ok(path)
}

/// The runner of an engine where it is not beside the executor: runners take long to build, so there may be only the
/// optimised one. `None`: the executor finds it by itself, or there is none.
fn runner_elsewhere(engine: &str) -> anyhow::Result<Option<PathBuf>> {
    let folder = binary_folder()?;
    let name = format!("codemode-runner-{engine}");
    let optimised = folder.with_file_name("release").join(&name);
    Ok((!folder.join(&name).exists() && optimised.is_file()).then_some(optimised))
}

impl Executor {
    /// Starts one whose configuration differs from the defaults by `configuration`, and waits until it answers.
    ///
    /// # Errors
    /// With what it wrote to its log if it ends or stays silent.
    pub async fn start(configuration: &toml::Table) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("codemode-test-").tempdir()?;
        let socket = folder.path().join("executor.sock");
        let mut table = configuration.clone();
        // Tests end executors all the time; a case about draining says how long it may take.
        table.entry("drain_grace_ms").or_insert(toml::Value::Integer(0));
        for engine in ["v8", "quickjs"] {
            if let Some(path) = runner_elsewhere(engine)? {
                table.entry(format!("runner_{engine}")).or_insert_with(|| path.display().to_string().into());
            }
        }
        table.entry("listen").or_insert_with(|| format!("unix:{}", socket.display()).into());
        std::fs::write(folder.path().join("executor.toml"), toml::to_string(&table)?)?;
        let log = std::fs::File::create(folder.path().join("executor.log"))?;
        let mut command = Command::new(binary("codemode-executor")?);
        command.arg("--config").arg(folder.path().join("executor.toml"));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().context("start the executor")?;
        let mut executor = Self { child, folder };
        executor.wait_until_it_answers().await?;
        Ok(executor)
    }

    async fn wait_until_it_answers(&mut self) -> anyhow::Result<()> {
        let end = Instant::now() + START_PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the executor ended at once: {status}\n{}", self.log());
            }
            let error = match self.describe().await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if Instant::now() > end {
                bail!("the executor does not answer: {error:#}\n{}", self.log());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    /// The folder of its socket, configuration and log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it wrote to its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        let mut text = Vec::new();
        if let Ok(mut file) = std::fs::File::open(self.folder.path().join("executor.log")) {
            let _ = file.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// A connection of its own.
    ///
    /// # Errors
    /// If nobody listens.
    pub async fn channel(&self) -> anyhow::Result<Channel> {
        let socket = self.folder.path().join("executor.sock");
        let connect = move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        };
        // The authority is of no meaning on a socket.
        let endpoint = Endpoint::from_static("http://executor.test");
        Ok(endpoint.connect_with_connector(tower::service_fn(connect)).await?)
    }

    /// A client on a connection of its own.
    ///
    /// # Errors
    /// If nobody listens.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let client = ExecutorClient::new(self.channel().await?);
        Ok(client.max_decoding_message_size(MESSAGE_BYTES_MAX).max_encoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn describe(&self) -> anyhow::Result<DescribeResponse> {
        Ok(self.client().await?.describe(DescribeRequest {}).await?.into_inner())
    }

    /// Names of its engines.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn engines(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.describe().await?.engines.into_iter().map(|engine| engine.name).collect())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        // It may be gone already; that is for the test to notice.
        let _ = kill(Pid::from_raw(self.pid()), signal);
    }

    /// Its exit status if it ends within the time.
    pub async fn ended(&mut self, within: Duration) -> Option<std::process::ExitStatus> {
        let end = Instant::now() + within;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= end {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.signal(Signal::SIGTERM);
        let end = Instant::now() + STOP_PATIENCE;
        while Instant::now() < end {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
