//! Starts the binary and talks to it.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use codemode_proto::registry_v1::registry_client::RegistryClient;
use hyper_util::rt::TokioIo;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tonic::transport::{Channel, Endpoint, Uri};

/// Longer than anything here takes on a busy machine; only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_codemode-registry");

/// Runs it to its end.
pub(crate) async fn run(arguments: &[&str]) -> Output {
    let output = Command::new(BINARY).args(arguments).kill_on_drop(true).output();
    patiently(output).await.expect("it runs")
}

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes far too long")
}

/// A binary of the build: in its folder, or where the environment says.
pub(crate) fn built(name: &str) -> PathBuf {
    let folder = std::env::var_os("CODEMODE_BIN_DIR").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| Path::new(BINARY).parent().expect("a folder").to_owned());
    let path = folder.join(name);
    assert!(path.is_file(), "`{}` is not there: `make build`, or set CODEMODE_BIN_DIR", path.display());
    path
}

/// A running registry.
pub(crate) struct Process {
    child: Child,
    socket: PathBuf,
}

impl Process {
    /// Starts it on a socket in `folder` and waits until it listens.
    pub(crate) async fn start(folder: &Path, arguments: &[&str]) -> Self {
        let socket = folder.join("registry.sock");
        let mut command = Command::new(BINARY);
        command.arg("serve").arg("--listen").arg(format!("unix:{}", socket.display())).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = patiently(lines.next_line()).await.expect("a line").expect("it listens");
        assert_eq!(line, format!("listening on unix:{}", socket.display()));
        Self { child, socket }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("it is there");
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id().expect("it runs")).expect("a process id")
    }

    /// Its own processes.
    pub(crate) fn children(&self) -> Vec<i32> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("it runs");
        let children =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
        children
            .flat_map(|pids| pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
            .collect()
    }

    /// How it ends.
    pub(crate) async fn ended(&mut self) -> std::process::ExitStatus {
        patiently(self.child.wait()).await.expect("it ends")
    }

    pub(crate) async fn client(&self) -> RegistryClient<Channel> {
        let socket = self.socket.clone();
        let connect = move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        };
        let endpoint = Endpoint::from_static("http://registry.test");
        RegistryClient::new(
            endpoint.connect_with_connector(tower::service_fn(connect)).await.expect("it listens"),
        )
    }
}
