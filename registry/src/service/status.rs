//! The one mapping from errors to gRPC statuses. What a caller can act on is in the message.

use codemode_events::{AppendError, OpenError, ReadError, Refusal, StoreError};
use tonic::Status;

/// Faults that one message names; more are counted.
const FAULTS_SHOWN: usize = 24;

/// The status of an event that the log did not take.
pub(super) fn of_append(error: &AppendError) -> Status {
    match error {
        AppendError::Refused(refusal @ Refusal::TooLarge { .. }) => {
            Status::invalid_argument(refusal.to_string())
        }
        AppendError::Refused(refusal) => Status::failed_precondition(refusal.to_string()),
        AppendError::Store(error) => of_store(error),
        AppendError::Closed(session) => no_session(session.as_str()),
        AppendError::Unwritable(error) => Status::internal(error.to_string()),
        other => Status::internal(other.to_string()),
    }
}

/// The status of a store's failure.
pub(super) fn of_store(error: &StoreError) -> Status {
    let text = error.to_string();
    match error {
        StoreError::SessionExists(_) => Status::already_exists(text),
        StoreError::NoSuchSession(_) => Status::not_found(text),
        StoreError::Fenced { .. } => Status::aborted(text),
        StoreError::Full(_) => Status::resource_exhausted(text),
        StoreError::Failed { .. } | StoreError::Stopped => Status::unavailable(text),
        _ => Status::internal(text),
    }
}

/// The status of a session that cannot be opened.
pub(super) fn of_open(error: &OpenError) -> Status {
    match error {
        OpenError::Store(error) => of_store(error),
        OpenError::Corrupt(_) | OpenError::Inconsistent { .. } => Status::data_loss(error.to_string()),
        OpenError::NewerEntry { .. } => Status::failed_precondition(error.to_string()),
        _ => Status::internal(error.to_string()),
    }
}

/// The status of a session that cannot be read.
pub(super) fn of_read(error: &ReadError) -> Status {
    match error {
        ReadError::Store(error) => of_store(error),
        ReadError::Corrupt(error) => Status::data_loss(error.to_string()),
        _ => Status::internal(error.to_string()),
    }
}

/// A session that is not open here.
pub(super) fn no_session(id: &str) -> Status {
    Status::not_found(format!("session `{id}` is not open here"))
}

/// The registry shuts down.
pub(super) fn draining() -> Status {
    Status::unavailable("the registry is shutting down")
}

/// `INVALID_ARGUMENT` that names all faults, bounded; nothing if there are none.
pub(super) fn check(faults: &[String]) -> Result<(), Status> {
    if faults.is_empty() { Ok(()) } else { Err(Status::invalid_argument(in_one(faults))) }
}

/// Faults in one text, bounded.
pub(super) fn in_one(faults: &[String]) -> String {
    let mut text = faults[..faults.len().min(FAULTS_SHOWN)].join("; ");
    if faults.len() > FAULTS_SHOWN {
        text.push_str(&format!("; and {} more", faults.len() - FAULTS_SHOWN));
    }
    text
}
