//! One stream of `Run`: its first message, its task, its responses.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Cx, Poll};
use std::time::Duration;

use codemode_proto::executor_v1::run_request::Message;
use codemode_proto::executor_v1::{RunRequest, RunResponse, StartRun};
use futures::{FutureExt as _, Stream, StreamExt as _};
use tokio::sync::mpsc;
use tonic::metadata::MetadataMap;
use tonic::{Status, Streaming};

use super::{convert, status};
use crate::context::Context;
use crate::run::{self, Event};

/// Events that wait in a run's channel until gRPC takes them.
const EVENTS_MAX: usize = 16;
/// How long a stream may be open before it says what it wants.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// The responses of one run. Dropped early (the caller cancelled, or is gone) they abort it.
#[derive(Debug)]
pub struct Responses {
    events: mpsc::Receiver<Event>,
    /// The last event was seen.
    done: bool,
    /// The caller's own deadline for the call. What is left of the run when it passes is aborted.
    deadline: Option<Pin<Box<tokio::time::Sleep>>>,
}

/// The deadline that the caller gave the call (`grpc-timeout`: up to eight digits and a unit), if it gave one that
/// can be read. tonic itself holds only the wait for the first response to it.
pub(super) fn deadline(metadata: &MetadataMap) -> Option<tokio::time::Instant> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    let timeout = match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    };
    tokio::time::Instant::now().checked_add(timeout)
}

impl Stream for Responses {
    type Item = Result<RunResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Cx<'_>) -> Poll<Option<Self::Item>> {
        if self.done {
            return Poll::Ready(None);
        }
        match self.events.poll_recv(cx) {
            Poll::Pending => {
                let passed =
                    self.deadline.as_mut().is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready());
                if !passed {
                    return Poll::Pending;
                }
                self.done = true;
                // The stream ends with this; dropped then, it aborts the run.
                Poll::Ready(Some(Err(Status::deadline_exceeded("the call's deadline has passed"))))
            }
            Poll::Ready(Some(event)) => {
                self.done = matches!(event, Event::Outcome(_) | Event::Refused(_));
                Poll::Ready(Some(convert::response(event)))
            }
            // The task ended without a last word: it panicked, or gave up on a caller that took nothing.
            Poll::Ready(None) => {
                self.done = true;
                Poll::Ready(Some(Err(Status::internal("the run's outcome was lost"))))
            }
        }
    }
}

/// Reads the first message, checks it, and starts the run's task.
pub(super) async fn begin(
    context: &Arc<Context>,
    mut requests: Streaming<RunRequest>,
    deadline: Option<tokio::time::Instant>,
) -> Result<Responses, Status> {
    if context.draining.is_cancelled() {
        return Err(status::draining());
    }
    let start = tokio::select! {
        start = first(&mut requests) => start?,
        () = context.draining.cancelled() => return Err(status::draining()),
    };
    let spec = convert::spec(context, start)?;
    let Some(reserved) = context.reserve(spec.id) else {
        return Err(Status::invalid_argument(format!("run id `{}` is in use by a live run", spec.id)));
    };
    let inbound = requests.map(|request| request.map(convert::host_message));
    let (sender, events) = mpsc::channel(EVENTS_MAX);
    let context = Arc::clone(context);
    let tracker = context.runs.clone();
    tracker.spawn(async move {
        let run = AssertUnwindSafe(run::run(context, spec, reserved, inbound, sender));
        if run.catch_unwind().await.is_err() {
            tracing::error!("a run panicked; its process is killed");
        }
    });
    let deadline = deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline)));
    Ok(Responses { events, done: false, deadline })
}

async fn first(requests: &mut Streaming<RunRequest>) -> Result<StartRun, Status> {
    let first = tokio::time::timeout(START_PATIENCE, requests.message()).await;
    let first =
        first.map_err(|_| Status::invalid_argument(format!("no `start` within {START_PATIENCE:?}")))?;
    match first.map_err(|status| status::of_stream(&status))?.and_then(|request| request.message) {
        Some(Message::Start(start)) => Ok(start),
        Some(Message::Reply(_)) => Err(Status::invalid_argument("the first message is `reply`, not `start`")),
        Some(Message::Abort(_)) => Err(Status::invalid_argument("the first message is `abort`, not `start`")),
        None => Err(Status::invalid_argument("the stream has no `start`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_deadlines_as_grpc_writes_them() {
        let left = |text: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().expect("a header"));
            let now = tokio::time::Instant::now();
            deadline(&metadata).map(|deadline| deadline.duration_since(now).as_secs())
        };
        assert_eq!(
            (left("2S"), left("3M"), left("1H"), left("5000m")),
            (Some(2), Some(180), Some(3600), Some(5))
        );
        assert_eq!((left("99999999H").is_some(), left("7u")), (true, Some(0)));
        for wrong in ["", "S", "2", "2s", "-2S", "123456789S", "1.5S"] {
            assert_eq!(left(wrong), None, "{wrong}");
        }
    }
}
