//! The lifecycle of a run's process as its frames drive it. Pure: every pair of state and frame has its answer here.
//!
//! ```text
//! Unconfirmed ──hello──▶ Running ──terminal frame──▶ Settled
//!      └──fault─────────────────────────────────────▶ Settled
//! ```
//! Whatever else a process sends is a protocol violation and leads to `Settled` too; in `Settled` nothing counts.

use codemode_wire::message::ChildFrame;

/// Where a run's process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not said yet that it is locked down. It has no program.
    Unconfirmed,
    /// It has its program.
    Running,
    /// A terminal event was recorded.
    Settled,
}

/// A frame's kind, without its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// [`ChildFrame::Hello`].
    Hello,
    /// [`ChildFrame::Fault`].
    Fault,
    /// [`ChildFrame::Log`].
    Log,
    /// [`ChildFrame::Call`].
    Call,
    /// [`ChildFrame::Completed`], [`ChildFrame::Failed`], [`ChildFrame::Stalled`], [`ChildFrame::HeapExhausted`].
    Terminal,
}

impl FrameKind {
    /// The kind of a frame.
    #[must_use]
    pub const fn of(frame: &ChildFrame<'_>) -> Self {
        match frame {
            ChildFrame::Hello { .. } => Self::Hello,
            ChildFrame::Fault { .. } => Self::Fault,
            ChildFrame::Log { .. } => Self::Log,
            ChildFrame::Call { .. } => Self::Call,
            ChildFrame::Completed { .. }
            | ChildFrame::Failed { .. }
            | ChildFrame::Stalled
            | ChildFrame::HeapExhausted { .. } => Self::Terminal,
        }
    }
}

/// What to do with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Check the hello; the program may be sent if it holds.
    Confirm,
    /// The process could not lock itself down; it gets no program.
    Fault,
    /// Enter the log entry.
    Log,
    /// Judge the call.
    Call,
    /// The run is over.
    Terminal,
    /// The process broke the order: why.
    Violation(&'static str),
    /// The run is over already; the frame is dropped.
    Late,
}

impl State {
    /// What a frame means in this state.
    #[must_use]
    pub const fn judge(self, frame: FrameKind) -> Verdict {
        match (self, frame) {
            (Self::Unconfirmed, FrameKind::Hello) => Verdict::Confirm,
            (Self::Unconfirmed, FrameKind::Fault) => Verdict::Fault,
            (Self::Unconfirmed, FrameKind::Log | FrameKind::Call | FrameKind::Terminal) => {
                Verdict::Violation("sent before hello")
            }
            (Self::Running, FrameKind::Log) => Verdict::Log,
            (Self::Running, FrameKind::Call) => Verdict::Call,
            (Self::Running, FrameKind::Terminal) => Verdict::Terminal,
            (Self::Running, FrameKind::Hello) => Verdict::Violation("sent twice"),
            (Self::Running, FrameKind::Fault) => Verdict::Violation("sent after hello"),
            (Self::Settled, _) => Verdict::Late,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FrameKind::*, State::*, Verdict};

    #[test]
    fn every_state_and_frame() {
        let table = [
            (Unconfirmed, Hello, Verdict::Confirm),
            (Unconfirmed, Fault, Verdict::Fault),
            (Unconfirmed, Log, Verdict::Violation("sent before hello")),
            (Unconfirmed, Call, Verdict::Violation("sent before hello")),
            (Unconfirmed, Terminal, Verdict::Violation("sent before hello")),
            (Running, Hello, Verdict::Violation("sent twice")),
            (Running, Fault, Verdict::Violation("sent after hello")),
            (Running, Log, Verdict::Log),
            (Running, Call, Verdict::Call),
            (Running, Terminal, Verdict::Terminal),
            (Settled, Hello, Verdict::Late),
            (Settled, Fault, Verdict::Late),
            (Settled, Log, Verdict::Late),
            (Settled, Call, Verdict::Late),
            (Settled, Terminal, Verdict::Late),
        ];
        for (state, frame, verdict) in table {
            assert_eq!(state.judge(frame), verdict, "{state:?} × {frame:?}");
        }
    }

    #[test]
    fn a_program_can_only_be_sent_after_hello() {
        // The only way into `Running` is `Confirm`, and only `Unconfirmed` answers it, and only to a hello.
        for state in [Unconfirmed, Running, Settled] {
            for frame in [Hello, Fault, Log, Call, Terminal] {
                let confirms = state.judge(frame) == Verdict::Confirm;
                assert_eq!(confirms, state == Unconfirmed && frame == Hello);
            }
        }
    }
}
