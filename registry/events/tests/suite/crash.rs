//! Nothing is lost on SIGKILL after an append was acknowledged: a process appends under load and is killed at random
//! moments; the file is read back each time, and the log goes on.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use codemode_events::{Entry, Event, SessionLog, SqliteOptions, SqliteStore, system_clock};
use futures::TryStreamExt as _;

use crate::events::user;
use crate::stores::id;

const KILLS: u64 = 20;

/// The example, which cargo builds with the tests.
fn writer() -> PathBuf {
    let tests = std::env::current_exe().expect("a test knows where it is");
    let target = tests.parent().and_then(Path::parent).expect("tests are in `deps` of the target folder");
    let writer = target.join("examples").join("append_until_killed");
    assert!(writer.exists(), "`{}` is not built: `cargo build --examples`", writer.display());
    writer
}

/// Lets a process write, kills it after a while, and gives what it acknowledged.
fn write_and_kill(path: &Path, after: Duration) -> Vec<(u64, String)> {
    let mut child = Command::new(writer())
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example can be started");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let reading = std::thread::spawn(move || {
        let mut acknowledged = Vec::new();
        let mut line = String::new();
        while output.read_line(&mut line).expect("a pipe can be read") > 0 {
            if let Some(whole) = line.strip_suffix('\n') {
                let (seq, text) = whole.split_once(' ').expect("the example writes such lines");
                acknowledged.push((seq.parse().expect("a number"), text.to_owned()));
            }
            line.clear();
        }
        acknowledged
    });
    std::thread::sleep(after);
    child.kill().expect("it runs until it is killed");
    child.wait().expect("it can be waited for");
    reading.join().expect("the reader does not panic")
}

fn text(entry: &Entry) -> String {
    let Event::UserMessage(said) = &entry.event else { panic!("{entry:?}") };
    said.content.first().and_then(|block| block.as_text()).expect("the example writes text")
}

#[tokio::test]
async fn what_was_acknowledged_outlasts_sigkill() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join("events.sqlite");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    let seed = u64::from(now.subsec_nanos());
    let mut all = Vec::new();
    let mut killed_at_work = 0;
    for kill in 0..KILLS {
        let after = Duration::from_micros(20_000 + (seed + kill * 7_919) % 181 * 1_000);
        let acknowledged = write_and_kill(&path, after);
        killed_at_work += usize::from(!acknowledged.is_empty());
        all.extend(acknowledged);
        let entries = read_back(&path, kill).await;
        let place = format!("kill {kill} after {after:?}, seed {seed}");
        for (entry, expected) in entries.iter().zip(1..) {
            assert_eq!(entry.seq, expected, "{place}");
        }
        for (seq, said) in &all {
            let index = usize::try_from(*seq).expect("there are not so many") - 1;
            let entry = entries.get(index).unwrap_or_else(|| panic!("{place}: entry {seq} is lost"));
            assert_eq!(&text(entry), said, "{place}");
        }
    }
    assert!(killed_at_work > 10, "the writer was mostly killed before it wrote: {killed_at_work} of {KILLS}");
}

/// Resumes the log, appends one more, closes it and reads everything.
async fn read_back(path: &Path, kill: u64) -> Vec<Entry> {
    let store = SqliteStore::open(&SqliteOptions::at(path)).expect("the file can be opened");
    let store: Arc<dyn codemode_events::EventStore> = Arc::new(store);
    let log = match SessionLog::resume(Arc::clone(&store), &id("s"), system_clock()).await {
        Ok(log) => log,
        // Killed before it had made the session.
        Err(_) => SessionLog::create(store, &id("s"), system_clock()).await.expect("then it is new"),
    };
    let before = log.last();
    let seq = log.append_durable(user(&format!("kill {kill}"))).await.expect("the log goes on");
    assert_eq!(seq, before + 1);
    log.close().await.expect("the store is well");
    log.follow(1).try_collect().await.expect("every entry can be read")
}
