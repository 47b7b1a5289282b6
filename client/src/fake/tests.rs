//! The fake keeps the seam's promises, seen from a host.

use super::*;
use crate::abort::AbortSignal;
use crate::binding::Namespace;

fn number(value: u32) -> JsonText {
    JsonText::of(&value).expect("has a form")
}

fn doubling() -> Namespace {
    Namespace::new("tools")
        .typed("double", |value: u32, _| async move { Ok(value * 2) })
        .typed("fail", |(): (), _| async move { Err::<(), _>(BindingError::new("no")) })
        .typed("hang", |(): (), _| std::future::pending::<Result<(), BindingError>>())
}

fn request() -> RunRequest {
    RunRequest::new("whatever").with_namespace(doubling())
}

#[tokio::test]
async fn a_script_logs_calls_and_completes() {
    let runtime = FakeRuntime::scripted([Script::new()
        .log("one")
        .calls([("tools", "double", number(2)), ("tools", "fail", JsonText::null())])
        .hint("h")
        .completes(number(7))]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let host = RunHost::observed_by(move |event: RunEvent<'_>| {
        sink.lock()
            .expect("not poisoned")
            .push(format!("{event:?}").split([' ', '{']).next().unwrap_or_default().to_owned());
    });
    let outcome = runtime.run(request(), host).await.expect("an outcome");
    assert_eq!(outcome.value, Some(number(7)));
    assert_eq!((outcome.logs, outcome.hints), (vec!["one".to_owned()], vec!["h".to_owned()]));
    assert_eq!(outcome.usage.binding_calls, 2);
    let names = ["Started", "Log", "CallStarted", "CallStarted", "CallSettled", "CallSettled"];
    assert_eq!(*seen.lock().expect("not poisoned"), names);
    assert_eq!(runtime.runs()[0].replies, vec![Ok(number(4)), Err(BindingError::new("no"))]);
    assert_eq!(runtime.runs()[0].request.program, "whatever");
}

#[tokio::test]
async fn the_last_reply_can_be_the_value_or_the_failure() {
    let call = |name, args| Script::new().call("tools", name, args).returns_last_reply();
    let runtime = FakeRuntime::scripted([call("double", number(4)), call("fail", JsonText::null())]);
    let first = runtime.run(request(), RunHost::default()).await.expect("an outcome");
    assert_eq!(first.value, Some(number(8)));
    let second = runtime.run(request(), RunHost::default()).await.expect("an outcome");
    assert_eq!(second.failure, Some(Failure::new(FailureKind::Exception, "no")));
}

#[tokio::test]
async fn abort_ends_a_run_that_hangs_and_keeps_its_logs() {
    let script = Script::new().log("before").call("tools", "hang", JsonText::null());
    let runtime = FakeRuntime::scripted([script]);
    let abort = AbortSignal::new();
    let handle = abort.clone();
    let host = RunHost::observed_by(move |event: RunEvent<'_>| {
        if matches!(event, RunEvent::CallStarted { .. }) {
            handle.abort("enough");
        }
    });
    let outcome = runtime.run(request(), host.with_abort(abort)).await.expect("an outcome");
    let failure = outcome.failure.expect("a failure");
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Abort, "enough"));
    assert_eq!(outcome.logs, ["before"]);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_it_too() {
    let runtime = FakeRuntime::scripted([Script::new().wait(Duration::from_secs(60))]);
    let host = RunHost::default().with_deadline(Duration::from_millis(20));
    let outcome = runtime.run(request(), host).await.expect("an outcome");
    assert_eq!(outcome.failure.expect("a failure").message, "deadline of 20ms exceeded");
}

#[tokio::test]
async fn errors_and_disposal_are_errors() {
    let error = RuntimeError::Overloaded { message: "full".to_owned(), retry_after: None };
    let runtime = FakeRuntime::scripted([Script::new().errs(error)]);
    let refused = runtime.run(request(), RunHost::default()).await.expect_err("no outcome");
    assert!(matches!(refused, RuntimeError::Overloaded { .. }));
    runtime.dispose().await;
    let refused = runtime.run(request(), RunHost::default()).await.expect_err("no outcome");
    assert!(matches!(refused, RuntimeError::Disposed));
}

#[tokio::test]
async fn disposal_waits_for_live_runs() {
    let runtime = Arc::new(FakeRuntime::scripted([Script::new().call("tools", "hang", JsonText::null())]));
    let begun = Arc::new(tokio::sync::Notify::new());
    let notice = Arc::clone(&begun);
    let host = RunHost::observed_by(move |event: RunEvent<'_>| {
        if matches!(event, RunEvent::CallStarted { .. }) {
            notice.notify_one();
        }
    });
    let run = tokio::spawn({
        let runtime = Arc::clone(&runtime);
        async move { runtime.run(request(), host).await }
    });
    begun.notified().await;
    runtime.dispose().await;
    let outcome = run.await.expect("no panic").expect("an outcome");
    assert_eq!(outcome.failure.expect("a failure").message, "runtime disposed");
    assert_eq!(runtime.runs().len(), 1);
}
