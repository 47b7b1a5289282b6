//! An executor for tests of the client: a real gRPC server in this process whose programs are scripts.
//!
//! A program is lines of `log TEXT`, `call GLOBAL NAME JSON` (waits for the reply), `begin GLOBAL NAME JSON` (does not),
//! `collect` (waits for all that were begun, logging `ID=REPLY` as they come), `sleep MS`, `hang`, and as an end `return JSON`,
//! `return-last`, `fail KIND MESSAGE`, `end` (no outcome) or `status` (INTERNAL). Abort ends it everywhere, as it does at the real one.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codemode_proto::executor_v1 as pb;
use codemode_proto::executor_v1::executor_server::{Executor, ExecutorServer};
use codemode_proto::executor_v1::run_request::Message as Asked;
use codemode_proto::executor_v1::run_response::Message as Told;
use futures::Stream;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream, UnixListenerStream};
use tonic::transport::ServerTlsConfig;
use tonic::{Request, Response, Status, Streaming};

pub const RUN_ID: &str = "0b0e3e5c-7a52-4c5e-8a83-3f5f3f0f8a11";

/// What the executor saw.
#[derive(Default)]
pub struct Seen {
    pub attempts: AtomicUsize,
    pub starts: Mutex<Vec<pb::StartRun>>,
    pub replies: Mutex<Vec<pb::BindingReply>>,
    pub authorizations: Mutex<Vec<String>>,
    /// Runs whose caller went away before the outcome.
    pub abandoned: watch::Sender<usize>,
}

impl Seen {
    pub fn attempts(&self) -> usize {
        self.attempts.load(Ordering::SeqCst)
    }

    pub async fn wait_abandoned(&self) {
        let mut abandoned = self.abandoned.subscribe();
        let waiting = abandoned.wait_for(|count| *count > 0);
        tokio::time::timeout(Duration::from_secs(5), waiting)
            .await
            .expect("abandoned in time")
            .expect("sender lives");
    }
}

/// An executor at an address of its own; gone when dropped.
pub struct ScriptedExecutor {
    pub address: String,
    pub seen: Arc<Seen>,
    /// Of its own, so that dropping it ends the connections too, in mid-run.
    server: Option<tokio::runtime::Runtime>,
}

impl Drop for ScriptedExecutor {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown_background();
        }
    }
}

impl ScriptedExecutor {
    /// One that runs scripts at once.
    pub async fn start() -> Self {
        Self::refusing([]).await
    }

    /// One that answers the first attempts with these statuses.
    pub async fn refusing(statuses: impl IntoIterator<Item = Status>) -> Self {
        Self::serve(statuses.into_iter().collect(), None)
    }

    /// One that speaks TLS as `localhost`.
    pub fn with_tls(tls: ServerTlsConfig) -> Self {
        Self::serve(VecDeque::new(), Some(tls))
    }

    fn serve(statuses: VecDeque<Status>, tls: Option<ServerTlsConfig>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let address: SocketAddr = listener.local_addr().expect("bound");
        let seen = Arc::new(Seen::default());
        let service = Service { seen: Arc::clone(&seen), refusals: Mutex::new(statuses) };
        let server = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let scheme = if tls.is_some() { "https" } else { "http" };
        server.spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            let mut builder = tonic::transport::Server::builder();
            if let Some(tls) = tls {
                builder = builder.tls_config(tls).expect("TLS settings");
            }
            let server = builder.add_service(sized(service));
            server.serve_with_incoming(TcpListenerStream::new(listener)).await.expect("serves");
        });
        Self { address: format!("{scheme}://{address}"), seen, server: Some(server) }
    }
}

/// Serves at a Unix socket until the process ends.
pub async fn serve_unix(path: &str) {
    let listener = UnixListener::bind(path).expect("a socket");
    let service = Service { seen: Arc::default(), refusals: Mutex::default() };
    let server = tonic::transport::Server::builder().add_service(sized(service));
    server.serve_with_incoming(UnixListenerStream::new(listener)).await.expect("serves");
}

fn sized(service: Service) -> ExecutorServer<Service> {
    ExecutorServer::new(service).max_decoding_message_size(256 << 20).max_encoding_message_size(256 << 20)
}

struct Service {
    seen: Arc<Seen>,
    refusals: Mutex<VecDeque<Status>>,
}

#[tonic::async_trait]
impl Executor for Service {
    type RunStream = Pin<Box<dyn Stream<Item = Result<pb::RunResponse, Status>> + Send>>;

    async fn run(
        &self,
        request: Request<Streaming<pb::RunRequest>>,
    ) -> Result<Response<Self::RunStream>, Status> {
        self.seen.attempts.fetch_add(1, Ordering::SeqCst);
        if let Some(value) = request.metadata().get("authorization") {
            self.seen.authorizations.lock().expect("lock").push(value.to_str().expect("text").to_owned());
        }
        if let Some(status) = self.refusals.lock().expect("lock").pop_front() {
            return Err(status);
        }
        let (outbound, responses) = mpsc::channel(16);
        let script = ScriptRun {
            seen: Arc::clone(&self.seen),
            inbound: request.into_inner(),
            outbound,
            calls: 0,
            early: VecDeque::new(),
        };
        tokio::spawn(script.run());
        Ok(Response::new(Box::pin(ReceiverStream::new(responses))))
    }

    async fn describe(
        &self,
        _: Request<pb::DescribeRequest>,
    ) -> Result<Response<pb::DescribeResponse>, Status> {
        Ok(Response::new(pb::DescribeResponse {
            contract_version: "1.0".to_owned(),
            language: "typescript".to_owned(),
            isolation: "process".to_owned(),
            executor_version: "0.0.0".to_owned(),
            engines: vec![pb::Engine { name: "scripted".to_owned(), version: "1".to_owned(), jit: false }],
            default_engine: "scripted".to_owned(),
            budgets: Some(pb::Budgets {
                compute_ms: Some(60_000),
                heap_bytes: Some(512 << 20),
                ..Default::default()
            }),
            limits: Some(pb::Limits { json_depth_max: 10_000, ..Default::default() }),
            layers: vec![pb::Layer {
                name: "landlock".to_owned(),
                in_force: false,
                reason: "kernel too old".to_owned(),
                required: false,
                engine: String::new(),
            }],
            spawn: "fork".to_owned(),
        }))
    }
}

/// Why a script cannot go on.
enum Stopped {
    Aborted(String),
    Gone,
}

struct ScriptRun {
    seen: Arc<Seen>,
    inbound: Streaming<pb::RunRequest>,
    outbound: mpsc::Sender<Result<pb::RunResponse, Status>>,
    calls: u64,
    early: VecDeque<pb::BindingReply>,
}

impl ScriptRun {
    async fn run(mut self) {
        let Ok(Some(pb::RunRequest { message: Some(Asked::Start(start)) })) = self.inbound.message().await
        else {
            let _ =
                self.outbound.send(Err(Status::invalid_argument("the first message is not a start"))).await;
            return;
        };
        self.seen.starts.lock().expect("lock").push(start.clone());
        if start.program == "refuse" {
            let _ = self
                .outbound
                .send(Err(Status::invalid_argument("program: refused; namespaces[0].global: bad")))
                .await;
            return;
        }
        let run_id = if start.run_id.is_empty() { RUN_ID.to_owned() } else { start.run_id.clone() };
        self.tell(Told::Started(pb::Started { run_id, engine: "scripted".to_owned() })).await;
        let mut logs = Vec::new();
        match self.follow(&start.program, &mut logs).await {
            Ok(Some(outcome)) => self.tell(Told::Outcome(pb::Outcome { logs, ..outcome })).await,
            Ok(None) => {}
            Err(Stopped::Aborted(reason)) => {
                let outcome = failed(pb::FailureKind::Abort, &reason, "caller");
                self.tell(Told::Outcome(pb::Outcome { logs, ..outcome })).await;
            }
            Err(Stopped::Gone) => self.seen.abandoned.send_modify(|count| *count += 1),
        }
    }

    async fn follow(
        &mut self,
        program: &str,
        logs: &mut Vec<String>,
    ) -> Result<Option<pb::Outcome>, Stopped> {
        let mut last = None;
        let mut begun = 0;
        for line in program.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "log" => self.log(rest, logs).await,
                "begin" => {
                    self.call(rest).await;
                    begun += 1;
                }
                "call" => {
                    self.call(rest).await;
                    last = Some(self.reply().await?);
                }
                "collect" => {
                    for _ in 0..std::mem::take(&mut begun) {
                        let reply = self.reply().await?;
                        self.log(&format!("{}={}", reply.id, shown(&reply)), logs).await;
                    }
                }
                "sleep" => self.sleep(Duration::from_millis(rest.parse().expect("milliseconds"))).await?,
                "hang" => self.sleep(Duration::from_secs(3600)).await?,
                "return" => return Ok(Some(completed(rest))),
                "return-big" => {
                    return Ok(Some(completed(&format!("\"{}\"", "x".repeat(rest.parse().expect("bytes"))))));
                }
                "return-last" => return Ok(Some(ended(last))),
                "fail" => {
                    let (kind, message) = rest.split_once(' ').expect("kind and message");
                    let kind =
                        pb::FailureKind::from_str_name(&format!("FAILURE_KIND_{kind}")).expect("a kind");
                    return Ok(Some(failed(kind, message, "throw")));
                }
                "end" => return Ok(None),
                "status" => {
                    let _ = self.outbound.send(Err(Status::unavailable("went away"))).await;
                    return Ok(None);
                }
                "again" => {
                    self.tell(Told::Started(pb::Started { run_id: RUN_ID.to_owned(), engine: String::new() }))
                        .await
                }
                _ => panic!("no such line: {line}"),
            }
        }
        Ok(Some(pb::Outcome { usage: Some(usage()), ..Default::default() }))
    }

    async fn tell(&self, told: Told) {
        let _ = self.outbound.send(Ok(pb::RunResponse { message: Some(told) })).await;
    }

    async fn log(&self, text: &str, logs: &mut Vec<String>) {
        logs.push(text.to_owned());
        self.tell(Told::Log(pb::LogEntry { text: text.to_owned() })).await;
    }

    async fn call(&mut self, line: &str) {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().expect("global, name and argument").to_owned();
        self.calls += 1;
        let call = pb::BindingCall { id: self.calls, global: word(), name: word(), args_json: word().into() };
        self.tell(Told::Call(call)).await;
    }

    async fn reply(&mut self) -> Result<pb::BindingReply, Stopped> {
        if let Some(reply) = self.early.pop_front() {
            return Ok(reply);
        }
        self.next().await
    }

    async fn next(&mut self) -> Result<pb::BindingReply, Stopped> {
        match self.inbound.message().await {
            Ok(Some(pb::RunRequest { message: Some(Asked::Reply(reply)) })) => {
                self.seen.replies.lock().expect("lock").push(reply.clone());
                Ok(reply)
            }
            Ok(Some(pb::RunRequest { message: Some(Asked::Abort(abort)) })) => {
                Err(Stopped::Aborted(abort.reason))
            }
            Ok(Some(other)) => panic!("unexpected {other:?}"),
            Ok(None) | Err(_) => Err(Stopped::Gone),
        }
    }

    async fn sleep(&mut self, duration: Duration) -> Result<(), Stopped> {
        let end = tokio::time::Instant::now() + duration;
        loop {
            match tokio::time::timeout_at(end, self.next()).await {
                Err(_) => return Ok(()),
                Ok(reply) => self.early.push_back(reply?),
            }
        }
    }
}

fn usage() -> pb::Usage {
    pb::Usage { cpu_us: 1_500, wall_us: 2_500, peak_memory_bytes: 1 << 20, ..Default::default() }
}

fn completed(value: &str) -> pb::Outcome {
    pb::Outcome { value_json: Some(value.to_owned().into()), usage: Some(usage()), ..Default::default() }
}

fn failed(kind: pb::FailureKind, message: &str, detail: &str) -> pb::Outcome {
    let failure = pb::Failure {
        kind: kind.into(),
        message: message.to_owned(),
        detail: detail.to_owned(),
        position: Some(pb::Position { line: 2, column: 5, excerpt: "2 | foo.bar\n  |     ^".to_owned() }),
        ..Default::default()
    };
    pb::Outcome {
        failure: Some(failure),
        usage: Some(usage()),
        hints: vec!["try less".to_owned()],
        ..Default::default()
    }
}

fn ended(last: Option<pb::BindingReply>) -> pb::Outcome {
    match last.and_then(|reply| reply.result) {
        Some(pb::binding_reply::Result::ValueJson(value)) => {
            completed(std::str::from_utf8(&value).expect("UTF-8"))
        }
        Some(pb::binding_reply::Result::Error(error)) => {
            failed(pb::FailureKind::Exception, &error.message, "throw")
        }
        None => panic!("no reply"),
    }
}

fn shown(reply: &pb::BindingReply) -> String {
    match &reply.result {
        Some(pb::binding_reply::Result::ValueJson(value)) => String::from_utf8_lossy(value).into_owned(),
        Some(pb::binding_reply::Result::Error(error)) => format!("!{}", error.message),
        None => "nothing".to_owned(),
    }
}
