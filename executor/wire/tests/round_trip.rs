//! Every message survives its own encoding, every prefix of it is refused by name, and every [`FrameError`] is
//! reachable.

use codemode_wire::control::{BootRequest, ForkRequest, ZygoteFrame};
use codemode_wire::message::{ChildFailureKind, ChildFrame, HostFrame, NamespaceTable, ProgramSpec, Shape};
use codemode_wire::strip::{StripAnswer, StripHello, StripRequest};
use codemode_wire::{Decoder, Frame, FrameError, Layer, LayerReport, LayerSet, LayerState, Reader, Writer};
use proptest::collection::vec;
use proptest::prelude::*;

/// The one frame that these bytes are, handed to `read`.
fn with_frame<T>(bytes: &[u8], read: impl FnOnce(Frame<'_>) -> T) -> T {
    let mut decoder = Decoder::new(u32::MAX);
    decoder.buffer().extend_from_slice(bytes);
    let answer = read(decoder.next_frame().expect("a good header").expect("a whole frame"));
    assert_eq!(decoder.pending_bytes(), 0);
    decoder.finish().expect("nothing left");
    answer
}

/// All payloads that are a beginning of this frame's payload, and the payload with one byte more.
fn check_edges(bytes: &[u8], decode: impl Fn(Frame<'_>) -> Option<FrameError>) {
    let (header, payload) = bytes.split_at(5);
    let kind = header[4];
    for length in (0..payload.len()).filter(|length| *length < 200 || payload.len() - length < 8) {
        let error = decode(Frame { kind, payload: &payload[..length] }).expect("a cut payload is refused");
        // A cut length field may announce what is no longer there, never more than that.
        assert!(matches!(error, FrameError::Truncated(_)), "{error}");
    }
    let mut longer = payload.to_vec();
    longer.push(0);
    assert_eq!(decode(Frame { kind, payload: &longer }), Some(FrameError::LeftOver(1)));
    assert_eq!(decode(Frame { kind: 200, payload }), Some(FrameError::UnknownKind(200)));
}

fn layers() -> impl Strategy<Value = LayerSet> {
    any::<u32>().prop_map(LayerSet::from_bits)
}

fn names() -> impl Strategy<Value = Vec<String>> {
    vec(any::<String>(), 0..4)
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![Just(Shape::Body), Just(Shape::Function), Just(Shape::Factory)]
}

fn program() -> impl Strategy<Value = ProgramSpec> {
    let namespace = (any::<String>(), names(), any::<Option<(String, String)>>())
        .prop_map(|(global, functions, error_class)| NamespaceTable { global, functions, error_class });
    (
        (any::<String>(), shape(), vec(namespace, 0..3), any::<u64>(), any::<u64>()),
        (any::<u32>(), any::<u32>(), any::<bool>(), any::<[u8; 16]>()),
    )
        .prop_map(|((source, shape, namespaces, output_bytes, heap_bytes), rest)| ProgramSpec {
            source,
            shape,
            namespaces,
            output_bytes,
            heap_bytes,
            argument_bytes_max: rest.0,
            log_entry_bytes_max: rest.1,
            undefined_omit: rest.2,
            seed: rest.3,
        })
}

fn failure_kind() -> impl Strategy<Value = ChildFailureKind> {
    prop_oneof![
        Just(ChildFailureKind::Exception),
        Just(ChildFailureKind::InvalidOutput),
        Just(ChildFailureKind::OutputLimit),
        Just(ChildFailureKind::Syntax)
    ]
}

fn report() -> impl Strategy<Value = LayerReport> {
    let state = prop_oneof![Just(LayerState::InForce), Just(LayerState::Unavailable), Just(LayerState::Off)];
    (0..Layer::ALL.len(), state, any::<String>()).prop_map(|(index, state, reason)| LayerReport {
        layer: Layer::ALL[index],
        state,
        reason,
    })
}

fn zygote_frame() -> impl Strategy<Value = ZygoteFrame> {
    let step = || (any::<String>(), any::<i32>());
    prop_oneof![
        (any::<u16>(), any::<String>(), any::<String>(), any::<bool>(), vec(report(), 0..4), names())
            .prop_map(|(version, engine, engine_version, jit, layers, globals)| {
                ZygoteFrame::Ready { version, engine, engine_version, jit, layers, globals }
            }),
        any::<i32>().prop_map(|pid| ZygoteFrame::Forked { pid }),
        step().prop_map(|(step, errno)| ZygoteFrame::ForkFailed { step, errno }),
        step().prop_map(|(step, errno)| ZygoteFrame::Fault { step, errno }),
    ]
}

fn check_child(frame: &ChildFrame<'_>) {
    let bytes = frame.encode();
    with_frame(&bytes, |read| assert_eq!(ChildFrame::decode(read).as_ref(), Ok(frame)));
    check_edges(&bytes, |read| ChildFrame::decode(read).err());
}

fn check_host(frame: &HostFrame<'_>) {
    let bytes = frame.encode();
    with_frame(&bytes, |read| assert_eq!(HostFrame::decode(read).as_ref(), Ok(frame)));
    check_edges(&bytes, |read| HostFrame::decode(read).err());
}

proptest! {
    #[test]
    fn child_frames(
        bytes in any::<Vec<u8>>(), text in any::<String>(), nonce in any::<[u8; 16]>(), layers in layers(),
        kind in failure_kind(), numbers in any::<(u16, i32, u64, u64, u32, u32)>(),
    ) {
        let (version, errno, used, limit, line, column) = numbers;
        let step = &text;
        for frame in [
            ChildFrame::Hello { version, nonce, layers },
            ChildFrame::Fault { step, errno },
            ChildFrame::Log { text: &bytes },
            ChildFrame::Call { id: used, namespace: version, function: line, args: &bytes },
            ChildFrame::Completed { value: None },
            ChildFrame::Completed { value: Some(&bytes) },
            ChildFrame::Failed { kind, message: &bytes, name: &text, line, column },
            ChildFrame::Stalled,
            ChildFrame::HeapExhausted { used, limit },
        ] {
            check_child(&frame);
        }
    }

    #[test]
    fn host_frames(program in program(), id in any::<u64>(), value in any::<Vec<u8>>(), message in any::<String>()) {
        check_host(&HostFrame::Program(program));
        check_host(&HostFrame::Reply { id, value: &value });
        check_host(&HostFrame::ReplyError { id, message: &message });
    }

    #[test]
    fn strip_frames(id in any::<u64>(), text in any::<String>(), shape in shape(), hints in names(), line in any::<u32>(), column in any::<u32>()) {
        let request = StripRequest { id, program: &text };
        with_frame(&request.encode(), |read| assert_eq!(StripRequest::decode(read), Ok(request)));
        check_edges(&request.encode(), |read| StripRequest::decode(read).err());
        for answer in [
            StripAnswer::Stripped { id, shape, source: text.clone(), hints },
            StripAnswer::Refused { id, message: text.clone(), line, column },
        ] {
            with_frame(&answer.encode(), |read| assert_eq!(StripAnswer::decode(read).as_ref(), Ok(&answer)));
            check_edges(&answer.encode(), |read| StripAnswer::decode(read).err());
        }
    }

    #[test]
    fn strip_hellos(version in any::<u16>(), layers in layers(), step in any::<String>(), errno in any::<i32>()) {
        for hello in [StripHello::Ready { version, layers }, StripHello::Fault { step: step.clone(), errno }] {
            with_frame(&hello.encode(), |read| assert_eq!(StripHello::decode(read).as_ref(), Ok(&hello)));
            check_edges(&hello.encode(), |read| StripHello::decode(read).err());
        }
    }

    #[test]
    fn control_packets(frame in zygote_frame(), nonce in any::<[u8; 16]>(), layers_off in layers(), numbers in any::<(u32, u64, u32, u32, bool)>()) {
        // What does not fit one packet is refused by its length, and so never sent.
        let encoded = frame.encode();
        prop_assume!(encoded.len() < codemode_wire::limits::CONTROL_BYTES_MAX);
        prop_assert_eq!(ZygoteFrame::decode(&encoded), Ok(frame.clone()));
        let (cpu_seconds, data_bytes, frame_bytes_max, uid, jitless) = numbers;
        let fork = ForkRequest { nonce, cpu_seconds, data_bytes, ahead: jitless };
        prop_assert_eq!(ForkRequest::decode(&fork.encode()), Ok(fork));
        let boot = BootRequest { layers_off, jitless, frame_bytes_max, uid };
        prop_assert_eq!(BootRequest::decode(&boot.encode()), Ok(boot));
        for packet in [encoded, fork.encode(), boot.encode()] {
            let errors = |packet: &[u8]| (ZygoteFrame::decode(packet).err(), ForkRequest::decode(packet).err(), BootRequest::decode(packet).err());
            for length in 0..packet.len().min(100) {
                let refused = Some(FrameError::EndedInside);
                prop_assert_eq!(errors(&packet[..length]), (refused.clone(), refused.clone(), refused));
            }
            let twice = [packet.as_slice(), packet.as_slice()].concat();
            let (zygote, fork, boot) = errors(&twice);
            prop_assert!(zygote.is_some() && fork.is_some() && boot.is_some());
        }
    }

    /// However a stream is cut up, the frames are the same, and so is what is left.
    #[test]
    fn fragments_make_the_same_frames(payloads in vec(any::<Vec<u8>>(), 0..6), cut in 1_usize..40, tail in vec(any::<u8>(), 0..5)) {
        let mut stream = Vec::new();
        for (kind, payload) in payloads.iter().enumerate() {
            let mut writer = Writer::new(u8::try_from(kind).expect("few"), 0);
            writer.raw(payload);
            stream.extend(writer.finish());
        }
        stream.extend_from_slice(&tail[..tail.len().min(4)]);
        let mut decoder = Decoder::new(1 << 20);
        let mut frames = Vec::new();
        for fragment in stream.chunks(cut) {
            decoder.buffer().extend_from_slice(fragment);
            while let Some(frame) = decoder.next_frame().expect("short frames") {
                frames.push((frame.kind, frame.payload.to_vec()));
            }
        }
        let expected: Vec<_> = (0..).zip(payloads).collect();
        prop_assert_eq!(frames, expected);
        prop_assert_eq!(decoder.pending_bytes(), tail.len().min(4));
        prop_assert_eq!(decoder.finish().is_ok(), tail.is_empty());
    }
}

#[test]
fn a_length_is_refused_before_its_bytes_are_there() {
    let mut decoder = Decoder::new(100);
    decoder.buffer().extend_from_slice(&[101, 0, 0, 0]);
    assert_eq!(decoder.next_frame(), Ok(None), "the header is not whole");
    decoder.buffer().push(1);
    assert_eq!(decoder.next_frame(), Err(FrameError::TooLong { length: 101, limit: 100 }));
    assert!(decoder.buffer().capacity() < 100);

    let mut decoder = Decoder::new(u32::MAX);
    decoder.buffer().extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 1]);
    let limit = codemode_wire::limits::FRAME_BYTES_CEILING;
    assert_eq!(decoder.next_frame(), Err(FrameError::TooLong { length: u32::MAX, limit }));

    let mut decoder = Decoder::new(100);
    decoder.buffer().extend_from_slice(&[100, 0, 0, 0, 1]);
    decoder.buffer().extend_from_slice(&[7; 100]);
    assert_eq!(decoder.next_frame(), Ok(Some(Frame { kind: 1, payload: &[7; 100] })));
}

#[test]
fn frames_without_payload_are_frames() {
    let mut decoder = Decoder::new(0);
    decoder.buffer().extend_from_slice(&[0, 0, 0, 0, 7, 0, 0, 0, 0, 9]);
    assert_eq!(decoder.next_frame(), Ok(Some(Frame { kind: 7, payload: &[] })));
    assert_eq!(decoder.next_frame(), Ok(Some(Frame { kind: 9, payload: &[] })));
    assert_eq!(decoder.next_frame(), Ok(None));
    assert_eq!(decoder.finish(), Ok(()));
    decoder.buffer().push(0);
    assert_eq!(decoder.finish(), Err(FrameError::EndedInside));
}

/// Decodes a payload of that kind as a child's message.
fn child(kind: u8, payload: &[u8]) -> Result<ChildFrame<'_>, FrameError> {
    ChildFrame::decode(Frame { kind, payload })
}

#[test]
fn fields_hold_only_what_they_may() {
    let completed = 5;
    let failed = 6;
    let refused = |field, reason| Err(FrameError::Invalid { field, reason });
    assert_eq!(child(completed, &[2]), refused("has_value", "neither 0 nor 1"));
    assert_eq!(child(completed, &[0, 0]), Err(FrameError::LeftOver(1)));
    assert_eq!(child(completed, &[1, 255, 255, 255, 255, 1]), Err(FrameError::Truncated("value")));
    for kind in [0, 5, 255] {
        assert_eq!(child(failed, &[kind]), refused("kind", "no such failure kind"));
    }
    assert_eq!(child(failed, &[1, 0, 0, 0, 0, 1, 0, 0, 0, 0xff]), refused("name", "not UTF-8"));
    for kind in [0, 9, 255] {
        assert_eq!(child(kind, &[]), Err(FrameError::UnknownKind(kind)));
    }
    let stripped = |shape: u8| {
        let payload = [0, 0, 0, 0, 0, 0, 0, 0, shape];
        StripAnswer::decode(Frame { kind: 2, payload: &payload })
    };
    assert_eq!(stripped(3), Err(FrameError::Invalid { field: "shape", reason: "no such shape" }));
    assert_eq!(stripped(2), Err(FrameError::Truncated("source")));
}

#[test]
fn reports_name_known_layers_and_states() {
    let ready = |layer: u8, state: u8| {
        let mut writer = Writer::new(2, 64);
        writer.u16(1).str("v8").str("1").flag(true).u32(1).u8(layer).u8(state).str("").u32(0);
        ZygoteFrame::decode(&writer.finish()).err()
    };
    assert_eq!(ready(15, 2), None);
    assert_eq!(ready(16, 0), Some(FrameError::Invalid { field: "layer", reason: "no such layer" }));
    assert_eq!(ready(0, 3), Some(FrameError::Invalid { field: "state", reason: "no such state" }));
}

#[test]
fn a_count_reserves_nothing() {
    let mut reader = Reader::new(&[0xff, 0xff, 0xff, 0xff, 1, 2]);
    assert_eq!(reader.list("items", |r| r.u8("item")), Err(FrameError::Truncated("items")));
    // Items that take no bytes could be announced without end.
    let mut reader = Reader::new(&[0xff, 0xff, 0xff, 0xff]);
    assert_eq!(reader.list("items", |_| Ok(())), Err(FrameError::Truncated("items")));
}

#[test]
fn a_control_packet_is_one_frame() {
    assert_eq!(ZygoteFrame::decode(&[]), Err(FrameError::EndedInside));
    let forked = ZygoteFrame::Forked { pid: 7 }.encode();
    assert_eq!(ZygoteFrame::decode(&forked[..6]), Err(FrameError::EndedInside));
    assert_eq!(ZygoteFrame::decode(&[&forked[..], &[1, 2, 3]].concat()), Err(FrameError::LeftOver(3)));
    let boot = [0, 0, 0, 0, 6];
    assert_eq!(ZygoteFrame::decode(&boot), Err(FrameError::UnknownKind(6)));
    assert_eq!(ForkRequest::decode(&boot), Err(FrameError::UnknownKind(6)));
    assert_eq!(BootRequest::decode(&forked), Err(FrameError::UnknownKind(3)));
    let long = [0xff, 0xff, 0, 0, 3];
    let limit = u32::try_from(codemode_wire::limits::CONTROL_BYTES_MAX).expect("small");
    assert_eq!(ZygoteFrame::decode(&long), Err(FrameError::TooLong { length: 0xffff, limit }));
}

#[test]
fn layers_have_one_bit_and_one_name_each() {
    let all: LayerSet = Layer::ALL.into_iter().collect();
    assert_eq!(all.bits(), 0xffff);
    assert_eq!(LayerSet::from_bits(u32::MAX), all);
    for layer in Layer::ALL {
        assert_eq!(Layer::from_name(layer.name()), Some(layer));
        assert_eq!(all.without(layer).with(layer), all);
        assert_eq!(all.minus(all.without(layer)).iter().collect::<Vec<_>>(), [layer]);
    }
    assert_eq!(Layer::from_name("Seccomp"), None);
}

#[test]
fn errors_read_as_sentences() {
    for (error, words) in [
        (FrameError::TooLong { length: 9, limit: 8 }, "frame of 9 bytes exceeds the limit of 8"),
        (FrameError::UnknownKind(9), "unknown frame kind 9"),
        (FrameError::Truncated("args"), "frame ends inside `args`"),
        (FrameError::LeftOver(3), "3 bytes left over after the last field"),
        (FrameError::Invalid { field: "kind", reason: "no" }, "field `kind` is invalid: no"),
        (FrameError::EndedInside, "stream ended inside a frame"),
    ] {
        assert_eq!(error.to_string(), words);
    }
}

#[test]
#[should_panic(expected = "exceed the frame ceiling")]
fn a_writer_refuses_what_no_reader_takes() {
    let huge = vec![0; codemode_wire::limits::FRAME_BYTES_CEILING as usize + 1];
    Writer::new(1, 0).bytes(&huge);
}
