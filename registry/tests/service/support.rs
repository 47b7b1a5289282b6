//! A registry that serves on a socket of its own, and harnesses that talk to it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use codemode_client::fake::{FakeRuntime, Script};
use codemode_events::MemoryStore;
use codemode_proto::registry_v1 as proto;
use codemode_registry::config::live::Live;
use codemode_registry::config::options::Options;
use codemode_registry::config::{Config, Listen};
use codemode_registry::server::{self, Bound};
use codemode_registry::service::{Context, Programs};
use hyper_util::rt::TokioIo;
use proto::harness_message::Message as Sent;
use proto::registry_client::RegistryClient;
use proto::registry_message::Message;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint, Uri};

/// Calls so far, for their ids.
static CALLS: AtomicU64 = AtomicU64::new(1);

pub(crate) type Client = RegistryClient<Channel>;

/// Longer than anything here takes on a busy machine; only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A registry.
pub(crate) struct Served {
    folder: tempfile::TempDir,
    socket: PathBuf,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Served {
    /// One without programs.
    pub(crate) async fn plain(toml: &str) -> Self {
        Self::start(toml, None).await
    }

    /// One whose programs are scripts, each run once in order.
    pub(crate) async fn scripted(toml: &str, scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::start(toml, Some(FakeRuntime::scripted(scripts))).await
    }

    async fn start(toml: &str, runtime: Option<FakeRuntime>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("registry.toml");
        std::fs::write(&file, toml).expect("the file is written");
        let socket = folder.path().join("registry.sock");
        let given = Options { config: Some(file), store: Some("memory".to_owned()), ..Options::default() };
        let options = given.clone().with_file().expect("the file is TOML");
        let config = Config::validate(&options).expect("a configuration");
        let runtime = runtime.map(|runtime| Arc::new(runtime) as _);
        let programs = Programs { runtime, executors: Vec::new() };
        let live = |registry| Live::new(given, options, registry);
        let context = Context::new(&config, live, Arc::new(MemoryStore::new()), programs).expect("a context");
        let bound = Bound::bind(&Listen::Unix(socket.clone())).await.expect("a socket");
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let serving = tokio::spawn(async move {
            server::serve(context, &config, bound, stopped, std::future::pending()).await.expect("it serves");
        });
        Self { folder, socket, stop, serving }
    }

    /// Replaces the configuration file.
    pub(crate) fn configure(&self, toml: &str) {
        std::fs::write(self.folder.path().join("registry.toml"), toml).expect("the file is written");
    }

    pub(crate) async fn client(&self) -> Client {
        RegistryClient::new(self.channel().await)
    }

    pub(crate) async fn channel(&self) -> Channel {
        let socket = self.socket.clone();
        let connect = move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        };
        let endpoint = Endpoint::from_static("http://registry.test");
        let channel = endpoint.connect_with_connector(tower::service_fn(connect)).await;
        channel.expect("it listens")
    }

    /// A client with an open session.
    pub(crate) async fn session(&self, id: &str) -> Client {
        let mut client = self.client().await;
        let request = proto::OpenSessionRequest { session_id: id.to_owned(), ..Default::default() };
        client.open_session(request).await.expect("it opens");
        client
    }

    /// A harness of a session's.
    pub(crate) async fn harness(&self, session: &str) -> Harness {
        let scope = proto::bind::Scope::SessionId(session.to_owned());
        Harness::bind(self.client().await, scope, "files").await
    }

    /// A harness of the deployment's.
    pub(crate) async fn deployment(&self, name: &str) -> Harness {
        let scope = proto::bind::Scope::Deployment(proto::Deployment {});
        Harness::bind(self.client().await, scope, name).await
    }

    /// Stops it and waits until nothing is left.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        patiently(self.serving).await.expect("it ends");
    }
}

/// Waits, but not for ever.
pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes far too long")
}

/// A harness: one stream of `Serve`.
pub(crate) struct Harness {
    sent: mpsc::Sender<proto::HarnessMessage>,
    received: tonic::Streaming<proto::RegistryMessage>,
}

impl Harness {
    pub(crate) async fn bind(mut client: Client, scope: proto::bind::Scope, name: &str) -> Self {
        let (sent, messages) = mpsc::channel(1024);
        let bind = proto::Bind { scope: Some(scope), harness: name.to_owned() };
        sent.send(message(Sent::Bind(bind))).await.expect("room");
        let received = client.serve(ReceiverStream::new(messages)).await.expect("it serves").into_inner();
        let mut harness = Self { sent, received };
        assert!(matches!(harness.next().await, Message::Bound(_)));
        harness
    }

    pub(crate) async fn say(&self, sent: Sent) {
        self.sent.send(message(sent)).await.expect("the stream is there");
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Message {
        let next = patiently(self.received.message()).await.expect("the stream goes on");
        next.and_then(|next| next.message).expect("a message")
    }

    /// How the stream ends.
    pub(crate) async fn end(mut self) -> Result<(), tonic::Status> {
        loop {
            match patiently(self.received.message()).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(status) => return Err(status),
            }
        }
    }

    /// Registers something that must be taken.
    pub(crate) async fn register(&mut self, sent: Sent) -> proto::Acknowledged {
        self.say(sent).await;
        match self.next().await {
            Message::Acknowledged(acknowledged) => acknowledged,
            other => panic!("not acknowledged: {other:?}"),
        }
    }

    /// Registers something that must be refused; gives the reason.
    pub(crate) async fn refused(&mut self, sent: Sent) -> String {
        self.say(sent).await;
        match self.next().await {
            Message::Refused(refused) => refused.reason,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Registers a tool of any arguments and values.
    pub(crate) async fn tool(&mut self, name: &str) {
        self.register(tool(name)).await;
    }

    /// The next message, which must be a call.
    pub(crate) async fn called(&mut self) -> proto::ToolCall {
        match self.next().await {
            Message::Call(call) => call,
            other => panic!("no call: {other:?}"),
        }
    }

    /// The next message, which must be a hook's question.
    pub(crate) async fn asked(&mut self) -> proto::HookQuestion {
        match self.next().await {
            Message::Hook(question) => question,
            other => panic!("no hook's question: {other:?}"),
        }
    }

    pub(crate) async fn answer(&self, id: u64, json: &str) {
        self.say(Sent::ToolAnswer(value(id, json))).await;
    }

    pub(crate) async fn decide(&self, id: u64, answer: proto::hook_answer::Answer) {
        self.say(Sent::HookAnswer(proto::HookAnswer { id, answer: Some(answer) })).await;
    }
}

fn message(message: Sent) -> proto::HarnessMessage {
    proto::HarnessMessage { message: Some(message) }
}

pub(crate) fn tool(name: &str) -> Sent {
    Sent::RegisterTool(proto::RegisterTool { name: name.to_owned(), ..Default::default() })
}

pub(crate) fn hook(name: &str, kind: proto::HookKind) -> proto::RegisterHook {
    proto::RegisterHook {
        name: name.to_owned(),
        kind: kind.into(),
        deadline_ms: 600_000,
        ..Default::default()
    }
}

pub(crate) fn value(id: u64, json: &str) -> proto::ToolAnswer {
    let result = proto::tool_answer::Result::ValueJson(json.to_owned().into());
    proto::ToolAnswer { id, result: Some(result), ..Default::default() }
}

/// A call of a tool, to be awaited or dropped.
pub(crate) fn call(client: &Client, session: &str, name: &str, arguments: &str) -> Calling {
    let mut client = client.clone();
    let request = proto::CallRequest {
        session_id: session.to_owned(),
        call_id: format!("call-{name}-{}", CALLS.fetch_add(1, Ordering::Relaxed)),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        ..Default::default()
    };
    Calling(tokio::spawn(async move { client.call(request).await.map(tonic::Response::into_inner) }))
}

/// A call that is under way.
pub(crate) struct Calling(tokio::task::JoinHandle<Result<proto::CallResult, tonic::Status>>);

impl Calling {
    pub(crate) async fn result(self) -> proto::CallResult {
        patiently(self.0).await.expect("no panic").expect("a result")
    }

    /// The value, as text.
    pub(crate) async fn value(self) -> String {
        match self.result().await.outcome.expect("an outcome") {
            proto::call_result::Outcome::ValueJson(json) => String::from_utf8(json.into()).expect("UTF-8"),
            proto::call_result::Outcome::Failure(failure) => panic!("it failed: {}", failure.message),
        }
    }

    pub(crate) async fn failure(self) -> proto::CallFailure {
        match self.result().await.outcome.expect("an outcome") {
            proto::call_result::Outcome::Failure(failure) => failure,
            proto::call_result::Outcome::ValueJson(json) => panic!("it succeeded: {json:?}"),
        }
    }

    /// Goes away: the RPC is cancelled.
    pub(crate) fn cancel(self) {
        self.0.abort();
    }
}

/// All entries of a session, as its store has them.
pub(crate) async fn entries(client: &mut Client, session: &str) -> Vec<serde_json::Value> {
    let request = proto::FollowRequest { session_id: session.to_owned(), ..Default::default() };
    let mut stream = client.follow(request).await.expect("it follows").into_inner();
    let mut entries = Vec::new();
    while let Some(entry) = patiently(stream.message()).await.expect("an entry") {
        entries.push(serde_json::from_slice(&entry.event_json).expect("JSON"));
    }
    entries
}

/// The types of a session's entries.
pub(crate) async fn types(client: &mut Client, session: &str) -> Vec<String> {
    let entries = entries(client, session).await;
    entries.iter().map(|entry| entry["type"].as_str().unwrap_or_default().to_owned()).collect()
}

pub(crate) async fn assemble(
    client: &mut Client,
    session: &str,
) -> Result<proto::AssembleResponse, tonic::Status> {
    let request = proto::AssembleRequest { session_id: session.to_owned(), ..Default::default() };
    client.assemble(request).await.map(tonic::Response::into_inner)
}

/// Names of the tools that an assembly lists.
pub(crate) fn listed(assembly: &proto::AssembleResponse) -> Vec<String> {
    let tools: Vec<serde_json::Value> = serde_json::from_slice(&assembly.tools_json).expect("a JSON array");
    tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}
