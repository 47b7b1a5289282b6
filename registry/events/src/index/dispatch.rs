//! A program's calls: each ends once, and every call keeps one root whatever part it plays.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::non_empty;
use crate::event::{CodeDispatch, CodeDispatchStart};
use crate::refusal::Refusal;

const START: &str = "tool/code-dispatch-start";
const END: &str = "tool/code-dispatch";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dispatches {
    /// The root of every call that was seen as a sub-call, as a parent or as a root.
    roots: HashMap<Arc<str>, Arc<str>>,
    /// Started and not ended: the sub-call, and the number of its start.
    numbers: HashMap<String, u64>,
    /// The same by that number.
    open: BTreeMap<u64, CodeDispatchStart>,
}

impl Dispatches {
    pub(super) fn check_start(&self, event: &CodeDispatchStart) -> Result<(), Refusal> {
        non_empty(START, "rootCallId", &event.root_call_id)?;
        non_empty(START, "parentCallId", &event.parent_call_id)?;
        non_empty(START, "subCallId", &event.sub_call_id)?;
        non_empty(START, "name", &event.name)?;
        let sub_call = &event.sub_call_id;
        if *sub_call == event.parent_call_id || *sub_call == event.root_call_id {
            return Err(Refusal::OwnParent { sub_call: sub_call.clone() });
        }
        for call in [sub_call, &event.parent_call_id, &event.root_call_id] {
            self.check_root(call, &event.root_call_id)?;
        }
        if self.numbers.contains_key(sub_call) {
            return Err(Refusal::AlreadyStarted { sub_call: sub_call.clone() });
        }
        Ok(())
    }

    pub(super) fn check_end(&self, event: &CodeDispatch) -> Result<(), Refusal> {
        non_empty(END, "rootCallId", &event.root_call_id)?;
        non_empty(END, "parentCallId", &event.parent_call_id)?;
        non_empty(END, "subCallId", &event.sub_call_id)?;
        let sub_call = &event.sub_call_id;
        self.check_root(sub_call, &event.root_call_id)?;
        let Some(start) = self.numbers.get(sub_call).and_then(|number| self.open.get(number)) else {
            return Err(Refusal::NotStarted { sub_call: sub_call.clone() });
        };
        let field = if start.parent_call_id != event.parent_call_id {
            "parentCallId"
        } else if start.name != event.name {
            "name"
        } else if start.arguments != event.arguments {
            "arguments"
        } else {
            return Ok(());
        };
        Err(Refusal::StartDiffers { sub_call: sub_call.clone(), field })
    }

    pub(super) fn start(&mut self, seq: u64, event: &CodeDispatchStart) {
        let root: Arc<str> = event.root_call_id.as_str().into();
        for call in [&event.sub_call_id, &event.parent_call_id, &event.root_call_id] {
            if !self.roots.contains_key(call.as_str()) {
                self.roots.insert(call.as_str().into(), Arc::clone(&root));
            }
        }
        self.numbers.insert(event.sub_call_id.clone(), seq);
        self.open.insert(seq, event.clone());
    }

    pub(super) fn end(&mut self, event: &CodeDispatch) {
        if let Some(number) = self.numbers.remove(&event.sub_call_id) {
            self.open.remove(&number);
        }
    }

    pub(super) fn first_open(&self) -> Option<&str> {
        self.open.values().next().map(|start| start.sub_call_id.as_str())
    }

    pub(super) fn open(&self) -> Vec<CodeDispatchStart> {
        self.open.values().cloned().collect()
    }

    fn check_root(&self, call: &str, given: &str) -> Result<(), Refusal> {
        match self.roots.get(call) {
            Some(root) if **root != *given => Err(Refusal::OtherRoot {
                call: call.to_owned(),
                root: root.to_string(),
                given: given.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}
