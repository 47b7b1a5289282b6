//! Configuration: policy, and reading it anew while calls are made.

use codemode_proto::registry_v1 as proto;

use crate::support::{Served, assemble, call, listed};

#[tokio::test]
async fn rules_decide_by_tool_argument_and_label() {
    let toml = r#"
        [[policy]]
        effect = "deny"
        tools = ["re*"]
        arguments = [{ pointer = "/path", matches = "/etc/*" }]
        scope = "guest*"
        reason = "not for guests"
    "#;
    let served = Served::plain(toml).await;
    let mut client = served.session("owner").await;
    let label = "guest-7".to_owned();
    let request = proto::OpenSessionRequest { session_id: "guest".to_owned(), label, ..Default::default() };
    client.open_session(request).await.expect("it opens");
    let mut harness = served.deployment("files").await;
    harness.tool("read").await;
    let denied = call(&client, "guest", "read", r#"{"path":"/etc/passwd"}"#);
    assert_eq!(denied.failure().await.message, "not for guests");
    for (session, path) in [("guest", "/tmp/x"), ("owner", "/etc/passwd")] {
        let allowed = call(&client, session, "read", &format!("{{\"path\":\"{path}\"}}"));
        let id = harness.called().await.id;
        harness.answer(id, "1").await;
        assert_eq!(allowed.value().await, "1");
    }
    served.stop().await;
}

#[tokio::test]
async fn a_mode_flip_counts_from_the_next_assembly_for_list_and_calls_together() {
    let served = Served::scripted("mode = \"native\"", []).await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("act").await;
    let native = assemble(&mut client, "s").await.expect("an assembly");
    assert_eq!((listed(&native), native.mode()), (vec!["act".to_owned()], proto::Mode::Native));

    served.configure("mode = \"code\"\nmax_parallel_tool_calls = 3\nlog_filter = \"debug\"");
    let reloaded = client.reload(proto::ReloadRequest {}).await.expect("it is read").into_inner();
    assert_eq!(reloaded.configuration_revision, 2);
    assert_eq!(reloaded.changed, ["max_parallel_tool_calls", "mode"]);
    assert_eq!(reloaded.needs_restart, ["log_filter"]);

    // The model has seen the native list, and its calls are native calls still.
    let calling = call(&client, "s", "act", "{}");
    let id = harness.called().await.id;
    harness.answer(id, "1").await;
    assert_eq!(calling.value().await, "1");

    let code = assemble(&mut client, "s").await.expect("an assembly");
    assert_eq!((listed(&code), code.mode()), (vec!["run_code".to_owned()], proto::Mode::Code));
    assert!(code.system.contains("act"), "the SDK declares it: {}", code.system);
    let collapsed = call(&client, "s", "act", "{}").failure().await;
    assert_eq!(collapsed.info.expect("a code").code, "UNKNOWN_TOOL");
    served.stop().await;
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_says_why() {
    let served = Served::plain("mode = \"native\"").await;
    let mut client = served.session("s").await;
    for (toml, faults) in [
        ("mode = \"odd\"\nsessions_max = 0", vec!["`mode` is `odd`", "`sessions_max` is 0"]),
        ("no_such = 1", vec!["unknown field `no_such`"]),
        ("[[policy]]\neffect = \"perhaps\"\ntools = [\"*\"]", vec!["unknown variant `perhaps`"]),
        ("[[policy]]\neffect = \"deny\"\ntools = []", vec!["rule 1 of `policy` names no `tools`"]),
    ] {
        served.configure(toml);
        let refused = client.reload(proto::ReloadRequest {}).await.expect_err("it cannot be");
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
        for fault in faults {
            assert!(refused.message().contains(fault), "{}", refused.message());
        }
    }
    let description = client.describe(proto::DescribeRequest {}).await.expect("it tells").into_inner();
    assert_eq!((description.configuration_revision, description.mode()), (1, proto::Mode::Native));
    assert_eq!((description.language.as_str(), description.open_sessions), ("", 1));
    served.stop().await;
}

#[tokio::test]
async fn what_cannot_run_is_refused_before_any_request() {
    let served = Served::plain("mode = \"code\"").await;
    let mut client = served.session("s").await;
    let refused = assemble(&mut client, "s").await.expect_err("no runtime");
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    assert_eq!(refused.message(), "mode \"code\" requires a code runtime");
    served.stop().await;
}
