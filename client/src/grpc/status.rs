//! What a gRPC status means to a caller, before a run has started and after.

use std::error::Error as _;
use std::time::Duration;

use codemode_proto::RETRY_AFTER_MS;
use tonic::{Code, Status};

use crate::error::{RuntimeError, chain};

/// An attempt that did not start, or a description that was not given.
#[derive(Debug)]
pub(super) struct Refusal {
    /// What the caller is told where nothing further is tried.
    pub(super) error: RuntimeError,
    /// Whether another attempt is safe and may help.
    pub(super) retryable: bool,
}

impl Refusal {
    pub(super) fn final_error(error: RuntimeError) -> Self {
        Self { error, retryable: false }
    }

    /// Nothing came back in time.
    pub(super) fn no_answer(endpoint: &str, waited: Duration) -> Self {
        let message = format!("no answer within {}ms", waited.as_millis());
        Self { error: RuntimeError::Unavailable { endpoint: endpoint.to_owned(), message }, retryable: true }
    }

    /// A status that ended an attempt before `started`.
    pub(super) fn from_status(endpoint: &str, status: &Status) -> Self {
        if is_local(status) {
            let error = RuntimeError::Unavailable { endpoint: endpoint.to_owned(), message: text(status) };
            return Self { error, retryable: true };
        }
        let retryable = matches!(status.code(), Code::Unavailable | Code::ResourceExhausted);
        Self { error: before_start(endpoint, status), retryable }
    }

    /// The executor's advice.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match &self.error {
            RuntimeError::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// A status that ended a stream after `started`.
pub(super) fn after_start(endpoint: &str, status: &Status) -> RuntimeError {
    match status.code() {
        // The executor says so when we answered wrongly; our side is at fault, but the run has been.
        Code::InvalidArgument => RuntimeError::Contract {
            endpoint: endpoint.to_owned(),
            fault: format!("it refused a reply: {}", text(status)),
            after_start: true,
        },
        _ => RuntimeError::Transport {
            endpoint: endpoint.to_owned(),
            message: text(status),
            after_start: true,
        },
    }
}

fn before_start(endpoint: &str, status: &Status) -> RuntimeError {
    let message = text(status);
    let endpoint = endpoint.to_owned();
    match status.code() {
        Code::InvalidArgument | Code::OutOfRange => RuntimeError::InvalidRequest { message },
        Code::FailedPrecondition => RuntimeError::FailedPrecondition { message },
        Code::Unauthenticated | Code::PermissionDenied => RuntimeError::NotAllowed { message },
        Code::ResourceExhausted => RuntimeError::Overloaded { message, retry_after: retry_after(status) },
        Code::Unavailable => RuntimeError::Unavailable { endpoint, message },
        Code::Unimplemented => RuntimeError::Contract {
            endpoint,
            fault: format!("no such service there: {message}"),
            after_start: false,
        },
        _ => RuntimeError::Transport { endpoint, message, after_start: false },
    }
}

/// Whether the status was made on this side, out of a connection's failure, rather than sent by the service.
fn is_local(status: &Status) -> bool {
    status.source().is_some()
}

fn retry_after(status: &Status) -> Option<Duration> {
    let value = status.metadata().get(RETRY_AFTER_MS)?.to_str().ok()?;
    value.parse().ok().map(Duration::from_millis)
}

fn text(status: &Status) -> String {
    let own = if status.message().is_empty() { status.code().description() } else { status.message() };
    // tonic says no more than "transport error" of a refused connection; the reason is in the sources.
    match status.source() {
        Some(source) => {
            let cause = chain(source);
            if cause.contains(own) { cause } else { format!("{own}: {cause}") }
        }
        None => own.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: Code, retryable: bool, wanted: fn(&RuntimeError) -> bool) {
        let refusal = Refusal::from_status("e", &Status::new(code, "m"));
        assert_eq!(refusal.retryable, retryable, "{code:?}");
        assert!(wanted(&refusal.error), "{code:?} became {:?}", refusal.error);
        assert!(!refusal.error.may_have_acted());
        assert!(after_start("e", &Status::new(code, "m")).may_have_acted());
    }

    #[test]
    fn each_status_has_its_meaning() {
        check(Code::InvalidArgument, false, |error| matches!(error, RuntimeError::InvalidRequest { .. }));
        check(Code::FailedPrecondition, false, |error| {
            matches!(error, RuntimeError::FailedPrecondition { .. })
        });
        check(Code::Unauthenticated, false, |error| matches!(error, RuntimeError::NotAllowed { .. }));
        check(Code::PermissionDenied, false, |error| matches!(error, RuntimeError::NotAllowed { .. }));
        check(Code::ResourceExhausted, true, |error| {
            matches!(error, RuntimeError::Overloaded { retry_after: None, .. })
        });
        check(Code::Unavailable, true, |error| matches!(error, RuntimeError::Unavailable { .. }));
        check(Code::Unimplemented, false, |error| matches!(error, RuntimeError::Contract { .. }));
        check(Code::Internal, false, |error| matches!(error, RuntimeError::Transport { .. }));
        check(Code::Cancelled, false, |error| matches!(error, RuntimeError::Transport { .. }));
    }

    #[test]
    fn advice_is_read_and_nonsense_is_not() {
        for (value, wanted) in [("250", Some(250)), ("-1", None), ("soon", None)] {
            let mut status = Status::resource_exhausted("full");
            status.metadata_mut().insert(RETRY_AFTER_MS, value.parse().expect("a header value"));
            let refusal = Refusal::from_status("e", &status);
            assert_eq!(refusal.retry_after(), wanted.map(Duration::from_millis), "{value}");
        }
    }

    #[test]
    fn a_connection_that_failed_is_retried_and_says_why() {
        let cause = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset by peer");
        let mut status = Status::unknown("transport error");
        status.set_source(std::sync::Arc::new(cause));
        let refusal = Refusal::from_status("http://h:1", &status);
        assert!(refusal.retryable);
        assert_eq!(
            refusal.error.to_string(),
            "no executor available at http://h:1: transport error: reset by peer"
        );
    }
}
