//! The gRPC face beside `Run`: description, health, reflection, authentication, metrics.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::{Read as _, Write as _};

use codemode_proto::executor_v1 as pb;
use common::{Executor, Run, start};
use tonic::Code;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

async fn health(executor: &Executor, service: &str) -> i32 {
    let endpoint = tonic::transport::Endpoint::from_shared(executor.address.clone()).unwrap();
    let mut client = HealthClient::new(endpoint.connect().await.unwrap());
    client.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap().into_inner().status
}

#[tokio::test]
async fn describe_says_what_there_is() {
    let executor = Executor::start(&["--compute-ms", "1234"]);
    let described = executor.client().await.describe(pb::DescribeRequest {}).await.unwrap().into_inner();
    assert_eq!((described.contract_version.as_str(), described.language.as_str()), ("1.0", "typescript"));
    assert_eq!((described.isolation.as_str(), described.spawn.as_str()), ("process", "fork"));
    assert_eq!(described.engines.len(), 1);
    assert_eq!(
        (described.engines[0].name.as_str(), described.default_engine.as_str()),
        ("quickjs", "quickjs")
    );
    let budgets = described.budgets.unwrap();
    assert_eq!(budgets.compute_ms, Some(1234));
    assert!(
        budgets.wall_ms.is_some() && budgets.log_entry_bytes.is_some() && budgets.pending_calls.is_some()
    );
    let limits = described.limits.unwrap();
    assert!(limits.json_depth_max >= 5000 && limits.frame_bytes_max == 128 << 20);
    assert_eq!(described.layers.len(), codemode_wire::Layer::ALL.len());
    assert!(described.layers.iter().all(|layer| layer.in_force == layer.reason.is_empty()));
}

#[tokio::test]
async fn readiness_follows_the_zygotes_and_liveness_does_not() {
    let executor = Executor::with_boot("", &[]);
    assert_eq!(health(&executor, "").await, i32::from(ServingStatus::Serving));
    assert_eq!(
        health(&executor, codemode_proto::EXECUTOR_SERVICE_NAME).await,
        i32::from(ServingStatus::Serving)
    );
    // From now on no runner boots, and those there are end.
    std::fs::write(executor.folder.path().join("codemode-runner-quickjs.boot"), "boot=exit").unwrap();
    for child in executor.children() {
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(child.try_into().unwrap()),
            nix::sys::signal::Signal::SIGKILL,
        );
    }
    let until = std::time::Instant::now() + std::time::Duration::from_secs(2);
    while health(&executor, codemode_proto::EXECUTOR_SERVICE_NAME).await == i32::from(ServingStatus::Serving)
    {
        assert!(std::time::Instant::now() < until, "still ready");
    }
    assert_eq!(health(&executor, "").await, i32::from(ServingStatus::Serving));
    // And back again, by itself.
    std::fs::write(executor.folder.path().join("codemode-runner-quickjs.boot"), "").unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(8);
    while health(&executor, codemode_proto::EXECUTOR_SERVICE_NAME).await != i32::from(ServingStatus::Serving)
    {
        assert!(std::time::Instant::now() < until, "not ready again");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(executor.outcome("done").await.failure, None);
}

#[tokio::test]
async fn reflection_lists_the_services() {
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    let executor = Executor::start(&[]);
    let endpoint = tonic::transport::Endpoint::from_shared(executor.address.clone()).unwrap();
    let mut client = ServerReflectionClient::new(endpoint.connect().await.unwrap());
    let request = tonic_reflection::pb::v1::ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..Default::default()
    };
    let mut answers =
        client.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
    let Some(MessageResponse::ListServicesResponse(list)) =
        answers.message().await.unwrap().unwrap().message_response
    else {
        panic!("no list");
    };
    let names: Vec<&str> = list.service.iter().map(|service| service.name.as_str()).collect();
    assert!(names.contains(&codemode_proto::EXECUTOR_SERVICE_NAME), "{names:?}");
    assert!(names.contains(&"grpc.health.v1.Health"), "{names:?}");
}

#[tokio::test]
async fn the_token_is_asked_for() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "0123456789abcdef0123\n").unwrap();
    let path = secret.path().display().to_string();
    let executor = Executor::start(&["--auth-token-file", &path]);
    let mut client = executor.client().await;
    let status = Run::begin(&mut client, start("done")).await.map(drop).expect_err("no token");
    assert_eq!(status.code(), Code::Unauthenticated);
    let mut request = tonic::Request::new(pb::DescribeRequest {});
    let status = client.describe(pb::DescribeRequest {}).await.expect_err("no token");
    assert_eq!(status.code(), Code::Unauthenticated);
    request.metadata_mut().insert("authorization", "Bearer 0123456789abcdef0123".parse().unwrap());
    assert!(client.describe(request).await.is_ok());
    assert_eq!(health(&executor, "").await, i32::from(ServingStatus::Serving), "health needs none");
}

#[tokio::test]
async fn tcp_is_served_and_announced() {
    let folder = common::folder("");
    let mut command = common::command(folder.path(), &[]);
    command.env("CODEMODE_EXECUTOR_COMPUTE_MS", "77").arg("--listen").arg("127.0.0.1:0");
    // clap takes the last of two; the helper's own `--listen` comes first.
    command.args(["--config"]).arg({
        let file = folder.path().join("executor.toml");
        std::fs::write(&file, "compute_ms = 5\nwall_ms = 66\n").unwrap();
        file
    });
    let executor = Executor::from_command(command, folder);
    assert!(executor.address.starts_with("http://127.0.0.1:"), "{}", executor.address);
    let described = executor.client().await.describe(pb::DescribeRequest {}).await.unwrap().into_inner();
    let budgets = described.budgets.unwrap();
    assert_eq!((budgets.compute_ms, budgets.wall_ms), (Some(77), Some(66)), "environment over file");
}

#[tokio::test]
async fn a_second_executor_does_not_take_a_live_socket_but_a_dead_one() {
    let mut first = Executor::start(&[]);
    let output =
        common::command(first.folder.path(), &[]).stderr(std::process::Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot listen on"));
    assert_eq!(first.outcome("done").await.failure, None);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let folder = common::folder("");
    let again = common::command(first.folder.path(), &[]);
    let second = Executor::from_command(again, folder);
    assert_eq!(second.outcome("done").await.failure, None);
}

#[tokio::test]
async fn metrics_are_served_on_loopback() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let executor = Executor::start(&["--metrics-listen", &address]);
    executor.outcome("done").await;
    executor.outcome("exit 3").await;
    let get = |path: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let metrics = get("/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 OK"));
    assert!(metrics.contains("codemode_executor_runs_total{outcome=\"completed\"} 1"), "{metrics}");
    assert!(metrics.contains("codemode_executor_runs_total{outcome=\"exit\"} 1"));
    assert!(metrics.contains("codemode_executor_children 4"), "{metrics}");
    assert!(get("/other").starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn nothing_of_a_program_is_logged_120() {
    let folder = common::folder("");
    let mut command =
        common::command(folder.path(), &["--log-filter", "trace,h2=off,hyper=off,tonic=off,tower=off"]);
    command.stderr(std::process::Stdio::piped());
    let mut executor = Executor::from_command(command, folder);
    let mut stderr = executor.child.stderr.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).map(|_| text)
    });
    let secret = "s3cr3t-in-the-program";
    for script in [
        format!("log \"{secret}\"\ncall 0 0 \"{secret}\"\nreply\ndone \"{secret}\""),
        format!("throw 1 1 E \"{secret}\""),
        format!("//strip:refuse {secret}\n"),
        format!("call 0 0 [\"{secret}\",]\nreply\nraw ff"),
    ] {
        executor.outcome(&script).await;
    }
    executor.child.kill().unwrap();
    executor.child.wait().unwrap();
    let text = reading.join().unwrap().unwrap();
    assert!(text.contains("run settled"), "{text}");
    assert!(!text.contains(secret), "{text}");
    assert!(!text.contains('\u{1b}'));
}
