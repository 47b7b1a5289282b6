//! Where in a value something is.

use crate::json::push_member;

/// A path that grows and shrinks as a tree is walked.
#[derive(Clone, Debug)]
pub(super) struct Path {
    text: String,
    root_name: &'static str,
}

impl Path {
    /// The root. An empty name is that of arguments, whose members need no prefix.
    pub(super) fn root(name: &'static str) -> Self {
        Self { text: name.to_owned(), root_name: if name.is_empty() { "arguments" } else { name } }
    }

    /// Goes to the member `name`; gives what [`leave`](Self::leave) needs to come back.
    pub(super) fn enter(&mut self, name: &str) -> usize {
        let length = self.text.len();
        push_member(&mut self.text, name);
        // A path that begins with a member needs no dot before it.
        if length == 0 && self.text.starts_with('.') {
            self.text.remove(0);
        }
        length
    }

    /// Goes to the item at `position`.
    pub(super) fn enter_item(&mut self, position: usize) -> usize {
        let length = self.text.len();
        self.text.push_str(&format!("[{position}]"));
        length
    }

    /// Goes back.
    pub(super) fn leave(&mut self, length: usize) {
        self.text.truncate(length);
    }

    /// The path in quotes, as messages have it.
    pub(super) fn quoted(&self) -> String {
        format!("\"{}\"", if self.text.is_empty() { self.root_name } else { &self.text })
    }

    /// The path of the member `name`, in quotes.
    pub(super) fn quoted_member(&mut self, name: &str) -> String {
        let length = self.enter(name);
        let quoted = self.quoted();
        self.leave(length);
        quoted
    }
}
