//! The end of the service: calls may finish, nothing new begins, everything is told.

use codemode_proto::registry_v1 as proto;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use crate::support::{Served, call};

#[tokio::test]
async fn a_drain_lets_calls_finish_and_begins_nothing_new() {
    let served = Served::plain("").await;
    let mut client = served.session("s").await;
    let mut health = HealthClient::new(served.channel().await);
    let mut own = served.harness("s").await;
    let everybodys = served.deployment("all").await;
    own.tool("act").await;
    let status =
        health.check(HealthCheckRequest { service: codemode_proto::REGISTRY_SERVICE_NAME.to_owned() }).await;
    assert_eq!(status.expect("it tells").into_inner().status(), ServingStatus::Serving);
    let calling = call(&client, "s", "act", "{}");
    let id = own.called().await.id;
    let stopping = tokio::spawn(served.stop());
    let refused = loop {
        match client.reload(proto::ReloadRequest {}).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(status) => break status,
        }
    };
    assert_eq!(
        (refused.code(), refused.message()),
        (tonic::Code::Unavailable, "the registry is shutting down")
    );
    own.answer(id, "1").await;
    assert_eq!(calling.value().await, "1");
    own.end().await.expect("with OK: its session was closed");
    let ended = everybodys.end().await.expect_err("the registry goes");
    assert_eq!(ended.code(), tonic::Code::Unavailable);
    stopping.await.expect("no panic");
}
