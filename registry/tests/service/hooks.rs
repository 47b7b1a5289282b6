//! Hooks over the stream: what each can do, and what happens when it does not answer.

use codemode_client::JsonText;
use codemode_client::fake::Script;
use codemode_proto::registry_v1 as proto;
use proto::harness_message::Message as Sent;
use proto::hook_answer::Answer;
use proto::{HookDeadline, HookKind};

use crate::support::{Served, call, entries, hook};

fn text(text: &str) -> Vec<u8> {
    format!(r#"[{{"type":"text","text":"{text}"}}]"#).into_bytes()
}

#[tokio::test]
async fn a_hook_that_is_late_denies_or_is_passed_over_as_it_was_told() {
    for (kind, on_deadline, denied) in [
        (HookKind::PreExecute, HookDeadline::Unspecified, true),
        (HookKind::PreExecute, HookDeadline::Keep, false),
        (HookKind::Guard, HookDeadline::Unspecified, true),
        (HookKind::Guard, HookDeadline::Keep, false),
        (HookKind::PostExecute, HookDeadline::Unspecified, false),
        (HookKind::PostExecute, HookDeadline::Deny, true),
    ] {
        let served = Served::plain("").await;
        let client = served.session("s").await;
        let mut judge = served.deployment("judge").await;
        let mut tools = served.harness("s").await;
        tools.tool("act").await;
        let late =
            proto::RegisterHook { deadline_ms: 20, on_deadline: on_deadline.into(), ..hook("late", kind) };
        judge.register(Sent::RegisterHook(late)).await;
        let calling = call(&client, "s", "act", "{}");
        if !denied || kind == HookKind::PostExecute {
            let id = tools.called().await.id;
            tools.answer(id, "1").await;
        }
        if denied {
            assert_eq!(
                calling.failure().await.message,
                "hook \"late\" did not answer within 20ms",
                "{kind:?}"
            );
        } else {
            assert_eq!(calling.value().await, "1", "{kind:?}");
        }
        served.stop().await;
    }
}

#[tokio::test]
async fn hooks_decide_object_and_review() {
    let served = Served::plain("").await;
    let client = served.session("s").await;
    let mut harness = served.harness("s").await;
    for name in ["act", "other"] {
        harness.tool(name).await;
    }
    let only = |kind| proto::RegisterHook { tools: vec!["ac*".to_owned()], ..hook("h", kind) };
    harness
        .register(Sent::RegisterHook(proto::RegisterHook {
            name: "pre".into(),
            ..only(HookKind::PreExecute)
        }))
        .await;
    harness
        .register(Sent::RegisterHook(proto::RegisterHook {
            name: "post".into(),
            ..only(HookKind::PostExecute)
        }))
        .await;

    let other = call(&client, "s", "other", "{}");
    let id = harness.called().await.id;
    harness.answer(id, "0").await;
    assert_eq!(other.value().await, "0", "no hook sees it");

    let denied = call(&client, "s", "act", "{}");
    let asked = harness.asked().await;
    assert_eq!(asked.hook, "pre");
    let info = Some(proto::ErrorInfo { name: "QuotaError".into(), code: "QUOTA".into() });
    let deny = proto::decision::Decision::Deny(proto::Deny { reason: "too much".into(), info });
    harness.decide(asked.id, Answer::Decision(proto::Decision { decision: Some(deny) })).await;
    let review = harness.asked().await;
    assert_eq!(review.hook, "post", "a denial is reviewed as well");
    let keep = proto::Verdict {
        decision: Some(proto::verdict::Decision::Accept(proto::Accept::default())),
        contexts: vec![],
    };
    harness.decide(review.id, Answer::Verdict(keep.clone())).await;
    let failure = denied.failure().await;
    assert_eq!(
        (failure.message.as_str(), failure.info.expect("a code").code.as_str()),
        ("too much", "QUOTA")
    );

    let replaced = call(&client, "s", "act", "{}");
    let asked = harness.asked().await;
    let allow = proto::decision::Decision::Allow(proto::Allow {});
    harness.decide(asked.id, Answer::Decision(proto::Decision { decision: Some(allow) })).await;
    let id = harness.called().await.id;
    harness.answer(id, "\"secret\"").await;
    let review = harness.asked().await;
    let accept = proto::Accept { content_json: text("redacted").into(), value_json: None };
    let context = proto::Context { plugin: String::new(), content_json: text("mind the gap").into() };
    let decision = Some(proto::verdict::Decision::Accept(accept));
    harness.decide(review.id, Answer::Verdict(proto::Verdict { decision, contexts: vec![context] })).await;
    let result = replaced.result().await;
    assert_eq!(&*result.content_json, &*text("redacted"));
    assert_eq!(result.contexts[0].plugin, "files");

    let blocked = call(&client, "s", "act", "{}");
    let asked = harness.asked().await;
    harness.decide(asked.id, Answer::Failure("the judge is ill".into())).await;
    assert_eq!(blocked.failure().await.message, "the judge is ill", "neither body nor review");
    served.stop().await;
}

#[tokio::test]
async fn a_guard_denies_whatever_was_allowed_200() {
    let served = Served::plain("").await;
    let client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("act").await;
    harness.register(Sent::RegisterHook(hook("guard", HookKind::Guard))).await;
    let calling = call(&client, "s", "act", "{}");
    let id = harness.asked().await.id;
    harness.decide(id, Answer::Objection("not today".into())).await;
    assert_eq!(calling.failure().await.message, "not today");
    served.stop().await;
}

#[tokio::test]
async fn content_of_sub_calls_is_replaced_where_it_is_stored() {
    let script =
        Script::new().call("tools", "act", JsonText::parse("{}").expect("JSON")).returns_last_reply();
    let served = Served::scripted("mode = \"code\"", [script]).await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("act").await;
    harness.register(Sent::RegisterHook(hook("spill", HookKind::DispatchLog))).await;
    let calling =
        call(&client, "s", "run_code", r#"{"code":"return await tools.act({})","description":"acts"}"#);
    let sub_call = harness.called().await;
    let info = sub_call.call.expect("a call");
    assert_eq!(info.call_id, format!("{}:code:1", info.root_call_id));
    assert!(info.is_sub_call && info.root_call_id.starts_with("call-run_code-"));
    harness.answer(sub_call.id, "\"long\"").await;
    let asked = harness.asked().await;
    harness.decide(asked.id, Answer::ContentJson(text("short").into())).await;
    let value = calling.value().await;
    assert!(value.contains("\"long\""), "the program and the model see it whole: {value}");
    let entries = entries(&mut client, "s").await;
    let types: Vec<&str> = entries.iter().filter_map(|entry| entry["type"].as_str()).collect();
    assert_eq!(
        types,
        [
            "turn/start",
            "tool/call",
            "tool/code-dispatch-start",
            "tool/code-dispatch",
            "tool/result",
            "turn/end"
        ]
    );
    assert_eq!(entries[3]["content"][0]["text"], "short");
    served.stop().await;
}
