//! The one mapping from errors to gRPC statuses. What a caller can act on is in the message; what only an operator can
//! is in the log.

use std::error::Error;
use std::fmt::Write as _;

use codemode_proto::RETRY_AFTER_MS as RETRY_AFTER_KEY;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use crate::run::{RETRY_AFTER_MS, Refusal};

/// Faults that one message names; more are counted.
const FAULTS_SHOWN: usize = 24;
/// Bytes of one fault that are shown.
const FAULT_BYTES_MAX: usize = 300;

/// The status of a run without an outcome.
pub fn of_refusal(refusal: &Refusal) -> Status {
    match refusal {
        Refusal::Misuse(what) => Status::invalid_argument(what),
        Refusal::Capacity(_) => retry_later(Code::ResourceExhausted, refusal.to_string()),
        Refusal::Draining => draining(),
        Refusal::NoProcess(_) | Refusal::NoStripper(_) => retry_later(Code::Unavailable, chain(refusal)),
        Refusal::Stream(status) => of_stream(status),
    }
}

/// What a caller's broken stream is answered. tonic says `INTERNAL` of what it cannot decode, but nothing in a stream
/// that we only read is of our making.
pub(crate) fn of_stream(status: &Status) -> Status {
    let code = if status.code() == Code::Internal { Code::InvalidArgument } else { status.code() };
    Status::new(code, format!("the request stream broke: {}", status.message()))
}

/// The executor shuts down.
pub(crate) fn draining() -> Status {
    Status::unavailable(Refusal::Draining.to_string())
}

fn retry_later(code: Code, message: String) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert(RETRY_AFTER_KEY, RETRY_AFTER_MS.into());
    Status::with_metadata(code, message, metadata)
}

/// An error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let _ = write!(text, ": {cause}");
        next = cause.source();
    }
    text
}

/// `INVALID_ARGUMENT` that names all faults, bounded.
pub(crate) fn faults(faults: &[String]) -> Status {
    let mut message = String::from("the run cannot begin: ");
    for (index, fault) in faults.iter().take(FAULTS_SHOWN).enumerate() {
        if index > 0 {
            message.push_str("; ");
        }
        message.push_str(&fault[..fault.floor_char_boundary(FAULT_BYTES_MAX)]);
    }
    if faults.len() > FAULTS_SHOWN {
        let _ = write!(message, "; and {} more", faults.len() - FAULTS_SHOWN);
    }
    Status::invalid_argument(message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::admission::Refused;
    use crate::supervisor::strip::StripError;
    use crate::supervisor::zygote::ForkError;

    #[test]
    fn the_table() {
        let failed = ForkError::Failed { step: "clone".to_owned(), errno: 11 };
        let table = [
            (Refusal::Misuse("second `start`".into()), Code::InvalidArgument, "second `start`", false),
            (Refused::QueueFull(3).into(), Code::ResourceExhausted, "3 runs wait for a slot already", true),
            (
                Refused::QueueTime(Duration::from_secs(1)).into(),
                Code::ResourceExhausted,
                "no slot came free within 1s",
                true,
            ),
            (Refusal::Draining, Code::Unavailable, "the executor is draining", false),
            (
                Refusal::NoProcess(failed),
                Code::Unavailable,
                "no process can be made for the run: step `clone` failed with error number 11",
                true,
            ),
            (
                Refusal::NoStripper(StripError::Unusable),
                Code::Unavailable,
                "the program cannot be prepared: the stripping process cannot be used",
                true,
            ),
            (
                Refusal::Stream(Box::new(Status::internal("failed to decode Protobuf message: x"))),
                Code::InvalidArgument,
                "the request stream broke: failed to decode Protobuf message: x",
                false,
            ),
            (
                Refusal::Stream(Box::new(Status::out_of_range("too long"))),
                Code::OutOfRange,
                "the request stream broke: too long",
                false,
            ),
        ];
        for (refusal, code, message, retry) in table {
            let status = of_refusal(&refusal);
            assert_eq!((status.code(), status.message()), (code, message));
            assert_eq!(status.metadata().get(RETRY_AFTER_KEY).is_some(), retry, "{refusal}");
        }
    }

    #[test]
    fn many_faults_are_bounded() {
        let many: Vec<String> = (0..1000).map(|i| format!("{i}{}", "é".repeat(1000))).collect();
        let status = faults(&many);
        assert!(status.message().len() < 10_000);
        assert!(status.message().ends_with("; and 976 more"));
    }
}
