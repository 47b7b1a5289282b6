//! Nothing is lost on SIGKILL after an append was acknowledged: a process appends under load and is killed at random
//! moments; the file is read back each time, and the log goes on.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
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

/// A process that writes, and what it has acknowledged.
struct Writing {
    child: Child,
    reading: JoinHandle<Vec<(u64, String)>>,
    /// A message for each entry that was acknowledged.
    progress: Receiver<()>,
}

impl Writing {
    fn start(path: &Path) -> Self {
        let mut child = Command::new(writer())
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the example can be started");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (acknowledged, progress) = mpsc::channel();
        let reading = std::thread::spawn(move || read_lines(output, &acknowledged));
        Self { child, reading, progress }
    }

    /// Waits until so many entries have been acknowledged.
    fn reach(&self, entries: usize) {
        for _ in 0..entries {
            self.progress.recv().expect("it writes until it is killed");
        }
    }

    /// Waits until it has ended by itself, which it does only when it fails.
    fn fails(mut self) -> Vec<(u64, String)> {
        assert!(!self.child.wait().expect("it can be waited for").success());
        self.reading.join().expect("the reader does not panic")
    }

    /// Kills it, and gives what it acknowledged.
    fn kill(mut self) -> Vec<(u64, String)> {
        self.child.kill().expect("it runs until it is killed");
        self.child.wait().expect("it can be waited for");
        self.reading.join().expect("the reader does not panic")
    }
}

fn read_lines(mut output: impl BufRead, acknowledged: &Sender<()>) -> Vec<(u64, String)> {
    let mut lines = Vec::new();
    let mut line = String::new();
    while output.read_line(&mut line).expect("a pipe can be read") > 0 {
        // What was cut off in the middle was not said.
        if let Some(whole) = line.strip_suffix('\n') {
            let (seq, text) = whole.split_once(' ').expect("the example writes such lines");
            lines.push((seq.parse().expect("a number"), text.to_owned()));
            // Nobody may be waiting any more.
            let _ = acknowledged.send(());
        }
        line.clear();
    }
    lines
}

/// Every acknowledged entry is there under its number, and the numbers have no gap.
fn check(entries: &[Entry], acknowledged: &[(u64, String)], place: &str) {
    for (entry, expected) in entries.iter().zip(1..) {
        assert_eq!(entry.seq, expected, "{place}");
    }
    for (seq, said) in acknowledged {
        let index = usize::try_from(*seq).expect("there are not so many") - 1;
        let entry = entries.get(index).unwrap_or_else(|| panic!("{place}: entry {seq} is lost"));
        assert_eq!(&text(entry), said, "{place}");
    }
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
    let mut acknowledged = Vec::new();
    for kill in 0..KILLS {
        let writing = Writing::start(&path);
        // Twice while it opens the file, else at work.
        writing.reach(if kill % 10 == 9 { 0 } else { 1 });
        let after = Duration::from_micros((seed + kill * 7_919) % 97 * 1_031);
        std::thread::sleep(after);
        acknowledged.extend(writing.kill());
        let entries = read_back(&path, kill).await;
        check(&entries, &acknowledged, &format!("kill {kill} after {after:?}, seed {seed}"));
    }
}

#[tokio::test]
async fn of_two_processes_one_writes_and_numbers_never_fork() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join("events.sqlite");
    let mut acknowledged = Vec::new();
    let mut writing = Writing::start(&path);
    for _ in 0..5 {
        writing.reach(20);
        let next = Writing::start(&path);
        // The later one has taken the right to write, so the earlier fails.
        acknowledged.extend(writing.fails());
        writing = next;
    }
    writing.reach(20);
    acknowledged.extend(writing.kill());
    let entries = read_back(&path, 0).await;
    check(&entries, &acknowledged, "two processes");
    assert!(acknowledged.len() >= 120);
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
