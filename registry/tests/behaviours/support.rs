//! What the tests of the registry share: a registry with a log, tools that record, hooks of closures, programs as scripts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use codemode_client::fake::{FakeRuntime, Script};
use codemode_client::{CodeRuntime, Description, JsonText, Outcome, RunHost, RunRequest, RuntimeError};
use codemode_events::{Event, EventStore, MemoryStore, Page, SessionId, SessionLog, TurnStart};
use codemode_registry::agent::Agent;
use codemode_registry::pipeline::{
    Call, CallRequest, Decision, Guard, PostExecute, PostVerdict, PreExecute, ResultObserver,
};
use codemode_registry::schema::Schema;
use codemode_registry::tool::{
    Arguments, BodyError, CallContext, CallResult, Concurrency, OutputContract, ToolBody, ToolDefinition,
    body_fn,
};
use codemode_registry::{HookError, Mode, Registration, Registry, ScopeId, Settings};
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) fn json(text: &str) -> JsonText {
    JsonText::parse(text).expect("well-formed")
}

pub(crate) fn schema(text: &str) -> Schema {
    Schema::parse(text).expect("lossless")
}

/// A tool of any arguments and values.
pub(crate) fn tool(name: &str, body: Arc<dyn ToolBody>) -> ToolDefinition {
    ToolDefinition::new(
        name,
        "",
        schema(r#"{"type":"object"}"#),
        OutputContract::new(Schema::anything()),
        body,
    )
}

/// A tool that gives its arguments back.
pub(crate) fn echo(name: &str) -> ToolDefinition {
    tool(name, body_fn(|arguments: Arguments, _| async move { Ok(arguments.text().clone()) }))
}

/// A tool that fails with a message.
pub(crate) fn failing(name: &str, message: &'static str) -> ToolDefinition {
    tool(name, body_fn(move |_, _| async move { Err(BodyError::new(message)) }))
}

/// Lines in the order in which they were written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn note(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

/// Opens, once, for everybody who waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latch(Arc<(Notify, std::sync::atomic::AtomicBool)>);

impl Latch {
    pub(crate) fn open(&self) {
        self.0.1.store(true, Ordering::SeqCst);
        self.0.0.notify_waiters();
    }

    pub(crate) async fn wait(&self) {
        loop {
            let notified = self.0.0.notified();
            if self.0.1.load(Ordering::SeqCst) {
                return;
            }
            notified.await;
        }
    }
}

/// A tool that notes when it begins and ends, waits in between, and counts how many of its kind overlap.
pub(crate) fn slow(name: &'static str, journal: &Journal, peak: &Arc<Peak>, millis: u64) -> ToolDefinition {
    let (journal, peak) = (journal.clone(), Arc::clone(peak));
    tool(
        name,
        body_fn(move |arguments: Arguments, _| {
            let (journal, peak) = (journal.clone(), Arc::clone(&peak));
            async move {
                journal.note(format!("{name} begins {}", arguments.text()));
                peak.enter();
                let own = arguments.value().get("ms").map(ToString::to_string).and_then(|ms| ms.parse().ok());
                tokio::time::sleep(Duration::from_millis(own.unwrap_or(millis))).await;
                peak.leave();
                journal.note(format!("{name} ends {}", arguments.text()));
                Ok(arguments.text().clone())
            }
        }),
    )
}

#[derive(Debug, Default)]
pub(crate) struct Peak {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Peak {
    pub(crate) fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    pub(crate) fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// Says yes to overlapping.
pub(crate) fn safe(definition: ToolDefinition) -> ToolDefinition {
    definition.with_concurrency(Concurrency::Safe)
}

/// A registry with an agent whose session is logged.
pub(crate) struct Fixture {
    pub(crate) registry: Registry,
    pub(crate) agent: Agent,
    pub(crate) log: SessionLog,
    store: Arc<MemoryStore>,
    kept: Vec<Registration>,
}

impl Fixture {
    pub(crate) async fn new(mode: Mode) -> Self {
        Self::with(Settings { mode, ..Settings::default() }).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let registry = Registry::new(settings).expect("settings that can be");
        let store = Arc::new(MemoryStore::new());
        let session = SessionId::new("session").expect("an id");
        let log =
            SessionLog::create(Arc::clone(&store) as _, &session, Arc::new(|| 0)).await.expect("a session");
        drop(log.append(TurnStart { turn_id: "turn".to_owned() }).await.expect("appended"));
        let agent = Agent::new("agent", ScopeId::ROOT).with_log(log.clone());
        Self { registry, agent, log, store, kept: Vec::new() }
    }

    /// Registers tools for everybody.
    pub(crate) fn tools(&mut self, definitions: impl IntoIterator<Item = ToolDefinition>) {
        for definition in definitions {
            self.keep(self.registry.register(ScopeId::ROOT, definition).expect("registered"));
        }
    }

    pub(crate) fn keep(&mut self, registration: Registration) {
        self.kept.push(registration);
    }

    pub(crate) fn runtime(&mut self, runtime: impl CodeRuntime + 'static) -> &mut Self {
        self.keep(self.registry.set_runtime(Arc::new(runtime)).expect("the first"));
        self
    }

    /// Makes runs follow scripts.
    pub(crate) fn scripts(&mut self, scripts: impl IntoIterator<Item = Script>) -> Arc<FakeRuntime> {
        let fake = Arc::new(FakeRuntime::scripted(scripts));
        self.runtime(Shared(Arc::clone(&fake)));
        fake
    }

    pub(crate) fn pre(
        &mut self,
        hook: impl Fn(&Call, Decision) -> Result<Decision, HookError> + Send + Sync + 'static,
    ) {
        self.keep(self.registry.add_pre_execute(ScopeId::ROOT, Arc::new(Pre(hook))).expect("root"));
    }

    pub(crate) fn post(
        &mut self,
        hook: impl Fn(&Call, &CallResult, PostVerdict) -> Result<PostVerdict, HookError> + Send + Sync + 'static,
    ) {
        self.keep(self.registry.add_post_execute(ScopeId::ROOT, Arc::new(Post(hook))).expect("root"));
    }

    pub(crate) fn observer(&mut self, hook: impl Fn(&Call, &CallResult) + Send + Sync + 'static) {
        self.keep(self.registry.add_observer(ScopeId::ROOT, Arc::new(Observer(hook))).expect("root"));
    }

    /// Makes a direct call.
    pub(crate) async fn call(&self, name: &str, arguments: &str) -> CallResult {
        self.registry.execute(self.request(name, arguments)).await
    }

    pub(crate) fn request(&self, name: &str, arguments: &str) -> CallRequest {
        CallRequest::new("call", name, json(arguments)).by(self.agent.clone())
    }

    /// Runs a program, which is what the runtime makes of it.
    pub(crate) async fn run_code(&self) -> CallResult {
        self.call("run_code", RUN_CODE_ARGUMENTS).await
    }

    /// What was logged since the turn began.
    pub(crate) async fn events(&self) -> Vec<Event> {
        self.log.flush().await.expect("durable");
        let records = self.store.read(self.log.session(), Page::from(2)).await.expect("read");
        records.iter().map(|record| record.entry().expect("readable").event).collect()
    }

    /// What was logged, in a line each: `start call:code:1`.
    pub(crate) async fn event_lines(&self) -> Vec<String> {
        self.events().await.iter().map(line).collect()
    }
}

pub(crate) const RUN_CODE_ARGUMENTS: &str = r#"{"code":"the program","description":"Does something"}"#;

fn line(event: &Event) -> String {
    match event {
        Event::CodeDispatchStart(start) => format!("start {}", start.sub_call_id),
        Event::CodeDispatch(end) => {
            format!("{} {}", if end.is_error { "error" } else { "settle" }, end.sub_call_id)
        }
        Event::ToolCall(call) => format!("call {}", call.call_id),
        Event::ToolResult(result) => {
            let code = result.error.as_ref().map(|error| format!(" {}", error.code)).unwrap_or_default();
            format!("result {}{code}", result.message.call_id)
        }
        other => other.tag().to_owned(),
    }
}

struct Pre<F>(F);

#[async_trait]
impl<F: Fn(&Call, Decision) -> Result<Decision, HookError> + Send + Sync> PreExecute for Pre<F> {
    async fn decide(&self, call: &Call, current: Decision) -> Result<Decision, HookError> {
        (self.0)(call, current)
    }
}

struct Post<F>(F);

#[async_trait]
impl<F: Fn(&Call, &CallResult, PostVerdict) -> Result<PostVerdict, HookError> + Send + Sync> PostExecute
    for Post<F>
{
    async fn review(
        &self,
        call: &Call,
        result: &CallResult,
        current: PostVerdict,
    ) -> Result<PostVerdict, HookError> {
        (self.0)(call, result, current)
    }
}

struct Observer<F>(F);

impl<F: Fn(&Call, &CallResult) + Send + Sync> ResultObserver for Observer<F> {
    fn on_result(&self, call: &Call, result: &CallResult) {
        (self.0)(call, result);
    }
}

pub(crate) struct GuardFn<F>(pub(crate) F);

#[async_trait]
impl<F: Fn(&Call) -> Option<String> + Send + Sync> Guard for GuardFn<F> {
    async fn check(&self, call: &Call) -> Result<Option<String>, HookError> {
        Ok((self.0)(call))
    }
}

/// The client crate's fake, shared with the test that looks at what it recorded.
#[derive(Debug)]
pub(crate) struct Shared(pub(crate) Arc<FakeRuntime>);

#[async_trait]
impl CodeRuntime for Shared {
    async fn run(&self, request: RunRequest, host: RunHost) -> Result<Outcome, RuntimeError> {
        self.0.run(request, host).await
    }

    fn language(&self) -> &str {
        self.0.language()
    }

    fn isolation(&self) -> &str {
        self.0.isolation()
    }

    async fn describe(&self) -> Result<Description, RuntimeError> {
        self.0.describe().await
    }

    async fn dispose(&self) {
        self.0.dispose().await;
    }
}

/// A runtime of some language, whose runs end as the function says as soon as `ends` opens, whatever is in flight.
pub(crate) struct Odd {
    pub(crate) language: &'static str,
    pub(crate) inner: Arc<FakeRuntime>,
    pub(crate) ends: Latch,
    pub(crate) end: Box<dyn Fn() -> Result<Outcome, RuntimeError> + Send + Sync>,
}

impl std::fmt::Debug for Odd {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Odd")
    }
}

impl Odd {
    pub(crate) fn speaking(language: &'static str) -> Self {
        Self {
            language,
            inner: Arc::default(),
            ends: Latch::default(),
            end: Box::new(|| Ok(completed("null"))),
        }
    }

    pub(crate) fn ending(
        scripts: impl IntoIterator<Item = Script>,
        ends: &Latch,
        end: impl Fn() -> Result<Outcome, RuntimeError> + Send + Sync + 'static,
    ) -> Self {
        let inner = Arc::new(FakeRuntime::scripted(scripts));
        Self { language: "typescript", inner, ends: ends.clone(), end: Box::new(end) }
    }
}

/// The outcome of a program that returned a value.
pub(crate) fn completed(value: &str) -> Outcome {
    let failed = Outcome::aborted(codemode_client::RunId::random(), "");
    Outcome { value: Some(json(value)), failure: None, ..failed }
}

#[async_trait]
impl CodeRuntime for Odd {
    async fn run(&self, request: RunRequest, host: RunHost) -> Result<Outcome, RuntimeError> {
        tokio::select! {
            outcome = self.inner.run(request, RunHost { observer: host.observer.clone(), ..RunHost::default() }) => outcome,
            () = self.ends.wait() => (self.end)(),
        }
    }

    fn language(&self) -> &str {
        self.language
    }

    fn isolation(&self) -> &str {
        "none"
    }

    async fn describe(&self) -> Result<Description, RuntimeError> {
        self.inner.describe().await
    }

    async fn dispose(&self) {}
}

/// The text of a result.
pub(crate) fn text(result: &CallResult) -> String {
    result.text()
}

/// The code of a failure, or nothing.
pub(crate) fn code(result: &CallResult) -> String {
    result.error_info().map(|info| info.code.clone()).unwrap_or_default()
}

/// A body that shows its context to a function and gives null.
pub(crate) fn body_with(function: impl Fn(&CallContext) + Send + Sync + 'static) -> Arc<dyn ToolBody> {
    body_fn(move |_, context: CallContext| {
        function(&context);
        async { Ok(JsonText::null()) }
    })
}
