//! Why an event may not be appended. A refused event leaves the log and everything known about it as they were.

/// What is wrong with an event at this place of the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// An id is empty.
    #[error("`{event}` has an empty `{field}`")]
    EmptyId {
        /// The event's type.
        event: &'static str,
        /// The field.
        field: &'static str,
    },
    /// The event belongs into a turn, and none is open.
    #[error("`{event}` outside a turn")]
    NoOpenTurn {
        /// The event's type.
        event: &'static str,
    },
    /// A turn begins inside another.
    #[error("turn `{open}` is still open")]
    TurnOpen {
        /// The turn that is open.
        open: String,
    },
    /// A turn ends that is not the open one.
    #[error("the open turn is `{open}`, not `{given}`")]
    WrongTurn {
        /// The turn that is open.
        open: String,
        /// The turn that was to end.
        given: String,
    },
    /// A turn ends while a program's call has not ended.
    #[error("the turn cannot end: sub-call `{sub_call}` has started and not ended")]
    DispatchOpen {
        /// One such call.
        sub_call: String,
    },
    /// A step begins or ends out of order.
    #[error("step {given} out of order: {expected}")]
    StepOrder {
        /// The step that was given.
        given: u32,
        /// What could come instead, in words.
        expected: String,
    },
    /// A call belongs to another root: as a sub-call, as a parent, or as a root itself.
    #[error("call `{call}` belongs to root `{root}`, not `{given}`")]
    OtherRoot {
        /// The call.
        call: String,
        /// Its root.
        root: String,
        /// The root it was to have.
        given: String,
    },
    /// A sub-call that is its own parent or root.
    #[error("sub-call `{sub_call}` cannot be its own parent or root")]
    OwnParent {
        /// The sub-call.
        sub_call: String,
    },
    /// A sub-call starts a second time before it has ended.
    #[error("sub-call `{sub_call}` has already started")]
    AlreadyStarted {
        /// The sub-call.
        sub_call: String,
    },
    /// A sub-call ends that has not started, or has ended already.
    #[error("sub-call `{sub_call}` has no start that has not ended")]
    NotStarted {
        /// The sub-call.
        sub_call: String,
    },
    /// A sub-call's end does not say what its start said.
    #[error("the end of sub-call `{sub_call}` has another `{field}` than its start")]
    StartDiffers {
        /// The sub-call.
        sub_call: String,
        /// The field.
        field: &'static str,
    },
    /// A result cites an entry that is no call.
    #[error("entry {call} is no `tool/call`")]
    NoSuchCall {
        /// The number that was cited.
        call: u64,
    },
    /// A second result for one call.
    #[error("the call of entry {call} already has its result")]
    AlreadyAnswered {
        /// The call's number.
        call: u64,
    },
    /// A result cites a call and carries another's id.
    #[error("entry {call} is call `{expected}`, not `{given}`")]
    WrongCallId {
        /// The call's number.
        call: u64,
        /// Its id.
        expected: String,
        /// The id in the result.
        given: String,
    },
    /// An approval is asked for twice.
    #[error("approval `{approval}` was already asked for")]
    AlreadyAsked {
        /// The approval.
        approval: String,
    },
    /// An answer to nothing that waits for one.
    #[error("no approval `{approval}` waits for an answer")]
    NotAsked {
        /// The approval.
        approval: String,
    },
    /// The header is the one that is in force.
    #[error("the request header has not changed")]
    HeaderUnchanged,
    /// The header has an empty system text or an empty tool list.
    #[error("an empty `{field}` is left out of a request header")]
    HeaderNotCanonical {
        /// The field.
        field: &'static str,
    },
    /// The header's reason is not the one that holds here.
    #[error("the reason for this request header is `{expected:?}`")]
    HeaderReason {
        /// The right one.
        expected: crate::event::HeaderReason,
    },
    /// An event of a type that this build does not know.
    #[error("`{tag}` is no event of this version")]
    UnknownType {
        /// Its type.
        tag: String,
    },
    /// The event is too large.
    #[error("the event has {bytes} bytes; {limit} are allowed")]
    TooLarge {
        /// How many bytes of JSON it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
}

impl Refusal {
    /// A stable word for each kind, for whoever cannot match on it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyId { .. } => "empty-id",
            Self::NoOpenTurn { .. } => "no-open-turn",
            Self::TurnOpen { .. } => "turn-open",
            Self::WrongTurn { .. } => "wrong-turn",
            Self::DispatchOpen { .. } => "dispatch-open",
            Self::StepOrder { .. } => "step-order",
            Self::OtherRoot { .. } => "other-root",
            Self::OwnParent { .. } => "own-parent",
            Self::AlreadyStarted { .. } => "already-started",
            Self::NotStarted { .. } => "not-started",
            Self::StartDiffers { .. } => "start-differs",
            Self::NoSuchCall { .. } => "no-such-call",
            Self::AlreadyAnswered { .. } => "already-answered",
            Self::WrongCallId { .. } => "wrong-call-id",
            Self::AlreadyAsked { .. } => "already-asked",
            Self::NotAsked { .. } => "not-asked",
            Self::HeaderUnchanged => "header-unchanged",
            Self::HeaderNotCanonical { .. } => "header-not-canonical",
            Self::HeaderReason { .. } => "header-reason",
            Self::UnknownType { .. } => "unknown-type",
            Self::TooLarge { .. } => "too-large",
        }
    }
}
