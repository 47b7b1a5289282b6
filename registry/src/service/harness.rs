//! One harness: a stream of `Serve`, the questions that are open on it, and what is registered over it.
//!
//! `stream` reads the harness's messages, `outgoing` bounds those that wait for it, `questions` pairs questions with
//! answers, `registering` turns registrations into ours, `remote` is a tool's body and a hook as the registry sees them.
//! Nobody but the harness's own callers ever waits for it.

mod outgoing;
mod questions;
mod registering;
mod remote;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use codemode_proto::registry_v1 as proto;
use parking_lot::Mutex;
use prost::Message as _;
use proto::registry_message::Message;
use tokio::sync::oneshot;

use crate::config::Limits;
use outgoing::{Outgoing, Responses};
use questions::Questions;

pub(super) use questions::{Answer, Expected};
pub(super) use stream::serve;

/// The harness's name where it has none.
const NAMELESS: &str = "harness";

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unanswered {
    #[error("harness \"{0}\" has disconnected")]
    Disconnected(String),
    #[error("harness \"{name}\" has {open} open questions, which is all there may be")]
    TooMany { name: String, open: usize },
    #[error("harness \"{0}\" does not read its messages")]
    Unread(String),
    #[error("a message of {bytes} bytes is too long for harness \"{name}\"; {limit} are allowed")]
    TooLong { name: String, bytes: usize, limit: usize },
    #[error("harness \"{name}\" did not answer within {}ms", within.as_millis())]
    Late { name: String, within: Duration },
}

/// One connected harness.
#[derive(Debug)]
pub(super) struct Harness {
    name: String,
    limits: Limits,
    outgoing: Outgoing,
    questions: Mutex<Questions>,
}

impl Harness {
    fn new(name: String, limits: Limits) -> (Arc<Self>, Responses) {
        let name = if name.is_empty() { NAMELESS.to_owned() } else { name };
        let (outgoing, responses) = Outgoing::new(limits.unread_bytes_max);
        (Arc::new(Self { name, limits, outgoing, questions: Mutex::default() }), responses)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn cancel_grace(&self) -> Duration {
        self.limits.cancel_grace
    }

    /// Puts a question. Never waits.
    pub(super) fn pose(
        self: &Arc<Self>,
        expected: Expected,
        message: impl FnOnce(u64) -> Message,
    ) -> Result<Question, Unanswered> {
        let name = || self.name.clone();
        let (id, answer) = {
            let mut questions = self.questions.lock();
            if questions.is_over() {
                return Err(Unanswered::Disconnected(name()));
            }
            if questions.open() >= self.limits.questions_max {
                return Err(Unanswered::TooMany { name: name(), open: questions.open() });
            }
            questions.open_one(expected)
        };
        let mut question = Question { harness: Arc::clone(self), id, answer, is_told: true };
        let message = message_of(message(id));
        let (bytes, limit) = (message.encoded_len(), self.limits.message_bytes_max);
        if bytes > limit {
            return Err(Unanswered::TooLong { name: name(), bytes, limit });
        }
        if !self.outgoing.offer(message) {
            return Err(Unanswered::Unread(name()));
        }
        question.is_told = false;
        Ok(question)
    }

    /// Ends it: open questions fail, and no further one can be put.
    fn leave(&self) {
        self.questions.lock().end();
    }

    /// Says that an answer was not taken.
    pub(super) fn refuse_answer(&self, id: u64, reason: impl Into<String>) {
        let refused = proto::AnswerRefused { id, reason: reason.into() };
        // One that does not read its messages has lost this one too.
        let _ = self.outgoing.offer(message_of(Message::AnswerRefused(refused)));
    }
}

fn message_of(message: Message) -> proto::RegistryMessage {
    proto::RegistryMessage { message: Some(message) }
}

/// A question that was put. Dropping it takes it back.
#[derive(Debug)]
pub(super) struct Question {
    harness: Arc<Harness>,
    id: u64,
    answer: oneshot::Receiver<Answer>,
    /// Whether the harness knows that nobody waits any more, or never knew of the question.
    is_told: bool,
}

impl Question {
    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the answer. Safe to cancel.
    pub(super) async fn answer(&mut self) -> Result<Answer, Unanswered> {
        let gone = || Unanswered::Disconnected(self.harness.name.clone());
        let answer = (&mut self.answer).await.map_err(|_| gone())?;
        self.is_told = true;
        Ok(answer)
    }

    /// The same, for so long.
    pub(super) async fn answer_within(&mut self, within: Duration) -> Result<Answer, Unanswered> {
        match tokio::time::timeout(within, self.answer()).await {
            Ok(answer) => answer,
            Err(_) => {
                let late = Unanswered::Late { name: self.harness.name.clone(), within };
                self.cancel(&format!("no answer within {}ms", within.as_millis()));
                Err(late)
            }
        }
    }

    /// Tells the harness to end its work; the answer can still be waited for.
    pub(super) fn cancel(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.is_told, true) {
            let cancel = proto::Cancel { id: self.id, reason: reason.to_owned() };
            self.harness.outgoing.push(message_of(Message::Cancel(cancel)));
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if self.harness.questions.lock().take_back(self.id) {
            self.cancel("nobody waits for it any more");
        }
    }
}
