//! The questions that are open on one stream. Pure: what is asked and answered, not how it travels.

use std::collections::{HashMap, VecDeque};

use codemode_proto::registry_v1 as proto;
use proto::hook_answer;
use tokio::sync::oneshot;

/// Questions that were taken back and may still be answered; answers to older ones are refused by name.
const TAKEN_BACK_KEPT: usize = 1024;

/// What kind of answer a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) enum Expected {
    Tool,
    Decision,
    Objection,
    Verdict,
    Content,
    Approval,
}

/// An answer as it came.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::service) enum Answer {
    Tool(proto::ToolAnswer),
    Hook(hook_answer::Answer),
    Approval(proto::ApprovalOutcome),
}

impl Expected {
    fn fits(self, answer: &Answer) -> bool {
        match answer {
            Answer::Tool(_) => self == Self::Tool,
            Answer::Approval(_) => self == Self::Approval,
            Answer::Hook(hook_answer::Answer::Decision(_)) => self == Self::Decision,
            Answer::Hook(hook_answer::Answer::Objection(_)) => self == Self::Objection,
            Answer::Hook(hook_answer::Answer::Verdict(_)) => self == Self::Verdict,
            Answer::Hook(hook_answer::Answer::ContentJson(_)) => self == Self::Content,
            Answer::Hook(hook_answer::Answer::Failure(_)) => !matches!(self, Self::Tool | Self::Approval),
        }
    }

    const fn wants(self) -> &'static str {
        match self {
            Self::Tool => "a `tool_answer`",
            Self::Decision => "a `hook_answer` with a `decision`",
            Self::Objection => "a `hook_answer` with an `objection`",
            Self::Verdict => "a `hook_answer` with a `verdict`",
            Self::Content => "a `hook_answer` with `content_json`",
            Self::Approval => "an `approval_answer`",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    last: u64,
    open: HashMap<u64, (Expected, oneshot::Sender<Answer>)>,
    taken_back: VecDeque<u64>,
    is_over: bool,
}

impl Questions {
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    pub(super) fn open_one(&mut self, expected: Expected) -> (u64, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        self.last += 1;
        self.open.insert(self.last, (expected, sender));
        (self.last, receiver)
    }

    /// Takes a question back. False if it is not open any more.
    pub(super) fn take_back(&mut self, id: u64) -> bool {
        if self.open.remove(&id).is_none() {
            return false;
        }
        if self.taken_back.len() == TAKEN_BACK_KEPT {
            self.taken_back.pop_front();
        }
        self.taken_back.push_back(id);
        true
    }

    /// Hands an answer to whoever waits for it.
    ///
    /// # Errors
    /// Why it was not taken, in words.
    pub(super) fn settle(&mut self, id: u64, answer: Answer) -> Result<(), String> {
        match self.open.get(&id) {
            Some((expected, _)) if !expected.fits(&answer) => {
                Err(format!("question {id} wants {}; it is still open", expected.wants()))
            }
            Some(_) => {
                if let Some((_, waiting)) = self.open.remove(&id) {
                    // Who waited may be gone this very moment.
                    let _ = waiting.send(answer);
                }
                Ok(())
            }
            None if self.taken_back.contains(&id) => {
                self.taken_back.retain(|taken_back| *taken_back != id);
                Ok(())
            }
            None if id == 0 || id > self.last => Err(format!("there was no question {id}")),
            None => Err(format!("question {id} has been answered already, or was cancelled long ago")),
        }
    }

    /// Fails every open question and all that would come.
    pub(super) fn end(&mut self) {
        self.is_over = true;
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Answer {
        Answer::Approval(proto::ApprovalOutcome::AllowedOnce)
    }

    #[test]
    fn each_answer_has_a_named_handling() {
        let mut questions = Questions::default();
        let (tool, _tool) = questions.open_one(Expected::Tool);
        let (approval, mut answer) = questions.open_one(Expected::Approval);
        assert_eq!(questions.settle(9, allowed()), Err("there was no question 9".to_owned()));
        assert_eq!(
            questions.settle(tool, allowed()),
            Err("question 1 wants a `tool_answer`; it is still open".to_owned())
        );
        assert_eq!(questions.settle(approval, allowed()), Ok(()));
        assert_eq!(answer.try_recv(), Ok(allowed()));
        let again = questions.settle(approval, allowed()).expect_err("it was answered");
        assert!(again.starts_with("question 2 has been answered already"), "{again}");
        assert!(questions.take_back(tool) && !questions.take_back(tool));
        assert_eq!(questions.settle(tool, allowed()), Ok(()), "it crossed the cancellation");
        assert!(questions.settle(tool, allowed()).is_err(), "once");
    }

    #[test]
    fn the_end_fails_what_is_open() {
        let mut questions = Questions::default();
        let (_, mut answer) = questions.open_one(Expected::Tool);
        questions.end();
        assert!(answer.try_recv().is_err() && questions.is_over() && questions.open() == 0);
    }
}
