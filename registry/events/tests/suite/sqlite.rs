//! The SQLite file: what is opened and what is not, several openers, a full file, a broken one, shared commits.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codemode_events::{
    AppendError, EventStore, OpenError, SessionLog, SqliteOptions, SqliteStore, StoreError, system_clock,
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::events::user;
use crate::stores::id;

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join("events.sqlite");
    (directory, path)
}

fn open(path: &Path) -> Result<Arc<dyn EventStore>, StoreError> {
    Ok(Arc::new(SqliteStore::open(&SqliteOptions::at(path))?))
}

async fn create(store: Arc<dyn EventStore>) -> SessionLog {
    SessionLog::create(store, &id("s"), system_clock()).await.expect("it is new")
}

async fn resume(store: Arc<dyn EventStore>) -> Result<SessionLog, OpenError> {
    SessionLog::resume(store, &id("s"), system_clock()).await
}

#[test]
fn a_file_of_a_newer_version_is_refused() {
    let (_directory, path) = place();
    drop(open(&path).expect("it is new"));
    let raw = Connection::open(&path).expect("it is a database");
    raw.pragma_update(None, "user_version", 2).expect("it can be written");
    drop(raw);
    let error = open(&path).expect_err("it is newer");
    assert!(matches!(error, StoreError::NewerVersion { found: 2, known: 1 }), "{error}");
    assert!(error.to_string().contains("use a newer build"));
}

#[test]
fn a_file_of_somebody_else_is_refused_and_left_alone() {
    let (_directory, path) = place();
    let raw = Connection::open(&path).expect("it is new");
    raw.execute_batch("CREATE TABLE entries (x)").expect("it can be written");
    drop(raw);
    let before = std::fs::read(&path).expect("it can be read");
    assert!(matches!(open(&path), Err(StoreError::Foreign(_))));
    assert_eq!(std::fs::read(&path).expect("it can be read"), before);
    std::fs::write(&path, "not a database, and longer than its header is: ".repeat(9))
        .expect("it can be written");
    assert!(matches!(open(&path), Err(StoreError::Foreign(_))));
    let directory = path.parent().expect("it is in a directory");
    assert!(matches!(open(directory), Err(StoreError::Failed { .. })));
    assert!(matches!(open(&directory.join("no/such/directory")), Err(StoreError::Failed { .. })));
}

#[tokio::test]
async fn the_file_is_its_owners_only() {
    let (_directory, path) = place();
    let _log = create(open(&path).expect("it is new")).await;
    for suffix in ["", "-wal", "-shm"] {
        let file = PathBuf::from(format!("{}{suffix}", path.display()));
        let mode =
            std::fs::metadata(&file).expect("it is there while the store is open").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn many_may_open_a_new_file_at_once() {
    let (_directory, path) = place();
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || open(&path).map(drop))
        })
        .collect();
    for opener in openers {
        opener.join().expect("it does not panic").expect("each can open it");
    }
}

#[tokio::test]
async fn of_two_openers_the_later_writes_and_the_earlier_follows() {
    let (_directory, path) = place();
    let (one, two) = (open(&path).expect("it is new"), open(&path).expect("it is there"));
    let first = create(Arc::clone(&one)).await;
    let seen = tokio::spawn(futures::TryStreamExt::try_collect::<Vec<_>>(first.follow(1)));
    first.append_durable(user("1")).await.expect("it is welcome");
    let second = resume(two).await.expect("it is there");
    let lost = first.append(user("lost")).await.expect("this writer cannot know yet");
    assert!(matches!(lost.durable().await, Err(StoreError::Fenced { .. })));
    assert_eq!(second.append_durable(user("2")).await.expect("it is welcome"), 2);
    second.close().await.expect("the store is well");
    let seen = seen.await.expect("it does not panic").expect("the file can be read");
    assert_eq!(seen.iter().map(|entry| &entry.event).collect::<Vec<_>>(), [&user("1"), &user("2")]);
}

#[tokio::test]
async fn a_full_file_refuses_and_keeps_what_was_acknowledged() {
    let (_directory, path) = place();
    let options = SqliteOptions { path: path.clone(), bytes_max: Some(1 << 20) };
    let store: Arc<dyn EventStore> = Arc::new(SqliteStore::open(&options).expect("it is new"));
    let log = create(store).await;
    let text = "x".repeat(10_000);
    let mut acknowledged = 0;
    let error = loop {
        match log.append_durable(user(&text)).await {
            Ok(seq) => acknowledged = seq,
            Err(error) => break error,
        }
        assert!(acknowledged < 200, "the file was to be full long ago");
    };
    assert!(matches!(error, AppendError::Store(StoreError::Full(_))), "{error}");
    assert!(acknowledged > 50);
    let error = log.append(user("small")).await.expect_err("the log has ended");
    assert!(matches!(error, AppendError::Store(StoreError::Full(_))), "{error}");
    drop(log);
    let log = resume(open(&path).expect("it is there")).await.expect("it is whole");
    assert_eq!(log.last(), acknowledged);
    assert_eq!(log.append_durable(user("more")).await.expect("there is room"), acknowledged + 1);
}

#[tokio::test]
async fn a_broken_file_is_an_error_and_no_panic() {
    let (_directory, path) = place();
    let log = create(open(&path).expect("it is new")).await;
    for n in 0..200 {
        log.append(user(&format!("{n}{}", "x".repeat(500)))).await.expect("it is welcome");
    }
    log.close().await.expect("the store is well");
    drop(log);
    let whole = std::fs::read(&path).expect("it can be read");
    for (from, to) in [(4096 * 3, whole.len()), (100, 4096), (4096, 8192)] {
        let mut broken = whole.clone();
        broken[from..to].fill(0x5a);
        std::fs::write(&path, &broken).expect("it can be written");
        let opened = match open(&path) {
            Ok(store) => resume(store).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        assert!(opened.is_err(), "bytes {from}..{to}");
    }
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("it can be written");
    let opened = match open(&path) {
        Ok(store) => resume(store).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    assert!(opened.is_err(), "half of the file");
}

#[tokio::test]
async fn entries_that_break_the_log_are_not_gone_on_with() {
    let cases = [
        ("DELETE FROM entries WHERE seq = 2", "entry 2 cannot be read: "),
        ("DELETE FROM entries WHERE seq = 3", "entry 3 cannot be read: it is missing"),
        ("UPDATE entries SET event = '{' WHERE seq = 2", "entry 2 cannot be read: "),
        (
            "UPDATE entries SET event = '{\"type\":\"x\"}' WHERE seq = 2",
            "entry 2 breaks the log's invariants",
        ),
        ("UPDATE entries SET v = 2 WHERE seq = 2", "entry 2 was written with version 2"),
    ];
    for (statement, expected) in cases {
        let (_directory, path) = place();
        let log = create(open(&path).expect("it is new")).await;
        for text in ["1", "2", "3"] {
            log.append_durable(user(text)).await.expect("it is welcome");
        }
        drop(log);
        let raw = Connection::open(&path).expect("it is a database");
        assert_eq!(raw.execute(statement, []).expect("it is a statement"), 1);
        let error = resume(open(&path).expect("it is there")).await.expect_err(statement).to_string();
        assert!(error.starts_with(expected), "{statement}: {error}");
    }
}

/// How many transactions the write-ahead log holds: the frames that end one.
fn commits(path: &Path) -> usize {
    let log = std::fs::read(format!("{}-wal", path.display())).expect("it is there while the store is open");
    let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four bytes"));
    let frame = 24 + usize::try_from(word(8)).expect("a page's size");
    let salt = word(16);
    (32..log.len()).step_by(frame).filter(|at| word(at + 8) == salt && word(at + 4) != 0).count()
}

#[tokio::test]
async fn appends_that_wait_share_a_commit() {
    let (_directory, path) = place();
    let log = create(open(&path).expect("it is new")).await;
    let raw = Connection::open(&path).expect("it is a database");
    raw.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    let before = commits(&path);
    let mut waiting = Vec::new();
    for n in 0..500 {
        waiting.push(log.append(user(&n.to_string())).await.expect("ordering does not wait for the disk"));
    }
    assert_eq!(log.last(), 500);
    let head = log.read(codemode_events::Page::from(1)).await.expect("reading goes on");
    assert!(head.is_empty(), "nothing can be durable yet");
    raw.execute_batch("ROLLBACK").expect("it is ours");
    for (appended, expected) in waiting.into_iter().zip(1..) {
        assert_eq!(appended.durable().await.expect("now it can"), expected);
    }
    let made = commits(&path) - before;
    assert!((1..=3).contains(&made), "{made} commits for 500 appends");
}
