//! An executor's real binary over the fake runner, in a folder of its own, and a client that holds whole conversations.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test's helper that fails loudly")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use codemode_proto::executor_v1 as pb;
use pb::executor_client::ExecutorClient;
use pb::run_request::Message as Request;
use pb::run_response::Message as Response;
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

/// A running executor; killed when dropped.
pub(crate) struct Executor {
    pub(crate) child: Child,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) address: String,
}

fn fake_runner() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples/fake_runner")
}

/// A folder with a fake runner that behaves as `boot` says.
pub(crate) fn folder(boot: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let runner = folder.path().join("codemode-runner-quickjs");
    // A link, so that a hundred tests do not copy megabytes; elsewhere a copy.
    if std::fs::hard_link(fake_runner(), &runner).is_err() {
        std::fs::copy(fake_runner(), &runner).unwrap();
    }
    std::fs::write(folder.path().join("codemode-runner-quickjs.boot"), boot).unwrap();
    folder
}

/// The command that starts an executor in that folder.
pub(crate) fn command(folder: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codemode-executor"));
    command.env_clear().arg("--listen").arg(format!("unix:{}", folder.join("x.sock").display()));
    command.arg("--runner-quickjs").arg(folder.join("codemode-runner-quickjs"));
    // A process that is there before its run looks like a run's; tests of just those ask for them.
    command.args(["--engines", "quickjs", "--log-filter", "warn", "--processes-ahead", "0"]).args(options);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

impl Executor {
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::with_boot("", options)
    }

    pub(crate) fn with_boot(boot: &str, options: &[&str]) -> Self {
        let folder = folder(boot);
        let command = command(folder.path(), options);
        Self::from_command(command, folder)
    }

    pub(crate) fn from_command(mut command: Command, folder: tempfile::TempDir) -> Self {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect("a listening executor").to_owned();
        Self { child, folder, address }
    }

    pub(crate) async fn client(&self) -> ExecutorClient<Channel> {
        let endpoint = Endpoint::from_shared(self.address.clone()).unwrap();
        let channel = endpoint.connect().await.unwrap();
        ExecutorClient::new(channel).max_decoding_message_size(1 << 30).max_encoding_message_size(1 << 30)
    }

    /// Starts a run of this script with one namespace `tools {echo, other}`.
    pub(crate) async fn run(&self, script: &str) -> Run {
        self.start_run(start(script)).await
    }

    pub(crate) async fn start_run(&self, start: pb::StartRun) -> Run {
        Run::begin(&mut self.client().await, start).await.expect("a stream")
    }

    /// Runs a script to its outcome.
    pub(crate) async fn outcome(&self, script: &str) -> pb::Outcome {
        self.run(script).await.outcome().await
    }

    /// Runs a script and expects a failure: its detail word and its message.
    pub(crate) async fn failure(&self, script: &str) -> (String, String) {
        words(&self.outcome(script).await)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn children(&self) -> Vec<u32> {
        children(self.pid())
    }

    /// Run processes and zombies: all children but zygotes and those that strip.
    pub(crate) fn run_processes(&self) -> usize {
        self.children().into_iter().filter(|pid| !is_keeper(*pid)).count()
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.pid().try_into().unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Waits for the executor's own end and answers its exit code.
    pub(crate) fn wait(&mut self, patience: Duration) -> Option<i32> {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Descriptors that the executor has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).map_or(0, Iterator::count)
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        let children = self.children();
        let _ = self.child.kill();
        let _ = self.child.wait();
        assert_gone(&children);
    }
}

/// Every process of an executor dies with it.
pub(crate) fn assert_gone(pids: &[u32]) {
    let until = Instant::now() + Duration::from_secs(2);
    let alive = || pids.iter().filter(|pid| is_runner(**pid)).count();
    while alive() > 0 {
        assert!(Instant::now() < until, "{} processes outlived their executor", alive());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_runner(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"codemode-runner\0"))
}

/// Whether it is a zygote (it has a socket as descriptor 0) or strips, and not a run's process.
fn is_keeper(pid: u32) -> bool {
    let role = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let threads = std::fs::read_link(format!("/proc/{pid}/fd/0"));
    role.ends_with(b"\0strip\0")
        || threads.is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
}

/// Resident memory.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let listed = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.extend(listed.split_ascii_whitespace().map(|pid| pid.parse::<u32>().unwrap()));
    }
    children
}

pub(crate) fn start(script: &str) -> pb::StartRun {
    let functions = vec!["echo".to_owned(), "other".to_owned()];
    let tools = pb::Namespace { global: "tools".to_owned(), functions, error_class: None };
    pb::StartRun { program: script.to_owned(), namespaces: vec![tools], ..Default::default() }
}

pub(crate) fn with_budgets(script: &str, budgets: pb::Budgets) -> pb::StartRun {
    pb::StartRun { budgets: Some(budgets), ..start(script) }
}

/// A failure's detail word and message.
pub(crate) fn words(outcome: &pb::Outcome) -> (String, String) {
    let failure = outcome.failure.as_ref().unwrap_or_else(|| panic!("no failure: {outcome:?}"));
    assert!(outcome.value_json.is_none(), "a failure carries no value");
    (failure.detail.clone(), failure.message.clone())
}

/// One stream of `Run`.
pub(crate) struct Run {
    requests: Option<mpsc::Sender<pb::RunRequest>>,
    responses: Streaming<pb::RunResponse>,
    pub(crate) logs: Vec<String>,
    pub(crate) calls: Vec<pb::BindingCall>,
    pub(crate) started: bool,
}

impl Run {
    pub(crate) async fn begin(
        client: &mut ExecutorClient<Channel>,
        start: pb::StartRun,
    ) -> Result<Self, Status> {
        let (requests, receiver) = mpsc::channel(64);
        requests.send(pb::RunRequest { message: Some(Request::Start(start)) }).await.unwrap();
        let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
        let responses = client.run(stream).await?.into_inner();
        let requests = Some(requests);
        Ok(Self { requests, responses, logs: Vec::new(), calls: Vec::new(), started: false })
    }

    pub(crate) async fn send(&self, message: Request) {
        let requests = self.requests.as_ref().unwrap();
        let _ = requests.send(pb::RunRequest { message: Some(message) }).await;
    }

    pub(crate) async fn reply(&self, id: u64, value: &str) {
        let result = Some(pb::binding_reply::Result::ValueJson(value.to_owned().into()));
        self.send(Request::Reply(pb::BindingReply { id, result })).await;
    }

    pub(crate) async fn abort(&self, reason: &str) {
        self.send(Request::Abort(pb::Abort { reason: reason.to_owned() })).await;
    }

    pub(crate) fn half_close(&mut self) {
        self.requests = None;
    }

    /// The next response but logs and calls, which are kept; `None` at the end.
    pub(crate) async fn step(&mut self) -> Result<Option<Response>, Status> {
        let Some(response) = self.responses.message().await? else { return Ok(None) };
        let message = response.message.unwrap();
        match &message {
            Response::Started(_) => {
                assert!(!self.started, "started twice");
                self.started = true;
            }
            Response::Log(entry) => self.logs.push(entry.text.clone()),
            Response::Call(call) => self.calls.push(call.clone()),
            Response::Outcome(_) => {}
        }
        assert!(self.started, "started comes first");
        Ok(Some(message))
    }

    /// Waits for the next call.
    pub(crate) async fn call(&mut self) -> pb::BindingCall {
        let known = self.calls.len();
        while self.calls.len() == known {
            self.step().await.unwrap().expect("a call");
        }
        self.calls.last().unwrap().clone()
    }

    /// Waits until so many log entries have come.
    pub(crate) async fn logged(&mut self, count: usize) {
        while self.logs.len() < count {
            self.step().await.unwrap().expect("a log entry");
        }
    }

    /// Answers every call with its argument, until the outcome.
    pub(crate) async fn outcome(&mut self) -> pb::Outcome {
        self.finish().await.expect("an outcome")
    }

    pub(crate) async fn finish(&mut self) -> Result<pb::Outcome, Status> {
        loop {
            match self.step().await? {
                Some(Response::Call(call)) if self.requests.is_some() => {
                    let value = String::from_utf8(call.args_json.to_vec()).unwrap();
                    self.reply(call.id, &value).await;
                }
                Some(Response::Outcome(outcome)) => {
                    assert!(self.responses.message().await?.is_none(), "nothing follows the outcome");
                    assert!(outcome.usage.is_some());
                    return Ok(outcome);
                }
                Some(_) => {}
                None => panic!("the stream ended without an outcome"),
            }
        }
    }
}
