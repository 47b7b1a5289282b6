//! What all extension points share: their failures, and that a panic in them is one.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// A hook's failure. What it means is said where the hook is called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

impl HookError {
    /// A failure with that message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// What stands for a panic whose payload is no text.
const UNPRINTABLE: &str = "<unprintable thrown value>";

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| UNPRINTABLE.to_owned())
}

/// Calls foreign code; its panic is a failure with the panic's message.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| Err(message_of(&*payload)))
}

/// Awaits foreign code; its panic is a failure with the panic's message.
pub(crate) async fn guarded_async<T, E: From<HookError>>(
    future: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match AssertUnwindSafe(future).catch_unwind().await {
        Ok(result) => result,
        Err(payload) => Err(HookError(message_of(&*payload)).into()),
    }
}

impl From<HookError> for crate::tool::ToolError {
    fn from(error: HookError) -> Self {
        Self::plain(error.0)
    }
}

impl From<HookError> for crate::tool::BodyError {
    fn from(error: HookError) -> Self {
        Self::new(error.0)
    }
}
