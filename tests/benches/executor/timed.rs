//! One run as its caller times it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use codemode_proto::executor_v1 as v1;
use codemode_proto::executor_v1::run_request::Message as ToExecutor;
use codemode_proto::executor_v1::run_response::Message as FromExecutor;
use codemode_tests::executor::{Client, Executor};
use codemode_tests::process::{self, Process};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Timed {
    /// From before the call until the outcome is there.
    pub(crate) wall: Duration,
    /// From `started` until the outcome is there.
    pub(crate) since_started: Duration,
    /// Its outcome.
    pub(crate) outcome: v1::Outcome,
}

impl Timed {
    /// What it used.
    pub(crate) fn usage(&self) -> v1::Usage {
        self.outcome.usage.clone().unwrap_or_default()
    }

    /// Where the time went.
    pub(crate) fn phases(&self) -> v1::Phases {
        self.usage().phases.unwrap_or_default()
    }

    /// Itself, unless it failed.
    pub(crate) fn completed(self) -> anyhow::Result<Self> {
        match &self.outcome.failure {
            None => Ok(self),
            Some(failure) => bail!("a run failed: {failure:?}"),
        }
    }

    /// Itself, if it failed with this word.
    pub(crate) fn failed_with(self, detail: &str) -> anyhow::Result<Self> {
        match &self.outcome.failure {
            Some(failure) if failure.detail == detail => Ok(self),
            other => bail!("a run should have failed with `{detail}`: {other:?}"),
        }
    }
}

/// A start message.
pub(crate) fn start(engine: &str, program: &str, functions: &[&str]) -> v1::StartRun {
    v1::StartRun { engine: engine.to_owned(), ..codemode_tests::live::start(program, functions) }
}

/// Runs it to its outcome; `answer` makes the value of each call's reply.
pub(crate) async fn run(
    client: &mut Client,
    start: v1::StartRun,
    mut answer: impl FnMut(&v1::BindingCall) -> Bytes,
) -> anyhow::Result<Timed> {
    let (outgoing, receiver) = mpsc::unbounded_channel();
    let message = |message| v1::RunRequest { message: Some(message) };
    let began = Instant::now();
    outgoing.send(message(ToExecutor::Start(start))).context("the receiver is here")?;
    let mut incoming = client.run(UnboundedReceiverStream::new(receiver)).await?.into_inner();
    let mut started = began;
    loop {
        let response = incoming.message().await?.context("the stream ended without an outcome")?;
        match response.message {
            Some(FromExecutor::Started(_)) => started = Instant::now(),
            Some(FromExecutor::Call(call)) => {
                let result = Some(v1::binding_reply::Result::ValueJson(answer(&call)));
                let reply = v1::BindingReply { id: call.id, result };
                // A run that has ended meanwhile takes no reply; its outcome is on its way.
                let _ = outgoing.send(message(ToExecutor::Reply(reply)));
            }
            Some(FromExecutor::Log(_)) => {}
            Some(FromExecutor::Outcome(outcome)) => {
                let timed = Timed { wall: began.elapsed(), since_started: started.elapsed(), outcome };
                // The stream ends well after it.
                if incoming.message().await?.is_some() {
                    bail!("a message after the outcome");
                }
                return Ok(timed);
            }
            None => bail!("an empty message"),
        }
    }
}

/// Runs a program without tools, which must complete.
pub(crate) async fn plain(client: &mut Client, engine: &str, program: &str) -> anyhow::Result<Timed> {
    run(client, start(engine, program, &[]), |_| Bytes::from_static(b"null")).await?.completed()
}

/// Children of the executor that were not there before.
pub(crate) fn fresh_children(executor: &Executor, before: &[Process]) -> Vec<Process> {
    let known =
        |child: &Process| before.iter().any(|old| (old.pid, old.started) == (child.pid, child.started));
    process::descendants(executor.pid()).into_iter().filter(|child| !known(child)).collect()
}
