//! The gRPC face message by message: orders that are misuse, answers to misuse, admission, `Describe`.

use std::time::{Duration, Instant};

use codemode_proto::executor_v1 as v1;
use codemode_proto::executor_v1::run_request::Message as ToExecutor;
use codemode_proto::executor_v1::run_response::Message as FromExecutor;
use codemode_tests::executor::Executor;
use codemode_tests::judge::kind_name;
use codemode_tests::live::{LiveRun, start};
use prost::Message as _;
use tonic::{Code, Status};

async fn executor(configuration: &str) -> Executor {
    let table = toml::from_str(configuration).expect("a configuration");
    Executor::start(&table).await.expect("an executor starts")
}

/// The status that these first messages come to.
async fn refused(executor: &Executor, messages: Vec<ToExecutor>, close: bool) -> Status {
    let mut client = executor.client().await.expect("a client");
    match LiveRun::open(&mut client, messages).await {
        Err(status) => status,
        Ok(mut run) => {
            if close {
                run.close();
            }
            run.status().await.expect("a status")
        }
    }
}

fn reply(id: u64) -> ToExecutor {
    let result = v1::binding_reply::Result::ValueJson("1".into());
    ToExecutor::Reply(v1::BindingReply { id, result: Some(result) })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_message_is_start() {
    let executor = executor("").await;
    let abort = ToExecutor::Abort(v1::Abort { reason: "x".to_owned() });
    for messages in [vec![reply(1)], vec![abort]] {
        let status = refused(&executor, messages, false).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains("start"), "{status}");
    }
    let status = refused(&executor, Vec::new(), true).await;
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
}

/// What is no message of the contract is the caller's fault, first or later.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_decoded_is_an_invalid_argument() {
    let executor = executor("").await;
    // Where the contract has a message, this has a text that is none.
    let junk = || v1::Abort { reason: "\u{7}".to_owned() };
    let start =
        v1::RunRequest { message: Some(ToExecutor::Start(start("await new Promise(() => {})", &[]))) };
    let begun = v1::Abort { reason: String::from_utf8(inner(&start)).expect("a text") };
    for (first, after) in [(junk(), "at once"), (begun, "in a run")] {
        let channel = executor.channel().await.expect("a channel");
        let mut client = tonic::client::Grpc::new(channel);
        client.ready().await.expect("ready");
        let (sender, receiver) = tokio::sync::mpsc::channel(2);
        sender.send(first).await.expect("room");
        let requests = tonic::Request::new(tokio_stream::wrappers::ReceiverStream::new(receiver));
        let path = "/codemode.executor.v1.Executor/Run".parse().expect("a path");
        let codec = tonic_prost::ProstCodec::<v1::Abort, v1::RunResponse>::default();
        let status = match client.streaming(requests, path, codec).await {
            Err(status) => status,
            Ok(responses) => {
                let mut responses = responses.into_inner();
                loop {
                    match responses.message().await {
                        // It has started.
                        Ok(Some(_)) => sender.send(junk()).await.expect("room"),
                        Ok(None) => panic!("{after}: the stream ended well"),
                        Err(status) => break status,
                    }
                }
            }
        };
        assert_eq!(status.code(), Code::InvalidArgument, "{after}: {status}");
        assert!(status.message().contains("the request stream broke"), "{after}: {status}");
    }
}

/// The bytes of a request's first field.
fn inner(request: &v1::RunRequest) -> Vec<u8> {
    let Some(ToExecutor::Start(start)) = &request.message else { panic!("{request:?}") };
    start.encode_to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_one_start() {
    let executor = executor("").await;
    let messages =
        vec![ToExecutor::Start(start("while (true) {}", &[])), ToExecutor::Start(start("return 2", &[]))];
    let status = refused(&executor, messages, false).await;
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.message().contains("start"), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_answers_a_call_once() {
    let executor = executor("").await;
    let mut client = executor.client().await.expect("a client");
    for ids in [vec![7], vec![0], vec![1, 1], vec![2]] {
        let mut run = LiveRun::start(&mut client, start("await tools.ask(1); while (true) {}", &["ask"]))
            .await
            .expect("it starts");
        run.wait_for_call().await.expect("it calls");
        for id in &ids {
            assert!(run.send(reply(*id)));
        }
        let status = run.status().await.expect("a status");
        assert_eq!(status.code(), Code::InvalidArgument, "{ids:?}: {status}");
        let last = ids[ids.len() - 1].to_string();
        assert!(status.message().contains(&last), "{ids:?}: {status}");
    }
}

/// A reply without a result says nothing that could be passed on.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_has_a_result() {
    let executor = executor("").await;
    let mut client = executor.client().await.expect("a client");
    let mut run = LiveRun::start(&mut client, start("await tools.ask(1); while (true) {}", &["ask"]))
        .await
        .expect("it starts");
    let id = run.wait_for_call().await.expect("it calls");
    assert!(run.send(ToExecutor::Reply(v1::BindingReply { id, result: None })));
    let status = run.status().await.expect("a status");
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_reply_is_dropped() {
    let executor = executor("").await;
    let mut client = executor.client().await.expect("a client");
    let mut run =
        LiveRun::start(&mut client, start("tools.ask(1); return 5", &["ask"])).await.expect("it starts");
    let id = run.wait_for_call().await.expect("it calls");
    // Whether it arrives before or after the end: the outcome is the same.
    run.reply(id, "1");
    let outcome = run.outcome().await.expect("an outcome");
    assert_eq!(outcome.value_json.as_deref(), Some(b"5".as_slice()));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_after_an_abort_are_ignored() {
    let executor = executor("").await;
    let mut client = executor.client().await.expect("a client");
    let mut run = LiveRun::start(&mut client, start("while (true) {}", &[])).await.expect("it starts");
    assert!(run.abort("first"));
    run.abort("second");
    run.send(reply(9));
    let failure = run.outcome().await.expect("an outcome").failure.expect("a failure");
    assert_eq!((kind_name(failure.kind), failure.message.as_str()), ("abort", "first"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_side_may_be_closed() {
    let executor = executor("").await;
    let mut client = executor.client().await.expect("a client");
    let mut run = LiveRun::start(&mut client, start("return 1", &[])).await.expect("it starts");
    run.close();
    assert_eq!(run.outcome().await.expect("an outcome").value_json.as_deref(), Some(b"1".as_slice()));

    let budgets = v1::Budgets { wall_ms: Some(700), ..v1::Budgets::default() };
    let waiting = v1::StartRun { budgets: Some(budgets), ..start("await tools.ask(1)", &["ask"]) };
    let mut run = LiveRun::start(&mut client, waiting).await.expect("it starts");
    run.close();
    let failure = run.outcome().await.expect("an outcome").failure.expect("a failure");
    assert_eq!((kind_name(failure.kind), failure.detail.as_str()), ("timeout", "wall_ms"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_id_is_kept_and_unique_among_live_runs() {
    let executor = executor("").await;
    let mut client = executor.client().await.expect("a client");
    let run_id = "7d444840-9dc0-11d1-b245-5ffdce74fad2";
    let with_id = |program: &str| v1::StartRun { run_id: run_id.to_owned(), ..start(program, &["ask"]) };
    let mut run = LiveRun::open(&mut client, [ToExecutor::Start(with_id("await tools.ask(1)"))])
        .await
        .expect("it opens");
    match run.next().await.expect("a message") {
        Some(FromExecutor::Started(started)) => assert_eq!(started.run_id, run_id),
        other => panic!("{other:?}"),
    }
    let status = refused(&executor, vec![ToExecutor::Start(with_id("return 1"))], false).await;
    assert!(matches!(status.code(), Code::InvalidArgument | Code::AlreadyExists), "{status}");
    assert!(run.abort("done"));
    run.outcome().await.expect("an outcome");
    let mut again = LiveRun::start(&mut client, with_id("return 1")).await.expect("the id is free again");
    again.outcome().await.expect("an outcome");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_told_to_come_back() {
    let executor = executor("concurrent_runs_max = 1\nqueued_runs_max = 0").await;
    let mut client = executor.client().await.expect("a client");
    let mut run =
        LiveRun::start(&mut client, start("await tools.ask(1)", &["ask"])).await.expect("it starts");
    run.wait_for_call().await.expect("it runs");
    let status = refused(&executor, vec![ToExecutor::Start(start("return 1", &[]))], false).await;
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    let advice =
        status.metadata().get(codemode_proto::RETRY_AFTER_MS).expect("advice").to_str().expect("text");
    assert!(advice.parse::<u64>().is_ok_and(|ms| ms > 0), "{advice}");
    assert!(run.reply(1, "1"));
    run.outcome().await.expect("an outcome");
    let mut next = LiveRun::start(&mut client, start("return 1", &[])).await.expect("there is room again");
    next.outcome().await.expect("an outcome");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_bounded_in_time() {
    let executor = executor("concurrent_runs_max = 1\nqueued_runs_max = 4\nqueue_ms_max = 400").await;
    let mut client = executor.client().await.expect("a client");
    let mut first =
        LiveRun::start(&mut client, start("await tools.ask(1)", &["ask"])).await.expect("it starts");
    first.wait_for_call().await.expect("it runs");
    let began = Instant::now();
    let status = refused(&executor, vec![ToExecutor::Start(start("return 1", &[]))], false).await;
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(began.elapsed() >= Duration::from_millis(390), "it waited {:?}", began.elapsed());

    let executor_client = executor.client().await.expect("a client");
    let waiting = tokio::spawn(async move {
        let mut client = executor_client;
        let mut run = LiveRun::start(&mut client, start("return 2", &[])).await.expect("it gets its turn");
        run.outcome().await.expect("an outcome")
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(first.reply(1, "1"));
    first.outcome().await.expect("an outcome");
    let outcome = waiting.await.expect("no panic");
    assert_eq!(outcome.value_json.as_deref(), Some(b"2".as_slice()));
    let waited = outcome.usage.and_then(|usage| usage.phases).map_or(0, |phases| phases.admission_us);
    assert!(waited >= 50_000, "admission took {waited} us");
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_names_language_and_isolation() {
    let executor = executor("").await;
    let described = executor.describe().await.expect("described");
    assert_eq!(described.contract_version, codemode_proto::EXECUTOR_CONTRACT_VERSION);
    assert_eq!((described.language.as_str(), described.isolation.as_str()), ("typescript", "process"));
    assert!(!described.executor_version.is_empty());
    assert!(["fork", "exec"].contains(&described.spawn.as_str()), "{}", described.spawn);
    let names: Vec<_> = described.engines.iter().map(|engine| engine.name.as_str()).collect();
    assert!(names.contains(&described.default_engine.as_str()), "{names:?}");
    for engine in &described.engines {
        assert!(
            ["v8", "quickjs"].contains(&engine.name.as_str()) && !engine.version.is_empty(),
            "{engine:?}"
        );
    }
    let budgets = described.budgets.expect("budgets");
    for (name, value) in [
        ("compute_ms", budgets.compute_ms),
        ("wall_ms", budgets.wall_ms),
        ("output_bytes", budgets.output_bytes),
        ("heap_bytes", budgets.heap_bytes),
        ("binding_calls", budgets.binding_calls),
        ("pending_calls", budgets.pending_calls),
        ("pending_argument_bytes", budgets.pending_argument_bytes),
        ("log_entry_bytes", budgets.log_entry_bytes),
    ] {
        assert!(value.is_some_and(|value| value > 0), "{name}");
    }
    let limits = described.limits.expect("limits");
    assert!(limits.json_depth_max >= 5000 && limits.program_bytes_max > 0 && limits.frame_bytes_max > 0);
    assert!(limits.concurrent_runs_max > 0);
    for engine in names {
        let layers: Vec<_> = described.layers.iter().filter(|layer| layer.engine == engine).collect();
        assert_eq!(layers.len(), codemode_wire::Layer::ALL.len(), "{engine}");
        for layer in layers {
            assert!(codemode_wire::Layer::from_name(&layer.name).is_some(), "{layer:?}");
            assert_eq!(layer.in_force, layer.reason.is_empty(), "{layer:?}");
            assert!(layer.in_force || !layer.required, "required and not there: {layer:?}");
        }
    }
}

/// Every layer that is in force for an engine is in force for its runs, and can be asked for.
#[tokio::test(flavor = "multi_thread")]
async fn layers_can_be_required() {
    let executor = executor("").await;
    let described = executor.describe().await.expect("described");
    for engine in &described.engines {
        let of_engine = || described.layers.iter().filter(|layer| layer.engine == engine.name);
        let in_force: Vec<_> =
            of_engine().filter(|layer| layer.in_force).map(|layer| layer.name.clone()).collect();
        let mut client = executor.client().await.expect("a client");
        let request = v1::StartRun {
            engine: engine.name.clone(),
            required_layers: in_force.clone(),
            ..start("return 1", &[])
        };
        let mut run = LiveRun::start(&mut client, request).await.expect("it starts");
        let mut usage = run.outcome().await.expect("an outcome").usage.expect("usage");
        usage.layers.sort();
        let mut expected = in_force;
        expected.sort();
        assert_eq!(usage.layers, expected);
        for missing in of_engine().filter(|layer| !layer.in_force) {
            let request = v1::StartRun {
                engine: engine.name.clone(),
                required_layers: vec![missing.name.clone()],
                ..start("return 1", &[])
            };
            let status = refused(&executor, vec![ToExecutor::Start(request)], false).await;
            assert_eq!(status.code(), Code::FailedPrecondition, "{}: {status}", missing.name);
            assert!(status.message().contains(&missing.name), "{status}");
        }
    }
}
