//! The stores under test, and the macro that runs a test over each of them.

use std::sync::Arc;

use codemode_events::{
    EventStore, MemoryStore, SessionId, SessionLog, SqliteOptions, SqliteStore, system_clock,
};
use tempfile::TempDir;

/// A store with what it stands on.
pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn EventStore>,
    _directory: Option<TempDir>,
}

impl Fixture {
    pub(crate) fn memory() -> Self {
        Self { store: Arc::new(MemoryStore::new()), _directory: None }
    }

    pub(crate) fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let options = SqliteOptions::at(directory.path().join("events.sqlite"));
        let store = SqliteStore::open(&options).expect("a new file can be opened");
        Self { store: Arc::new(store), _directory: Some(directory) }
    }

    pub(crate) async fn log(&self) -> SessionLog {
        let made = SessionLog::create(Arc::clone(&self.store), &id("s"), system_clock()).await;
        made.expect("the session is new")
    }

    pub(crate) async fn resumed(&self) -> SessionLog {
        let resumed = SessionLog::resume(Arc::clone(&self.store), &id("s"), system_clock()).await;
        resumed.expect("the session is there")
    }
}

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::new(text).expect("a short text is a session's id")
}

/// Makes a test of each function for each store.
macro_rules! over_each_store {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::stores::Fixture::memory()).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::stores::Fixture::sqlite()).await;
            })+
        }
    };
}
pub(crate) use over_each_store;
