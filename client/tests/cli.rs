//! The `codemode` binary as a user meets it: output, exit codes, tools, signals, the private executor.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "skipped tests say so, and the stand-in for the executor says where it listens"
)]

mod support;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::{RUN_ID, ScriptedExecutor};

/// Tools that serve `tools.double` and `tools.fail` with nothing but a shell.
const TOOLS: &str = r#"echo '{"namespaces":[{"global":"tools","functions":["double","fail","die"]}]}'
while read -r line; do
  id=${line#*:}; id=${id%%,*}; args=${line##*:}; args=${args%\}}
  case $line in
    *'"double"'*) echo "{\"id\":$id,\"value\":$((args * 2))}" ;;
    *'"fail"'*) echo "{\"id\":$id,\"error\":{\"message\":\"out of paper\"}}" ;;
    *'"die"'*) echo 'about to die' >&2; exit 9 ;;
  esac
done"#;

fn codemode(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codemode"));
    for name in ["CODEMODE_EXECUTOR", "CODEMODE_EXECUTOR_BIN", "CODEMODE_TOKEN"] {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command with that standard input to its end.
fn finish(mut command: Command, input: &str) -> Output {
    let mut child = command.spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A command that refuses its arguments does not read.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("ends")
}

fn run(executor: &ScriptedExecutor, args: &[&str], program: &str) -> Output {
    let mut all = vec!["run", "--executor", &executor.address];
    all.extend(args);
    all.push("-");
    finish(codemode(&all), program)
}

#[track_caller]
fn check(output: &Output, code: i32, stdout: &str, stderr: &[&str]) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "stdout: {out}\nstderr: {err}");
    assert_eq!(out, stdout, "stderr: {err}");
    for fragment in stderr {
        assert!(err.contains(fragment), "stderr lacks `{fragment}`:\n{err}");
    }
    if stderr.is_empty() {
        assert_eq!(err, "");
    }
}

#[tokio::test]
async fn logs_and_value_go_to_standard_output() {
    let executor = ScriptedExecutor::start().await;
    check(&run(&executor, &[], "log a\nlog\nlog b\nreturn \"plain \\u00e9\""), 0, "a\n\nb\nplain é\n", &[]);
    check(&run(&executor, &[], "return {\"a\":[1,{}]}"), 0, "{\n  \"a\": [\n    1,\n    {}\n  ]\n}\n", &[]);
    check(&run(&executor, &[], "return null"), 0, "null\n", &[]);
    check(&run(&executor, &[], "log only"), 0, "only\n", &["completed without a value"]);
}

#[tokio::test]
async fn a_program_can_be_a_file() {
    let executor = ScriptedExecutor::start().await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "return 7").expect("written");
    let path = file.path().to_str().expect("UTF-8");
    check(&finish(codemode(&["run", "--executor", &executor.address, path]), ""), 0, "7\n", &[]);
}

#[tokio::test]
async fn a_failed_program_exits_with_1_and_says_why() {
    let executor = ScriptedExecutor::start().await;
    let output = run(&executor, &[], "log before\nfail WORKER_EXIT heap gone");
    let wanted = ["worker-exit: heap gone", "at line 2, column 5", "2 | foo.bar", "hint: try less"];
    check(&output, 1, "before\n", &wanted);
}

#[tokio::test]
async fn json_is_exactly_one_object() {
    let executor = ScriptedExecutor::start().await;
    let usage = r#""usage":{"cpuUs":1500,"wallUs":2500,"peakMemoryBytes":1048576,"bindingCalls":0,"outputBytes":0,"layers":[],"phases":{"admissionUs":0,"stripUs":0,"forkUs":0,"lockdownUs":0,"runUs":0,"settleUs":0}}}"#;
    let output = run(&executor, &["--json"], "log a\nreturn [1,\"\\ud800\",1e999]");
    check(
        &output,
        0,
        &format!("{{\"runId\":\"{RUN_ID}\",\"value\":[1,\"\\ud800\",1e999],\"logs\":[\"a\"],{usage}\n"),
        &[],
    );
    let output = run(&executor, &["--json"], "fail INVALID_OUTPUT not JSON");
    let failure = r#""failure":{"kind":"invalid-output","message":"not JSON","detail":{"cause":"throw","line":2,"column":5,"excerpt":"2 | foo.bar\n  |     ^"}}"#;
    let wanted = format!("{{\"runId\":\"{RUN_ID}\",\"logs\":[],{failure},{usage}\n");
    check(&output, 1, &wanted, &["hint: try less"]);
    assert_eq!(output.stderr, b"hint: try less\n", "the failure is in the object");
}

#[tokio::test]
async fn flags_reach_the_executor() {
    let executor = ScriptedExecutor::start().await;
    let id = "11111111-2222-4333-8444-555555555555";
    let args = [
        "--compute-ms",
        "5",
        "--heap-mb",
        "64",
        "--engine",
        "v8",
        "--require-layer",
        "seccomp",
        "--run-id",
        id,
        "--label",
        "a=b",
    ];
    check(&run(&executor, &args, "return 1"), 0, "1\n", &[]);
    let start = executor.seen.starts.lock().expect("lock")[0].clone();
    let budgets = start.budgets.expect("budgets");
    assert_eq!((budgets.compute_ms, budgets.heap_bytes, budgets.wall_ms), (Some(5), Some(64 << 20), None));
    assert_eq!((start.engine.as_str(), start.run_id.as_str()), ("v8", id));
    assert_eq!(start.required_layers, ["seccomp"]);
    assert_eq!(start.labels.get("a").map(String::as_str), Some("b"));
}

#[tokio::test]
async fn a_token_comes_from_file_or_environment() {
    let executor = ScriptedExecutor::start().await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "from-file\n").expect("written");
    check(
        &run(&executor, &["--token-file", file.path().to_str().expect("UTF-8")], "return 1"),
        0,
        "1\n",
        &[],
    );
    let mut command = codemode(&["run", "-"]);
    command.env("CODEMODE_EXECUTOR", &executor.address).env("CODEMODE_TOKEN", "from-env");
    check(&finish(command, "return 1"), 0, "1\n", &[]);
    assert_eq!(*executor.seen.authorizations.lock().expect("lock"), ["Bearer from-file", "Bearer from-env"]);
}

#[tokio::test]
async fn tools_serve_calls_and_trace_shows_them() {
    let executor = ScriptedExecutor::start().await;
    let output = run(&executor, &["--tools", TOOLS, "--trace"], "call tools double 21\nreturn-last");
    check(
        &output,
        0,
        "42\n",
        &["call #1 tools.double: 2 B", "reply #1 tools.double: 2 B, ", "usage: 2.5 ms elapsed, 1.5 ms CPU"],
    );
    check(
        &run(&executor, &["--tools", TOOLS], "call tools fail 0\nreturn-last"),
        1,
        "",
        &["exception: out of paper"],
    );
}

#[tokio::test]
async fn the_sample_tools_serve_their_data() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: the sample's tools need python3, which is not on the PATH");
        return;
    }
    let executor = ScriptedExecutor::start().await;
    let tools = concat!("python3 '", env!("CARGO_MANIFEST_DIR"), "/examples/sample/tools.py'");
    let program = "begin tools getCustomer {\"id\":\"c6\"}\ncollect\nbegin tools euroRate {\"currency\":\"ARS\"}\ncollect\n\
                   begin tools getCustomer {}\ncollect";
    let logs = "1={\"id\": \"c6\", \"name\": \"Jos\\u00e9 \\u00d1and\\u00fa\", \"country\": \"AR\"}\n\
                2=!no rate for `ARS` today\n3=!getCustomer failed: KeyError('id')\n";
    check(&run(&executor, &["--tools", tools], program), 0, logs, &["getCustomer: KeyError('id')"]);
    let output = run(
        &executor,
        &["--json", "--tools", tools],
        "call tools listOrders {\"limit\":3,\"cursor\":\"20\"}\nreturn-last",
    );
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(object["value"]["orders"].as_array().map(Vec::len), Some(3));
    assert_eq!(object["value"].get("nextCursor"), None, "the last page");
}

#[tokio::test]
async fn a_tool_server_that_dies_fails_its_calls() {
    let executor = ScriptedExecutor::start().await;
    let output = run(&executor, &["--tools", TOOLS], "call tools die 0\nreturn-last");
    check(&output, 1, "", &["about to die", "exception: the tool server is gone (exit status: 9)"]);
}

#[tokio::test]
async fn wrong_use_exits_with_64() {
    let executor = ScriptedExecutor::start().await;
    let address = executor.address.as_str();
    for (args, fragment) in [
        (&["run"][..], "<FILE|->"),
        (&["run", "--no-such-flag", "-"], "--no-such-flag"),
        (&["run", "--compute-ms", "many", "-"], "invalid value 'many'"),
        (&["run", "--executor", "ftp://x", "-"], "`ftp://x` is not an executor address"),
        (
            &["run", "--executor", address, "/no/such/file.ts"],
            "cannot read the program from `/no/such/file.ts`",
        ),
        (&["run", "--executor", address, "--ca", "/no/such/ca.pem", "-"], "cannot read `/no/such/ca.pem`"),
        (&["nonsense"], "nonsense"),
        (&[], "Usage"),
    ] {
        check(&finish(codemode(args), "return 1"), 64, "", &[fragment]);
    }
    let refused = run(&executor, &[], "refuse");
    check(&refused, 64, "", &["invalid request: program: refused; namespaces[0].global: bad", "hint: "]);
}

#[test]
fn a_program_that_is_no_text_exits_with_64() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), b"return \xff").expect("written");
    let output = finish(codemode(&["run", file.path().to_str().expect("UTF-8")]), "");
    check(&output, 64, "", &["not UTF-8: byte 7"]);
}

#[test]
fn help_is_no_error() {
    let output = finish(codemode(&["run", "--help"]), "");
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8_lossy(&output.stdout);
    for fragment in ["Examples:", "Tools:", "Exit status:", "--require-layer"] {
        assert!(help.contains(fragment), "help lacks {fragment}");
    }
    assert_eq!(finish(codemode(&["--version"]), "").status.code(), Some(0));
}

#[tokio::test]
async fn no_service_exits_with_69() {
    let missing = ["run", "--connect-ms", "100", "--executor", "unix:/no/such.sock", "-"];
    check(
        &finish(codemode(&missing), "return 1"),
        69,
        "",
        &["no executor available at unix:/no/such.sock", "hint: "],
    );
    let full = ScriptedExecutor::refusing((0..20).map(|_| tonic::Status::resource_exhausted("full"))).await;
    check(&run(&full, &[], "return 1"), 69, "", &["overloaded: full"]);
    let executor = ScriptedExecutor::start().await;
    check(&run(&executor, &["--tools", "echo oops"], "return 1"), 69, "", &["wrote `oops`", "hint: "]);
    check(&run(&executor, &[], "status"), 69, "", &["went away", "was not run again"]);
}

/// Starts a run that hangs, sends the signal once its first log entry is there, and gives the end.
fn interrupted(executor: &ScriptedExecutor, args: &[&str], signal: nix::sys::signal::Signal) -> Output {
    use std::io::{BufRead as _, BufReader, Read as _};
    let mut all = vec!["run", "--trace", "--executor", &executor.address];
    all.extend(args);
    all.push("-");
    let mut child = codemode(&all).spawn().expect("starts");
    child.stdin.take().expect("a pipe").write_all(b"log up\nhang").expect("read");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.starts_with("run ") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).expect("readable"), 0, "ended before it started");
    }
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().expect("a pid"));
    // Twice, as `timeout` and terminals do: to the process and to its group.
    nix::sys::signal::kill(pid, signal).expect("sent");
    nix::sys::signal::kill(pid, signal).expect("sent");
    let mut output = child.wait_with_output().expect("ends");
    stderr.read_to_end(&mut output.stderr).expect("readable");
    output
}

#[tokio::test]
async fn a_signal_aborts_the_run_and_the_exit_code_tells() {
    use nix::sys::signal::Signal;
    let executor = ScriptedExecutor::start().await;
    let output = interrupted(&executor, &[], Signal::SIGINT);
    check(&output, 130, "up\n", &["abort: interrupted by SIGINT"]);
    let output = interrupted(&executor, &["--json"], Signal::SIGTERM);
    assert_eq!(output.status.code(), Some(143));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(object["failure"]["kind"], "abort");
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_run() {
    let executor = ScriptedExecutor::start().await;
    let mut child = codemode(&["run", "--executor", &executor.address, "-"]).spawn().expect("starts");
    drop(child.stdout.take());
    child.stdin.take().expect("a pipe").write_all(b"log a\nhang").expect("read");
    check(&child.wait_with_output().expect("ends"), 1, "", &["abort: standard output was closed"]);
}

#[tokio::test]
async fn describe_answers_people_and_programs() {
    let executor = ScriptedExecutor::start().await;
    let output = finish(codemode(&["describe", "--executor", &executor.address]), "");
    let text = String::from_utf8_lossy(&output.stdout);
    for fragment in ["scripted", "compute_ms", "60000", "NOT in force: kernel too old"] {
        assert!(text.contains(fragment), "{text}");
    }
    let output = finish(codemode(&["describe", "--json", "--executor", &executor.address]), "");
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(object["budgets"]["heapBytes"], 512 << 20);
    assert_eq!(object["layers"][0]["inForce"], false);
}

/// Not a test: what the stand-in for the executor's binary becomes, see below.
#[tokio::test]
#[ignore = "serves for the tests of the private executor"]
async fn serve_as_private_executor() {
    let Ok(socket) = std::env::var("CODEMODE_TEST_SOCKET") else { return };
    let serving = support::serve_unix(&socket);
    // The test harness has written the beginning of a line.
    println!("\nlistening on unix:{socket}");
    let parent_gone =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    tokio::select! {
        () = serving => {}
        _ = parent_gone => {}
    }
}

/// A stand-in for `codemode-executor`: this very test binary, serving at the socket that it is told.
fn stand_in(directory: &Path) -> String {
    let script = directory.join("codemode-executor");
    let own = std::env::current_exe().expect("a path");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --listen ] && [ \"$3\" = --parent-watch ] || exit 64\n\
         echo $$ > '{}'\nCODEMODE_TEST_SOCKET=${{2#unix:}} exec '{}' --ignored --exact serve_as_private_executor --nocapture\n",
        directory.join("pid").display(),
        own.display()
    );
    std::fs::write(&script, text).expect("written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("executable");
    script.to_str().expect("UTF-8").to_owned()
}

/// Waits until the stand-in is gone.
fn wait_gone(directory: &Path) {
    let pid = std::fs::read_to_string(directory.join("pid")).expect("it was started");
    let end = Instant::now() + Duration::from_secs(10);
    let stat = format!("/proc/{}/stat", pid.trim());
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < end, "the private executor outlives its command");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_private_executor_is_started_and_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let binary = stand_in(directory.path());
    check(&finish(codemode(&["run", "--executor-bin", &binary, "-"]), "log a\nreturn 2"), 0, "a\n2\n", &[]);
    wait_gone(directory.path());
    let mut command = codemode(&["run", "-"]);
    let path = std::env::var_os("PATH").expect("a path");
    let dirs = std::iter::once(directory.path().to_owned()).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(dirs).expect("a path"));
    // Found on the PATH, unless a real one stands beside the command.
    if !Path::new(env!("CARGO_BIN_EXE_codemode")).with_file_name("codemode-executor").exists() {
        check(&finish(command, "return 3"), 0, "3\n", &[]);
    }
}

#[test]
fn a_private_executor_ends_when_its_command_is_killed() {
    let directory = tempfile::tempdir().expect("a directory");
    let binary = stand_in(directory.path());
    let mut child = codemode(&["run", "--executor-bin", &binary, "-"]).spawn().expect("starts");
    child.stdin.take().expect("a pipe").write_all(b"log up\nhang").expect("read");
    let mut up = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut up).expect("a log entry");
    child.kill().expect("killed");
    child.wait().expect("reaped");
    wait_gone(directory.path());
}

#[test]
fn a_private_executor_that_does_not_start_says_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("codemode-executor");
    std::fs::write(&script, "#!/bin/sh\necho 'no runner found' >&2\nexit 70\n").expect("written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let output =
        finish(codemode(&["run", "--executor-bin", script.to_str().expect("UTF-8"), "-"]), "return 1");
    check(&output, 69, "", &["ended with exit status: 70 before it listened", "no runner found"]);
    let output = finish(codemode(&["run", "--executor-bin", "/no/such/binary", "-"]), "return 1");
    check(&output, 69, "", &["cannot start `/no/such/binary`"]);
}
