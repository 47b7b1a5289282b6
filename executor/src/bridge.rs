//! Binding calls between a hostile process and a caller: numbers, bounds, and what either side is told. Pure; it does
//! no I/O and keeps no argument, only how many bytes wait for an answer.

use std::collections::HashMap;

use codemode_proto::detail::Detail;
use codemode_wire::json::{self, JsonFault};
use codemode_wire::message::{HostFrame, NamespaceTable};

use crate::outcome::Failure;
use crate::run::budget::Budgets;

/// What to do with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallVerdict<'a> {
    /// Hand it to the caller.
    Forward {
        /// The namespace's global.
        global: &'a str,
        /// The function's name.
        name: &'a str,
    },
    /// Answer the process with this frame; the caller never hears of it.
    Refuse(Vec<u8>),
    /// The run is over.
    End(Box<Failure>),
}

/// What to do with a caller's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyVerdict {
    /// Hand this frame to the process.
    Send(Vec<u8>),
    /// The caller broke the rules: how.
    Misuse(String),
}

/// The calls of one run.
#[derive(Debug)]
pub struct Bridge {
    namespaces: Vec<NamespaceTable>,
    budgets: Budgets,
    value_bytes_max: u32,
    /// Calls made; also the last id.
    calls: u64,
    /// Ids in flight and the bytes of their arguments.
    pending: HashMap<u64, u64>,
    pending_bytes: u64,
}

impl Bridge {
    /// A run without calls yet. `value_bytes_max` bounds arguments and replies.
    #[must_use]
    pub fn new(namespaces: Vec<NamespaceTable>, budgets: Budgets, value_bytes_max: u32) -> Self {
        Self { namespaces, budgets, value_bytes_max, calls: 0, pending: HashMap::new(), pending_bytes: 0 }
    }

    /// Calls made so far, refused ones included.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// Calls that wait for the caller's answer.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Judges a call.
    pub fn call(&mut self, id: u64, namespace: u16, function: u32, args: &[u8]) -> CallVerdict<'_> {
        if id != self.calls + 1 {
            let wanted = self.calls + 1;
            let what = format!("protocol violation: call id {id} where {wanted} was due");
            return CallVerdict::End(Box::new(Failure::new(Detail::Protocol, what)));
        }
        let args_bytes = args.len() as u64;
        if let Some(failure) = self.exceeded(args_bytes) {
            return CallVerdict::End(Box::new(failure));
        }
        self.calls = id;
        let table = self.namespaces.get(usize::from(namespace));
        let name =
            table.and_then(|table| table.functions.get(usize::try_from(function).unwrap_or(usize::MAX)));
        let (Some(table), Some(name)) = (table, name) else {
            let global = table.map_or_else(|| format!("#{namespace}"), |table| table.global.clone());
            return refuse(id, &format!("unknown binding \"{global}.#{function}\""));
        };
        if let Err(fault) = json::check_as("arguments", args) {
            return refuse(id, &format!("binding arguments must be lossless JSON: {fault}"));
        }
        self.pending.insert(id, args_bytes);
        self.pending_bytes += args_bytes;
        CallVerdict::Forward { global: &table.global, name }
    }

    /// The budget that one call more, of so many bytes, would exceed.
    fn exceeded(&self, args_bytes: u64) -> Option<Failure> {
        let budgets = &self.budgets;
        if self.calls >= budgets.binding_calls {
            let what = format!("binding call budget exhausted ({} calls)", budgets.binding_calls);
            let failure = Failure::new(Detail::BindingCalls, what);
            return Some(failure.with_numbers(budgets.binding_calls, Some(self.calls + 1)));
        }
        let pending = self.pending.len() as u64 + 1;
        if pending > budgets.pending_calls {
            let what = format!("pending binding calls exceed {}", budgets.pending_calls);
            let failure = Failure::new(Detail::PendingCalls, what);
            return Some(failure.with_numbers(budgets.pending_calls, Some(pending)));
        }
        let bytes = self.pending_bytes.saturating_add(args_bytes);
        if bytes > budgets.pending_argument_bytes {
            let what =
                format!("arguments of pending binding calls exceed {} bytes", budgets.pending_argument_bytes);
            let failure = Failure::new(Detail::PendingArgumentBytes, what);
            return Some(failure.with_numbers(budgets.pending_argument_bytes, Some(bytes)));
        }
        None
    }

    /// Takes the caller's reply to a call; `Ok` is JSON text, `Err` a message.
    pub fn reply(&mut self, id: u64, result: Result<&[u8], &str>) -> ReplyVerdict {
        let Some(bytes) = self.pending.remove(&id) else {
            return ReplyVerdict::Misuse(if id == 0 || id > self.calls {
                format!("`reply` to call {id}, which was never made")
            } else {
                format!("`reply` to call {id}, which is answered already")
            });
        };
        self.pending_bytes -= bytes;
        let max = usize::try_from(self.value_bytes_max).unwrap_or(usize::MAX);
        let checked = match result {
            Ok(value) if value.len() > max => {
                Err(format!("binding resolution of {} bytes exceeds the limit of {max} bytes", value.len()))
            }
            Ok(value) => json::check_as("value", value).map(|()| value).map_err(lossy_resolution),
            Err(message) => Err(message[..message.floor_char_boundary(max)].to_owned()),
        };
        ReplyVerdict::Send(match checked {
            Ok(value) => HostFrame::Reply { id, value }.encode(),
            Err(message) => HostFrame::ReplyError { id, message: &message }.encode(),
        })
    }
}

fn lossy_resolution(fault: JsonFault) -> String {
    format!("binding resolution must be lossless JSON: {fault}")
}

fn refuse(id: u64, message: &str) -> CallVerdict<'static> {
    CallVerdict::Refuse(HostFrame::ReplyError { id, message }.encode())
}

#[cfg(test)]
mod tests {
    use codemode_wire::Decoder;

    use super::*;

    fn bridge() -> Bridge {
        let functions = vec!["echo".to_owned(), "__proto__".to_owned()];
        let table = NamespaceTable { global: "tools".to_owned(), functions, error_class: None };
        let budgets = Budgets {
            compute_ms: 1,
            wall_ms: 1,
            output_bytes: 4,
            heap_bytes: 1,
            binding_calls: 5,
            pending_calls: 2,
            pending_argument_bytes: 20,
            log_entry_bytes: 1,
        };
        Bridge::new(vec![table], budgets, 32)
    }

    /// What a frame to the process says.
    fn said(frame: &[u8]) -> String {
        let mut decoder = Decoder::new(1 << 20);
        decoder.buffer().extend_from_slice(frame);
        match HostFrame::decode(decoder.next_frame().expect("frame").expect("whole")).expect("message") {
            HostFrame::Reply { id, value } => format!("{id} ok {}", String::from_utf8_lossy(value)),
            HostFrame::ReplyError { id, message } => format!("{id} error {message}"),
            HostFrame::Program(_) => "program".to_owned(),
        }
    }

    fn call(bridge: &mut Bridge, id: u64, namespace: u16, function: u32, args: &str) -> String {
        match bridge.call(id, namespace, function, args.as_bytes()) {
            CallVerdict::Forward { global, name } => format!("forward {global}.{name}"),
            CallVerdict::Refuse(frame) => said(&frame),
            CallVerdict::End(failure) => format!("end {}: {}", failure.detail.word(), failure.message),
        }
    }

    fn reply(bridge: &mut Bridge, id: u64, result: Result<&str, &str>) -> String {
        match bridge.reply(id, result.map(str::as_bytes)) {
            ReplyVerdict::Send(frame) => said(&frame),
            ReplyVerdict::Misuse(how) => format!("misuse: {how}"),
        }
    }

    #[test]
    fn calls_and_replies() {
        let mut bridge = bridge();
        assert_eq!(call(&mut bridge, 1, 0, 0, "1"), "forward tools.echo");
        assert_eq!(call(&mut bridge, 2, 0, 1, "{}"), "forward tools.__proto__");
        assert_eq!(reply(&mut bridge, 2, Ok("[1]")), "2 ok [1]");
        assert_eq!(reply(&mut bridge, 1, Err("nope")), "1 error nope");
        assert_eq!((bridge.calls(), bridge.pending()), (2, 0));
    }

    #[test]
    fn ids_count_from_one_without_gaps() {
        for id in [0, 2, u64::MAX, 9_007_199_254_740_993] {
            let end = call(&mut bridge(), id, 0, 0, "1");
            assert_eq!(end, format!("end protocol: protocol violation: call id {id} where 1 was due"));
        }
        let mut bridge = bridge();
        call(&mut bridge, 1, 0, 0, "1");
        assert!(call(&mut bridge, 1, 0, 0, "1").starts_with("end protocol"));
    }

    #[test]
    fn what_the_table_does_not_hold_is_unknown() {
        let mut bridge = bridge();
        assert_eq!(call(&mut bridge, 1, 0, 7, "1"), "1 error unknown binding \"tools.#7\"");
        assert_eq!(call(&mut bridge, 2, 3, 0, "1"), "2 error unknown binding \"#3.#0\"");
        assert_eq!(
            call(&mut bridge, 3, u16::MAX, u32::MAX, "1"),
            "3 error unknown binding \"#65535.#4294967295\""
        );
        assert_eq!(bridge.pending(), 0);
        assert_eq!(call(&mut bridge, 4, 0, 0, "1"), "forward tools.echo", "the run goes on");
    }

    #[test]
    fn lossy_arguments_never_reach_the_caller() {
        for (args, why) in [("-0", "-0"), ("[1,", "not JSON"), ("{\"a\":1,\"a\":2}", "a"), ("", "not JSON")] {
            let mut bridge = bridge();
            let said = call(&mut bridge, 1, 0, 0, args);
            assert!(said.starts_with("1 error binding arguments must be lossless JSON: arguments"), "{said}");
            assert!(said.contains(why), "{said}");
            assert_eq!(bridge.pending(), 0);
        }
    }

    #[test]
    fn lossy_resolutions_fail_the_call_only() {
        let mut bridge = bridge();
        call(&mut bridge, 1, 0, 0, "1");
        let said = reply(&mut bridge, 1, Ok("[NaN]"));
        assert!(said.starts_with("1 error binding resolution must be lossless JSON: value[0]"), "{said}");
        call(&mut bridge, 2, 0, 0, "1");
        let said = reply(&mut bridge, 2, Ok(&format!("\"{}\"", "x".repeat(40))));
        assert_eq!(said, "2 error binding resolution of 42 bytes exceeds the limit of 32 bytes");
    }

    #[test]
    fn each_budget_has_its_own_end() {
        let mut b = bridge();
        call(&mut b, 1, 0, 0, "1");
        call(&mut b, 2, 0, 0, "1");
        assert_eq!(call(&mut b, 3, 0, 0, "1"), "end pending_calls: pending binding calls exceed 2");
        let mut b = bridge();
        call(&mut b, 1, 0, 0, "\"0123456789\"");
        let end = "end pending_argument_bytes: arguments of pending binding calls exceed 20 bytes";
        assert_eq!(call(&mut b, 2, 0, 0, "\"0123456789\""), end);
        let mut b = bridge();
        for id in 1..=5 {
            call(&mut b, id, 0, 0, "1");
            reply(&mut b, id, Ok("1"));
        }
        let end = "end binding_calls: binding call budget exhausted (5 calls)";
        assert_eq!(call(&mut b, 6, 0, 0, "1"), end);
    }

    #[test]
    fn misuse_by_the_caller_is_named() {
        let mut bridge = bridge();
        assert_eq!(reply(&mut bridge, 1, Ok("1")), "misuse: `reply` to call 1, which was never made");
        call(&mut bridge, 1, 0, 0, "1");
        reply(&mut bridge, 1, Ok("1"));
        assert_eq!(reply(&mut bridge, 1, Ok("1")), "misuse: `reply` to call 1, which is answered already");
        assert_eq!(reply(&mut bridge, 0, Ok("1")), "misuse: `reply` to call 0, which was never made");
    }
}
