//! What carries out a call, and what it knows of the call.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use codemode_client::JsonText;
use parking_lot::Mutex;

use crate::pipeline::Call;
use crate::signal::Signal;
use crate::tool::{Arguments, ContextMessage, ErrorCode, ToolError};

/// Carries out the calls of one tool. Calls may overlap; see the tool's concurrency.
#[async_trait]
pub trait ToolBody: Send + Sync {
    /// Carries out one call.
    ///
    /// The future is awaited to its end also after [`CallContext::signal`] fired: ending early is the body's to do. Only after
    /// the tool's own timeout and a grace is it dropped.
    ///
    /// # Errors
    /// [`BodyError`]: the tool's failure, as a program or a model shall see it.
    async fn call(&self, arguments: Arguments, context: CallContext) -> Result<JsonText, BodyError>;
}

/// A body's failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct BodyError(pub(crate) ToolError);

impl BodyError {
    /// A failure of the tool's own.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(ToolError::plain(message))
    }

    /// Arguments that the body itself found wrong.
    #[must_use]
    pub fn invalid_args(violations: &[String]) -> Self {
        Self(ToolError::coded(
            ErrorCode::InvalidArgs,
            format!("invalid arguments: {}", violations.join("; ")),
        ))
    }
}

impl From<ToolError> for BodyError {
    fn from(error: ToolError) -> Self {
        Self(error)
    }
}

/// What a body knows of the call it serves, and what it can add to the call's result.
#[derive(Clone)]
pub struct CallContext {
    call: Arc<Call>,
    signal: Signal,
    extras: Arc<Mutex<Extras>>,
}

/// What bodies and wrappers add beside the value.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    pub(crate) contexts: Vec<ContextMessage>,
    pub(crate) concludes_turn: bool,
}

impl CallContext {
    pub(crate) fn new(call: Arc<Call>, signal: Signal) -> Self {
        Self { call, signal, extras: Arc::default() }
    }

    /// The call.
    #[must_use]
    pub const fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Fires when nobody wants the value any more: the caller's abort, a wrapper's, or the tool's timeout.
    #[must_use]
    pub const fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Adds a message that the conversation gets after all results of the step.
    pub fn defer_context(&self, message: ContextMessage) {
        self.extras.lock().contexts.push(message);
    }

    /// Ends the turn after this step, if the call succeeds.
    pub fn conclude_turn(&self) {
        self.extras.lock().concludes_turn = true;
    }

    pub(crate) fn take_extras(&self) -> Extras {
        std::mem::take(&mut *self.extras.lock())
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallContext").field("call", &self.call.call_id()).finish_non_exhaustive()
    }
}

struct FnBody<F>(F);

#[async_trait]
impl<F, R> ToolBody for FnBody<F>
where
    F: Fn(Arguments, CallContext) -> R + Send + Sync,
    R: Future<Output = Result<JsonText, BodyError>> + Send,
{
    async fn call(&self, arguments: Arguments, context: CallContext) -> Result<JsonText, BodyError> {
        (self.0)(arguments, context).await
    }
}

/// A body of an async function.
pub fn body_fn<F, R>(function: F) -> Arc<dyn ToolBody>
where
    F: Fn(Arguments, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<JsonText, BodyError>> + Send + 'static,
{
    Arc::new(FnBody(function))
}
