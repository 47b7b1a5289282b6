//! The third stage: a stack of tower layers around the body.

use std::sync::Arc;

use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::hook::{HookError, guarded_async};
use crate::pipeline::{Call, FlightState, body};
use crate::registry::Registry;
use crate::signal::Signal;
use crate::tool::{CallResult, ToolError};

/// A call as it goes down the stack.
#[derive(Clone, Debug)]
pub struct AroundRequest {
    /// The call.
    pub call: Arc<Call>,
    /// What ends the body early. A layer may put another in its place; the caller's own is heard in any case.
    pub signal: Signal,
}

/// What a layer wraps: the layers below it, and the body at the bottom.
pub type AroundService = BoxCloneSyncService<AroundRequest, CallResult, HookError>;

/// Wraps the body of calls: measures, retries, gives an answer of its own. Any tower [`Layer`] of the right shape is one.
pub trait AroundLayer: Send + Sync {
    /// Wraps.
    fn wrap(&self, inner: AroundService) -> AroundService;
}

impl<L> AroundLayer for L
where
    L: Layer<AroundService> + Send + Sync,
    L::Service:
        Service<AroundRequest, Response = CallResult, Error = HookError> + Clone + Send + Sync + 'static,
    <L::Service as Service<AroundRequest>>::Future: Send + 'static,
{
    fn wrap(&self, inner: AroundService) -> AroundService {
        BoxCloneSyncService::new(self.layer(inner))
    }
}

/// Runs the stack. The outermost layer is that of the farthest scope that was registered first.
pub(super) async fn run(registry: &Registry, call: &Arc<Call>) -> FlightState {
    let layers = registry.snapshot().hooks(call.scope(), |layer| &layer.around);
    let request = AroundRequest { call: Arc::clone(call), signal: call.signal().clone() };
    let answered = if layers.is_empty() {
        Ok(body::run(registry, request).await)
    } else {
        through(registry.clone(), layers, request).await
    };
    match answered {
        // A real failure survives an abort; a value does not.
        Ok(result) if !result.is_error() && call.signal().is_aborted() => {
            FlightState::Settled(result.into_failed(ToolError::aborted(call.body_started())))
        }
        Ok(result) => FlightState::Settled(result),
        Err(error) => FlightState::Final(CallResult::failed(error.into())),
    }
}

async fn through(
    registry: Registry,
    layers: Vec<Arc<dyn AroundLayer>>,
    request: AroundRequest,
) -> Result<CallResult, HookError> {
    let innermost = BoxCloneSyncService::new(service_fn(move |request| {
        let registry = registry.clone();
        async move { Ok(body::run(&registry, request).await) }
    }));
    guarded_async(async move {
        let stack = layers.iter().rev().fold(innermost, |inner, layer| layer.wrap(inner));
        stack.oneshot(request).await
    })
    .await
}
