//! Writes the events of a program's calls. The program waits for none of them to be durable.

use std::sync::Arc;

use codemode_events::{CodeDispatch, CodeDispatchStart, SessionLog};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::agent::record;
use crate::hook::guarded_async;
use crate::pipeline::{Call, CallRequest};
use crate::registry::Registry;
use crate::tool::{CallResult, Content};

/// A call that settled.
struct Settled {
    start: CodeDispatchStart,
    call: Arc<Call>,
    result: CallResult,
}

/// Writes to one session's log. Ends of calls are written by a task of its own, in the order of their commits.
pub(super) struct LogWriter {
    log: SessionLog,
    ends: mpsc::Sender<Settled>,
    task: JoinHandle<()>,
}

impl LogWriter {
    /// A writer that lets at most `pending_max` ends wait to be written; then the lane waits.
    pub(super) fn new(registry: Registry, log: SessionLog, pending_max: usize) -> Self {
        let (ends, received) = mpsc::channel(pending_max);
        let task = tokio::spawn(write_ends(registry, log.clone(), received));
        Self { log, ends, task }
    }

    /// Writes that a call starts. Once this returns, the event has its place; it need not be durable yet.
    pub(super) async fn start(
        &self,
        request: &CallRequest,
        parent: &str,
    ) -> Result<CodeDispatchStart, String> {
        let start = CodeDispatchStart {
            root_call_id: request.root_call_id.clone().unwrap_or_default(),
            parent_call_id: parent.to_owned(),
            sub_call_id: request.call_id.clone(),
            name: request.name.clone(),
            arguments: record::json(&request.arguments),
        };
        match self.log.append(start.clone()).await {
            Ok(_) => Ok(start),
            Err(error) => Err(format!("the session log did not take the call: {error}")),
        }
    }

    /// Has the end of a call written. Waits only while too many wait.
    pub(super) async fn settle(&self, start: CodeDispatchStart, call: Arc<Call>, result: CallResult) {
        if self.ends.send(Settled { start, call, result }).await.is_err() {
            tracing::error!("the end of a sub-call was not logged: its writer is gone");
        }
    }

    /// Waits until every end has its place in the log.
    pub(super) async fn finish(self) {
        drop(self.ends);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the writer of sub-calls' ends broke off");
        }
    }
}

async fn write_ends(registry: Registry, log: SessionLog, mut ends: mpsc::Receiver<Settled>) {
    while let Some(Settled { start, call, result }) = ends.recv().await {
        let content = stored_content(&registry, &call, &result).await;
        let event = CodeDispatch {
            root_call_id: start.root_call_id,
            parent_call_id: start.parent_call_id,
            sub_call_id: start.sub_call_id,
            name: start.name,
            arguments: start.arguments,
            is_error: result.is_error(),
            content: record::blocks(&content),
            error: record::error(&result),
        };
        if let Err(error) = log.append(event).await {
            tracing::error!(call = call.call_id(), %error, "the end of a sub-call was not logged");
        }
    }
}

/// The content as the hooks want it stored; as it is, if they fail.
async fn stored_content(registry: &Registry, call: &Arc<Call>, result: &CallResult) -> Vec<Content> {
    let mut content = result.content.clone();
    for hook in registry.snapshot().hooks(call.scope(), |layer| &layer.dispatch_log) {
        match guarded_async(hook.content(call, &content)).await {
            Ok(None) => {}
            Ok(Some(replaced)) => content = replaced,
            Err(error) => {
                tracing::warn!(call = call.call_id(), %error, "a dispatch log hook failed; the content is stored whole");
                return result.content.clone();
            }
        }
    }
    content
}
