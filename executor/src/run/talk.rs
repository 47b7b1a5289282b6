//! The caller's side of a run: what it says, and that it goes away. Owns the inbound stream.

use std::future::Future;

use codemode_proto::detail::Detail;
use futures::{Stream, StreamExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::settle::Terminal;
use super::{End, Event, HostMessage, Refusal};
use crate::outcome::Failure;

/// Something from outside the run's process.
#[derive(Debug)]
pub(crate) enum Word {
    /// The caller sent it.
    Message(HostMessage),
    /// The caller cancelled the call, or the connection is gone.
    Gone,
    /// The caller's stream is no stream of messages any more.
    Broken(Box<tonic::Status>),
    /// The executor ends every run.
    Drain,
}

impl Word {
    /// How it ends the run; `Err` for the one word that does not.
    pub(crate) fn into_end(self) -> Result<End, HostMessage> {
        let failed = |detail, message: &str| Terminal::failed(Failure::new(detail, message));
        Ok(match self {
            Self::Message(HostMessage::Abort(reason)) => failed(Detail::Caller, &reason).into(),
            Self::Message(HostMessage::Misuse(what)) => misuse(what.to_owned()),
            Self::Message(reply @ HostMessage::Reply { .. }) => return Err(reply),
            Self::Gone => failed(Detail::Cancelled, "the caller went away").into(),
            Self::Broken(status) => {
                let terminal = failed(Detail::Cancelled, "the request stream broke");
                End { terminal, refusal: Some(Refusal::Stream(status)) }
            }
            Self::Drain => failed(Detail::Drain, "runtime disposed").into(),
        })
    }
}

/// The caller broke the contract: the run is settled as `abort`, and the caller is told so by a status.
pub(crate) fn misuse(what: String) -> End {
    let terminal = Terminal::failed(Failure::new(Detail::Caller, what.as_str()));
    End { terminal, refusal: Some(Refusal::Misuse(what)) }
}

/// What the caller says.
#[derive(Debug)]
pub(crate) struct Talk<S> {
    inbound: S,
    /// The caller has not closed its side.
    open: bool,
    events: mpsc::Sender<Event>,
    settle_now: CancellationToken,
}

impl<S> Talk<S>
where
    S: Stream<Item = Result<HostMessage, tonic::Status>> + Send + Unpin,
{
    pub(crate) const fn new(inbound: S, events: mpsc::Sender<Event>, settle_now: CancellationToken) -> Self {
        Self { inbound, open: true, events, settle_now }
    }

    /// The next word. Cancel-safe. Without `listen` messages stay in the stream, and only the end is noticed.
    pub(crate) async fn word(&mut self, listen: bool) -> Word {
        loop {
            let Self { inbound, open, events, settle_now } = self;
            tokio::select! {
                biased;
                () = settle_now.cancelled() => return Word::Drain,
                () = events.closed() => return Word::Gone,
                message = inbound.next(), if *open && listen => match message {
                    Some(Ok(message)) => return Word::Message(message),
                    Some(Err(status)) => {
                        *open = false;
                        return Word::Broken(Box::new(status));
                    }
                    // Half-closed: no reply will come, and the run goes on.
                    None => *open = false,
                },
            }
        }
    }

    /// Awaits `work`, unless the run is ended first; then `work` is dropped.
    pub(crate) async fn unless_ended<T>(&mut self, work: impl Future<Output = T>) -> Result<T, End> {
        tokio::select! {
            biased;
            word = self.word(true) => Err(word
                .into_end()
                .unwrap_or_else(|_| misuse("`reply` before any `call`".to_owned()))),
            done = work => Ok(done),
        }
    }
}
