//! Opening the file: whose it is, its version, its settings.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::{SqliteOptions, failed};
use crate::store::StoreError;

/// Marks the file as ours: "cmev".
const APPLICATION_ID: i64 = 0x636d_6576;

/// Each brings the file from the version of its place in the list to the next. Never changed, only added to.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE sessions (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        created_at INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        open INTEGER NOT NULL,
        last INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE entries (
        session INTEGER NOT NULL REFERENCES sessions (number),
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        v INTEGER NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT;
    PRAGMA application_id = 0x636d6576;
"];

/// How often to look again, and for how long in all (10 s), while another process holds the file. SQLite's own way of
/// waiting looks ever more seldom, and would never find the short gaps that a busy writer leaves.
const BUSY_PAUSE: Duration = Duration::from_micros(500);
const BUSY_PAUSES_MAX: i32 = 20_000;

/// For how long, and how often, opening is tried while others hold the file.
const OPEN_TIME_MAX: Duration = Duration::from_secs(10);
const OPEN_PAUSE: Duration = Duration::from_millis(5);

/// What is left of the write-ahead log after a checkpoint, in bytes.
const WAL_BYTES_KEPT: i64 = 16 << 20;

/// Opens the writer's connection.
pub(super) fn open(options: &SqliteOptions) -> Result<Connection, StoreError> {
    make(&options.path)?;
    let deadline = Instant::now() + OPEN_TIME_MAX;
    loop {
        match prepare(options) {
            // While others make the file, or close it, SQLite says so at once instead of waiting.
            Err(StoreError::Busy(_)) if Instant::now() < deadline => std::thread::sleep(OPEN_PAUSE),
            prepared => return prepared,
        }
    }
}

fn prepare(options: &SqliteOptions) -> Result<Connection, StoreError> {
    let path = &options.path;
    let mut connection = connect(path)?;
    migrate(&mut connection, path)?;
    let set = failed("set up the event store", path);
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(&set)?;
    if mode != "wal" {
        let message = format!("the file system allows journal mode `{mode}` only");
        return Err(StoreError::Failed { step: "set up the event store", message });
    }
    connection.pragma_update(None, "synchronous", "FULL").map_err(&set)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT).map_err(&set)?;
    if let Some(bytes) = options.bytes_max {
        let page: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).map_err(&set)?;
        let pages = i64::try_from(bytes.div_ceil(page)).unwrap_or(i64::MAX);
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).map_err(&set)?;
    }
    Ok(connection)
}

/// Opens a connection for reading.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true).map_err(failed("open the event store", path))?;
    Ok(connection)
}

/// Makes the file with its owner's rights only; what is there stays as it is.
fn make(path: &Path) -> Result<(), StoreError> {
    let fail = |error: io::Error| match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            StoreError::ReadOnly(path.display().to_string())
        }
        _ => StoreError::Failed {
            step: "make the event store",
            message: format!("`{}`: {error}", path.display()),
        },
    };
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(fail(error)),
    }
    // The file's name has to outlast a power cut as well.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(fail)
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let fail = failed("open the event store", path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(&fail)?;
    connection.busy_handler(Some(wait_for_others)).map_err(&fail)?;
    if connection.is_readonly("main").map_err(&fail)? {
        return Err(StoreError::ReadOnly(path.display().to_string()));
    }
    Ok(connection)
}

fn wait_for_others(pauses: i32) -> bool {
    std::thread::sleep(BUSY_PAUSE);
    pauses < BUSY_PAUSES_MAX
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = failed("migrate the event store", path);
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if check(connection, path, known)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&fail)?;
    // Another process may have done it meanwhile.
    let found = check(&transaction, path, known)?;
    for (version, migration) in (1_i64..).zip(MIGRATIONS) {
        if version > found {
            transaction.execute_batch(migration).map_err(&fail)?;
        }
    }
    transaction.pragma_update(None, "user_version", known).map_err(&fail)?;
    transaction.commit().map_err(&fail)
}

/// The file's version; 0 for an empty one.
fn check(connection: &Connection, path: &Path, known: i64) -> Result<i64, StoreError> {
    let fail = failed("read the event store's version", path);
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(&fail);
    let found = number("PRAGMA user_version")?;
    let application = number("PRAGMA application_id")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    match (application, tables) {
        (0, 0) if found == 0 => Ok(0),
        (APPLICATION_ID, _) if found > known => Err(StoreError::NewerVersion { found, known }),
        (APPLICATION_ID, _) if found > 0 => Ok(found),
        _ => Err(StoreError::Foreign(path.display().to_string())),
    }
}
