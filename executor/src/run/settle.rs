//! Settlement: from the first terminal event and the ledger to what the caller is told. Pure, and consumes both, so that
//! it can happen once only.

use bytes::Bytes;
use codemode_proto::detail::Detail;
use codemode_wire::json::{self, StringLiteral};
use codemode_wire::limits::ERROR_NAME_BYTES_MAX;
use codemode_wire::message::{ChildFailureKind, ChildFrame};

use super::budget::Budgets;
use super::excerpt::excerpt;
use super::ledger::{Closed, Ledger, Tail};
use crate::outcome::{Failure, Position};

/// Every message of an `invalid-output` failure begins so.
const LOSSY: &str = "program completion must be lossless JSON";

/// How a run ends: recorded when it happens, before the process is killed, and never replaced but by an overflow of
/// the ledger found while draining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// The program returned; the value is checked.
    Completed(Option<Bytes>),
    /// It failed. The second part is the message's cost where its literal costs more than its text.
    Failed(Box<Failure>, Option<u64>),
    /// Logs, value or message exceed the output budget; with what the value or message would have cost, if it is known.
    OutputLimit(Option<u64>),
    /// The process ended without a word; why is read from its exit status.
    Died {
        /// Its channel ended inside a frame.
        inside_frame: bool,
    },
}

impl Terminal {
    /// A failure whose message costs what its text costs.
    #[must_use]
    pub fn failed(failure: Failure) -> Self {
        Self::Failed(Box::new(failure), None)
    }

    /// The process broke the rules of its channel.
    #[must_use]
    pub fn violation(what: impl std::fmt::Display) -> Self {
        Self::failed(Failure::new(Detail::Protocol, format!("protocol violation: {what}")))
    }

    /// Whether log entries that the process sent before it was ended still count. They do where the executor ended
    /// it, and do not after the program's own last word.
    #[must_use]
    pub fn counts_late_logs(&self) -> bool {
        match self {
            Self::Completed(_) | Self::OutputLimit(_) => false,
            Self::Died { .. } => true,
            Self::Failed(failure, _) => {
                matches!(
                    failure.detail,
                    Detail::ComputeMs | Detail::WallMs | Detail::Caller | Detail::Cancelled | Detail::Drain
                )
            }
        }
    }

    /// What a terminal frame means. `budgets` are the run's, `pending` its calls without an answer.
    #[must_use]
    pub fn of_frame(frame: &ChildFrame<'_>, program: &str, ledger: &Ledger, facts: Facts<'_>) -> Self {
        match frame {
            ChildFrame::Completed { value: None } => Self::Completed(None),
            ChildFrame::Completed { value: Some(value) } => completed(value, ledger),
            ChildFrame::Failed { kind, message, name, line, column } => {
                let place = (*line, *column);
                failed(*kind, message, name, position(program, place.0, place.1), ledger)
            }
            ChildFrame::Stalled if facts.pending > 0 => {
                Self::violation(format_args!("stalled with {} calls pending", facts.pending))
            }
            ChildFrame::Stalled => Self::failed(Failure::new(
                Detail::Deadlock,
                "deadlock: the program waits, but no binding call is pending and no timer is armed",
            )),
            ChildFrame::HeapExhausted { used, .. } => {
                let limit = facts.budgets.heap_bytes;
                let used = (*used <= limit.saturating_mul(64)).then_some(*used);
                let message = format!("heap budget exhausted ({limit} bytes)");
                Self::failed(Failure::new(Detail::HeapBytes, message).with_numbers(limit, used))
            }
            other => Self::violation(format_args!("`{}` is no terminal frame", other.name())),
        }
    }
}

/// What a terminal frame is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The run's budgets.
    pub budgets: &'a Budgets,
    /// Calls without an answer.
    pub pending: usize,
}

fn completed(value: &[u8], ledger: &Ledger) -> Terminal {
    // Over budget comes before lossy: a value that may not be sent is not read either.
    if !ledger.fits(value.len() as u64) {
        return Terminal::OutputLimit(Some(value.len() as u64));
    }
    match json::check_as("value", value) {
        Ok(()) => Terminal::Completed(Some(Bytes::copy_from_slice(value))),
        Err(fault) => Terminal::failed(Failure::new(Detail::Lossy, format!("{LOSSY}: {fault}"))),
    }
}

fn failed(
    kind: ChildFailureKind,
    message: &[u8],
    name: &str,
    position: Option<Position>,
    ledger: &Ledger,
) -> Terminal {
    let detail = match kind {
        ChildFailureKind::OutputLimit => return Terminal::OutputLimit(None),
        ChildFailureKind::Exception => Detail::Throw,
        ChildFailureKind::Syntax => Detail::Syntax,
        ChildFailureKind::InvalidOutput => Detail::Lossy,
    };
    let literal = match StringLiteral::parse(message) {
        Ok(literal) => literal,
        Err(fault) => return Terminal::violation(format_args!("failure message: {fault}")),
    };
    if !ledger.fits(literal.cost()) {
        return Terminal::OutputLimit(Some(literal.cost()));
    }
    let (mut message, mut cost) = (literal.decode(), Some(literal.cost()));
    if detail == Detail::Lossy && !message.starts_with(LOSSY) {
        message = format!("{LOSSY}: {message}");
        cost = None;
    }
    let mut failure = Failure::new(detail, message);
    failure.position = position;
    name[..name.floor_char_boundary(ERROR_NAME_BYTES_MAX)].clone_into(&mut failure.error_name);
    Terminal::Failed(Box::new(failure), cost)
}

/// The place in the program, if it is one.
#[must_use]
pub fn position(program: &str, line: u32, column: u32) -> Option<Position> {
    let excerpt = excerpt(program, line, column);
    (!excerpt.is_empty()).then_some(Position { line, column, excerpt })
}

/// What the books say when they are closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Completion value.
    pub value: Option<Bytes>,
    /// Logs that are kept.
    pub logs: Vec<String>,
    /// Why there is no completion.
    pub failure: Option<Failure>,
    /// Bytes on the ledger.
    pub output_bytes: u64,
}

/// Closes the books. `died` is what the exit status says, asked for only where the terminal event does not say it.
#[must_use]
pub fn settle(terminal: Terminal, mut ledger: Ledger, died: impl FnOnce(bool) -> Failure) -> Settled {
    let cap = ledger.cap();
    let (closed, value, failure) = match terminal {
        Terminal::Completed(value) => {
            let tail = value.as_ref().map_or(Tail::Nothing, |value| Tail::Value(value.len() as u64));
            (ledger.close(tail), value, None)
        }
        Terminal::OutputLimit(asked) => {
            if let Some(tail_cost) = asked {
                ledger.note_asked(tail_cost);
            }
            (Err(ledger.close_over_cap()), None, None)
        }
        Terminal::Failed(failure, cost) => close_failed(ledger, *failure, cost),
        Terminal::Died { inside_frame } => close_failed(ledger, died(inside_frame), None),
    };
    match closed {
        Ok(Closed { logs, cost, .. }) => Settled { value, logs, failure, output_bytes: cost },
        Err(Closed { logs, message, cost, asked }) => {
            let failure = Failure::new(Detail::OutputBytes, message.unwrap_or_default());
            let failure = Some(failure.with_numbers(cap, asked));
            Settled { value: None, logs, failure, output_bytes: cost }
        }
    }
}

type ClosedFailure = (Result<Closed, Closed>, Option<Bytes>, Option<Failure>);

fn close_failed(ledger: Ledger, failure: Failure, cost: Option<u64>) -> ClosedFailure {
    let closed = match cost {
        Some(cost) => ledger.close(Tail::CountedMessage(&failure.message, cost)),
        None => ledger.close(Tail::Message(&failure.message)),
    };
    (closed, None, Some(failure))
}

#[cfg(test)]
mod tests {
    use codemode_wire::json::quote;

    use super::*;

    const BUDGETS: Budgets = Budgets {
        compute_ms: 1,
        wall_ms: 1,
        output_bytes: 100,
        heap_bytes: 1 << 20,
        binding_calls: 0,
        pending_calls: 1,
        pending_argument_bytes: 1,
        log_entry_bytes: 1,
    };

    fn of(frame: &ChildFrame<'_>, cap: u64) -> Settled {
        let ledger = Ledger::new(cap, 1000);
        let terminal = Terminal::of_frame(frame, "a\nb", &ledger, Facts { budgets: &BUDGETS, pending: 0 });
        settle(terminal, ledger, |_| unreachable!("the process said how it ended"))
    }

    fn words(settled: &Settled) -> String {
        match (&settled.failure, &settled.value) {
            (Some(failure), None) => format!("{}: {}", failure.detail.word(), failure.message),
            (None, Some(value)) => format!("value {}", String::from_utf8_lossy(value)),
            (None, None) => "nothing".to_owned(),
            (Some(_), Some(_)) => unreachable!("a failure carries no value"),
        }
    }

    fn throws(message: &str) -> (Vec<u8>, ChildFailureKind) {
        (quote(message).into_bytes(), ChildFailureKind::Exception)
    }

    #[test]
    fn completions() {
        assert_eq!(words(&of(&ChildFrame::Completed { value: None }, 4)), "nothing");
        assert_eq!(words(&of(&ChildFrame::Completed { value: Some(b"null") }, 100)), "value null");
        let over = of(&ChildFrame::Completed { value: Some(b"\"12345678901234567890\"") }, 20);
        assert_eq!(words(&over), "output_bytes: outer output exc");
        assert_eq!(over.failure.and_then(|failure| failure.limit), Some(20));
        let lossy = of(&ChildFrame::Completed { value: Some(b"[-0]") }, 1000);
        assert!(words(&lossy).starts_with("lossy: program completion must be lossless JSON: value[0] is -0"));
    }

    #[test]
    fn failures() {
        let (message, kind) = throws("kaboom");
        let frame = ChildFrame::Failed { kind, message: &message, name: "TypeError", line: 2, column: 1 };
        let settled = of(&frame, 100);
        assert_eq!(words(&settled), "throw: kaboom");
        let failure = settled.failure.expect("failed");
        assert_eq!(failure.error_name, "TypeError");
        assert_eq!(failure.position.expect("known").excerpt, "1 | a\n2 | b\n  | ^");
        let nowhere = ChildFrame::Failed { kind, message: &message, name: "", line: 0, column: 0 };
        assert_eq!(of(&nowhere, 100).failure.expect("failed").position, None);
    }

    #[test]
    fn a_process_cannot_claim_what_is_not_its_own() {
        let kind = ChildFailureKind::InvalidOutput;
        let message = quote("wall-clock ceiling reached");
        let frame = ChildFrame::Failed { kind, message: message.as_bytes(), name: "", line: 0, column: 0 };
        let said = words(&of(&frame, 1000));
        assert_eq!(said, "lossy: program completion must be lossless JSON: wall-clock ceiling reached");
        let kind = ChildFailureKind::OutputLimit;
        let frame = ChildFrame::Failed { kind, message: b"\"my words\"", name: "", line: 0, column: 0 };
        assert_eq!(words(&of(&frame, 100)), "output_bytes: outer output exceeded 100 bytes");
        let kind = ChildFailureKind::Exception;
        let frame = ChildFrame::Failed { kind, message: b"no literal", name: "", line: 0, column: 0 };
        assert!(words(&of(&frame, 1000)).starts_with("protocol: protocol violation: failure message: "));
        let frame = ChildFrame::HeapExhausted { used: u64::MAX, limit: 0 };
        let failure = of(&frame, 1000).failure.expect("failed");
        assert_eq!((failure.limit, failure.used), (Some(1 << 20), None));
    }

    #[test]
    fn a_stall_with_calls_pending_is_a_lie() {
        let ledger = Ledger::new(100, 100);
        let facts = Facts { budgets: &BUDGETS, pending: 2 };
        let terminal = Terminal::of_frame(&ChildFrame::Stalled, "", &ledger, facts);
        assert_eq!(terminal, Terminal::violation("stalled with 2 calls pending"));
        assert!(words(&of(&ChildFrame::Stalled, 1000)).starts_with("deadlock: "));
    }

    #[test]
    fn an_overflow_found_while_draining_overrides_any_terminal() {
        let mut ledger = Ledger::new(40, 1000);
        let text = quote(&"x".repeat(100));
        let _ = ledger.log(StringLiteral::parse(text.as_bytes()).expect("literal"), text.as_bytes());
        let terminal = Terminal::failed(Failure::new(Detail::Caller, "stop"));
        let settled = settle(terminal, ledger, |_| unreachable!());
        assert_eq!(words(&settled), "output_bytes: outer output exceeded 40 bytes");
    }

    #[test]
    fn what_counts_after_the_end() {
        assert!(Terminal::Died { inside_frame: false }.counts_late_logs());
        assert!(Terminal::failed(Failure::new(Detail::ComputeMs, "")).counts_late_logs());
        assert!(!Terminal::Completed(None).counts_late_logs());
        assert!(!Terminal::failed(Failure::new(Detail::Throw, "")).counts_late_logs());
        assert!(!Terminal::violation("x").counts_late_logs());
    }
}
