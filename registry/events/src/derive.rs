//! From entries to the messages a model is sent. Pure.
//!
//! Messages come from `user/message`, `assistant/message` and `tool/result` alone: a program's calls never become
//! messages. A model's calls and their results stand together, so whatever was said to the model between them comes
//! after the last result of the step.

use std::collections::HashMap;

use crate::content::{AssistantMessage, ContentBlock, Source, ToolMessage};
use crate::entry::Entry;
use crate::event::Event;

/// A message of the conversation with the model.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// To the model: from a person, or a context that some part of the harness added.
    User {
        /// What it says.
        content: Vec<ContentBlock>,
        /// Who says it.
        source: Source,
    },
    /// From the model.
    Assistant(AssistantMessage),
    /// The answer to one of the model's calls.
    Tool(ToolMessage),
}

/// Derives the messages of a session, or of a part of it that begins where no call is open.
///
/// Results keep the order of the log, which is the order of the calls. A user message waits for the results of the
/// model's last message; those that never came are not waited for beyond its next message.
#[must_use]
pub fn messages<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<Message> {
    let mut derivation = Derivation::default();
    for entry in entries {
        derivation.take(&entry.event);
    }
    derivation.release();
    derivation.messages
}

#[derive(Default)]
struct Derivation {
    messages: Vec<Message>,
    /// How many calls of the model's last message have no result yet, by their ids: models may repeat one.
    unanswered: HashMap<String, usize>,
    /// What waits until they have.
    waiting: Vec<Message>,
}

impl Derivation {
    fn take(&mut self, event: &Event) {
        match event {
            Event::UserMessage(said) => {
                let message = Message::User { content: said.content.clone(), source: said.source.clone() };
                self.waiting.push(message);
            }
            Event::AssistantMessage(said) => {
                self.release();
                self.unanswered.clear();
                for call in &said.message.tool_calls {
                    *self.unanswered.entry(call.call_id.clone()).or_default() += 1;
                }
                self.messages.push(Message::Assistant(said.message.clone()));
            }
            Event::ToolResult(result) => {
                self.messages.push(Message::Tool(result.message.clone()));
                self.answered(&result.message.call_id);
            }
            _ => return,
        }
        if self.unanswered.is_empty() {
            self.release();
        }
    }

    fn answered(&mut self, call_id: &str) {
        if let Some(calls) = self.unanswered.get_mut(call_id) {
            *calls -= 1;
            if *calls == 0 {
                self.unanswered.remove(call_id);
            }
        }
    }

    fn release(&mut self) {
        self.messages.append(&mut self.waiting);
    }
}
