//! Approvals: asked of whoever offered, answered, denied, unavailable; and what the log has of it.

use codemode_proto::registry_v1 as proto;
use proto::ApprovalOutcome;
use proto::harness_message::Message as Sent;
use proto::registry_message::Message;

use crate::support::{Harness, Served, call, entries};

const ASK: &str = "[[policy]]\neffect = \"ask\"\ntools = [\"act\"]\nreason = \"it acts\"\n";

async fn question(harness: &mut Harness) -> proto::ApprovalQuestion {
    match harness.next().await {
        Message::Approval(question) => question,
        other => panic!("no question: {other:?}"),
    }
}

#[tokio::test]
async fn each_answer_has_its_consequence_189() {
    let served = Served::plain(ASK).await;
    let mut client = served.session("s").await;
    let mut harness = served.harness("s").await;
    harness.tool("act").await;
    let unavailable = "tool \"act\" requires approval and no approval channel is available";
    assert_eq!(call(&client, "s", "act", "{}").failure().await.message, unavailable);
    harness.register(Sent::OfferApprovals(proto::OfferApprovals { deadline_ms: 0 })).await;
    for (outcome, message) in [
        (ApprovalOutcome::AllowedOnce, None),
        (ApprovalOutcome::Rejected, Some("the user rejected tool \"act\"")),
        (ApprovalOutcome::Cancelled, Some("approval of tool \"act\" was cancelled")),
        (ApprovalOutcome::Unspecified, Some(unavailable)),
    ] {
        let calling = call(&client, "s", "act", r#"{"n":1}"#);
        let asked = question(&mut harness).await;
        assert_eq!(asked.reason, "it acts");
        assert_eq!(&*asked.call.expect("a call").arguments_json, br#"{"n":1}"#);
        harness
            .say(Sent::ApprovalAnswer(proto::ApprovalAnswer { id: asked.id, outcome: outcome.into() }))
            .await;
        match message {
            Some(message) => assert_eq!(calling.failure().await.message, message),
            None => {
                let id = harness.called().await.id;
                harness.answer(id, "1").await;
                assert_eq!(calling.value().await, "1");
            }
        }
    }
    let entries = entries(&mut client, "s").await;
    let of = |tag: &str| entries.iter().filter(|entry| entry["type"] == tag).collect::<Vec<_>>();
    let outcomes: Vec<&str> =
        of("approval/answered").iter().filter_map(|entry| entry["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["unavailable", "allowed-once", "rejected", "cancelled", "unavailable"]);
    assert_eq!(of("approval/asked").len(), 5);
    served.stop().await;
}

#[tokio::test]
async fn who_is_gone_or_late_is_unavailable() {
    let served = Served::plain(ASK).await;
    let client = served.session("s").await;
    let mut tools = served.harness("s").await;
    tools.tool("act").await;
    let unavailable = "tool \"act\" requires approval and no approval channel is available";
    let mut late = served.deployment("late").await;
    late.register(Sent::OfferApprovals(proto::OfferApprovals { deadline_ms: 20 })).await;
    assert_eq!(call(&client, "s", "act", "{}").failure().await.message, unavailable);
    let mut own = served.harness("s").await;
    own.register(Sent::OfferApprovals(proto::OfferApprovals { deadline_ms: 0 })).await;
    let calling = call(&client, "s", "act", "{}");
    question(&mut own).await;
    drop(own);
    assert_eq!(calling.failure().await.message, unavailable, "the session's own is asked, and it went");
    served.stop().await;
}
