//! Sessions: opening, joining, resuming, restricting, listing.

use codemode_proto::registry_v1 as proto;
use proto::OpenSessionRequest;

use crate::support::{Served, assemble, listed};

fn named(id: &str) -> OpenSessionRequest {
    OpenSessionRequest { session_id: id.to_owned(), ..Default::default() }
}

#[tokio::test]
async fn a_session_is_created_joined_closed_and_resumed() {
    let served = Served::plain("").await;
    let mut client = served.client().await;
    let mut open = async |request| client.open_session(request).await.map(tonic::Response::into_inner);
    let missing = open(OpenSessionRequest { open: proto::Open::Resume.into(), ..named("s") }).await;
    assert_eq!(missing.expect_err("it is not there").code(), tonic::Code::NotFound);
    let created = open(OpenSessionRequest { label: "a".into(), ..named("s") }).await.expect("it is made");
    assert!(!created.resumed && !created.joined && created.last_seq == 0);
    let joined = open(named("s")).await.expect("it is joined");
    assert!(joined.resumed && joined.joined);
    let other =
        open(OpenSessionRequest { label: "b".into(), ..named("s") }).await.expect_err("another label");
    assert_eq!(other.code(), tonic::Code::FailedPrecondition);
    let twice = open(OpenSessionRequest { open: proto::Open::Create.into(), ..named("s") }).await;
    assert_eq!(twice.expect_err("it is there").code(), tonic::Code::AlreadyExists);
    client.close_session(proto::CloseSessionRequest { session_id: "s".into() }).await.expect("it closes");
    let mut open = async |request| client.open_session(request).await.map(tonic::Response::into_inner);
    let twice = open(OpenSessionRequest { open: proto::Open::Create.into(), ..named("s") }).await;
    assert_eq!(twice.expect_err("the store has it").code(), tonic::Code::AlreadyExists);
    let resumed = open(named("s")).await.expect("it is resumed");
    assert!(resumed.resumed && !resumed.joined);
    served.stop().await;
}

#[tokio::test]
async fn a_restriction_hides_the_deployments_tools_198() {
    let served = Served::plain("").await;
    let mut harness = served.deployment("files").await;
    for name in ["read", "write", "list"] {
        harness.tool(name).await;
    }
    let mut client = served.client().await;
    let names = vec!["read".to_owned(), "write".to_owned()];
    let restriction =
        proto::Restriction { allow: Some(proto::NameList { names }), deny: vec!["write".to_owned()] };
    let request = OpenSessionRequest { restriction: Some(restriction), ..named("s") };
    client.open_session(request).await.expect("it opens");
    let mut own = served.harness("s").await;
    own.tool("own").await;
    assert_eq!(listed(&assemble(&mut client, "s").await.expect("an assembly")), ["own", "read"]);
    let unknown = proto::Restriction { allow: None, deny: vec!["gone".to_owned()] };
    let refused = client.open_session(OpenSessionRequest { restriction: Some(unknown), ..named("t") }).await;
    let refused = refused.expect_err("no such tool");
    assert!(refused.message().starts_with("restriction names unknown tool(s) gone"), "{}", refused.message());
    served.stop().await;
}

#[tokio::test]
async fn sessions_are_bounded_and_listed_in_pages() {
    let served = Served::plain("sessions_max = 3").await;
    let mut client = served.client().await;
    for id in ["a", "b", "c"] {
        client.open_session(named(id)).await.expect("it opens");
    }
    let full = client.open_session(named("d")).await.expect_err("there are three");
    assert_eq!(full.code(), tonic::Code::ResourceExhausted);
    client.close_session(proto::CloseSessionRequest { session_id: "b".into() }).await.expect("it closes");
    let request = proto::ListSessionsRequest { after: "a".into(), limit: 2 };
    let listed = client.list_sessions(request).await.expect("a list").into_inner().sessions;
    let listed: Vec<_> = listed.iter().map(|info| (info.session_id.as_str(), info.open_here)).collect();
    assert_eq!(listed, [("b", false), ("c", true)]);
    served.stop().await;
}

#[tokio::test]
async fn one_sessions_tools_are_nobody_elses_197() {
    let served = Served::plain("").await;
    let mut client = served.session("mine").await;
    served.session("other").await;
    let mut harness = served.harness("mine").await;
    harness.tool("act").await;
    assert_eq!(listed(&assemble(&mut client, "mine").await.expect("an assembly")), ["act"]);
    assert!(listed(&assemble(&mut client, "other").await.expect("an assembly")).is_empty());
    served.stop().await;
}
