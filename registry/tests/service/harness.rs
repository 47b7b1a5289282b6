//! Harnesses: registering, being called, answering well and badly, being slow, going away.

use codemode_proto::registry_v1 as proto;
use futures::future::select_all;
use proto::harness_message::Message as Sent;
use proto::registry_message::Message;
use tokio_stream::iter;

use crate::support::{Served, assemble, call, listed, tool, value};

#[tokio::test]
async fn a_call_goes_to_the_harness_and_its_answer_back() {
    let served = Served::plain("").await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("add").await;
    let assembly = assemble(&mut client, "s").await.expect("an assembly");
    assert_eq!(listed(&assembly), ["add"]);
    let calling = call(&client, "s", "add", r#"{"a":1}"#);
    let asked = harness.called().await;
    let info = asked.call.expect("who calls what");
    assert_eq!(
        (info.name.as_str(), &*info.arguments_json, info.session_id.as_str()),
        ("add", &br#"{"a":1}"#[..], "s")
    );
    assert!(info.call_id.starts_with("call-add-") && !info.is_sub_call);
    harness.answer(asked.id, r#"{"sum":2}"#).await;
    assert_eq!(calling.value().await, r#"{"sum":2}"#);
    served.stop().await;
}

#[tokio::test]
async fn a_harness_that_goes_away_takes_its_tools_along_and_fails_its_calls() {
    let served = Served::plain("").await;
    let mut client = served.session("s").await;
    let mut harness = served.deployment("files").await;
    harness.tool("slow").await;
    let calling = call(&client, "s", "slow", "{}");
    harness.called().await;
    drop(harness);
    assert_eq!(calling.failure().await.message, "harness \"files\" has disconnected");
    while !listed(&assemble(&mut client, "s").await.expect("an assembly")).is_empty() {
        tokio::task::yield_now().await;
    }
    let failure = call(&client, "s", "slow", "{}").failure().await;
    assert_eq!(failure.info.expect("a code").code, "UNKNOWN_TOOL");
    served.stop().await;
}

#[tokio::test]
async fn answers_that_cannot_be_taken_are_refused_by_name() {
    let served = Served::plain("").await;
    let client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("one").await;
    let mut refusal = async |answer: Sent| {
        harness.say(answer).await;
        match harness.next().await {
            Message::AnswerRefused(refused) => (refused.id, refused.reason),
            other => panic!("not refused: {other:?}"),
        }
    };
    assert_eq!(refusal(Sent::ToolAnswer(value(7, "1"))).await, (7, "there was no question 7".to_owned()));
    let calling = call(&client, "s", "one", "{}");
    assert_eq!(harness.called().await.id, 1);
    let mut refusal = async |answer: Sent| {
        harness.say(answer).await;
        match harness.next().await {
            Message::AnswerRefused(refused) => refused.reason,
            other => panic!("not refused: {other:?}"),
        }
    };
    let wrong = Sent::ApprovalAnswer(proto::ApprovalAnswer { id: 1, outcome: 1 });
    assert_eq!(refusal(wrong).await, "question 1 wants a `tool_answer`; it is still open");
    let unreadable = refusal(Sent::ToolAnswer(value(1, "{"))).await;
    assert!(unreadable.starts_with("the value is no JSON"), "{unreadable}");
    let failure = calling.failure().await.message;
    assert!(failure.starts_with("harness \"files\" gave an answer that cannot be read"), "{failure}");
    let again = refusal(Sent::ToolAnswer(value(1, "1"))).await;
    assert!(again.starts_with("question 1 has been answered already"), "{again}");
    served.stop().await;
}

#[tokio::test]
async fn a_value_that_breaks_the_contract_fails_its_call_185() {
    let served = Served::plain("").await;
    let client = served.session("s").await;
    let mut harness = served.harness("s").await;
    let count = proto::RegisterTool {
        name: "count".to_owned(),
        output_json: r#"{"type":"integer"}"#.into(),
        ..Default::default()
    };
    harness.register(Sent::RegisterTool(count)).await;
    let calling = call(&client, "s", "count", "{}");
    let id = harness.called().await.id;
    harness.answer(id, "\"many\"").await;
    assert_eq!(calling.failure().await.info.expect("a code").code, "INVALID_TOOL_OUTPUT");
    served.stop().await;
}

#[tokio::test]
async fn what_cannot_be_registered_is_refused_with_every_fault() {
    let served = Served::plain("registrations_max = 2").await;
    let _client = served.session("s").await;
    let mut harness = served.harness("s").await;
    let bad = proto::RegisterTool {
        name: "bad".to_owned(),
        parameters_json: r#"{"type":"string"}"#.into(),
        output_json: "{".into(),
        timeout_ms: Some(0),
        concurrency: proto::Concurrency::When.into(),
        ..Default::default()
    };
    let reason = harness.refused(Sent::RegisterTool(bad)).await;
    for part in
        ["`parameters_json` must be", "`output_json` is no", "`timeout_ms` is 0", "`safe_when` goes with"]
    {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert!(harness.refused(tool("run_code")).await.contains("reserved"));
    assert!(harness.refused(tool("")).await.contains("tool name has 0 bytes"));
    let nothing = Sent::Unregister(proto::Unregister { kind: 1, name: "gone".to_owned() });
    assert_eq!(harness.refused(nothing).await, "this stream has no such tool");
    harness.tool("a").await;
    assert!(harness.refused(tool("a")).await.contains("has registered such a tool already"));
    harness.tool("b").await;
    assert!(harness.refused(tool("c")).await.contains("2 registrations, which is all there may be"));
    let gone = harness.register(Sent::Unregister(proto::Unregister { kind: 1, name: "a".to_owned() })).await;
    assert!(gone.removed);
    harness.tool("c").await;
    served.stop().await;
}

#[tokio::test]
async fn a_stream_that_breaks_its_order_ends_with_a_status() {
    let served = Served::plain("").await;
    let mut client = served.session("s").await;
    let first = proto::HarnessMessage { message: Some(tool("x")) };
    let status = client.serve(iter([first])).await.expect_err("no bind");
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    let scope = proto::bind::Scope::SessionId("nobody".to_owned());
    let bind = Sent::Bind(proto::Bind { scope: Some(scope), harness: String::new() });
    let unknown = proto::HarnessMessage { message: Some(bind.clone()) };
    assert_eq!(client.serve(iter([unknown])).await.expect_err("no session").code(), tonic::Code::NotFound);
    let harness = served.harness("s").await;
    harness.say(bind).await;
    let status = harness.end().await.expect_err("a second bind");
    assert_eq!((status.code(), status.message()), (tonic::Code::InvalidArgument, "a second `bind`"));
    served.stop().await;
}

#[tokio::test]
async fn a_slow_harness_blocks_nobody_and_its_surplus_fails_by_name() {
    let served = Served::plain("questions_max = 2").await;
    let client = served.session("s").await;
    let mut slow = served.deployment("slow").await;
    let mut quick = served.deployment("quick").await;
    slow.register(safe("wait")).await;
    quick.register(safe("go")).await;
    let stuck = [call(&client, "s", "wait", "{}"), call(&client, "s", "wait", "{}")];
    let ids = [slow.called().await.id, slow.called().await.id];
    let surplus = call(&client, "s", "wait", "{}").failure().await.message;
    assert_eq!(surplus, "harness \"slow\" has 2 open questions, which is all there may be");
    let going = call(&client, "s", "go", "{}");
    let id = quick.called().await.id;
    quick.answer(id, "1").await;
    assert_eq!(going.value().await, "1");
    for id in ids {
        slow.answer(id, "2").await;
    }
    for calling in stuck {
        assert_eq!(calling.value().await, "2");
    }
    served.stop().await;
}

fn safe(name: &str) -> Sent {
    let concurrency = proto::Concurrency::Safe.into();
    Sent::RegisterTool(proto::RegisterTool { name: name.to_owned(), concurrency, ..Default::default() })
}

#[tokio::test]
async fn a_harness_that_does_not_read_is_given_no_more_than_it_may_hold() {
    let served = Served::plain("unread_bytes_max = 65536").await;
    let client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.register(safe("big")).await;
    // The transport takes some of it; what it does not take is bounded, so of 24 MB some must be refused.
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(60_000));
    let calls = (0..400).map(|_| Box::pin(call(&client, "s", "big", &text).failure()));
    let (first, _, rest) = select_all(calls).await;
    assert_eq!(first.message, "harness \"files\" does not read its messages");
    drop(harness);
    for failure in rest {
        failure.await;
    }
    served.stop().await;
}

#[tokio::test]
async fn a_call_overlaps_where_its_arguments_fit_181() {
    let served = Served::plain("").await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    let pattern = proto::ArgumentPattern { pointer: "/readOnly".to_owned(), matches: "true".to_owned() };
    let when = proto::RegisterTool {
        name: "do".to_owned(),
        concurrency: proto::Concurrency::When.into(),
        safe_when: vec![pattern],
        ..Default::default()
    };
    harness.register(Sent::RegisterTool(when)).await;
    let model_call = |id: &str, arguments: &str| proto::ModelCall {
        call_id: id.to_owned(),
        name: "do".to_owned(),
        arguments: arguments.to_owned(),
    };
    let calls = vec![
        model_call("1", r#"{"readOnly":true}"#),
        model_call("2", r#"{"readOnly":true}"#),
        model_call("3", r#"{"readOnly":false}"#),
    ];
    let request = proto::StepRequest { session_id: "s".to_owned(), calls, ..Default::default() };
    let step = tokio::spawn(async move { client.step(request).await.expect("a step").into_inner() });
    let (first, second) = (harness.called().await, harness.called().await);
    harness.answer(second.id, "2").await;
    harness.answer(first.id, "1").await;
    let third = harness.called().await;
    assert_eq!(third.call.expect("a call").call_id, "3");
    harness.answer(third.id, "3").await;
    let step = step.await.expect("no panic");
    let ids: Vec<&str> = step.results.iter().map(|result| result.call_id.as_str()).collect();
    assert_eq!((ids, step.end()), (vec!["1", "2", "3"], proto::StepEnd::Completed));
    served.stop().await;
}
