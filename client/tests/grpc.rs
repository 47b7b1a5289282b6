//! The gRPC runtime against a scripted executor: the stream, its ends, and what is tried again.

mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use codemode_client::grpc::{GrpcConfig, GrpcRuntime};
use codemode_client::{
    AbortSignal, BindingError, CodeRuntime, FailureKind, JsonText, Namespace, Outcome, RunEvent, RunHost,
    RunRequest, RuntimeError,
};
use support::{RUN_ID, ScriptedExecutor};
use tokio::sync::Notify;
use tonic::Status;

fn config(executors: &[&ScriptedExecutor]) -> GrpcConfig {
    GrpcConfig::new(executors.iter().map(|executor| &executor.address)).expect("addresses")
}

fn runtime(executors: &[&ScriptedExecutor]) -> GrpcRuntime {
    GrpcRuntime::connect_lazy(config(executors)).expect("a runtime")
}

async fn run(runtime: &GrpcRuntime, program: &str) -> Result<Outcome, RuntimeError> {
    runtime.run(RunRequest::new(program).with_namespace(tools()), RunHost::default()).await
}

fn tools() -> Namespace {
    Namespace::new("tools")
        .typed("double", |value: u64, _| async move { Ok(value * 2) })
        .typed("fail", |(): (), _| async move { Err::<(), _>(BindingError::new("no such thing")) })
        .typed("sleep", |ms: u64, _| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(ms)
        })
        .function("echo", |args, _| async move { Ok(args) })
}

fn busy(advice_ms: u64) -> Status {
    let mut status = Status::resource_exhausted("all slots taken");
    status.metadata_mut().insert("retry-after-ms", advice_ms.to_string().parse().expect("a header value"));
    status
}

#[tokio::test]
async fn a_run_logs_calls_and_returns() {
    let executor = ScriptedExecutor::start().await;
    let runtime = GrpcRuntime::connect(config(&[&executor])).await.expect("an executor");
    assert_eq!((runtime.language(), runtime.isolation()), ("typescript", "process"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let host = RunHost::observed_by(move |event: RunEvent<'_>| {
        let line = match event {
            RunEvent::Started { run_id, engine } => format!("started {run_id} on {engine}"),
            RunEvent::Log { text } => format!("log {text}"),
            RunEvent::CallStarted { call_id, global, name, argument_bytes } => {
                format!("call {call_id} {global}.{name} {argument_bytes}")
            }
            RunEvent::CallSettled { call_id, result, .. } => format!("settled {call_id} {result:?}"),
            other => format!("{other:?}"),
        };
        sink.lock().expect("lock").push(line);
    });
    let program = "log hello\ncall tools double 21\nreturn-last";
    let outcome =
        runtime.run(RunRequest::new(program).with_namespace(tools()), host).await.expect("an outcome");
    assert_eq!(outcome.value.map(JsonText::into_string).as_deref(), Some("42"));
    assert_eq!(outcome.run_id.to_string(), RUN_ID);
    assert_eq!(outcome.usage.cpu_us, 1_500);
    let wanted =
        [&format!("started {RUN_ID} on scripted"), "log hello", "call 1 tools.double 2", "settled 1 Ok(2)"];
    assert_eq!(*seen.lock().expect("lock"), wanted);
    assert_eq!(executor.seen.starts.lock().expect("lock")[0].namespaces[0].functions.len(), 4);
}

#[tokio::test]
async fn failures_are_outcomes_and_failing_calls_are_replies() {
    let executor = ScriptedExecutor::start().await;
    let runtime = runtime(&[&executor]);
    let outcome = run(&runtime, "fail TIMEOUT too slow").await.expect("an outcome");
    let failure = outcome.failure.expect("a failure");
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Timeout, "too slow"));
    let outcome =
        run(&runtime, "begin tools fail null\nbegin tools missing null\ncollect").await.expect("an outcome");
    let mut logs = outcome.logs;
    logs.sort();
    assert_eq!(logs, ["1=!no such thing", "2=!unknown binding \"tools.missing\""]);
}

#[tokio::test]
async fn calls_run_together_and_replies_come_in_any_order() {
    let executor = ScriptedExecutor::start().await;
    let runtime = runtime(&[&executor]);
    let program = "begin tools sleep 300\nbegin tools sleep 20\nbegin tools sleep 150\ncollect";
    let outcome = run(&runtime, program).await.expect("an outcome");
    assert_eq!(
        outcome.logs,
        ["2=20", "3=150", "1=300"],
        "one after the other they would come as they were asked"
    );
}

#[tokio::test]
async fn values_pass_untouched_at_any_depth_and_size() {
    let executor = ScriptedExecutor::start().await;
    let runtime = runtime(&[&executor]);
    let deep = format!("{}\"\\ud800\"{}", "[".repeat(20_000), "]".repeat(20_000));
    let outcome = run(&runtime, &format!("call tools echo {deep}\nreturn-last")).await.expect("an outcome");
    assert_eq!(outcome.value.expect("a value").as_str(), deep);
    let outcome = run(&runtime, "return-big 20000000").await.expect("an outcome");
    assert_eq!(outcome.value.expect("a value").len(), 20_000_002, "more than gRPC's default of 4 MiB");
}

#[tokio::test]
async fn abort_waits_for_the_outcome_and_cancels_calls() {
    let executor = ScriptedExecutor::start().await;
    let runtime = runtime(&[&executor]);
    let (abort, cancelled) = (AbortSignal::new(), Arc::new(Notify::new()));
    let (handle, notice) = (abort.clone(), Arc::clone(&cancelled));
    let hanging = Namespace::new("tools").typed("hang", move |(): (), call| {
        handle.abort("changed my mind");
        let notice = Arc::clone(&notice);
        tokio::spawn(async move {
            call.cancellation.cancelled().await;
            notice.notify_one();
        });
        std::future::pending::<Result<(), BindingError>>()
    });
    let request = RunRequest::new("log before\ncall tools hang null").with_namespace(hanging);
    let outcome = runtime.run(request, RunHost::default().with_abort(abort)).await.expect("an outcome");
    let failure = outcome.failure.expect("a failure");
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Abort, "changed my mind"));
    assert_eq!(outcome.logs, ["before"]);
    tokio::time::timeout(Duration::from_secs(5), cancelled.notified()).await.expect("cancelled");
}

#[tokio::test]
async fn a_signal_that_fired_before_starts_nothing() {
    let executor = ScriptedExecutor::start().await;
    let runtime = runtime(&[&executor]);
    let abort = AbortSignal::new();
    abort.abort("no");
    let outcome =
        runtime.run(RunRequest::new("hang"), RunHost::default().with_abort(abort)).await.expect("an outcome");
    assert_eq!(outcome.failure.expect("a failure").message, "no");
    assert_eq!(executor.seen.attempts(), 0);
}

/// Sets a flag when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn dropping_the_future_closes_the_stream_and_drops_the_calls() {
    let executor = ScriptedExecutor::start().await;
    let runtime = runtime(&[&executor]);
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (notice, flag) = (Arc::clone(&begun), Arc::clone(&dropped));
    let hanging = Namespace::new("tools").typed("hang", move |(): (), _| {
        notice.notify_one();
        let flag = Flag(Arc::clone(&flag));
        async move {
            let _flag = flag;
            std::future::pending::<Result<(), BindingError>>().await
        }
    });
    let request = RunRequest::new("call tools hang null").with_namespace(hanging);
    tokio::select! {
        _ = runtime.run(request, RunHost::default()) => panic!("the run settled"),
        () = begun.notified() => {}
    }
    executor.seen.wait_abandoned().await;
    for _ in 0..100 {
        if dropped.load(Ordering::SeqCst) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the call's future outlives its run");
}

#[tokio::test]
async fn late_results_are_dropped_and_functions_end_with_the_run() {
    let executor = ScriptedExecutor::start().await;
    let runtime = runtime(&[&executor]);
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&dropped);
    let slow = Namespace::new("tools").typed("slow", move |(): (), _| {
        let flag = Flag(Arc::clone(&flag));
        async move {
            let _flag = flag;
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(())
        }
    });
    let request = RunRequest::new("begin tools slow null\nsleep 50\nreturn 1").with_namespace(slow);
    let outcome = runtime.run(request, RunHost::default()).await.expect("an outcome");
    assert!(outcome.completed());
    assert!(dropped.load(Ordering::SeqCst), "the function outlives its run");
    assert!(executor.seen.replies.lock().expect("lock").is_empty());
}

#[tokio::test]
async fn a_run_turned_away_before_it_started_is_tried_again() {
    let executor = ScriptedExecutor::refusing([Status::unavailable("draining"), busy(120)]).await;
    let runtime = runtime(&[&executor]);
    let retries = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&retries);
    let host = RunHost::observed_by(move |event: RunEvent<'_>| {
        if let RunEvent::Retrying { delay, .. } = event {
            sink.lock().expect("lock").push(delay);
        }
    });
    let begun = Instant::now();
    let outcome = runtime.run(RunRequest::new("return 1"), host).await.expect("an outcome");
    assert!(outcome.completed());
    assert_eq!(executor.seen.attempts(), 3);
    assert_eq!(*retries.lock().expect("lock"), [Duration::from_millis(100), Duration::from_millis(120)]);
    assert!(begun.elapsed() >= Duration::from_millis(220), "the advice was not kept: {:?}", begun.elapsed());
}

#[tokio::test]
async fn attempts_are_bounded_and_the_last_refusal_is_told() {
    let executor = ScriptedExecutor::refusing((0..10).map(|_| busy(1))).await;
    let mut config = config(&[&executor]);
    config.attempts_max = 3;
    let runtime = GrpcRuntime::connect_lazy(config).expect("a runtime");
    let error = run(&runtime, "return 1").await.expect_err("no outcome");
    let RuntimeError::Overloaded { message, retry_after } = &error else { panic!("{error:?}") };
    assert_eq!((message.as_str(), *retry_after), ("all slots taken", Some(Duration::from_millis(1))));
    assert_eq!(executor.seen.attempts(), 3);
    assert!(!error.may_have_acted());
}

#[tokio::test]
async fn another_executor_is_tried_at_once() {
    let full = ScriptedExecutor::refusing((0..10).map(|_| busy(60_000))).await;
    let free = ScriptedExecutor::start().await;
    let runtime = runtime(&[&full, &free]);
    let begun = Instant::now();
    for _ in 0..4 {
        assert!(run(&runtime, "return 1").await.expect("an outcome").completed());
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "the busy one's minute was waited for");
    assert_eq!(free.seen.attempts(), 4);
    assert_eq!(full.seen.attempts(), 1, "an executor that refused is passed over for a while");
}

#[tokio::test]
async fn an_executor_that_is_not_there_is_passed_over() {
    let gone = ScriptedExecutor::start().await;
    let live = ScriptedExecutor::start().await;
    let runtime = runtime(&[&gone, &live]);
    drop(gone);
    for _ in 0..4 {
        assert!(run(&runtime, "return 1").await.expect("an outcome").completed());
    }
    assert_eq!(live.seen.attempts(), 4);
}

#[tokio::test]
async fn runs_spread_over_executors() {
    let executors = [ScriptedExecutor::start().await, ScriptedExecutor::start().await];
    let runtime = runtime(&[&executors[0], &executors[1]]);
    let runs = (0..20).map(|_| run(&runtime, "sleep 100\nreturn 1"));
    let outcomes = futures::future::join_all(runs).await;
    assert!(outcomes.into_iter().all(|outcome| outcome.expect("an outcome").completed()));
    assert_eq!(executors.each_ref().map(|executor| executor.seen.attempts()), [10, 10]);
}

#[tokio::test]
async fn nothing_is_replayed_after_a_run_has_started() {
    for (program, fragment) in
        [("status", "went away"), ("end", "without an outcome"), ("again", "a second start")]
    {
        let executors = [ScriptedExecutor::start().await, ScriptedExecutor::start().await];
        let runtime = runtime(&[&executors[0], &executors[1]]);
        let error = run(&runtime, &format!("call tools double 1\n{program}")).await.expect_err("no outcome");
        assert!(error.may_have_acted(), "{program}: {error}");
        assert!(error.to_string().contains(fragment), "{program}: {error}");
        assert_eq!(executors[0].seen.attempts() + executors[1].seen.attempts(), 1, "{program}");
    }
}

#[tokio::test]
async fn a_connection_lost_in_mid_run_is_not_replayed() {
    let executor = ScriptedExecutor::start().await;
    let runtime = runtime(&[&executor]);
    let executor = Arc::new(Mutex::new(Some(executor)));
    let calls = Arc::new(AtomicUsize::new(0));
    let (holder, counter) = (Arc::clone(&executor), Arc::clone(&calls));
    let deadly = Namespace::new("tools").typed("kill", move |(): (), _| {
        counter.fetch_add(1, Ordering::SeqCst);
        // Ends the server's task and with it the connection.
        drop(holder.lock().expect("lock").take());
        std::future::pending::<Result<(), BindingError>>()
    });
    let request = RunRequest::new("call tools kill null\nreturn 1").with_namespace(deadly);
    let run = runtime.run(request, RunHost::default().with_deadline(Duration::from_secs(3)));
    let error = run.await.expect_err("no outcome");
    assert!(error.may_have_acted(), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn misuse_is_an_error_that_is_not_retried() {
    let executor = ScriptedExecutor::start().await;
    let runtime = runtime(&[&executor]);
    let error = run(&runtime, "refuse").await.expect_err("no outcome");
    let RuntimeError::InvalidRequest { message } = error else { panic!("{error:?}") };
    assert_eq!(message, "program: refused; namespaces[0].global: bad");
    assert_eq!(executor.seen.attempts(), 1);
}

#[tokio::test]
async fn a_deadline_aborts_a_started_run() {
    let executor = ScriptedExecutor::start().await;
    let runtime = runtime(&[&executor]);
    let host = RunHost::default().with_deadline(Duration::from_millis(800));
    let begun = Instant::now();
    let outcome = runtime.run(RunRequest::new("log a\nhang"), host).await.expect("an outcome");
    let failure = outcome.failure.expect("a failure");
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Abort, "deadline of 800ms exceeded"));
    assert_eq!(outcome.logs, ["a"]);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_deadline_covers_waiting_for_a_slot() {
    let executor = ScriptedExecutor::refusing((0..100).map(|_| busy(50))).await;
    let mut config = config(&[&executor]);
    config.attempts_max = 100;
    config.run_deadline = Some(Duration::from_millis(170));
    let runtime = GrpcRuntime::connect_lazy(config).expect("a runtime");
    let error = run(&runtime, "return 1").await.expect_err("no outcome");
    assert!(matches!(error, RuntimeError::DeadlineExceeded { after_start: false, .. }), "{error:?}");
    assert_eq!(error.to_string(), "deadline of 170ms exceeded before the run started");
    assert!((3..=4).contains(&executor.seen.attempts()), "{}", executor.seen.attempts());
}

#[tokio::test]
async fn a_service_that_accepts_and_says_nothing_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let mut config = GrpcConfig::new([address]).expect("an address");
    config.connect_timeout = Duration::from_millis(200);
    let error = GrpcRuntime::connect(config).await.expect_err("no executor");
    assert!(matches!(error, RuntimeError::Unavailable { .. }), "{error:?}");
    drop(listener);
}

#[tokio::test]
async fn nobody_there_is_unavailable_and_says_where_and_why() {
    let mut config = GrpcConfig::new(["unix:/nonexistent/executor.sock"]).expect("an address");
    config.connect_timeout = Duration::from_millis(120);
    let error = GrpcRuntime::connect(config).await.expect_err("no executor");
    let text = error.to_string();
    assert!(text.contains("unix:/nonexistent/executor.sock") && text.contains("No such file"), "{text}");
}

#[tokio::test]
async fn the_token_goes_with_every_run() {
    let executor = ScriptedExecutor::start().await;
    let config = config(&[&executor]).with_bearer_token("open sesame").expect("a token");
    let runtime = GrpcRuntime::connect(config).await.expect("an executor");
    assert!(run(&runtime, "return 1").await.expect("an outcome").completed());
    assert_eq!(*executor.seen.authorizations.lock().expect("lock"), ["Bearer open sesame"]);
}

#[tokio::test]
async fn disposal_aborts_live_runs_waits_and_refuses_later_ones() {
    let executor = ScriptedExecutor::start().await;
    let runtime = Arc::new(runtime(&[&executor]));
    let started = Arc::new(Notify::new());
    let notice = Arc::clone(&started);
    let live = tokio::spawn({
        let runtime = Arc::clone(&runtime);
        let host = RunHost::observed_by(move |event: RunEvent<'_>| {
            if matches!(event, RunEvent::Started { .. }) {
                notice.notify_one();
            }
        });
        async move { runtime.run(RunRequest::new("hang"), host).await }
    });
    started.notified().await;
    runtime.dispose().await;
    let outcome = live.await.expect("no panic").expect("an outcome");
    assert_eq!(outcome.failure.expect("a failure").message, "runtime disposed");
    assert!(matches!(run(&runtime, "return 1").await, Err(RuntimeError::Disposed)));
}

#[tokio::test]
async fn describe_answers_what_the_executor_says() {
    let executor = ScriptedExecutor::start().await;
    let description = runtime(&[&executor]).describe().await.expect("a description");
    assert_eq!(description.default_engine, "scripted");
    assert_eq!(description.budgets.compute_ms, Some(60_000));
    assert_eq!(description.layers[0].reason, "kernel too old");
}
