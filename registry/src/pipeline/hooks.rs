//! The extension points of the pipeline. All are object-safe; those that may wait are async.
//!
//! A hook registered in a scope sees the calls of that scope and of those below it. Hooks run in the order of their
//! scopes, farthest first, and within one in the order of their registration. While a call waits for a hook or an
//! approval, its abort ends the wait: the hook's future is dropped.

use std::sync::Arc;

use async_trait::async_trait;

use crate::agent::Agent;
use crate::hook::HookError;
use crate::pipeline::Call;
use crate::signal::Signal;
use crate::tool::{CallResult, Content, ContextMessage, ErrorInfo};
use codemode_client::JsonText;

/// Whether a call may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allow,
    /// It may not.
    Deny {
        /// What the model is told.
        reason: String,
        /// Name and code of the failure, if it shall have them.
        info: Option<ErrorInfo>,
    },
    /// Somebody has to decide.
    Ask {
        /// What that somebody is told.
        reason: Option<String>,
    },
}

impl Decision {
    /// A denial without a code.
    #[must_use]
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into(), info: None }
    }
}

/// Decides before a call is carried out. A waterfall: each sees what those before it decided and may decide otherwise.
#[async_trait]
pub trait PreExecute: Send + Sync {
    /// Decides.
    ///
    /// # Errors
    /// A failure is the call's failure; neither body nor post-execute hooks run.
    async fn decide(&self, call: &Call, current: Decision) -> Result<Decision, HookError>;
}

/// Denies what must not happen, whatever was decided before. It can never allow.
#[async_trait]
pub trait Guard: Send + Sync {
    /// The reason to deny, if there is one.
    ///
    /// # Errors
    /// A failure denies.
    async fn check(&self, call: &Call) -> Result<Option<String>, HookError>;
}

/// What a post-execute hook makes of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum PostDecision {
    /// It stands, with one of content and value replaced, or neither.
    Accept {
        /// Content instead of the rendered one; value and meta stay.
        content: Option<Vec<Content>>,
        /// A value instead of the body's; it is validated and rendered anew.
        value: Option<JsonText>,
    },
    /// The caller does not get it.
    Block {
        /// What the caller is told instead.
        feedback: Vec<Content>,
    },
}

impl PostDecision {
    /// It stands as it is.
    pub const ACCEPT: Self = Self::Accept { content: None, value: None };
}

/// A decision and what is added to the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct PostVerdict {
    /// The decision.
    pub decision: PostDecision,
    /// Messages, after those of the body. Of a block, the only ones.
    pub contexts: Vec<ContextMessage>,
}

impl Default for PostVerdict {
    fn default() -> Self {
        Self { decision: PostDecision::ACCEPT, contexts: Vec::new() }
    }
}

/// Reviews what a call came to: a value, a failure of the tool, a denial. A waterfall like [`PreExecute`].
#[async_trait]
pub trait PostExecute: Send + Sync {
    /// Reviews.
    ///
    /// # Errors
    /// A failure is the call's failure.
    async fn review(
        &self,
        call: &Call,
        result: &CallResult,
        current: PostVerdict,
    ) -> Result<PostVerdict, HookError>;
}

/// Is told what every call came to. It must not block; what it does wrong is logged and nothing else.
pub trait ResultObserver: Send + Sync {
    /// A call came to this.
    fn on_result(&self, call: &Call, result: &CallResult);
}

/// Replaces the content of a sub-call's result where it is stored, e.g. by a preview; nobody else sees the replacement.
#[async_trait]
pub trait DispatchLogHook: Send + Sync {
    /// Replaces the content, or leaves it (`None`).
    ///
    /// # Errors
    /// A failure is logged, and the content is stored as it was.
    async fn content(&self, call: &Call, content: &[Content]) -> Result<Option<Vec<Content>>, HookError>;
}

/// A question whether a call may go on.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// The call, with its arguments; a program's text is among those of `run_code`.
    pub call: Arc<Call>,
    /// On whose behalf.
    pub agent: Agent,
    /// Why it is asked.
    pub reason: Option<String>,
}

/// How a question was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalOutcome {
    /// Yes, for this call.
    AllowedOnce,
    /// No.
    Rejected,
    /// The question was taken back.
    Cancelled,
    /// Nobody can be asked.
    Unavailable,
    /// Something that this version does not know; it is no yes.
    Unknown(String),
}

/// Puts questions to whoever decides.
#[async_trait]
pub trait ApprovalService: Send + Sync {
    /// Asks. `signal` fires when the answer is not wanted any more; the future is dropped then.
    ///
    /// # Errors
    /// A failure is a no.
    async fn ask(&self, request: ApprovalRequest, signal: &Signal) -> Result<ApprovalOutcome, HookError>;
}
