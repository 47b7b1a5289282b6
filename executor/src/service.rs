//! The gRPC face: prost types come in and go out here and nowhere deeper.

pub mod auth;
mod convert;
mod run_stream;
pub mod status;

use std::sync::Arc;

use codemode_proto::executor_v1::executor_server::{Executor, ExecutorServer};
use codemode_proto::executor_v1::{DescribeRequest, DescribeResponse, RunRequest};
use tonic::{Request, Response, Status, Streaming};

use crate::context::Context;

/// What a message may be longer than the largest value in it, bytes: names, ids, logs of an outcome are bounded by the
/// output budget, which is added to it.
const MESSAGE_OVERHEAD_BYTES: usize = 1 << 20;

/// The executor's service.
#[derive(Clone, Debug)]
pub struct Service {
    context: Arc<Context>,
}

impl Service {
    /// The service as a tonic server, with message limits that fit the configuration's frames.
    #[must_use]
    pub fn server(context: Arc<Context>) -> ExecutorServer<Self> {
        let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let config = &context.config;
        // An outcome holds logs and value; logs as UTF-8 are no longer than on the ledger but have a few bytes of
        // framing each, an empty one at most as many again as it costs there.
        let outcome = bytes(config.budgets.output_bytes).saturating_mul(2);
        let frame = bytes(u64::from(config.frame_bytes_max));
        // A `start` holds the program and up to 64 MiB of names.
        let names = namespace_bytes_max(&context);
        let start = names.saturating_mul(2) + bytes(u64::from(config.program_bytes_max));
        ExecutorServer::new(Self { context })
            .max_decoding_message_size(frame.max(start).saturating_add(MESSAGE_OVERHEAD_BYTES))
            .max_encoding_message_size(frame.max(outcome).saturating_add(MESSAGE_OVERHEAD_BYTES))
    }
}

/// Bytes of function names that one run may have: they travel in one frame with the program.
pub(crate) fn namespace_bytes_max(context: &Context) -> usize {
    let frame = usize::try_from(context.config.frame_bytes_max).unwrap_or(usize::MAX);
    frame
        .saturating_sub(usize::try_from(context.config.program_bytes_max).unwrap_or(usize::MAX))
        .max(64 * 1024)
}

#[tonic::async_trait]
impl Executor for Service {
    type RunStream = run_stream::Responses;

    async fn run(
        &self,
        request: Request<Streaming<RunRequest>>,
    ) -> Result<Response<Self::RunStream>, Status> {
        let deadline = run_stream::deadline(request.metadata());
        let responses = run_stream::begin(&self.context, request.into_inner(), deadline).await;
        responses.inspect_err(|status| self.context.metrics.run_refused(status)).map(Response::new)
    }

    async fn describe(&self, _: Request<DescribeRequest>) -> Result<Response<DescribeResponse>, Status> {
        if self.context.draining.is_cancelled() {
            return Err(status::draining());
        }
        Ok(Response::new(convert::description(&self.context)))
    }
}
