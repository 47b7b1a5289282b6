//! Tools from another process: a shell command that serves them over JSON lines on its standard input and output.
//!
//! Arguments and values pass as raw text, checked and never rebuilt. The command runs in a process group of its own, which is
//! killed as a whole in the end. A server that dies, or that writes what is no reply, fails all calls in flight and all later ones.

use std::collections::HashMap;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codemode_client::{BindingError, CallContext, JsonText, Namespace};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// One line, at most: what the connection to the executor carries.
const LINE_BYTES_MAX: usize = 256 << 20;
/// How long the server may take to say what it serves.
const HELLO_MAX: Duration = Duration::from_secs(30);
/// Calls that wait for the server to read; further ones wait in their own tasks.
const REQUESTS_MAX: usize = 64;
/// How long the server may take to go by itself once its input has ended.
const END_MAX: Duration = Duration::from_millis(500);
const END_POLL: Duration = Duration::from_millis(5);
/// What is shown of a line that is no reply.
const SHOWN_BYTES_MAX: usize = 120;

/// Why there are no tools.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolsError {
    #[error("cannot start the tool server `{command}`")]
    Start {
        command: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the tool server `{command}` {fault}")]
    Hello { command: String, fault: String },
}

/// First line of the server.
#[derive(Deserialize)]
struct Hello {
    namespaces: Vec<HelloNamespace>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HelloNamespace {
    global: String,
    functions: Vec<String>,
    error_class: Option<HelloErrorClass>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HelloErrorClass {
    name: String,
    member_name_property: String,
}

/// One call, as it goes to the server.
#[derive(Serialize)]
struct CallLine<'a> {
    id: u64,
    global: &'a str,
    name: &'a str,
    args: &'a JsonText,
}

/// One answer.
#[derive(Deserialize)]
struct ReplyLine {
    id: u64,
    #[serde(default, deserialize_with = "present")]
    value: Option<Box<RawValue>>,
    error: Option<ErrorLine>,
}

#[derive(Deserialize)]
struct ErrorLine {
    message: String,
}

/// `null` is a value, unlike an absent one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

type Reply = Result<JsonText, BindingError>;

/// Calls in flight, or why there can be none.
enum Pending {
    Open(HashMap<u64, oneshot::Sender<Reply>>),
    Closed(String),
}

/// What calls and the reader share.
struct Shared {
    pending: Mutex<Pending>,
    next_id: AtomicU64,
    requests: mpsc::Sender<String>,
}

/// Takes a call out of the table when its future is dropped.
struct Registered<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if let Pending::Open(calls) = &mut *self.shared.lock() {
            calls.remove(&self.id);
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call. Dropping the future forgets it; its answer is then dropped as well.
    async fn call(&self, global: &str, name: &str, args: &JsonText) -> Reply {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line = call_line(&CallLine { id, global, name, args })?;
        let answer = self.register(id)?;
        let _registered = Registered { shared: self, id };
        if self.requests.send(line).await.is_err() {
            // The server is gone; the reader says why in the same moment.
            tracing::trace!(id, "nobody takes calls any more");
        }
        answer.await.unwrap_or_else(|_| Err(BindingError::new("the tool server is gone")))
    }

    fn register(&self, id: u64) -> Result<oneshot::Receiver<Reply>, BindingError> {
        let (sender, receiver) = oneshot::channel();
        match &mut *self.lock() {
            Pending::Open(calls) => {
                calls.insert(id, sender);
                Ok(receiver)
            }
            Pending::Closed(reason) => Err(BindingError::new(reason.clone())),
        }
    }

    /// Settles the call that the line answers. Answers to calls that are forgotten are dropped; one to a call that never
    /// was is a fault of the server's, whose right answer would be waited for in vain.
    fn settle(&self, line: &[u8]) -> Result<(), String> {
        let reply: ReplyLine =
            serde_json::from_slice(line).map_err(|error| no_reply(line, &error.to_string()))?;
        let result = match (reply.value, reply.error) {
            (Some(value), None) => Ok(value.into()),
            (None, Some(error)) => Err(BindingError::new(error.message)),
            _ => return Err(no_reply(line, "want `value` or `error`, and not both")),
        };
        if reply.id >= self.next_id.load(Ordering::Relaxed) {
            return Err(no_reply(line, "no call has that id"));
        }
        if let Pending::Open(calls) = &mut *self.lock()
            && let Some(call) = calls.remove(&reply.id)
        {
            // A call that was dropped in this moment wants no answer.
            let _ = call.send(result);
        }
        Ok(())
    }

    /// Fails all calls, those to come included.
    fn close(&self, reason: &str) {
        let before = std::mem::replace(&mut *self.lock(), Pending::Closed(reason.to_owned()));
        if let Pending::Open(calls) = before {
            for call in calls.into_values() {
                let _ = call.send(Err(BindingError::new(reason)));
            }
        }
    }
}

fn call_line(call: &CallLine<'_>) -> Result<String, BindingError> {
    let text = JsonText::of(call).map_err(|error| BindingError::new(error.to_string()))?.into_string();
    // Line ends in a JSON text are white space between its tokens; one call must be one line.
    let mut line = if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text };
    line.push('\n');
    Ok(line)
}

fn no_reply(line: &[u8], why: &str) -> String {
    let text = String::from_utf8_lossy(line);
    let shown = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
    let cut = if shown.len() < text.len() { "…" } else { "" };
    format!("wrote `{shown}{cut}`, which is no reply ({why}); standard output is for JSON lines only")
}

/// A running tool server.
pub(crate) struct ToolServer {
    shared: Arc<Shared>,
    namespaces: Vec<Namespace>,
    stop: CancellationToken,
    supervisor: JoinHandle<()>,
}

impl ToolServer {
    /// Starts the command and waits for its first line.
    pub(crate) async fn start(command: &str) -> Result<Self, ToolsError> {
        let mut child =
            spawn(command).map_err(|source| ToolsError::Start { command: command.to_owned(), source })?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            let source = std::io::Error::other("its pipes are missing");
            return Err(ToolsError::Start { command: command.to_owned(), source });
        };
        let group = Group { child };
        let mut stdout = BufReader::new(stdout);
        let hello = match tokio::time::timeout(HELLO_MAX, read_hello(&mut stdout)).await {
            Ok(Ok(hello)) => hello,
            Ok(Err(fault)) => return Err(group.hello_fault(command, fault).await),
            Err(_) => {
                let fault = format!("did not say within {}s what it serves", HELLO_MAX.as_secs());
                return Err(group.hello_fault(command, fault).await);
            }
        };
        let (requests, lines) = mpsc::channel(REQUESTS_MAX);
        let shared = Arc::new(Shared {
            pending: Mutex::new(Pending::Open(HashMap::new())),
            next_id: AtomicU64::new(1),
            requests,
        });
        let namespaces = hello.namespaces.into_iter().map(|namespace| bind(namespace, &shared)).collect();
        let stop = CancellationToken::new();
        let supervisor =
            tokio::spawn(supervise(group, stdin, stdout, lines, Arc::clone(&shared), stop.clone()));
        Ok(Self { shared, namespaces, stop, supervisor })
    }

    /// What it serves.
    pub(crate) fn namespaces(&self) -> Vec<Namespace> {
        self.namespaces.clone()
    }

    /// Ends its input, waits a moment, kills its group.
    pub(crate) async fn end(self) {
        self.shared.close("the tool server was ended");
        self.stop.cancel();
        // A panic of the supervisor dropped the group, which kills it too.
        let _ = self.supervisor.await;
    }
}

fn spawn(command: &str) -> std::io::Result<Child> {
    Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

fn bind(namespace: HelloNamespace, shared: &Arc<Shared>) -> Namespace {
    let mut bound = Namespace::new(namespace.global);
    for name in namespace.functions {
        let shared = Arc::clone(shared);
        bound = bound.function(name, move |args: JsonText, call: CallContext| {
            let shared = Arc::clone(&shared);
            async move { shared.call(&call.global, &call.name, &args).await }
        });
    }
    match namespace.error_class {
        Some(class) => bound.with_error_class(class.name, class.member_name_property),
        None => bound,
    }
}

async fn read_hello(stdout: &mut BufReader<ChildStdout>) -> Result<Hello, String> {
    match read_line(stdout, LINE_BYTES_MAX).await {
        Ok(Some(line)) => serde_json::from_slice(&line).map_err(|error| {
            let text = String::from_utf8_lossy(&line);
            let shown = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
            format!("should first say what it serves, but wrote `{shown}`: {error}")
        }),
        Ok(None) => Err("ended before it said what it serves".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The next line without its end; `None` at the end of the stream. Empty lines are skipped.
async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    bytes_max: usize,
) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            return Ok((!line.is_empty()).then_some(line));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if line.len() + taken > bytes_max {
            return Err(std::io::Error::other(format!("wrote a line of more than {bytes_max} bytes")));
        }
        line.extend_from_slice(&available[..taken]);
        reader.consume(taken + usize::from(end.is_some()));
        if end.is_some() && !line.trim_ascii().is_empty() {
            return Ok(Some(line));
        }
        if end.is_some() {
            line.clear();
        }
    }
}

/// Owns the process from its first line to its end.
async fn supervise(
    group: Group,
    stdin: ChildStdin,
    mut stdout: BufReader<ChildStdout>,
    lines: mpsc::Receiver<String>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let writer = tokio::spawn(write_lines(stdin, lines));
    let fault = tokio::select! {
        fault = read_replies(&mut stdout, &shared) => Some(fault),
        () = stop.cancelled() => None,
    };
    // Ends its input: the pipe closes with the task.
    writer.abort();
    let _ = writer.await;
    match fault {
        Some(Some(fault)) => {
            shared.close(&format!("the tool server {fault}"));
            group.end(Duration::ZERO).await;
        }
        Some(None) => {
            let status = group.end(END_MAX).await;
            shared.close(&format!("the tool server is gone ({status})"));
        }
        None => {
            group.end(END_MAX).await;
        }
    }
}

/// Reads answers until the end of the stream (`None`) or a fault.
async fn read_replies(stdout: &mut BufReader<ChildStdout>, shared: &Shared) -> Option<String> {
    loop {
        match read_line(stdout, LINE_BYTES_MAX).await {
            Ok(Some(line)) => {
                if let Err(fault) = shared.settle(&line) {
                    return Some(fault);
                }
            }
            Ok(None) => return None,
            Err(error) => return Some(error.to_string()),
        }
    }
}

async fn write_lines(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>) {
    while let Some(line) = lines.recv().await {
        // A server that does not read any more is noticed by the reader.
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// The command with everything that it started. The leader is reaped last: until then its group's number cannot be another's.
struct Group {
    child: Child,
}

impl Group {
    fn leader(&self) -> Option<Pid> {
        self.child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw)
    }

    /// Whether the leader has ended; leaves it to be reaped.
    fn has_ended(leader: Pid) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(waitid(Id::Pid(leader), flags), Ok(WaitStatus::StillAlive))
    }

    /// Gives the leader time to end by itself, then kills the group and reaps. Says how it ended.
    async fn end(mut self, patience: Duration) -> String {
        let Some(leader) = self.leader() else { return "already reaped".to_owned() };
        let patient = tokio::time::timeout(patience, async {
            while !Self::has_ended(leader) {
                tokio::time::sleep(END_POLL).await;
            }
        });
        let by_itself = patient.await.is_ok();
        // An empty group is as good as a killed one.
        let _ = killpg(leader, Signal::SIGKILL);
        match self.child.wait().await {
            Ok(status) if by_itself => exit_text(status),
            Ok(_) => "it closed its standard output".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    async fn hello_fault(self, command: &str, fault: String) -> ToolsError {
        let status = self.end(Duration::from_millis(50)).await;
        ToolsError::Hello { command: command.to_owned(), fault: format!("{fault} ({status})") }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // After `end` the leader is reaped and has no number any more.
        if let Some(leader) = self.leader() {
            let _ = killpg(leader, Signal::SIGKILL);
        }
    }
}

fn exit_text(status: ExitStatus) -> String {
    status.to_string()
}

#[cfg(test)]
mod tests;
