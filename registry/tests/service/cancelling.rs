//! Calls whose caller goes away: aborted in order, drained, logged.

use codemode_client::JsonText;
use codemode_client::fake::Script;
use codemode_proto::registry_v1 as proto;
use proto::registry_message::Message;

use crate::support::{Client, Served, call, entries, patiently, types, value};

/// Waits until the session's log has an entry of that type.
async fn logged(client: &mut Client, tag: &str) {
    let request = proto::FollowRequest { session_id: "s".to_owned(), from_seq: 1, live: true };
    let mut stream = client.follow(request).await.expect("it follows").into_inner();
    loop {
        let entry = patiently(stream.message()).await.expect("an entry").expect("the session is open");
        let event: serde_json::Value = serde_json::from_slice(&entry.event_json).expect("JSON");
        if event["type"] == tag {
            return;
        }
    }
}

#[tokio::test]
async fn a_cancelled_call_waits_for_its_harness_and_is_logged_192() {
    let served = Served::plain("cancel_grace_ms = 600000").await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("act").await;
    let calling = call(&client, "s", "act", "{}");
    let asked = harness.called().await;
    calling.cancel();
    match harness.next().await {
        Message::Cancel(cancel) => {
            assert_eq!((cancel.id, &*cancel.reason), (asked.id, "the caller has gone away"))
        }
        other => panic!("not cancelled: {other:?}"),
    }
    let before = types(&mut client, "s").await;
    assert!(
        !before.contains(&"tool/result".to_owned()),
        "its harness has not said that it ended: {before:?}"
    );
    harness.answer(asked.id, "1").await;
    logged(&mut client, "turn/end").await;
    let entries = entries(&mut client, "s").await;
    let result = entries.iter().find(|entry| entry["type"] == "tool/result").expect("a result");
    assert_eq!((&result["error"]["code"], &result["message"]["isError"]), (&"ABORTED".into(), &true.into()));
    served.stop().await;
}

#[tokio::test]
async fn a_harness_that_says_nothing_is_waited_for_only_so_long() {
    let served = Served::plain("cancel_grace_ms = 10").await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("act").await;
    let calling = call(&client, "s", "act", "{}");
    harness.called().await;
    calling.cancel();
    logged(&mut client, "turn/end").await;
    served.stop().await;
}

#[tokio::test]
async fn a_cancelled_program_leaves_no_sub_call_behind_164() {
    let script =
        Script::new().call("tools", "act", JsonText::parse("{}").expect("JSON")).returns_last_reply();
    let served = Served::scripted("mode = \"code\"\ncancel_grace_ms = 10", [script]).await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("act").await;
    let calling =
        call(&client, "s", "run_code", r#"{"code":"return await tools.act({})","description":"acts"}"#);
    harness.called().await;
    calling.cancel();
    assert!(matches!(harness.next().await, Message::Cancel(_)));
    logged(&mut client, "turn/end").await;
    let types = types(&mut client, "s").await;
    let expected = [
        "turn/start",
        "tool/call",
        "tool/code-dispatch-start",
        "tool/code-dispatch",
        "tool/result",
        "turn/end",
    ];
    assert_eq!(types, expected);
    served.stop().await;
}

#[tokio::test]
async fn closing_a_session_ends_its_calls_and_its_harness() {
    let served = Served::plain("cancel_grace_ms = 10").await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("act").await;
    let calling = call(&client, "s", "act", "{}");
    harness.called().await;
    let request = proto::CloseSessionRequest { session_id: "s".to_owned() };
    let closed = client.close_session(request.clone()).await.expect("it closes").into_inner();
    assert_eq!(calling.failure().await.info.map(|info| info.code), None, "the harness's own failure stands");
    harness.end().await.expect("with OK");
    assert_eq!(types(&mut client, "s").await.len() as u64, closed.last_seq);
    let again = client.close_session(request).await.expect_err("it is closed");
    assert_eq!(again.code(), tonic::Code::NotFound);
    served.stop().await;
}

#[tokio::test]
async fn contexts_of_an_aborted_step_wait_for_the_next_turn_232() {
    let served = Served::plain("cancel_grace_ms = 600000").await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("act").await;
    let calling = call(&client, "s", "act", "{}");
    let id = harness.called().await.id;
    calling.cancel();
    assert!(matches!(harness.next().await, Message::Cancel(_)));
    let context =
        proto::Context { plugin: "notes".into(), content_json: r#"[{"type":"text","text":"note"}]"#.into() };
    let answer = proto::ToolAnswer { contexts: vec![context], ..value(id, "1") };
    harness.say(proto::harness_message::Message::ToolAnswer(answer)).await;
    logged(&mut client, "turn/end").await;
    assert!(!types(&mut client, "s").await.contains(&"user/message".to_owned()));
    let turn = r#"{"type":"turn/start","turnId":"next"}"#.to_owned().into();
    let request = proto::AppendRequest { session_id: "s".to_owned(), events_json: vec![turn] };
    client.append(request).await.expect("it is taken");
    let entries = entries(&mut client, "s").await;
    let last = entries.last().expect("an entry");
    assert_eq!((&last["type"], &last["source"]["plugin"]), (&"user/message".into(), &"notes".into()));
    served.stop().await;
}
