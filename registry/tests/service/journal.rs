//! The session log's face: appending, deriving, following.

use codemode_proto::registry_v1 as proto;
use proto::harness_message::Message as Sent;

use crate::support::{Client, Served, assemble, call, entries, patiently, tool, types};

async fn append(client: &mut Client, events: &[&str]) -> Result<Vec<u64>, tonic::Status> {
    let events_json = events.iter().map(|event| (*event).to_owned().into()).collect();
    let request = proto::AppendRequest { session_id: "s".to_owned(), events_json };
    client.append(request).await.map(|appended| appended.into_inner().seqs)
}

const TURN: &str = r#"{"type":"turn/start","turnId":"t"}"#;
const SAID: &str =
    r#"{"type":"user/message","content":[{"type":"text","text":"hello"}],"source":{"kind":"user"}}"#;

#[tokio::test]
async fn events_are_appended_in_order_and_refused_by_their_place() {
    let served = Served::plain("").await;
    let mut client = served.session("s").await;
    assert_eq!(append(&mut client, &[TURN, SAID]).await.expect("they are taken"), [1, 2]);
    let refused = append(&mut client, &[SAID, TURN]).await.expect_err("a turn is open");
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    assert_eq!(refused.message(), "event 2: turn `t` is still open");
    assert_eq!(types(&mut client, "s").await.len(), 3, "what came before it stays");
    let faults =
        append(&mut client, &[r#"{"type":"tool/call","callId":"c","name":"n","arguments":1}"#, "{"]).await;
    let faults = faults.expect_err("not a harness's");
    assert_eq!(faults.code(), tonic::Code::InvalidArgument);
    assert!(
        faults
            .message()
            .starts_with("event 1: `tool/call` is not for a harness to write; event 2: it is no event")
    );
    served.stop().await;
}

#[tokio::test]
async fn messages_are_derived_from_what_was_said_and_called() {
    let served = Served::plain("").await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("act").await;
    append(&mut client, &[TURN, SAID]).await.expect("they are taken");
    let calling = call(&client, "s", "act", "{}");
    let id = harness.called().await.id;
    let context =
        proto::Context { plugin: "notes".into(), content_json: r#"[{"type":"text","text":"note"}]"#.into() };
    harness
        .say(Sent::ToolAnswer(proto::ToolAnswer {
            contexts: vec![context],
            ..crate::support::value(id, "\"done\"")
        }))
        .await;
    calling.value().await;
    let request = proto::MessagesRequest { session_id: "s".to_owned() };
    let derived = client.messages(request).await.expect("messages").into_inner();
    let messages: Vec<serde_json::Value> = serde_json::from_slice(&derived.messages_json).expect("JSON");
    let roles: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!((roles, derived.last_seq), (vec!["user", "tool", "user"], 5));
    assert_eq!(messages[1]["content"][0]["text"], "done");
    assert_eq!(messages[2]["source"]["plugin"], "notes");
    served.stop().await;
}

#[tokio::test]
async fn a_header_is_logged_when_it_changes_236() {
    let served = Served::plain("").await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    let first = assemble(&mut client, "s").await.expect("an assembly");
    let again = assemble(&mut client, "s").await.expect("an assembly");
    assert_eq!((first.header_seq, again.header_seq), (Some(1), None));
    assert_eq!((&first.assembly_id, first.revision), (&again.assembly_id, again.revision));
    harness.register(tool("act")).await;
    let changed = assemble(&mut client, "s").await.expect("an assembly");
    assert_eq!(changed.header_seq, Some(2));
    assert_ne!(changed.assembly_id, first.assembly_id);
    let entries = entries(&mut client, "s").await;
    assert_eq!((&entries[0]["reason"], &entries[1]["reason"]), (&"initial".into(), &"change".into()));
    assert_eq!(entries[1]["header"]["tools"][0]["name"], "act");
    served.stop().await;
}

#[tokio::test]
async fn a_tool_list_takes_the_shape_that_is_asked_for() {
    let served = Served::plain("").await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.register(tool("act")).await;
    for (format, shape) in [
        (proto::ToolFormat::Plain, r#"[{"name":"act","description":"","parameters":{"type":"object"}}]"#),
        (
            proto::ToolFormat::InputSchema,
            r#"[{"name":"act","description":"","input_schema":{"type":"object"}}]"#,
        ),
        (
            proto::ToolFormat::Function,
            r#"[{"type":"function","function":{"name":"act","description":"","parameters":{"type":"object"}}}]"#,
        ),
    ] {
        let request = proto::AssembleRequest {
            session_id: "s".into(),
            tool_format: format.into(),
            ..Default::default()
        };
        let assembly = client.assemble(request).await.expect("an assembly").into_inner();
        assert_eq!(std::str::from_utf8(&assembly.tools_json), Ok(shape));
    }
    served.stop().await;
}

#[tokio::test]
async fn following_begins_at_a_number_and_goes_on_live() {
    let served = Served::plain("").await;
    let mut client = served.session("s").await;
    append(&mut client, &[TURN, SAID]).await.expect("they are taken");
    let request = proto::FollowRequest { session_id: "s".to_owned(), from_seq: 2, live: true };
    let mut stream = client.clone().follow(request).await.expect("it follows").into_inner();
    let mut seq = async || patiently(stream.message()).await.expect("no status").map(|entry| entry.seq);
    assert_eq!(seq().await, Some(2));
    append(&mut client, &[SAID]).await.expect("it is taken");
    assert_eq!(seq().await, Some(3));
    client.close_session(proto::CloseSessionRequest { session_id: "s".to_owned() }).await.expect("it closes");
    assert_eq!(seq().await, None, "the end of the session is the end of the stream");
    let unknown = proto::FollowRequest { session_id: "nobody".to_owned(), ..Default::default() };
    assert_eq!(client.follow(unknown).await.expect_err("no such").code(), tonic::Code::NotFound);
    served.stop().await;
}
