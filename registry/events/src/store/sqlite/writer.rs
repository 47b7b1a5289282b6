//! The one thread that writes: groups what waits into a transaction, commits, then answers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::reader::Fault;
use super::{Heads, failed};
use crate::entry::Record;
use crate::store::{Batch, Lease, SessionId, StoreError};

/// At most so many commands in one transaction, so that the first does not wait for ever.
const GROUP_COMMANDS_MAX: usize = 1024;

/// No further command in a transaction once its records hold so many bytes.
const GROUP_BYTES_MAX: usize = 8 << 20;

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the thread is asked for, in the order of asking.
#[derive(Debug)]
pub(super) enum Command {
    Create { session: SessionId, at: u64, reply: Reply<Lease> },
    Resume { session: SessionId, reply: Reply<Lease> },
    Append { session: SessionId, epoch: u64, batch: Batch },
    Close { session: SessionId, epoch: u64, reply: Reply<()> },
}

/// The thread and the way to it.
#[derive(Debug)]
pub(super) struct Writer {
    /// None only while this is being dropped.
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, path: &Path, heads: Heads) -> Result<Self, StoreError> {
        let (commands, waiting) = mpsc::channel();
        let mut file = File { connection, path: path.to_owned(), heads };
        let thread = std::thread::Builder::new()
            .name("events-writer".to_owned())
            .spawn(move || file.serve(&waiting))
            .map_err(|error| StoreError::Failed { step: "start the writer", message: error.to_string() })?;
        Ok(Self { commands: Some(commands), thread: Some(thread) })
    }

    /// Hands a command over. If the thread is gone, dropping the command answers it.
    pub(super) fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread writes what waits, then finds that nobody can ask any more.
        self.commands = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the event store's writer has panicked");
        }
    }
}

impl Command {
    fn session(&self) -> &SessionId {
        match self {
            Self::Create { session, .. }
            | Self::Resume { session, .. }
            | Self::Append { session, .. }
            | Self::Close { session, .. } => session,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Append { batch, .. } => batch.records().iter().map(|record| record.event.len()).sum(),
            _ => 0,
        }
    }

    /// Answers with the lease that holds after the command. Whoever asked may have gone away.
    fn answer(self, outcome: Result<Lease, StoreError>) {
        match self {
            Self::Create { reply, .. } | Self::Resume { reply, .. } => drop(reply.send(outcome)),
            Self::Append { batch, .. } => batch.settle(outcome.map(drop)),
            Self::Close { reply, .. } => drop(reply.send(outcome.map(drop))),
        }
    }
}

struct File {
    connection: Connection,
    path: PathBuf,
    heads: Heads,
}

impl File {
    fn serve(&mut self, waiting: &Receiver<Command>) {
        while let Ok(first) = waiting.recv() {
            let mut bytes = first.bytes();
            let mut group = vec![first];
            while group.len() < GROUP_COMMANDS_MAX && bytes < GROUP_BYTES_MAX {
                let Ok(next) = waiting.try_recv() else { break };
                bytes += next.bytes();
                group.push(next);
            }
            self.commit(group);
        }
    }

    /// Writes a group and answers it. An error of SQLite is one of the file, so it is everybody's in the group.
    fn commit(&mut self, group: Vec<Command>) {
        match write(&mut self.connection, &group) {
            Ok((outcomes, changed)) => {
                for (command, outcome) in group.into_iter().zip(outcomes) {
                    command.answer(outcome);
                }
                for session in changed {
                    self.heads.changed(&session);
                }
            }
            Err(error) => {
                tracing::error!(%error, commands = group.len(), "events could not be written");
                let error = failed("write the event store", &self.path)(error);
                for command in group {
                    command.answer(Err(error.clone()));
                }
            }
        }
    }
}

type Outcomes = (Vec<Result<Lease, StoreError>>, Vec<SessionId>);

/// Runs the commands in one transaction and commits it: what to answer each, and the sessions that have changed. After
/// an error nothing of it is in the file.
fn write(connection: &mut Connection, group: &[Command]) -> rusqlite::Result<Outcomes> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut rows = Rows { transaction: &transaction, known: HashMap::new() };
    let mut outcomes = Vec::with_capacity(group.len());
    for command in group {
        outcomes.push(match rows.run(command) {
            Ok(lease) => Ok(lease),
            Err(Fault::Store(refused)) => Err(refused),
            Err(Fault::Sqlite(error)) => return Err(error),
        });
    }
    let changed = rows.save()?;
    transaction.commit()?;
    Ok((outcomes, changed))
}

/// A session's row, as it is inside the transaction.
struct Row {
    number: i64,
    epoch: u64,
    open: bool,
    last: u64,
    changed: bool,
}

/// The rows of the sessions that the transaction has touched.
struct Rows<'a> {
    transaction: &'a Transaction<'a>,
    known: HashMap<SessionId, Row>,
}

impl Rows<'_> {
    fn run(&mut self, command: &Command) -> Result<Lease, Fault> {
        if let Command::Create { session, at, .. } = command {
            self.create(session, *at)?;
        }
        let session = command.session();
        let transaction = self.transaction;
        let row = self.row(session)?;
        match command {
            Command::Create { .. } => {}
            Command::Resume { .. } => {
                row.epoch += 1;
                row.open = true;
                row.changed = true;
            }
            Command::Append { epoch, batch, .. } => {
                row.holds(session, *epoch)?;
                batch.follows(session, row.last).map_err(Fault::Store)?;
                insert(transaction, row, batch.records())?;
            }
            Command::Close { epoch, .. } => {
                row.holds(session, *epoch)?;
                row.open = false;
                row.changed = true;
            }
        }
        Ok(Lease { session: session.clone(), epoch: row.epoch, last: row.last })
    }

    fn create(&self, session: &SessionId, at: u64) -> Result<(), Fault> {
        let made = self
            .transaction
            .prepare_cached(
                "INSERT INTO sessions (id, created_at, epoch, open, last) VALUES (?1, ?2, 1, 1, 0)
                 ON CONFLICT (id) DO NOTHING",
            )?
            .execute((session.as_str(), time(at)))?;
        if made == 0 {
            return Err(Fault::Store(StoreError::SessionExists(session.clone())));
        }
        Ok(())
    }

    fn row(&mut self, session: &SessionId) -> Result<&mut Row, Fault> {
        match self.known.entry(session.clone()) {
            Entry::Occupied(row) => Ok(row.into_mut()),
            Entry::Vacant(place) => {
                let row = self
                    .transaction
                    .prepare_cached("SELECT number, epoch, open, last FROM sessions WHERE id = ?1")?
                    .query_row([session.as_str()], |row| {
                        let (number, epoch) = (row.get(0)?, row.get(1)?);
                        Ok(Row { number, epoch, open: row.get(2)?, last: row.get(3)?, changed: false })
                    })
                    .optional()?;
                let row = row.ok_or_else(|| Fault::Store(StoreError::NoSuchSession(session.clone())))?;
                Ok(place.insert(row))
            }
        }
    }

    /// Writes back the rows that have changed, and says whose they are.
    fn save(self) -> rusqlite::Result<Vec<SessionId>> {
        let mut update = self
            .transaction
            .prepare_cached("UPDATE sessions SET epoch = ?2, open = ?3, last = ?4 WHERE number = ?1")?;
        let mut changed = Vec::new();
        for (session, row) in self.known {
            if row.changed {
                update.execute((row.number, row.epoch, row.open, row.last))?;
                changed.push(session);
            }
        }
        Ok(changed)
    }
}

impl Row {
    fn holds(&self, session: &SessionId, epoch: u64) -> Result<(), Fault> {
        if self.open && self.epoch == epoch {
            return Ok(());
        }
        Err(Fault::Store(StoreError::Fenced { session: session.clone(), epoch }))
    }
}

fn insert(transaction: &Transaction<'_>, row: &mut Row, records: &[Record]) -> rusqlite::Result<()> {
    let mut insert = transaction
        .prepare_cached("INSERT INTO entries (session, seq, at, v, event) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for record in records {
        insert.execute((row.number, record.seq, time(record.at), record.v, &record.event))?;
        row.last = record.seq;
        row.changed = true;
    }
    Ok(())
}

/// A time that is too large for the file says the latest it can hold.
fn time(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}
