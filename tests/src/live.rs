//! A run held by hand: a test sends and receives message by message. For what no script of a case can say.

use std::time::Duration;

use anyhow::{Context as _, bail};
use codemode_proto::executor_v1 as v1;
use codemode_proto::executor_v1::run_request::Message as ToExecutor;
use codemode_proto::executor_v1::run_response::Message as FromExecutor;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use crate::executor::Client;

/// How long a message may take that must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// One open run. Dropping it closes the stream, which aborts the run.
#[derive(Debug)]
pub struct LiveRun {
    outgoing: Option<mpsc::UnboundedSender<v1::RunRequest>>,
    incoming: Streaming<v1::RunResponse>,
}

/// A start message with a program and the standard namespace `tools` of the given functions.
#[must_use]
pub fn start(program: &str, functions: &[&str]) -> v1::StartRun {
    let namespace = v1::Namespace {
        global: "tools".to_owned(),
        functions: functions.iter().map(|&name| name.to_owned()).collect(),
        error_class: None,
    };
    v1::StartRun { program: program.to_owned(), namespaces: vec![namespace], ..v1::StartRun::default() }
}

impl LiveRun {
    /// Opens a stream and sends these messages.
    ///
    /// # Errors
    /// The status, if the stream is refused before it opens.
    pub async fn open(
        client: &mut Client,
        messages: impl IntoIterator<Item = ToExecutor>,
    ) -> Result<Self, Status> {
        let (outgoing, receiver) = mpsc::unbounded_channel();
        for message in messages {
            // The receiver is alive.
            let _ = outgoing.send(v1::RunRequest { message: Some(message) });
        }
        let incoming = client.run(UnboundedReceiverStream::new(receiver)).await?.into_inner();
        Ok(Self { outgoing: Some(outgoing), incoming })
    }

    /// Starts a program and waits for `started`.
    ///
    /// # Errors
    /// If something else comes.
    pub async fn start(client: &mut Client, start: v1::StartRun) -> anyhow::Result<Self> {
        let mut run = Self::open(client, [ToExecutor::Start(start)]).await?;
        match run.next().await? {
            Some(FromExecutor::Started(_)) => Ok(run),
            other => bail!("expected `started`, got {other:?}"),
        }
    }

    /// Sends a message; whether the stream was open.
    pub fn send(&self, message: ToExecutor) -> bool {
        let request = v1::RunRequest { message: Some(message) };
        self.outgoing.as_ref().is_some_and(|outgoing| outgoing.send(request).is_ok())
    }

    /// Answers a call with JSON text.
    pub fn reply(&self, id: u64, value: &str) -> bool {
        let result = v1::binding_reply::Result::ValueJson(value.to_owned().into());
        self.send(ToExecutor::Reply(v1::BindingReply { id, result: Some(result) }))
    }

    /// Aborts the run.
    pub fn abort(&self, reason: &str) -> bool {
        self.send(ToExecutor::Abort(v1::Abort { reason: reason.to_owned() }))
    }

    /// Closes the caller's side; what the executor sends is still received.
    pub fn close(&mut self) {
        self.outgoing = None;
    }

    /// The next message; `None` at the stream's good end.
    ///
    /// # Errors
    /// A status, an empty message, or nothing in time.
    pub async fn next(&mut self) -> anyhow::Result<Option<FromExecutor>> {
        let next =
            tokio::time::timeout(PATIENCE, self.incoming.message()).await.context("no message in time")?;
        match next? {
            Some(v1::RunResponse { message: Some(message) }) => Ok(Some(message)),
            Some(_) => bail!("an empty message"),
            None => Ok(None),
        }
    }

    /// Passes over messages until this log entry comes.
    ///
    /// # Errors
    /// If the run ends before.
    pub async fn wait_for_log(&mut self, text: &str) -> anyhow::Result<()> {
        loop {
            match self.next().await? {
                Some(FromExecutor::Log(entry)) if entry.text == text => return Ok(()),
                Some(FromExecutor::Outcome(outcome)) => bail!("the run ended: {outcome:?}"),
                Some(_) => {}
                None => bail!("the stream ended"),
            }
        }
    }

    /// Passes over messages until the program calls a binding; the call's id.
    ///
    /// # Errors
    /// If the run ends before.
    pub async fn wait_for_call(&mut self) -> anyhow::Result<u64> {
        loop {
            match self.next().await? {
                Some(FromExecutor::Call(call)) => return Ok(call.id),
                Some(FromExecutor::Outcome(outcome)) => bail!("the run ended: {outcome:?}"),
                Some(_) => {}
                None => bail!("the stream ended"),
            }
        }
    }

    /// Passes over messages until the outcome, and sees the stream end well after it.
    ///
    /// # Errors
    /// A status instead, or anything after the outcome.
    pub async fn outcome(&mut self) -> anyhow::Result<v1::Outcome> {
        loop {
            match self.next().await? {
                Some(FromExecutor::Outcome(outcome)) => {
                    if let Some(more) = self.next().await? {
                        bail!("after the outcome: {more:?}");
                    }
                    return Ok(outcome);
                }
                Some(_) => {}
                None => bail!("the stream ended without an outcome"),
            }
        }
    }

    /// Passes over messages until the stream ends in a status.
    ///
    /// # Errors
    /// If it ends otherwise.
    pub async fn status(&mut self) -> anyhow::Result<Status> {
        loop {
            match tokio::time::timeout(PATIENCE, self.incoming.message())
                .await
                .context("no status in time")?
            {
                Err(status) => return Ok(status),
                Ok(Some(v1::RunResponse { message: Some(FromExecutor::Outcome(outcome)) })) => {
                    bail!("an outcome: {outcome:?}")
                }
                Ok(Some(_)) => {}
                Ok(None) => bail!("the stream ended well"),
            }
        }
    }
}
