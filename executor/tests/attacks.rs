//! Section B of the attack catalogue: a hostile process against the executor that reads it. Each case ends in an outcome
//! with a name, and the executor serves the next run.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::{Duration, Instant};

use codemode_proto::executor_v1 as pb;
use common::{Executor, resident_bytes, start, with_budgets, words};

/// Runs the script, expects this failure, and that the executor is as good as before.
async fn check(executor: &Executor, script: &str, detail: &str, message: &str) {
    let (found_detail, found) = executor.failure(script).await;
    assert_eq!((found_detail.as_str(), found.starts_with(message)), (detail, true), "{script}: {found}");
    assert_eq!(executor.run_processes(), 0, "{script}");
    let next = executor.outcome("log \"hi\"\ndone 1").await;
    assert_eq!((next.value_json.as_deref(), next.failure), (Some(&b"1"[..]), None), "after {script}");
}

#[tokio::test]
async fn honest_programs_pass() {
    let executor = Executor::start(&[]);
    let outcome = executor.outcome("log \"a\"\ncall 0 0 {\"x\":[1]}\nreply\ndone {\"y\":null}").await;
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.value_json.as_deref(), Some(&b"{\"y\":null}"[..]));
    assert_eq!(outcome.logs, ["a", "1 ok {\"x\":[1]}"]);
    let usage = outcome.usage.unwrap();
    assert_eq!(usage.binding_calls, 1);
    assert_eq!(usage.output_bytes, 2 + 3 + 1 + 18 + 10);
    assert_eq!(usage.layers.len(), 6);
    assert!(usage.peak_memory_bytes > 0);
    let nothing = executor.outcome("done").await;
    assert_eq!((nothing.value_json, nothing.failure), (None, None));
}

#[tokio::test]
async fn frames_that_are_none_32_33_37() {
    let executor = Executor::start(&[]);
    let violation = "protocol violation: ";
    // 32: a flood of empty frames of no kind ends at the first.
    check(&executor, "repeat 100000 raw 0000000000", "protocol", "protocol violation: unknown frame kind 0")
        .await;
    // 33: the stream ends inside a header, and inside a payload.
    check(&executor, "raw 0500", "protocol", "protocol violation: the process exited inside a frame").await;
    check(&executor, "raw 050000000361", "protocol", "protocol violation: the process exited inside a frame")
        .await;
    // 37: unknown kinds, and fields that do not hold what they say.
    check(&executor, "raw 00000000ff", "protocol", "protocol violation: unknown frame kind 255").await;
    check(&executor, "raw 0100000007 00", "protocol", violation).await;
    check(&executor, "raw 0100000005 02", "protocol", violation).await;
    check(&executor, "raw 04000000 03 ffffffff", "protocol", "protocol violation: frame ends inside").await;
}

#[tokio::test]
async fn a_slow_writer_meets_the_wall_budget_34() {
    let executor = Executor::start(&[]);
    let began = Instant::now();
    let budgets = pb::Budgets { wall_ms: Some(300), ..Default::default() };
    let slow = with_budgets("drip 50 0500000003 0100000061616161616161", budgets);
    let mut slow = executor.start_run(slow).await;
    // Meanwhile others are served as ever.
    for _ in 0..5 {
        assert_eq!(executor.outcome("done 1").await.failure, None);
    }
    let (detail, message) = words(&slow.outcome().await);
    assert_eq!((detail.as_str(), message.as_str()), ("wall_ms", "wall-clock ceiling reached (300ms)"));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn floods_end_at_a_budget_and_disturb_nobody_36_62() {
    let executor = Executor::start(&[]);
    let budgets = pb::Budgets { output_bytes: Some(1 << 20), ..Default::default() };
    let flood = with_budgets("repeat 1000000000 log \"0123456789012345678901234567890123456789\"", budgets);
    let mut flood = executor.start_run(flood).await;
    let outcome = flood.outcome().await;
    let (detail, message) = words(&outcome);
    assert_eq!((detail.as_str(), message.as_str()), ("output_bytes", "outer output exceeded 1048576 bytes"));
    let logs: u64 = outcome.logs.iter().map(|text| text.len() as u64 + 3).sum::<u64>() + 1;
    assert!(logs + message.len() as u64 + 2 <= 1 << 20 && logs > (1 << 20) - 200, "{logs}");
    assert!(flood.logs.starts_with(&outcome.logs[..outcome.logs.len() - 1]), "a prefix of what was streamed");
    // Many small entries: the executor stays responsive while they are read.
    let budgets = pb::Budgets { output_bytes: Some(4 << 20), ..Default::default() };
    let mut flood = executor.start_run(with_budgets("repeat 1000000000 log \"\"", budgets)).await;
    let flooding = tokio::spawn(async move { flood.outcome().await });
    let (before, mut most) = (resident_bytes(executor.pid()), 0);
    let mut slowest = Duration::ZERO;
    while !flooding.is_finished() {
        let began = Instant::now();
        assert_eq!(executor.outcome("done 1").await.failure, None);
        slowest = slowest.max(began.elapsed());
        most = most.max(resident_bytes(executor.pid()));
    }
    assert!(most < before + (100 << 20), "{most} bytes after {before}");
    assert_eq!(words(&flooding.await.unwrap()).0, "output_bytes");
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
}

#[tokio::test]
async fn frames_in_the_wrong_state_38_45() {
    let executor = Executor::start(&[]);
    check(&executor, "hello", "protocol", "protocol violation: `hello` sent twice").await;
    check(&executor, "fault", "protocol", "protocol violation: `fault` sent after hello").await;
    // What follows a terminal frame does not count, whatever it is.
    for late in
        ["log \"late\"", "call 0 0 1", "done 2", "hello", "raw ff", "exit 7", "kill 11", "throw 0 0 E \"x\""]
    {
        let outcome = executor.outcome(&format!("log \"before\"\ndone 1\n{late}\n{late}")).await;
        assert_eq!(outcome.value_json.as_deref(), Some(&b"1"[..]), "{late}");
        assert_eq!((outcome.logs, outcome.failure), (vec!["before".to_owned()], None), "{late}");
    }
    let outcome = executor.outcome("throw 0 0 E \"first\"\ndone 1").await;
    assert_eq!(words(&outcome), ("throw".to_owned(), "first".to_owned()));
}

#[tokio::test]
async fn before_hello_38_44() {
    const VERSION: &str = "protocol violation: wire version 3 instead of 2";
    assert_eq!(codemode_wire::limits::WIRE_VERSION, 2, "then the message above is another");
    for (hello, detail, message) in [
        ("log", "protocol", "protocol violation: `log` sent before hello"),
        ("twice", "protocol", "protocol violation: `hello` sent twice"),
        ("nonce", "protocol", "protocol violation: the nonce is not the one it was given"),
        ("version", "protocol", VERSION),
        ("missing", "infrastructure", "sandbox incomplete: layer `seccomp` is not in force"),
        ("fault", "infrastructure", "sandbox step `landlock\\u{1b}` failed with error number 38"),
        ("silent", "infrastructure", "the process did not lock itself down in time"),
        ("exit", "exit", "worker exited with code 5 before completing: the kernel gave it no random bytes"),
    ] {
        let executor = Executor::with_boot(&format!("hello={hello}"), &["--lockdown-ms", "150"]);
        let outcome = executor.outcome("log \"program ran\"\ndone 1").await;
        assert_eq!(words(&outcome), (detail.to_owned(), message.to_owned()), "{hello}");
        assert_eq!(outcome.logs, Vec::<String>::new(), "{hello}: no program ran");
        assert_eq!(executor.run_processes(), 0);
    }
}

#[tokio::test]
async fn call_ids_40() {
    let executor = Executor::start(&[]);
    for id in ["0", "2", "18446744073709551615", "9007199254740993"] {
        let message = format!("protocol violation: call id {id} where 1 was due");
        check(&executor, &format!("callid {id} 0 0 1"), "protocol", &message).await;
    }
    check(
        &executor,
        "call 0 0 1\ncallid 1 0 0 1",
        "protocol",
        "protocol violation: call id 1 where 2 was due",
    )
    .await;
}

#[tokio::test]
async fn calls_are_bounded_41() {
    let executor = Executor::start(&["--pending-calls", "256", "--binding-calls", "1000"]);
    let mut run = executor.run("repeat 1000000 call 0 0 1").await;
    run.half_close();
    let outcome = run.outcome().await;
    let failure = outcome.failure.unwrap();
    assert_eq!(
        (failure.detail.as_str(), failure.limit, failure.used),
        ("pending_calls", Some(256), Some(257))
    );
    assert_eq!(failure.message, "pending binding calls exceed 256");
    assert_eq!(run.calls.len(), 256);
    // Calls that are refused on the spot never pend, but count.
    let failure = executor.outcome("repeat 1000000 call 9 9 1").await.failure.unwrap();
    assert_eq!((failure.detail.as_str(), failure.limit), ("binding_calls", Some(1000)));
    let budgets = pb::Budgets { pending_argument_bytes: Some(100), ..Default::default() };
    let args = "x".repeat(60);
    let two = with_budgets(&format!("call 0 0 \"{args}\"\ncall 0 0 \"{args}\""), budgets);
    let mut run = executor.start_run(two).await;
    run.half_close();
    assert_eq!(words(&run.outcome().await).0, "pending_argument_bytes");
}

#[tokio::test]
async fn bindings_are_indexes_into_the_declared_table_42() {
    let executor = Executor::start(&[]);
    let outcome =
        executor.outcome("call 0 7 1\nreply\ncall 65535 4294967295 1\nreply\ncall 0 1 1\nreply\ndone").await;
    let logs =
        ["1 error unknown binding \"tools.#7\"", "2 error unknown binding \"#65535.#4294967295\"", "3 ok 1"];
    assert_eq!(outcome.logs, logs);
    assert_eq!(outcome.usage.unwrap().binding_calls, 3);
}

#[tokio::test]
async fn replies_after_the_end_46() {
    let executor = Executor::start(&[]);
    let mut run = executor.run("call 0 0 1\nsleep 50\ndone 1").await;
    run.call().await;
    tokio::time::sleep(Duration::from_millis(80)).await;
    run.reply(1, "1").await;
    run.reply(1, "1").await;
    assert_eq!(run.outcome().await.value_json.as_deref(), Some(&b"1"[..]));
}

#[tokio::test]
async fn json_that_is_deep_wide_or_double_48_49_50() {
    let executor = Executor::start(&[]);
    let outcome = executor.outcome("deep 5000").await;
    assert_eq!(outcome.value_json.map(|value| value.len()), Some(10_000));
    let (detail, message) = executor.failure("deep 1000000").await;
    assert_eq!(detail, "lossy");
    assert!(message.starts_with("program completion must be lossless JSON: value"), "{message}");
    assert!(message.len() < 1000);
    check(&executor, "done {\"a\":1,\"a\":2}", "lossy", "program completion must be lossless JSON: ").await;
    // 49: many tiny members are only bytes here.
    let wide = format!("done [{}1]", "{\"\":0},".repeat(100_000));
    assert_eq!(executor.outcome(&wide).await.failure, None);
}

#[tokio::test]
async fn numbers_and_text_52_53_54() {
    let executor = Executor::start(&[]);
    for value in
        ["NaN", "Infinity", "1e400", "-0", "9007199254740993", "1 2", "{}{}", "\"\\ud8", "\u{feff}1", "", " "]
    {
        if value.trim().is_empty() {
            continue;
        }
        check(
            &executor,
            &format!("done {value}"),
            "lossy",
            "program completion must be lossless JSON: value",
        )
        .await;
    }
    for value in ["\"\\ud800\"", "\"\u{2028}\u{202e}\"", "\"\\u0000\"", "1.25", "9007199254740992"] {
        let outcome = executor.outcome(&format!("done {value}")).await;
        assert_eq!(outcome.value_json.as_deref(), Some(value.as_bytes()), "travels as it is");
    }
    // Broken UTF-8 in a value, and in what must be a literal.
    check(&executor, "raw 07000000 05 01 02000000 22ff", "lossy", "program completion must be").await;
    check(&executor, "raw 08000000 03 04000000 22fffe22", "protocol", "protocol violation: log entry: ")
        .await;
    check(&executor, "log no literal", "protocol", "protocol violation: log entry: ").await;
    // Half surrogates in a log entry are U+FFFD for the caller.
    assert_eq!(executor.outcome("log \"a\\ud800b\"\ndone").await.logs, ["a\u{fffd}b"]);
}

#[tokio::test]
async fn arguments_are_checked_and_the_caller_never_hears_of_bad_ones() {
    let executor = Executor::start(&[]);
    let mut run =
        executor.run("call 0 0 [-0]\nreply\ncall 0 0 {\"a\":1,\"a\":1}\nreply\ncall 0 0 \nreply\ndone").await;
    let outcome = run.outcome().await;
    assert_eq!(run.calls.len(), 0);
    for (index, log) in outcome.logs.iter().enumerate() {
        let start = format!("{} error binding arguments must be lossless JSON: arguments", index + 1);
        assert!(log.starts_with(&start), "{log}");
    }
    assert_eq!(outcome.logs.len(), 3);
}

#[tokio::test]
async fn a_child_cannot_name_the_hosts_kinds_57() {
    let executor = Executor::start(&[]);
    check(
        &executor,
        "lossy \"wall-clock ceiling reached\"",
        "lossy",
        "program completion must be lossless JSON: wall",
    )
    .await;
    check(
        &executor,
        "raw 16000000 06 05 04000000 22612261 00000000 00000000 00000000",
        "protocol",
        "protocol violation: ",
    )
    .await;
    let outcome = executor.outcome("overlimit").await;
    assert_eq!(words(&outcome).1, "outer output exceeded 67108864 bytes");
    let failure = executor.outcome("heap 99999999999999 1").await.failure.unwrap();
    assert_eq!((failure.detail.as_str(), failure.limit, failure.used), ("heap_bytes", Some(512 << 20), None));
    check(&executor, "stalled", "deadlock", "deadlock: ").await;
}

#[tokio::test]
async fn descriptors_cannot_be_smuggled_58() {
    let executor = Executor::start(&[]);
    executor.outcome("done").await;
    let before = executor.descriptors();
    for _ in 0..20 {
        let outcome = executor.outcome("rights\nrights\ndone").await;
        assert_eq!(outcome.logs, ["with rights", "with rights"]);
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(executor.descriptors() <= before + 2, "{} after {before}", executor.descriptors());
}

#[tokio::test]
async fn a_closed_channel_is_an_end_60() {
    let executor = Executor::start(&[]);
    let began = Instant::now();
    for how in ["close", "halfclose"] {
        let script = format!("{how}\nspin 60000");
        check(
            &executor,
            &script,
            "protocol",
            "protocol violation: the process closed its channel and went on",
        )
        .await;
    }
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn long_frames_are_refused_by_their_header_61() {
    let executor = Executor::start(&["--frame-bytes-max", "65536"]);
    let failure = executor.outcome("raw ffffffff03").await.failure.unwrap();
    assert_eq!((failure.detail.as_str(), failure.used), ("frame_bytes", Some(u64::from(u32::MAX))));
    assert!(failure.message.starts_with("protocol violation: frame of 4294967295 bytes exceeds"));
    // A header that promises what never comes allocates nothing and waits for the wall.
    let budgets = pb::Budgets { wall_ms: Some(200), ..Default::default() };
    let mut run = executor.start_run(with_budgets("raw 0000200003\nsleep 60000", budgets)).await;
    assert_eq!(words(&run.outcome().await).0, "wall_ms");
}

#[tokio::test]
async fn how_a_process_ends_is_told_apart() {
    let executor = Executor::start(&[]);
    check(&executor, "exit 7", "exit", "worker exited with code 7 before completing").await;
    check(&executor, "exit 0", "exit", "worker exited with code 0 before completing").await;
    check(&executor, "", "exit", "worker exited with code 0 before completing").await;
    for (signal, detail, number) in [
        ("11", "signal", 11),
        ("6", "signal", 6),
        ("31", "forbidden_syscall", 31),
        ("9", "signal", 9),
        ("24", "compute_ms", 24),
    ] {
        let outcome = executor.outcome(&format!("log \"kept\"\nkill {signal}")).await;
        let failure = outcome.failure.unwrap();
        assert_eq!((failure.detail.as_str(), failure.signal), (detail, Some(number)));
        assert_eq!(outcome.logs, ["kept"]);
    }
}

#[tokio::test]
async fn the_ledger_at_the_executor_92_to_99() {
    let executor = Executor::start(&[]);
    let capped = |script: &str, cap| {
        let budgets = pb::Budgets { output_bytes: Some(cap), ..Default::default() };
        with_budgets(script, budgets)
    };
    for (script, cap, within) in [
        ("done \"€\"", 7, true),
        ("done \"€\"", 6, false),
        ("log \"abc\"\ndone \"xy\"", 11, true),
        ("log \"abc\"\ndone \"xy\"", 10, false),
        ("log \"abc\"\nthrow 0 0 E \"xy\"", 11, true),
        ("log \"abc\"\nthrow 0 0 E \"xy\"", 10, false),
        ("blob 100002", 200, false),
    ] {
        let outcome = executor.start_run(capped(script, cap)).await.outcome().await;
        let over = outcome.failure.as_ref().is_some_and(|failure| failure.detail == "output_bytes");
        assert_eq!(!over, within, "{script:?} cap {cap}: {outcome:?}");
        assert!(outcome.usage.unwrap().output_bytes <= cap);
    }
    let outcome = executor.start_run(capped("throw 0 0 E \"syntax\"", 4)).await.outcome().await;
    assert_eq!(words(&outcome), ("output_bytes".to_owned(), String::new()));
    // At the default cap to the byte: 67 108 862 bytes of value beside two of brackets.
    let fits = executor.outcome("blob 67108862").await;
    assert_eq!(fits.value_json.map(|value| value.len()), Some(67_108_862));
    assert_eq!(executor.failure("blob 67108863").await.1, "outer output exceeded 67108864 bytes");
}

#[tokio::test]
async fn stderr_is_bounded_and_never_blocks() {
    let executor = Executor::start(&[]);
    let outcome = executor.outcome("stderr 10000000\ndone 1").await;
    assert_eq!(outcome.value_json.as_deref(), Some(&b"1"[..]));
    assert_eq!(executor.outcome("done 2").await.value_json.as_deref(), Some(&b"2"[..]));
}

#[tokio::test]
async fn positions_carry_an_excerpt_of_the_program_as_sent() {
    let executor = Executor::start(&[]);
    let outcome = executor.outcome("log \"x\"\nthrow 2 7 TypeError \"boom\"\nsleep 1000").await;
    let failure = outcome.failure.unwrap();
    assert_eq!((failure.error_name.as_str(), failure.kind), ("TypeError", pb::FailureKind::Exception.into()));
    let position = failure.position.unwrap();
    assert_eq!((position.line, position.column), (2, 7));
    assert_eq!(
        position.excerpt,
        "1 | log \"x\"\n2 | throw 2 7 TypeError \"boom\"\n  |       ^\n3 | sleep 1000"
    );
}

#[tokio::test]
async fn the_stripper_is_hostile_too() {
    let executor = Executor::start(&["--strip-ms", "300"]);
    let outcome = executor.outcome("//strip:refuse\n  enum X {}").await;
    let failure = outcome.failure.unwrap();
    assert_eq!((failure.detail.as_str(), failure.error_name.as_str()), ("syntax", "SyntaxError"));
    assert_eq!(failure.position.unwrap().excerpt, "1 | //strip:refuse\n2 |   enum X {}\n  |   ^");
    // Not `check`: for a moment the next stripping process may look like a run's.
    for (script, message) in [
        ("//strip:crash", "the program is nested too deeply to be parsed"),
        ("//strip:slow", "the program takes too long to parse"),
    ] {
        let (detail, found) = executor.failure(script).await;
        assert_eq!((detail.as_str(), found.starts_with(message)), ("syntax", true), "{script}: {found}");
    }
    assert_eq!(executor.outcome("//strip:hint\ndone").await.hints.len(), 8);
    for garbled in ["//strip:garbage", "//strip:wrong", "//strip:stall"] {
        let refused = executor.run(garbled).await.finish().await.expect_err("no outcome");
        assert_eq!(refused.code(), tonic::Code::Unavailable);
    }
    assert_eq!(executor.outcome("done 1").await.failure, None);
}

#[tokio::test]
async fn a_stripper_that_is_not_locked_down_serves_nothing() {
    for hello in ["unlocked", "version", "fault", "never"] {
        let folder = common::folder(&format!("strip_hello={hello}"));
        let ended = common::command(folder.path(), &["--boot-ms", "1000"]).output().unwrap();
        assert_eq!(ended.status.code(), Some(69), "{hello}: {ended:?}");
        // Nor does one that comes later, in the place of one that was.
        let executor = Executor::start(&["--boot-ms", "1000"]);
        let boot = executor.folder.path().join("codemode-runner-quickjs.boot");
        std::fs::write(boot, format!("strip_hello={hello}")).unwrap();
        for script in ["//strip:crash", "done 1"] {
            let refused = executor.run(script).await.finish().await.expect_err("no outcome");
            assert_eq!(refused.code(), tonic::Code::Unavailable, "{hello}: {script}");
        }
    }
}

#[tokio::test]
async fn programs_beside_one_that_kills_the_stripper_are_retried() {
    for how in ["abort", "kill"] {
        let executor = Executor::with_boot(&format!("strip_crashes={how}"), &[]);
        let mut runs = Vec::new();
        for index in 0..12 {
            let script =
                if index % 4 == 0 { format!("//strip:crash\n{index}") } else { format!("done {index}") };
            let run = executor.start_run(start(&script)).await;
            runs.push((index, run));
        }
        for (index, mut run) in runs {
            let outcome = run.outcome().await;
            if index % 4 == 0 {
                assert_eq!(words(&outcome).0, "syntax", "{index}");
            } else {
                assert_eq!(outcome.value_json.as_deref(), Some(index.to_string().as_bytes()));
            }
        }
    }
}
