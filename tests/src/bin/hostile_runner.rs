//! A runner that lies. It speaks the executor's own wire as a `once` and as a `strip` runner, runs no program, and does on
//! the run's socket what the program's text names: `hostile: NAME`. What it does before it has a program is named by its
//! own file name (`early-log`), since it is given nothing else. For the tests in `hostile_peer`; it sandboxes nothing.

use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::time::Duration;

use codemode_wire::control::{BootRequest, ForkRequest, ZygoteFrame};
use codemode_wire::limits::{CONTROL_BYTES_MAX, WIRE_VERSION};
use codemode_wire::message::{ChildFailureKind, ChildFrame, HostFrame, Shape};
use codemode_wire::strip::{StripAnswer, StripHello, StripRequest};
use codemode_wire::{Decoder, Layer, LayerReport, LayerSet, LayerState, Writer};
use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, Shutdown, recv, recvmsg, send, sendmsg, shutdown,
};

/// The control socket, as every runner gets it.
const CONTROL: RawFd = 0;
/// Where no attack is named.
const HONEST: &str = "honest";

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("strip") => strip(&own_name()),
        Some("once") => once(),
        Some("zygote") => zygote(&own_name()),
        role => panic!("no role {role:?}"),
    }
}

/// The name of its own file.
fn own_name() -> String {
    let own = std::env::current_exe().expect("a file");
    own.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Answers every program with itself, or as its name says.
fn strip(name: &str) {
    let mut decoder = Decoder::new(u32::MAX);
    let mut booted = false;
    let mut input = std::io::stdin();
    let mut bytes = vec![0; 1 << 16];
    loop {
        let count = input.read(&mut bytes).unwrap_or(0);
        if count == 0 {
            return;
        }
        decoder.buffer().extend_from_slice(&bytes[..count]);
        while let Some(frame) = decoder.next_frame().expect("the executor's frames") {
            if !booted {
                BootRequest::from_frame(frame).expect("a boot request");
                let layers = LayerSet::from_bits(u32::MAX);
                write_all(CONTROL, &StripHello::Ready { version: WIRE_VERSION, layers }.encode());
                booted = true;
                continue;
            }
            let StripRequest { id, program } = StripRequest::decode(frame).expect("a request");
            let stripped = |id| StripAnswer::Stripped {
                id,
                shape: Shape::Body,
                source: program.to_owned(),
                hints: Vec::new(),
            };
            match name {
                "strip-wrong-id" => write_all(CONTROL, &stripped(id + 1).encode()),
                "strip-dies" => std::process::exit(1),
                "strip-junk" => write_all(CONTROL, b"this is no frame at all, is it?"),
                "strip-silent" => std::thread::sleep(Duration::from_secs(3600)),
                "strip-cut-short" => {
                    write_all(CONTROL, &stripped(id).encode()[..7]);
                    std::process::exit(0);
                }
                "strip-answers-twice" => {
                    write_all(CONTROL, &[stripped(id).encode(), stripped(id).encode()].concat())
                }
                _ => write_all(CONTROL, &stripped(id).encode()),
            }
        }
    }
}

/// Boots and says that it is ready.
fn boot() {
    let mut packet = vec![0; CONTROL_BYTES_MAX];
    let count = recv(CONTROL, &mut packet, MsgFlags::empty()).expect("a boot request");
    BootRequest::decode(&packet[..count]).expect("a boot request");
    let report = |layer| LayerReport { layer, state: LayerState::InForce, reason: String::new() };
    let ready = ZygoteFrame::Ready {
        version: WIRE_VERSION,
        engine: "quickjs".to_owned(),
        engine_version: "hostile".to_owned(),
        jit: false,
        layers: Layer::ALL.into_iter().map(report).collect(),
        globals: Vec::new(),
    };
    write_all(CONTROL, &ready.encode());
}

/// Never makes a process; answers as its name says.
fn zygote(name: &str) {
    boot();
    let forked = |pid: i32| ZygoteFrame::Forked { pid }.encode();
    let own = i32::try_from(std::process::id()).expect("an id");
    while fork_request().is_some() {
        match name {
            "zygote-names-init" => write_all(CONTROL, &forked(1)),
            "zygote-names-its-parent" => write_all(CONTROL, &forked(nix::unistd::getppid().as_raw())),
            "zygote-names-itself" => write_all(CONTROL, &forked(own)),
            "zygote-names-nobody" => write_all(CONTROL, &forked(i32::MAX)),
            "zygote-names-a-group" => write_all(CONTROL, &forked(-1)),
            "zygote-junk" => write_all(CONTROL, b"this is no frame at all, is it?"),
            "zygote-exits" => std::process::exit(1),
            "zygote-fails" => {
                write_all(CONTROL, &ZygoteFrame::ForkFailed { step: "clone".to_owned(), errno: 11 }.encode());
            }
            _ => std::thread::sleep(Duration::from_secs(3600)),
        }
    }
}

/// One request, answered by becoming the run's process.
fn once() {
    boot();
    let Some((request, socket)) = fork_request() else { return };
    let pid = i32::try_from(std::process::id()).expect("an id");
    write_all(CONTROL, &ZygoteFrame::Forked { pid }.encode());
    Peer { socket, decoder: Decoder::new(u32::MAX) }.serve(&request);
}

/// The request and the run's socket; `None` where the executor has no use for this process.
fn fork_request() -> Option<(ForkRequest, RawFd)> {
    let mut packet = vec![0; CONTROL_BYTES_MAX];
    let mut space = cmsg_space!([RawFd; 1]);
    let mut pieces = [std::io::IoSliceMut::new(&mut packet)];
    let message = recvmsg::<()>(CONTROL, &mut pieces, Some(&mut space), MsgFlags::empty()).ok()?;
    let count = message.bytes;
    let socket = message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
        _ => None,
    })?;
    if count == 0 {
        return None;
    }
    Some((ForkRequest::decode(&packet[..count]).expect("a fork request"), socket))
}

fn write_all(socket: RawFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match send(socket, bytes, MsgFlags::MSG_NOSIGNAL) {
            Ok(count) => bytes = &bytes[count..],
            // The executor has had enough.
            Err(_) => std::process::exit(0),
        }
    }
}

/// The run's socket, seen from the process.
struct Peer {
    socket: RawFd,
    decoder: Decoder,
}

impl Peer {
    fn say(&self, frame: &ChildFrame<'_>) {
        write_all(self.socket, &frame.encode());
    }

    fn raw(&self, bytes: &[u8]) {
        write_all(self.socket, bytes);
    }

    fn log(&self, literal: &str) {
        self.say(&ChildFrame::Log { text: literal.as_bytes() });
    }

    fn call(&self, id: u64, namespace: u16, function: u32, args: &str) {
        self.say(&ChildFrame::Call { id, namespace, function, args: args.as_bytes() });
    }

    fn complete(&self, value: &str) {
        self.say(&ChildFrame::Completed { value: Some(value.as_bytes()) });
    }

    fn fail(&self, kind: ChildFailureKind, literal: &str) {
        self.say(&ChildFrame::Failed {
            kind,
            message: literal.as_bytes(),
            name: "Error",
            line: 0,
            column: 0,
        });
    }

    /// What the next frame comes to.
    fn hear<T>(&mut self, read: impl Fn(HostFrame<'_>) -> T) -> T {
        let mut bytes = vec![0; 1 << 16];
        loop {
            if let Some(frame) = self.decoder.next_frame().expect("the executor's frames") {
                return read(HostFrame::decode(frame).expect("the executor's messages"));
            }
            let count = recv(self.socket, &mut bytes, MsgFlags::empty()).unwrap_or(0);
            if count == 0 {
                std::process::exit(0);
            }
            self.decoder.buffer().extend_from_slice(&bytes[..count]);
        }
    }

    /// The reply to a call, as the JSON literal of what it says.
    fn reply(&mut self) -> String {
        self.hear(|frame| match frame {
            HostFrame::Reply { id, value } => format!("{id} value {}", String::from_utf8_lossy(value)),
            HostFrame::ReplyError { id, message } => format!("{id} error {message}"),
            HostFrame::Program(_) => "a program".to_owned(),
        })
    }

    fn serve(mut self, request: &ForkRequest) {
        let layers: LayerSet = Layer::ALL.into_iter().collect();
        let hello = ChildFrame::Hello { version: WIRE_VERSION, nonce: request.nonce, layers };
        match own_name().as_str() {
            "early-log" => self.log("\"early\""),
            "early-completed" => self.complete("\"early\""),
            "early-junk" => self.raw(b"hello, is anybody there?"),
            "silent" => std::thread::sleep(Duration::from_secs(3600)),
            "wrong-nonce" => self.say(&ChildFrame::Hello { version: WIRE_VERSION, nonce: [0; 16], layers }),
            "wrong-version" => self.say(&ChildFrame::Hello { version: 999, nonce: request.nonce, layers }),
            "missing-layer" => {
                let layers = layers.without(Layer::Seccomp);
                self.say(&ChildFrame::Hello { version: WIRE_VERSION, nonce: request.nonce, layers });
            }
            "step-failed" => self.say(&ChildFrame::Fault { step: "seccomp", errno: 1 }),
            "gone" => std::process::exit(3),
            _ => self.say(&hello),
        }
        let source = self.hear(|frame| match frame {
            HostFrame::Program(spec) => spec.source,
            other => panic!("{other:?} before a program"),
        });
        let attack = source.split("hostile: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or(HONEST);
        self.act(attack, &hello);
        // Whatever is wrong is wrong now; an honest process would wait to be ended or exit.
        std::thread::sleep(Duration::from_secs(3600));
    }

    fn act(&mut self, attack: &str, hello: &ChildFrame<'_>) {
        match attack {
            HONEST => self.complete("\"honest\""),
            "hello-twice" => self.say(hello),
            "unknown-kind" => self.raw(&Writer::new(99, 0).finish()),
            "zero-flood" => (0..1_000_000).for_each(|_| self.raw(&[0, 0, 0, 0, 0])),
            "frame-too-long" => self.raw(&[0xff, 0xff, 0xff, 0x7f, 3, 1, 2, 3]),
            "truncated" => self.raw(&[2, 0, 0, 0, 3, 9, 9]),
            "left-over" => self.raw(&[1, 0, 0, 0, 7, 0]),
            "ends-inside-a-frame" => {
                self.raw(&[100, 0, 0, 0, 3, 1]);
                std::process::exit(0);
            }
            "half-a-header" => self.raw(&[5, 0]),
            "slow-header" => [5, 0, 0].into_iter().for_each(|byte: u8| {
                self.raw(&[byte]);
                std::thread::sleep(Duration::from_millis(300));
            }),
            "half-close" => {
                let _ = shutdown(self.socket, Shutdown::Write);
            }
            "exit-7" => std::process::exit(7),
            "exit-0" => std::process::exit(0),
            "abort" => std::process::abort(),
            "log-not-a-literal" => self.log("not a literal"),
            "log-not-utf8" => self.say(&ChildFrame::Log { text: b"\"\xff\"" }),
            "message-not-a-literal" => self.fail(ChildFailureKind::Exception, "{}"),
            _ => self.act_on_output(attack),
        }
    }

    fn act_on_output(&mut self, attack: &str) {
        match attack {
            "logs-and-huge-completion" => {
                (0..50).for_each(|_| self.log(&format!("\"{}\"", "l".repeat(98))));
                self.complete(&format!("\"{}\"", "v".repeat(100_000)));
            }
            "huge-completion" => self.complete(&format!("\"{}\"", "v".repeat(100_000))),
            "log-of-quotes" => {
                self.log(&format!("\"{}\"", "\\\"".repeat(1 << 20)));
                self.complete("1");
            }
            "log-of-forged-escapes" => {
                self.log(&format!("\"{}\"", "\\u0061".repeat(1 << 16)));
                self.complete("1");
            }
            "log-flood" => loop {
                self.log(&format!("\"{}\"", "f".repeat(60_000)));
            },
            "empty-log-flood" => loop {
                self.log("\"\"");
            },
            "deep-completion" => self.complete(&("[".repeat(3000) + &"]".repeat(3000))),
            "too-deep-completion" => self.complete(&("[".repeat(1_000_000) + &"]".repeat(1_000_000))),
            "long-error" => self.fail(ChildFailureKind::Exception, &format!("\"{}\"", "€".repeat(1000))),
            "forged-output-limit" => {
                self.fail(ChildFailureKind::OutputLimit, "\"nobody needs more than 7 bytes\"")
            }
            "forged-invalid-output" => self.fail(ChildFailureKind::InvalidOutput, "\"as you like it\""),
            "forged-heap" => self.say(&ChildFrame::HeapExhausted { used: 7, limit: 3 }),
            "stderr-flood" => {
                let mut stderr = std::io::stderr();
                for _ in 0..2_000 {
                    let _ = stderr.write_all(&[b'e'; 50_000]);
                }
                self.complete("\"after\"");
            }
            "descriptors" => {
                let stdin = [std::io::stdin().as_raw_fd(); 8];
                for _ in 0..200 {
                    let frame = ChildFrame::Log { text: b"\"x\"" }.encode();
                    let pieces = [std::io::IoSlice::new(&frame)];
                    let rights = [ControlMessage::ScmRights(&stdin)];
                    let _ = sendmsg::<()>(self.socket, &pieces, &rights, MsgFlags::MSG_NOSIGNAL, None);
                }
                self.complete("1");
            }
            _ => match attack.strip_prefix("completes ") {
                Some(value) => self.complete(value),
                None => self.act_on_calls(attack),
            },
        }
    }

    fn act_on_calls(&mut self, attack: &str) {
        match attack {
            "unknown-binding" => {
                let mut heard = Vec::new();
                for (id, namespace, function) in [(1, 9, 0), (2, 0, 99), (3, 0, 0)] {
                    self.call(id, namespace, function, "{\"n\":1}");
                    heard.push(codemode_wire::json::quote(&self.reply()));
                }
                self.complete(&format!("[{}]", heard.join(",")));
            }
            "lossy-arguments" => {
                let mut heard = Vec::new();
                let arguments =
                    ["-0", "{\"a\":1,\"\\u0061\":2}", "nope", "", "[1,]", "1e400", "{\"fine\":true}"];
                for (id, arguments) in (1..).zip(arguments) {
                    self.call(id, 0, 0, arguments);
                    heard.push(codemode_wire::json::quote(&self.reply()));
                }
                self.complete(&format!("[{}]", heard.join(",")));
            }
            "duplicate-id" => {
                self.call(1, 0, 0, "1");
                self.call(1, 0, 0, "2");
            }
            "id-gap" => {
                self.call(1, 0, 0, "1");
                self.call(3, 0, 0, "2");
            }
            "id-zero" => self.call(0, 0, 0, "1"),
            "id-huge" => self.call(u64::MAX, 0, 0, "1"),
            "call-flood" => (1..1_000_000).for_each(|id| self.call(id, 0, 0, "1")),
            "after-the-end" => {
                self.complete("\"first\"");
                self.complete("\"second\"");
                self.log("\"late\"");
                self.call(1, 0, 0, "\"late\"");
                self.fail(ChildFailureKind::Exception, "\"late\"");
            }
            "stalled-with-a-call" => {
                self.call(1, 0, 0, "1");
                self.say(&ChildFrame::Stalled);
            }
            other => panic!("no attack is called `{other}`"),
        }
    }
}
