//! Processes from outside: nothing of a run is left, whatever ended it, and nothing of an executor is left, whatever
//! ended that. Real binaries, every engine that they have.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use codemode_proto::executor_v1 as v1;
use codemode_tests::executor::Executor;
use codemode_tests::judge::{kind_name, ledger_bytes};
use codemode_tests::live::{LiveRun, start};
use codemode_tests::process::{self, Process};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long something that ends at once may take on a busy machine.
const SOON: Duration = Duration::from_secs(10);

/// A run's process is told from the others by not having been there before; tests of those made ahead ask for them.
async fn executor(configuration: &str) -> Executor {
    let mut table: toml::Table = toml::from_str(configuration).expect("a configuration");
    table.entry("processes_ahead").or_insert(toml::Value::Integer(0));
    Executor::start(&table).await.expect("an executor starts")
}

fn program(text: &str, engine: &str) -> v1::StartRun {
    v1::StartRun { engine: engine.to_owned(), ..start(text, &["wait"]) }
}

/// Its descendants once nothing runs: zygotes, spare ones, the stripping processes.
async fn at_rest(executor: &Executor) -> HashSet<i32> {
    let engines = executor.engines().await.expect("engines");
    for engine in &engines {
        run_to_end(executor, program("return 1", engine)).await;
    }
    // Two zygotes for each engine, of which one may still have to be started on a busy machine, and two that strip.
    let wanted = 2 * engines.len() + 2;
    process::eventually(SOON, || process::descendants(executor.pid()).len() >= wanted).await;
    settled(executor).await
}

/// Its descendants once they no longer change.
async fn settled(executor: &Executor) -> HashSet<i32> {
    let pids =
        || process::descendants(executor.pid()).iter().map(|process| process.pid).collect::<HashSet<_>>();
    let (mut last, mut since) = (pids(), Instant::now());
    while since.elapsed() < Duration::from_millis(500) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = pids();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    last
}

async fn run_to_end(executor: &Executor, start: v1::StartRun) -> v1::Outcome {
    let mut client = executor.client().await.expect("a client");
    let mut run = LiveRun::start(&mut client, start).await.expect("the run starts");
    run.outcome().await.expect("an outcome")
}

/// Processes that a run brought: descendants that were not there at rest.
fn of_runs(executor: &Executor, rest: &HashSet<i32>) -> Vec<Process> {
    let mut found = process::descendants(executor.pid());
    found.retain(|process| !rest.contains(&process.pid));
    found
}

/// A spinning run and its process.
async fn spinning(executor: &Executor, engine: &str, rest: &HashSet<i32>) -> (LiveRun, Process) {
    let mut client = executor.client().await.expect("a client");
    let text = "console.log('on'); while (true) {}";
    let mut run = LiveRun::start(&mut client, program(text, engine)).await.expect("the run starts");
    run.wait_for_log("on").await.expect("it runs");
    let own = of_runs(executor, rest);
    assert_eq!(own.len(), 1, "one run is one process: {own:?}");
    (run, own[0].clone())
}

async fn gone(executor: &Executor, rest: &HashSet<i32>, what: &str) {
    let clean = process::eventually(SOON, || of_runs(executor, rest).is_empty()).await;
    assert!(clean, "after {what}: {:?}\n{}", of_runs(executor, rest), executor.log());
}

fn failure(outcome: &v1::Outcome) -> (&'static str, &str) {
    let failure = outcome.failure.as_ref().expect("a failure");
    (kind_name(failure.kind), failure.detail.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_run() {
    let executor = executor("").await;
    let rest = at_rest(&executor).await;
    for engine in executor.engines().await.expect("engines") {
        for text in
            ["return 1", "throw new Error('x')", "const = ;", "return NaN", "await new Promise(() => {})"]
        {
            run_to_end(&executor, program(text, &engine)).await;
            let left = of_runs(&executor, &rest);
            assert!(left.is_empty(), "the outcome of `{text}` came before its process was gone: {left:?}");
        }

        let (mut run, _) = spinning(&executor, &engine, &rest).await;
        assert!(run.abort("enough"));
        assert_eq!(failure(&run.outcome().await.expect("an outcome")), ("abort", "caller"));
        assert_eq!(of_runs(&executor, &rest), [], "after an abort");

        let (run, _) = spinning(&executor, &engine, &rest).await;
        drop(run);
        gone(&executor, &rest, "a stream that was dropped").await;
    }
}

/// The connection itself goes away, and not the stream in good order.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_caller_that_vanished() {
    let executor = executor("").await;
    let rest = at_rest(&executor).await;
    let engine = executor.engines().await.expect("engines").remove(0);
    let socket = executor.folder().join("executor.sock");
    let thread = std::thread::spawn(move || {
        // A runtime of its own that is shut down with everything in it.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let channel =
                tonic::transport::Endpoint::from_static("http://executor.test")
                    .connect_with_connector(tower::service_fn(move |_: tonic::transport::Uri| {
                        let socket = socket.clone();
                        async move {
                            tokio::net::UnixStream::connect(socket).await.map(hyper_util::rt::TokioIo::new)
                        }
                    }))
                    .await
                    .expect("a connection");
            let mut client = v1::executor_client::ExecutorClient::new(channel);
            let text = "console.log('on'); while (true) {}";
            let mut run = LiveRun::start(&mut client, program(text, &engine)).await.expect("the run starts");
            run.wait_for_log("on").await.expect("it runs");
            std::mem::forget(run);
        });
        runtime.shutdown_background();
    });
    thread.join().expect("the caller's thread");
    gone(&executor, &rest, "a caller that vanished").await;
}

/// The caller's own deadline travels with the call: at its end the run is over on both sides.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_beyond_a_callers_deadline() {
    let executor = executor("").await;
    let rest = at_rest(&executor).await;
    let engine = executor.engines().await.expect("engines").remove(0);
    let mut client = executor.client().await.expect("a client");
    let message = v1::run_request::Message::Start(program("while (true) {}", &engine));
    let first = v1::RunRequest { message: Some(message) };
    let (outgoing, receiver) = tokio::sync::mpsc::unbounded_channel();
    outgoing.send(first).expect("open");
    let stream = tokio_stream::wrappers::UnboundedReceiverStream::new(receiver);
    let mut request = tonic::Request::new(stream);
    request.set_timeout(Duration::from_millis(700));
    let began = Instant::now();
    let ended = async {
        let mut incoming = client.run(request).await?.into_inner();
        while incoming.message().await?.is_some() {}
        Ok::<_, tonic::Status>(())
    };
    let status = ended.await.expect_err("the deadline passes");
    assert!(matches!(status.code(), tonic::Code::Cancelled | tonic::Code::DeadlineExceeded), "{status}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    gone(&executor, &rest, "the caller's deadline").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_termination_signal_settles_every_run() {
    let mut executor = executor("drain_grace_ms = 200").await;
    let rest = at_rest(&executor).await;
    let engine = executor.engines().await.expect("engines").remove(0);
    let (mut first, _) = spinning(&executor, &engine, &rest).await;
    let mut client = executor.client().await.expect("a client");
    let mut second = LiveRun::start(&mut client, program("return await tools.wait(1)", &engine))
        .await
        .expect("the run starts");
    second.wait_for_call().await.expect("it calls");
    let family = process::descendants(executor.pid());

    executor.signal(Signal::SIGTERM);
    for run in [&mut first, &mut second] {
        let outcome = run.outcome().await.expect("an outcome");
        assert_eq!(failure(&outcome), ("abort", "drain"));
        assert_eq!(outcome.failure.expect("a failure").message, "runtime disposed");
    }
    let status = executor.ended(Duration::from_secs(5)).await;
    assert_eq!(status.and_then(|status| status.code()), Some(0), "{}", executor.log());
    let left: Vec<_> = family.iter().filter(|process| process::is_alive(process)).collect();
    assert!(left.is_empty(), "the executor ended before {left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_executor_finishes_what_it_has_and_takes_nothing_new() {
    let mut executor = executor("drain_grace_ms = 10000").await;
    let engine = executor.engines().await.expect("engines").remove(0);
    let mut client = executor.client().await.expect("a client");
    let mut run = LiveRun::start(&mut client, program("return await tools.wait(1)", &engine))
        .await
        .expect("the run starts");
    let call = run.wait_for_call().await.expect("it calls");

    executor.signal(Signal::SIGTERM);
    let refused = async {
        loop {
            let start =
                codemode_proto::executor_v1::run_request::Message::Start(program("return 1", &engine));
            let status = match LiveRun::open(&mut client, [start]).await {
                Err(status) => status,
                Ok(mut run) => match run.status().await {
                    Ok(status) => status,
                    // The signal has not arrived yet.
                    Err(_) => continue,
                },
            };
            return status;
        }
    };
    let status = tokio::time::timeout(Duration::from_secs(5), refused).await.expect("a refusal");
    assert_eq!(status.code(), tonic::Code::Unavailable, "{status}");

    assert!(run.reply(call, "\"done\""));
    let outcome = run.outcome().await.expect("an outcome");
    assert_eq!(outcome.value_json.as_deref(), Some(b"\"done\"".as_slice()));
    let status = executor.ended(Duration::from_secs(5)).await;
    assert_eq!(status.and_then(|status| status.code()), Some(0), "{}", executor.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_a_killed_executor() {
    let mut executor = executor("").await;
    let rest = at_rest(&executor).await;
    let mut runs = Vec::new();
    for engine in executor.engines().await.expect("engines") {
        let mut client = executor.client().await.expect("a client");
        for text in ["console.log('on'); while (true) {}", "console.log('on'); await tools.wait(1);"] {
            let mut run = LiveRun::start(&mut client, program(text, &engine)).await.expect("the run starts");
            run.wait_for_log("on").await.expect("it runs");
            runs.push(run);
        }
    }
    let family = process::descendants(executor.pid());
    assert!(family.len() >= rest.len() + runs.len(), "{family:?}");
    executor.signal(Signal::SIGKILL);
    assert!(executor.ended(SOON).await.is_some());
    let clean = process::eventually(Duration::from_secs(1), || !family.iter().any(process::is_alive)).await;
    let left: Vec<_> = family.iter().filter(|process| process::is_alive(process)).collect();
    assert!(clean, "a second later: {left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_process_is_killed_says_so() {
    let executor = executor("").await;
    let rest = at_rest(&executor).await;
    for engine in executor.engines().await.expect("engines") {
        let (mut run, process) = spinning(&executor, &engine, &rest).await;
        kill(Pid::from_raw(process.pid), Signal::SIGKILL).expect("killed");
        let outcome = run.outcome().await.expect("an outcome");
        assert_eq!(failure(&outcome), ("worker-exit", "signal"), "{outcome:?}");
        assert_eq!(outcome.failure.as_ref().and_then(|failure| failure.signal), Some(9));
        assert_eq!(outcome.logs, ["on"]);
        let next = run_to_end(&executor, program("return 2", &engine)).await;
        assert_eq!(next.value_json.as_deref(), Some(b"2".as_slice()));
    }
}

/// A stopped process burns no time and answers nothing: only the wall ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_process_is_stopped_ends_in_time() {
    let executor = executor("").await;
    let rest = at_rest(&executor).await;
    let engine = executor.engines().await.expect("engines").remove(0);
    let mut client = executor.client().await.expect("a client");
    let budgets = v1::Budgets { wall_ms: Some(1500), ..v1::Budgets::default() };
    let start =
        v1::StartRun { budgets: Some(budgets), ..program("console.log('on'); while (true) {}", &engine) };
    let began = Instant::now();
    let mut run = LiveRun::start(&mut client, start).await.expect("the run starts");
    run.wait_for_log("on").await.expect("it runs");
    let own = of_runs(&executor, &rest);
    assert_eq!(own.len(), 1, "{own:?}");
    kill(Pid::from_raw(own[0].pid), Signal::SIGSTOP).expect("stopped");
    let outcome = run.outcome().await.expect("an outcome");
    assert_eq!(failure(&outcome), ("timeout", "wall_ms"));
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    gone(&executor, &rest, "a stopped process").await;
}

/// Whatever the executor keeps ready may die; the next run comes to its end all the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_executor_outlives_its_helpers() {
    let executor = executor("").await;
    let rest = at_rest(&executor).await;
    for engine in executor.engines().await.expect("engines") {
        for pid in &rest {
            // Some are gone by themselves once another is.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        let again =
            process::eventually(Duration::from_secs(10), || !process::descendants(executor.pid()).is_empty())
                .await;
        assert!(again, "no helper came back\n{}", executor.log());
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let mut client = executor.client().await.expect("a client");
            let run = LiveRun::start(&mut client, program("const a: number = 2; return a", &engine)).await;
            let outcome = match run {
                Ok(mut run) => run.outcome().await.ok(),
                Err(_) => None,
            };
            if outcome.is_some_and(|outcome| outcome.value_json.as_deref() == Some(b"2".as_slice())) {
                break;
            }
            assert!(Instant::now() < end, "no run succeeds any more\n{}", executor.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Fifty at once, each with calls and logs: nothing is mixed up, nothing is left.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_at_once_do_not_meet() {
    let executor = executor("").await;
    let rest = at_rest(&executor).await;
    for engine in executor.engines().await.expect("engines") {
        let mut all = tokio::task::JoinSet::new();
        for number in 0..50_u64 {
            let mut client = executor.client().await.expect("a client");
            let text = format!("console.log('run {number}'); return [{number}, await tools.wait({number})];");
            let start = program(&text, &engine);
            all.spawn(async move {
                let mut run = LiveRun::start(&mut client, start).await.expect("the run starts");
                let call = run.wait_for_call().await.expect("it calls");
                assert_eq!(call, 1);
                assert!(run.reply(1, &format!("\"reply {number}\"")));
                let outcome = run.outcome().await.expect("an outcome");
                let expected = format!("[{number},\"reply {number}\"]");
                assert_eq!(outcome.value_json.as_deref(), Some(expected.as_bytes()));
                assert_eq!(outcome.logs, [format!("run {number}")]);
            });
        }
        while let Some(result) = all.join_next().await {
            result.expect("a run as it should be");
        }
        gone(&executor, &rest, "fifty runs").await;
    }
}

/// Health and `Describe` are answered while programs burn all there is to burn.
#[tokio::test(flavor = "multi_thread")]
async fn health_is_answered_while_programs_spin() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_client::HealthClient;

    let executor = executor("").await;
    let engine = executor.engines().await.expect("engines").remove(0);
    let mut runs = Vec::new();
    for _ in 0..8 {
        let mut client = executor.client().await.expect("a client");
        let mut run = LiveRun::start(&mut client, program("console.log('on'); while (true) {}", &engine))
            .await
            .expect("the run starts");
        run.wait_for_log("on").await.expect("it runs");
        runs.push(run);
    }
    let mut health = HealthClient::new(executor.channel().await.expect("a channel"));
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        for service in ["", codemode_proto::EXECUTOR_SERVICE_NAME] {
            let began = Instant::now();
            let request = HealthCheckRequest { service: service.to_owned() };
            let answer = health.check(request).await.expect("health is answered").into_inner();
            assert_eq!(answer.status, 1, "`{service}` is serving");
            slowest = slowest.max(began.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(slowest < Duration::from_secs(10), "the slowest answer took {slowest:?}");
}

/// Many runs of every ending: no descriptor, no zombie, no memory stays.
#[tokio::test(flavor = "multi_thread")]
async fn many_runs_leave_nothing_behind() {
    let executor = executor("rotate_runs = 50").await;
    at_rest(&executor).await;
    let engines = executor.engines().await.expect("engines");
    let texts = [
        "return 1",
        "throw new Error('x')",
        "const = ;",
        "return NaN",
        "await new Promise(() => {})",
        "console.log('x'.repeat(1000)); return 'y'.repeat(100000)",
        "tools.wait(1); return 2",
    ];
    let round = async |count: usize| {
        for number in 0..count {
            let start = program(texts[number % texts.len()], &engines[number % engines.len()]);
            run_to_end(&executor, start).await;
        }
        settled(&executor).await;
    };
    // The first rounds fill caches and pools.
    round(100).await;
    let before = (process::open_descriptors(executor.pid()), process::resident_bytes(executor.pid()));
    round(300).await;
    let after = (process::open_descriptors(executor.pid()), process::resident_bytes(executor.pid()));
    let (Some(fds_before), Some(fds_after)) = (before.0, after.0) else {
        panic!("descriptors cannot be counted")
    };
    assert!(fds_after <= fds_before + 4, "{fds_before} descriptors before, {fds_after} after 300 runs more");
    let (Some(rss_before), Some(rss_after)) = (before.1, after.1) else { panic!("memory cannot be read") };
    assert!(rss_after < rss_before + (32 << 20), "{rss_before} bytes resident before, {rss_after} after");
    let zombies: Vec<_> =
        process::descendants(executor.pid()).into_iter().filter(Process::is_zombie).collect();
    assert!(zombies.is_empty(), "{zombies:?}");
}

/// What a run's process shows to the machine: no environment, constant arguments, four descriptors, one thread.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "a skipped check says so")]
async fn a_runs_process_shows_nothing() {
    let executor = executor("").await;
    let rest = at_rest(&executor).await;
    for engine in executor.engines().await.expect("engines") {
        let (_run, own) = spinning(&executor, &engine, &rest).await;
        let read = |name: &str| std::fs::read(format!("/proc/{}/{name}", own.pid));
        let threads = std::fs::read_dir(format!("/proc/{}/task", own.pid)).expect("threads").count();
        assert_eq!(threads, 1, "{engine}");
        let Some(descriptors) = process::open_descriptors(own.pid) else {
            eprintln!("skipped: only root may look into a process that is not dumpable");
            return;
        };
        assert_eq!(descriptors, 4, "{engine}");
        assert_eq!(read("environ").expect("readable").len(), 0, "{engine}");
        let arguments = String::from_utf8_lossy(&read("cmdline").expect("readable")).into_owned();
        assert!(arguments.starts_with("codemode-runner\0"), "{arguments:?}");
        assert!(!arguments.contains('/'), "{arguments:?}");
    }
}

/// Usage is measured from outside and adds up.
#[tokio::test(flavor = "multi_thread")]
async fn usage_is_measured() {
    let executor = executor("").await;
    for engine in executor.engines().await.expect("engines") {
        let text = "const end = Date.now() + 300; while (Date.now() < end) {} console.log('x'); await new Promise((r) => setTimeout(r, 200)); return [await tools.wait(1)];";
        let mut client = executor.client().await.expect("a client");
        let mut run = LiveRun::start(&mut client, program(text, &engine)).await.expect("the run starts");
        let call = run.wait_for_call().await.expect("it calls");
        assert!(run.reply(call, "null"));
        let outcome = run.outcome().await.expect("an outcome");
        let usage = outcome.usage.clone().expect("usage");
        assert!(usage.cpu_us > 50_000 && usage.cpu_us < usage.wall_us, "{usage:?}");
        assert!(usage.wall_us > 500_000, "{usage:?}");
        assert!(usage.peak_memory_bytes > 1 << 20, "{usage:?}");
        assert_eq!((usage.binding_calls, usage.output_bytes), (1, ledger_bytes(&outcome)));
        assert!(usage.layers.iter().any(|layer| layer == "seccomp"), "{usage:?}");
        let phases = usage.phases.expect("phases");
        let sum = phases.admission_us
            + phases.strip_us
            + phases.fork_us
            + phases.lockdown_us
            + phases.run_us
            + phases.settle_us;
        assert!(sum <= usage.wall_us + 1000, "{phases:?} of {} us", usage.wall_us);
        assert!(phases.run_us > 400_000, "{phases:?}");
    }
}
