//! The session log: an append-only list of events per session, numbered from 1 without gaps.
//!
//! Start reading at [`SessionLog`], the only writer of a session; [`Event`] has the events and their JSON, `index` the
//! invariants, [`EventStore`] the seam to where logs are kept. Knows nothing of tools, policies or programs: it keeps
//! what it is told, in order, or says why not.
#![forbid(unsafe_code)]

mod content;
mod derive;
mod entry;
mod event;
mod follow;
mod index;
mod interrupted;
mod json;
mod log;
mod refusal;
mod store;

pub use crate::content::{
    AssistantMessage, ContentBlock, ErrorInfo, Source, TokenUsage, ToolCallRequest, ToolMessage,
};
pub use crate::derive::{Message, messages};
pub use crate::entry::{CorruptEntry, Entry, Record, SCHEMA_VERSION};
pub use crate::event::{
    ApprovalAnswered, ApprovalAsked, ApprovalOutcome, AssistantMessageEvent, CodeDispatch, CodeDispatchStart,
    Event, Header, HeaderReason, RequestHeader, StepEnd, StepStart, ToolCall, ToolResult, TurnEnd,
    TurnOutcome, TurnStart, UnknownEvent, UserMessage,
};
pub use crate::follow::{ReadError, follow, read};
pub use crate::index::OpenWork;
pub use crate::json::Json;
pub use crate::log::{
    AppendError, Appended, BACKLOG_BYTES_MAX, Clock, EVENT_BYTES_MAX, OpenError, SessionLog, system_clock,
};
pub use crate::refusal::Refusal;
pub use crate::store::{
    BadSessionId, Batch, Commit, EventStore, Head, Lease, MemoryStore, Page, SESSION_ID_BYTES_MAX, SessionId,
    SessionInfo, SqliteOptions, SqliteStore, StoreError,
};
