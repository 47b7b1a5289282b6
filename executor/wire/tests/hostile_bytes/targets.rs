//! What is fuzzed: bytes in, no panic, no disagreement. Used by the bounded run in `cargo test` and by the
//! libFuzzer targets in `executor/wire/fuzz`.

use codemode_wire::control::{BootRequest, ForkRequest, ZygoteFrame};
use codemode_wire::json::{self, StringLiteral};
use codemode_wire::message::{ChildFrame, HostFrame};
use codemode_wire::strip::{StripAnswer, StripHello, StripRequest};
use codemode_wire::{Decoder, Frame};

/// Largest payload that the fuzzed decoder takes, bytes.
const PAYLOAD_BYTES_MAX: u32 = 1 << 16;

/// A hostile stream: the first byte says in how large fragments the rest arrives. Every frame is read as a message
/// of every kind, and what is understood means the same after it was encoded again.
pub(crate) fn stream(data: &[u8]) {
    let Some((cut, data)) = data.split_first() else { return };
    let mut decoder = Decoder::new(PAYLOAD_BYTES_MAX);
    for fragment in data.chunks(usize::from(*cut) + 1) {
        decoder.buffer().extend_from_slice(fragment);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => read_frame(frame),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    let _ = decoder.finish();
}

fn read_frame(frame: Frame<'_>) {
    if let Ok(message) = ChildFrame::decode(frame) {
        assert!(!message.name().is_empty());
        again(&message.encode(), |frame| assert_eq!(ChildFrame::decode(frame).as_ref(), Ok(&message)));
    }
    if let Ok(message) = HostFrame::decode(frame) {
        again(&message.encode(), |frame| assert_eq!(HostFrame::decode(frame).as_ref(), Ok(&message)));
    }
    if let Ok(message) = StripAnswer::decode(frame) {
        again(&message.encode(), |frame| assert_eq!(StripAnswer::decode(frame).as_ref(), Ok(&message)));
    }
    if let Ok(message) = StripHello::decode(frame) {
        again(&message.encode(), |frame| assert_eq!(StripHello::decode(frame).as_ref(), Ok(&message)));
    }
    if let Ok(message) = StripRequest::decode(frame) {
        again(&message.encode(), |frame| assert_eq!(StripRequest::decode(frame), Ok(message)));
    }
    if let Ok(message) = BootRequest::from_frame(frame) {
        again(&message.encode(), |frame| assert_eq!(BootRequest::from_frame(frame), Ok(message)));
    }
}

/// Takes encoded bytes apart again.
fn again(bytes: &[u8], read: impl FnOnce(Frame<'_>)) {
    let mut decoder = Decoder::new(u32::MAX);
    decoder.buffer().extend_from_slice(bytes);
    read(decoder.next_frame().expect("an encoded header").expect("a whole frame"));
    assert_eq!(decoder.pending_bytes(), 0);
}

/// A hostile packet on the control socket.
pub(crate) fn packet(data: &[u8]) {
    if let Ok(message) = ZygoteFrame::decode(data) {
        assert_eq!(ZygoteFrame::decode(&message.encode()), Ok(message));
    }
    if let Ok(message) = ForkRequest::decode(data) {
        assert_eq!(ForkRequest::decode(&message.encode()), Ok(message));
    }
    if let Ok(message) = BootRequest::decode(data) {
        assert_eq!(BootRequest::decode(&message.encode()), Ok(message));
    }
}

/// Hostile JSON text: the first byte is a ledger budget. A refusal is short, and what was accepted is accepted
/// inside an array and with white space around it too.
pub(crate) fn json_text(data: &[u8]) {
    let Some((budget, text)) = data.split_first() else { return };
    match json::check(text) {
        Ok(()) => {
            let wrapped = [b" [ ", text, b"\n]"].concat();
            assert!(json::check(&wrapped).is_ok() || text.starts_with(&[b'['; 1000]));
        }
        Err(fault) => assert!(fault.path.len() + fault.reason.len() < 1000),
    }
    if let Ok(literal) = StringLiteral::parse(text) {
        let decoded = literal.decode();
        assert_eq!(literal.cost(), text.len() as u64);
        assert!(json::cost_of_str(&decoded) <= literal.cost());
        if let Some((prefix, cost)) = literal.prefix(u64::from(*budget)) {
            assert!(decoded.starts_with(&prefix) && cost <= u64::from(*budget).max(2));
            assert!(json::cost_of_str(&prefix) <= cost);
        }
    }
    if let Ok(text) = std::str::from_utf8(text) {
        let quoted = json::quote(text);
        assert_eq!(quoted.len() as u64, json::cost_of_str(text));
        assert_eq!(
            StringLiteral::parse(quoted.as_bytes()).map(|literal| literal.decode()),
            Ok(text.to_owned())
        );
    }
}
