//! Real subprocesses, as small as shell scripts can be.

use super::*;

const HELLO: &str = r#"echo '{"namespaces":[{"global":"tools","functions":["a","__proto__"],"errorClass":{"name":"ToolCallError","memberNameProperty":"toolName"}}]}'"#;

async fn server(script: &str) -> ToolServer {
    ToolServer::start(&format!("{HELLO}\n{script}")).await.expect("starts")
}

fn json(text: &str) -> JsonText {
    JsonText::parse(text).expect("well-formed")
}

async fn call(server: &ToolServer, args: &str) -> Result<String, String> {
    let args = json(args);
    let reply = tokio::time::timeout(Duration::from_secs(10), server.shared.call("tools", "a", &args)).await;
    reply.expect("answered in time").map(JsonText::into_string).map_err(|error| error.message)
}

async fn start_fault(script: &str) -> String {
    match ToolServer::start(script).await {
        Ok(_) => panic!("started"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn the_first_line_says_what_is_served() {
    let server = server("cat >/dev/null").await;
    let namespaces = server.namespaces();
    assert_eq!(namespaces.len(), 1);
    assert_eq!(namespaces[0].global(), "tools");
    assert_eq!(namespaces[0].function_names().collect::<Vec<_>>(), ["a", "__proto__"]);
    let class = namespaces[0].error_class().expect("a class");
    assert_eq!((class.name.as_str(), class.member_name_property.as_str()), ("ToolCallError", "toolName"));
    server.end().await;
}

#[tokio::test]
async fn answers_come_in_any_order() {
    let server = server(
        r#"read one; read two; echo '{"id":2,"value":"second"}'; echo '{"id":1,"value":null}'; read end"#,
    )
    .await;
    let (first, second) = tokio::join!(call(&server, "1"), call(&server, "2"));
    assert_eq!((first.as_deref(), second.as_deref()), (Ok("null"), Ok("\"second\"")));
    server.end().await;
}

#[tokio::test]
async fn calls_say_what_was_called_and_texts_pass_untouched() {
    // The server sends the line itself back as the value.
    let server =
        server(r#"while read -r line; do printf '{"value":%s,"id":%s}\n' "$line" $((n += 1)); done"#).await;
    let deep = format!("{}{}", "[".repeat(3_000), "]".repeat(3_000));
    for args in [r#"{"a":"\ud800","b":1e999,"__proto__":[0.10]}"#, &deep] {
        let id = server.shared.next_id.load(Ordering::Relaxed);
        let wanted = format!(r#"{{"id":{id},"global":"tools","name":"a","args":{args}}}"#);
        assert_eq!(call(&server, args).await, Ok(wanted));
    }
    assert_eq!(
        call(&server, "[\n1,\r\n2]").await.map(|line| line.ends_with("\"args\":[ 1,  2]}")),
        Ok(true),
        "one call is one line"
    );
    server.end().await;
}

#[tokio::test]
async fn a_failing_tool_fails_its_call() {
    let server =
        server(r#"read one; echo '{"id":1,"error":{"message":"out of paper","code":7}}'; read end"#).await;
    assert_eq!(call(&server, "{}").await, Err("out of paper".to_owned()));
    server.end().await;
}

#[tokio::test]
async fn a_server_that_dies_fails_all_calls_and_says_how() {
    let server = server("read one; read two; exit 3").await;
    let (first, second) = tokio::join!(call(&server, "1"), call(&server, "2"));
    let gone = Err("the tool server is gone (exit status: 3)".to_owned());
    assert_eq!((&first, &second), (&gone, &gone));
    assert_eq!(call(&server, "3").await, gone, "later calls too");
    server.end().await;
}

#[tokio::test]
async fn a_line_that_is_no_reply_is_named() {
    for (line, why) in [
        ("debug: here", "expected value"),
        (r#"{"id":1}"#, "want `value` or `error`"),
        (r#"{"id":1,"value":1,"error":{"message":"x"}}"#, "not both"),
        (r#"{"id":"1","value":1}"#, "invalid type"),
        (r#"{"id":1,"value":undefined}"#, "expected value"),
        (r#"{"id":77,"value":1}"#, "no call has that id"),
    ] {
        let server = server(&format!("read one; echo '{line}'; sleep 60")).await;
        let failed = call(&server, "1").await.expect_err("must fail");
        assert!(failed.contains(why) && failed.contains("JSON lines only"), "{line}: {failed}");
        server.end().await;
    }
}

#[tokio::test]
async fn answers_nobody_waits_for_are_dropped() {
    let script = r#"read one; echo; echo '{"id":1,"value":2}'; echo '{"id":1,"value":3}'
                    read two; echo '{"id":2,"value":4}'; read end"#;
    let server = server(script).await;
    assert_eq!(call(&server, "1").await.as_deref(), Ok("2"));
    assert_eq!(call(&server, "2").await.as_deref(), Ok("4"));
    server.end().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_forgotten() {
    let server = server("cat >/dev/null").await;
    let args = json("1");
    let called =
        tokio::time::timeout(Duration::from_millis(50), server.shared.call("tools", "a", &args)).await;
    assert!(called.is_err(), "nobody answers");
    assert!(matches!(&*server.shared.lock(), Pending::Open(calls) if calls.is_empty()));
    server.end().await;
}

#[tokio::test]
async fn a_server_that_says_nothing_usable_does_not_start() {
    for (script, fragment) in [
        ("exit 3", "ended before it said what it serves (exit status: 3)"),
        ("echo hello", "wrote `hello`"),
        ("echo '{}'", "missing field `namespaces`"),
        ("no-such-command-anywhere 2>/dev/null", "exit status: 127"),
    ] {
        let fault = start_fault(script).await;
        assert!(fault.contains(fragment), "{script}: {fault}");
    }
}

#[tokio::test]
async fn the_whole_group_is_gone_in_the_end() {
    // A grandchild that ignores the end of its input and SIGTERM.
    let script = r#"trap '' TERM; sh -c 'trap "" TERM; while :; do sleep 1; done' & echo "{\"id\":1,\"value\":$!}"; wait"#;
    let server = server(&format!("read one; {script}")).await;
    let pid: i32 = call(&server, "1").await.expect("a pid").parse().expect("a number");
    let alive = |pid| nix::sys::signal::kill(Pid::from_raw(pid), None).is_ok() && !is_zombie(pid);
    assert!(alive(pid));
    server.end().await;
    for _ in 0..100 {
        if !alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the grandchild outlives the command");
}

/// Killed, but not reaped by whoever inherited it.
fn is_zombie(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[tokio::test]
async fn lines_are_bounded() {
    let mut reader = BufReader::new(&b"abc\n\n  \nabcd\nabcde\n"[..]);
    assert_eq!(read_line(&mut reader, 4).await.expect("fits"), Some(b"abc".to_vec()));
    assert_eq!(read_line(&mut reader, 4).await.expect("fits"), Some(b"abcd".to_vec()));
    assert!(read_line(&mut reader, 4).await.is_err());
}
