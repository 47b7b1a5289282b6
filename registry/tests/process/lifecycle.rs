//! Starting, reloading, stopping, being killed.

use codemode_proto::registry_v1 as proto;
use nix::sys::signal::Signal;

use crate::support::{Process, built, patiently};

fn store(folder: &std::path::Path) -> String {
    format!("sqlite:{}", folder.join("log.sqlite").display())
}

fn user_message(text: &str) -> proto::AppendRequest {
    let event = format!(
        r#"{{"type":"user/message","content":[{{"type":"text","text":"{text}"}}],"source":{{"kind":"user"}}}}"#
    );
    proto::AppendRequest { session_id: "s".to_owned(), events_json: vec![event.into()] }
}

fn named(id: &str) -> proto::OpenSessionRequest {
    proto::OpenSessionRequest { session_id: id.to_owned(), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_registry_has_lost_no_event_that_it_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    let arguments = ["--store", &store, "--programs", "none"];
    let mut process = Process::start(folder.path(), &arguments).await;
    process.client().await.open_session(named("s")).await.expect("it opens");
    let mut writers = tokio::task::JoinSet::new();
    let (acknowledged, mut counted) = tokio::sync::watch::channel(0_usize);
    for writer in 0..8 {
        let (mut client, acknowledged) = (process.client().await, acknowledged.clone());
        writers.spawn(async move {
            let mut seqs = Vec::new();
            for message in 0.. {
                let text = format!("{writer}-{message}");
                let Ok(appended) = client.append(user_message(&text)).await else { break };
                seqs.push((appended.into_inner().seqs[0], text));
                acknowledged.send_modify(|count| *count += 1);
            }
            seqs
        });
    }
    patiently(counted.wait_for(|count| *count >= 200)).await.expect("they write");
    process.signal(Signal::SIGKILL);
    process.ended().await;
    let mut acknowledged: Vec<(u64, String)> =
        patiently(writers.join_all()).await.into_iter().flatten().collect();
    acknowledged.sort();
    assert!(acknowledged.len() >= 200);

    let process = Process::start(folder.path(), &arguments).await;
    let mut client = process.client().await;
    let resumed = client.open_session(named("s")).await.expect("it resumes").into_inner();
    assert!(resumed.resumed && resumed.last_seq >= acknowledged.len() as u64);
    let follow = proto::FollowRequest { session_id: "s".to_owned(), ..Default::default() };
    let mut stream = client.follow(follow).await.expect("it follows").into_inner();
    let mut read = std::collections::HashMap::new();
    while let Some(entry) = patiently(stream.message()).await.expect("an entry") {
        let event: serde_json::Value = serde_json::from_slice(&entry.event_json).expect("JSON");
        read.insert(entry.seq, event["content"][0]["text"].as_str().unwrap_or_default().to_owned());
    }
    for (seq, text) in acknowledged {
        assert_eq!(read.get(&seq), Some(&text), "entry {seq} was acknowledged");
    }
}

fn six_times_seven() -> proto::CallRequest {
    proto::CallRequest {
        session_id: "s".to_owned(),
        name: "run_code".to_owned(),
        arguments: r#"{"code":"console.log('hi'); return 6 * 7","description":"multiplies"}"#.to_owned(),
        ..Default::default()
    }
}

fn value(result: proto::CallResult) -> Result<String, String> {
    match result.outcome.expect("an outcome") {
        proto::call_result::Outcome::ValueJson(json) => Ok(String::from_utf8(json.into()).expect("UTF-8")),
        proto::call_result::Outcome::Failure(failure) => Err(failure.message),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_command_runs_programs_on_an_executor_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let executor = built("codemode-executor").display().to_string();
    let arguments = ["--store", "memory", "--mode", "code", "--executor-bin", &executor];
    let mut process = Process::start(folder.path(), &arguments).await;
    let mut client = process.client().await;
    client.open_session(named("s")).await.expect("it opens");
    let described = client.describe(proto::DescribeRequest {}).await.expect("it tells").into_inner();
    assert_eq!(
        (described.language.as_str(), described.executors),
        ("typescript", vec!["private".to_owned()])
    );
    let result = client.call(six_times_seven()).await.expect("a result").into_inner();
    assert_eq!(value(result).as_deref(), Ok(r#"{"logs":["hi"],"result":42}"#));
    process.signal(Signal::SIGTERM);
    assert!(process.ended().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_reads_the_file_anew_and_a_bad_one_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("registry.toml");
    std::fs::write(&file, "mode = \"native\"").expect("written");
    let arguments = ["--store", "memory", "--programs", "none", "--config", &file.display().to_string()];
    let mut process = Process::start(folder.path(), &arguments).await;
    let mut client = process.client().await;
    let mut describe =
        async || client.describe(proto::DescribeRequest {}).await.expect("it tells").into_inner();
    std::fs::write(&file, "mode = \"odd\"").expect("written");
    process.signal(Signal::SIGHUP);
    assert_eq!((describe().await.configuration_revision, describe().await.mode()), (1, proto::Mode::Native));
    std::fs::write(&file, "mode = \"both\"").expect("written");
    process.signal(Signal::SIGHUP);
    patiently(async {
        while describe().await.configuration_revision == 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(describe().await.mode(), proto::Mode::Both);
    process.signal(Signal::SIGTERM);
    assert!(process.ended().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_lacks_the_token_is_refused_but_for_health() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "0123456789abcdef\n").expect("written");
    let file = token.display().to_string();
    let process = Process::start(
        folder.path(),
        &["--store", "memory", "--programs", "none", "--auth-token-file", &file],
    )
    .await;
    let mut client = process.client().await;
    let refused = client.describe(proto::DescribeRequest {}).await.expect_err("no token");
    assert_eq!(refused.code(), tonic::Code::Unauthenticated);
    let mut request = tonic::Request::new(proto::DescribeRequest {});
    request.metadata_mut().insert("authorization", "Bearer 0123456789abcdef".parse().expect("a value"));
    client.describe(request).await.expect("it tells");
}

fn is_there(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_executor_is_started_again_and_never_left_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let executor = built("codemode-executor").display().to_string();
    let arguments = ["--store", "memory", "--mode", "code", "--executor-bin", &executor];
    let mut process = Process::start(folder.path(), &arguments).await;
    let mut client = process.client().await;
    client.open_session(named("s")).await.expect("it opens");
    let first = process.children();
    assert_eq!(first.len(), 1, "its executor");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first[0]), Signal::SIGKILL).expect("it is there");
    patiently(async {
        loop {
            let result = client.call(six_times_seven()).await.expect("a result").into_inner();
            if value(result).is_ok() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let second = process.children();
    assert!(second.len() == 1 && second != first);
    process.signal(Signal::SIGKILL);
    process.ended().await;
    patiently(async {
        while is_there(second[0]) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_another_process_resumes_is_lost_by_name() {
    let (folder, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let store = store(folder.path());
    let arguments = ["--store", &store, "--programs", "none"];
    let process = Process::start(folder.path(), &arguments).await;
    let mut client = process.client().await;
    client.open_session(named("s")).await.expect("it opens");
    client.append(user_message("mine")).await.expect("it is taken");
    let scope = Some(proto::bind::Scope::SessionId("s".to_owned()));
    let bind = proto::harness_message::Message::Bind(proto::Bind { scope, harness: String::new() });
    let (_open, messages) = tokio::sync::mpsc::channel(1);
    let first = tokio_stream::once(proto::HarnessMessage { message: Some(bind) });
    let messages =
        tokio_stream::StreamExt::chain(first, tokio_stream::wrappers::ReceiverStream::new(messages));
    let mut stream = client.serve(messages).await.expect("it serves").into_inner();

    let thief = Process::start(other.path(), &arguments).await;
    let mut thief_client = thief.client().await;
    let resumed = thief_client.open_session(named("s")).await.expect("it resumes").into_inner();
    assert_eq!(resumed.last_seq, 1);
    thief_client.append(user_message("theirs")).await.expect("it is taken");

    let refused = client.append(user_message("late")).await.expect_err("it is not ours");
    assert_eq!(refused.code(), tonic::Code::Aborted, "{refused}");
    let ended = patiently(async {
        loop {
            if let Err(status) = stream.message().await {
                break status;
            }
        }
    })
    .await;
    assert_eq!(ended.code(), tonic::Code::Aborted);
    let gone = client.append(user_message("late")).await.expect_err("it is not open here");
    assert_eq!(gone.code(), tonic::Code::NotFound);
    let again = client.open_session(named("s")).await.expect("it is taken back").into_inner();
    assert!(again.resumed && !again.joined && again.last_seq == 2);
}
