//! A runner without an engine and without a sandbox: speaks the zygote's and the stripper's protocols, and takes each
//! program as a script of what to send. It is the hostile child of the attack catalogue (section B), and the quick one of
//! benchmarks. Never shipped: an example, built by `cargo build -p codemode-executor --example fake_runner`.
//!
//! How it behaves before it has a program is read from the file `<own path>.boot`, one `key=value` a line:
//! `engine=NAME`, `boot=ready|fault|garbage|silent|exit|version`, `missing=LAYER`, `fork=ok|silent|fail|die`,
//! `hello=ok|nonce|version|missing|log|twice|silent|fault|exit`, `strip_crashes=kill`. Copy the binary to a folder
//! of your own to give it one.
//!
//! A program is a script, one command a line (see `Child::command`); text beginning with `//strip:` is for the stripper.
#![expect(unsafe_code, reason = "forks, and passes descriptors, as the real runner does")]
#![expect(clippy::unwrap_used, reason = "a test's helper that fails loudly")]

use std::io::{IoSliceMut, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use codemode_wire::control::{BootRequest, ForkRequest, ZygoteFrame};
use codemode_wire::limits::{CONTROL_BYTES_MAX, WIRE_VERSION};
use codemode_wire::message::{ChildFailureKind, ChildFrame, HostFrame, Shape};
use codemode_wire::strip::{StripAnswer, StripHello, StripRequest};
use codemode_wire::{Decoder, Layer, LayerReport, LayerSet, LayerState, json};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recv, recvmsg, send};

fn main() {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    let role = std::env::args().nth(1).unwrap_or_default();
    let boot = Boot::read();
    match role.as_str() {
        "zygote" => zygote(&boot, false),
        "once" => zygote(&boot, true),
        "strip" => strip(&boot),
        other => panic!("no such role: {other}"),
    }
}

/// The lines of the `.boot` file.
struct Boot(String);

impl Boot {
    fn read() -> Self {
        let mut path = std::env::current_exe().unwrap().into_os_string();
        path.push(".boot");
        Self(std::fs::read_to_string(path).unwrap_or_default())
    }

    fn get<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        let lines = self.0.lines().filter_map(|line| line.split_once('='));
        lines.filter(|(name, _)| *name == key).map(|(_, value)| value).next_back().unwrap_or(default)
    }
}

/// The layers that it claims.
fn claimed(boot: &Boot) -> LayerSet {
    let missing = Layer::from_name(boot.get("missing", ""));
    Layer::ALL.into_iter().take(6).filter(|layer| Some(*layer) != missing).collect()
}

fn wait_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

fn zygote(boot: &Boot, single_use: bool) {
    // SAFETY: descriptor 0 is the control socket, and nothing else in this process uses it.
    let control = unsafe { OwnedFd::from_raw_fd(0) };
    let mut packet = vec![0; CONTROL_BYTES_MAX];
    let length = recv(control.as_raw_fd(), &mut packet, MsgFlags::empty()).unwrap();
    BootRequest::decode(&packet[..length]).unwrap();
    let say = |bytes: &[u8]| send(control.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL);
    std::thread::sleep(Duration::from_millis(boot.get("boot_ms", "0").parse().unwrap()));
    let version = if boot.get("boot", "ready") == "version" { WIRE_VERSION + 1 } else { WIRE_VERSION };
    match boot.get("boot", "ready") {
        "fault" => {
            let _ = say(&ZygoteFrame::Fault { step: "seccomp".to_owned(), errno: 22 }.encode());
            std::process::exit(1);
        }
        "garbage" => {
            let _ = say(b"not a frame");
            wait_for_ever();
        }
        "silent" => wait_for_ever(),
        "exit" => std::process::exit(3),
        _ => {}
    }
    let in_force = claimed(boot);
    let layers = Layer::ALL.into_iter().map(|layer| {
        let there = in_force.contains(layer);
        let state = if there { LayerState::InForce } else { LayerState::Unavailable };
        let reason = if there { String::new() } else { "a fake has none".to_owned() };
        LayerReport { layer, state, reason }
    });
    let ready = ZygoteFrame::Ready {
        version,
        engine: boot.get("engine", "quickjs").to_owned(),
        engine_version: "0.0-fake".to_owned(),
        jit: false,
        layers: layers.collect(),
        globals: vec!["console".to_owned()],
    };
    say(&ready.encode()).unwrap();
    loop {
        let Some((request, socket)) = fork_request(&control) else { std::process::exit(0) };
        match boot.get("fork", "ok") {
            "silent" => wait_for_ever(),
            "fail" => {
                let failed = ZygoteFrame::ForkFailed { step: "clone".to_owned(), errno: 11 };
                say(&failed.encode()).unwrap();
                continue;
            }
            "die" => std::process::exit(9),
            _ => {}
        }
        if single_use {
            let pid = i32::try_from(std::process::id()).unwrap();
            say(&ZygoteFrame::Forked { pid }.encode()).unwrap();
            drop(control);
            child(boot, &request, socket);
        }
        // SAFETY: a plain fork into the executor as parent; this process has one thread, and the child runs the same
        // single-threaded code.
        let pid = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_PARENT | libc::SIGCHLD, 0, 0, 0, 0) };
        if pid == 0 {
            drop(control);
            child(boot, &request, socket);
        }
        drop(socket);
        say(&ZygoteFrame::Forked { pid: i32::try_from(pid).unwrap() }.encode()).unwrap();
    }
}

/// One request with its socket; `None` at the end.
fn fork_request(control: &OwnedFd) -> Option<(ForkRequest, OwnedFd)> {
    let mut packet = vec![0; CONTROL_BYTES_MAX];
    let mut space = nix::cmsg_space!([i32; 1]);
    let mut slices = [IoSliceMut::new(&mut packet)];
    let message =
        recvmsg::<()>(control.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC).ok()?;
    let length = message.bytes;
    let mut sockets = message.cmsgs().ok()?.filter_map(|control| match control {
        ControlMessageOwned::ScmRights(sockets) => sockets.first().copied(),
        _ => None,
    });
    let socket = sockets.next();
    if length == 0 {
        return None;
    }
    // SAFETY: the kernel has just put this descriptor here for us.
    let socket = unsafe { OwnedFd::from_raw_fd(socket.unwrap()) };
    Some((ForkRequest::decode(&packet[..length]).unwrap(), socket))
}

/// The life of a run's process; never returns.
fn child(boot: &Boot, request: &ForkRequest, socket: OwnedFd) -> ! {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    let stream = UnixStream::from(socket);
    let mut child = Child {
        stream,
        decoder: Decoder::new(1 << 30),
        next_call: 1,
        hello: *request,
        layers: claimed(boot),
    };
    child.hello(boot.get("hello", "ok"));
    let Some(source) = child.program() else { std::process::exit(0) };
    for line in source.lines() {
        child.command(line.trim());
    }
    std::process::exit(0);
}

struct Child {
    stream: UnixStream,
    decoder: Decoder,
    next_call: u64,
    hello: ForkRequest,
    layers: LayerSet,
}

/// A message of the executor, owned.
enum Said {
    Program(String),
    Value(u64, String),
    Error(u64, String),
}

impl Child {
    fn send(&mut self, frame: &ChildFrame<'_>) {
        self.raw(&frame.encode());
    }

    fn raw(&mut self, bytes: &[u8]) {
        if self.stream.write_all(bytes).is_err() {
            std::process::exit(0);
        }
    }

    fn hello(&mut self, how: &str) {
        let (mut version, mut nonce, mut layers) = (WIRE_VERSION, self.hello.nonce, self.layers);
        match how {
            "nonce" => nonce[0] ^= 1,
            "version" => version += 1,
            "missing" => layers = layers.without(Layer::Seccomp),
            "log" => self.send(&ChildFrame::Log { text: b"\"early\"" }),
            "silent" => wait_for_ever(),
            "fault" => {
                self.send(&ChildFrame::Fault { step: "landlock\x1b", errno: 38 });
                wait_for_ever();
            }
            "exit" => std::process::exit(5),
            _ => {}
        }
        self.send(&ChildFrame::Hello { version, nonce, layers });
        if how == "twice" {
            self.send(&ChildFrame::Hello { version, nonce, layers });
        }
    }

    fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(match HostFrame::decode(frame).unwrap() {
                    HostFrame::Program(spec) => Said::Program(spec.source),
                    HostFrame::Reply { id, value } => {
                        Said::Value(id, String::from_utf8_lossy(value).into_owned())
                    }
                    HostFrame::ReplyError { id, message } => Said::Error(id, message.to_owned()),
                });
            }
            let mut chunk = vec![0; 1 << 16];
            let read = self.stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
            self.decoder.buffer().extend_from_slice(&chunk[..read]);
        }
    }

    fn program(&mut self) -> Option<String> {
        match self.next()? {
            Said::Program(source) => Some(source),
            Said::Value(..) | Said::Error(..) => None,
        }
    }

    fn log(&mut self, text: &str) {
        self.send(&ChildFrame::Log { text: json::quote(text).as_bytes() });
    }

    /// One command of the script. `J` is JSON text, `L` a JSON string literal, `H` hexadecimal bytes.
    fn command(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let numbers: Vec<u64> = rest.split(' ').map_while(|word| word.parse().ok()).collect();
        let number = |index: usize| numbers.get(index).copied().unwrap_or(0);
        let text = |skip: usize| rest.splitn(skip + 1, ' ').nth(skip).unwrap_or("");
        match word {
            // log L
            "log" => self.send(&ChildFrame::Log { text: rest.as_bytes() }),
            // call NAMESPACE FUNCTION J: with the next id, without waiting
            "call" => {
                let id = self.next_call;
                self.next_call += 1;
                self.call(id, number(0), number(1), text(2));
            }
            // callid ID NAMESPACE FUNCTION J
            "callid" => self.call(number(0), number(1), number(2), text(3)),
            // reply: waits for a reply and logs it
            "reply" => match self.next() {
                Some(Said::Value(id, value)) => self.log(&format!("{id} ok {value}")),
                Some(Said::Error(id, message)) => self.log(&format!("{id} error {message}")),
                _ => std::process::exit(0),
            },
            // quiet: waits for a reply and says nothing
            "quiet" => {
                if self.next().is_none() {
                    std::process::exit(0);
                }
            }
            // done J, or without a value
            "done" => {
                let value = (!rest.is_empty()).then_some(rest.as_bytes());
                self.send(&ChildFrame::Completed { value });
            }
            // blob BYTES: done with a string whose JSON text has so many bytes
            "blob" => {
                let value = format!("\"{}\"", "x".repeat(usize::try_from(number(0) - 2).unwrap()));
                self.send(&ChildFrame::Completed { value: Some(value.as_bytes()) });
            }
            // throw LINE COLUMN NAME L
            "throw" => {
                let (line, column) = (number(0).try_into().unwrap(), number(1).try_into().unwrap());
                let name = rest.split(' ').nth(2).unwrap_or("");
                let kind = ChildFailureKind::Exception;
                self.send(&ChildFrame::Failed { kind, message: text(3).as_bytes(), name, line, column });
            }
            "lossy" => {
                let kind = ChildFailureKind::InvalidOutput;
                self.send(&ChildFrame::Failed {
                    kind,
                    message: rest.as_bytes(),
                    name: "",
                    line: 0,
                    column: 0,
                });
            }
            "overlimit" => {
                let kind = ChildFailureKind::OutputLimit;
                self.send(&ChildFrame::Failed { kind, message: b"\"mine\"", name: "", line: 0, column: 0 });
            }
            "stalled" => self.send(&ChildFrame::Stalled),
            "heap" => self.send(&ChildFrame::HeapExhausted { used: number(0), limit: number(1) }),
            "hello" => self.hello("ok"),
            "fault" => self.send(&ChildFrame::Fault { step: "late", errno: 1 }),
            // raw H
            "raw" => {
                let bytes = unhex(rest);
                self.raw(&bytes);
            }
            // drip MS H: byte by byte
            "drip" => {
                for byte in unhex(text(1)) {
                    self.raw(&[byte]);
                    std::thread::sleep(Duration::from_millis(number(0)));
                }
            }
            // deep DEPTH: done with so many nested arrays
            "deep" => {
                let depth = usize::try_from(number(0)).unwrap();
                let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
                self.send(&ChildFrame::Completed { value: Some(value.as_bytes()) });
            }
            // repeat COUNT COMMAND
            "repeat" => {
                for _ in 0..number(0) {
                    self.command(text(1));
                }
            }
            "sleep" => std::thread::sleep(Duration::from_millis(number(0))),
            // spin MS of CPU time
            "spin" => {
                let until = Instant::now() + Duration::from_millis(number(0));
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            }
            "exit" => std::process::exit(number(0).try_into().unwrap()),
            // kill SIGNAL: of itself
            "kill" => {
                let signal = i32::try_from(number(0)).unwrap();
                let signal = nix::sys::signal::Signal::try_from(signal).unwrap();
                // Rust's own handler of SIGSEGV swallows the first.
                loop {
                    nix::sys::signal::raise(signal).unwrap();
                }
            }
            "close" => {
                let (other, _) = UnixStream::pair().unwrap();
                let old = std::mem::replace(&mut self.stream, other);
                drop(OwnedFd::from(old));
            }
            "halfclose" => self.stream.shutdown(std::net::Shutdown::Write).unwrap(),
            // stderr BYTES
            "stderr" => {
                let line = "\u{1b}[31mnoise ".repeat(64);
                let mut left = number(0);
                while left > 0 && std::io::stderr().write_all(line.as_bytes()).is_ok() {
                    left = left.saturating_sub(line.len() as u64);
                }
            }
            // rights: a descriptor, smuggled
            "rights" => {
                let (ours, _theirs) = UnixStream::pair().unwrap();
                let descriptors = [ours.into_raw_fd()];
                let control = [nix::sys::socket::ControlMessage::ScmRights(&descriptors)];
                let frame = ChildFrame::Log { text: b"\"with rights\"" }.encode();
                let slices = [std::io::IoSlice::new(&frame)];
                let flags = MsgFlags::empty();
                nix::sys::socket::sendmsg::<()>(self.stream.as_raw_fd(), &slices, &control, flags, None)
                    .unwrap();
            }
            "" | "//" => {}
            other => panic!("no such command: {other}"),
        }
    }

    fn call(&mut self, id: u64, namespace: u64, function: u64, args: &str) {
        let (namespace, function) = (namespace.try_into().unwrap(), function.try_into().unwrap());
        self.send(&ChildFrame::Call { id, namespace, function, args: args.as_bytes() });
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The stripper: hands text through, but for what `//strip:` asks.
fn strip(boot: &Boot) {
    // SAFETY: descriptor 0 is the stream, and nothing else in this process uses it.
    let mut stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(0) });
    let mut decoder = Decoder::new(1 << 30);
    let mut booted = false;
    let mut chunk = vec![0; 1 << 16];
    while let Some(read) = stream.read(&mut chunk).ok().filter(|read| *read > 0) {
        decoder.buffer().extend_from_slice(&chunk[..read]);
        while let Some(frame) = decoder.next_frame().unwrap() {
            if booted {
                let request = StripRequest::decode(frame).unwrap();
                let answer = answer(boot, request.id, request.program);
                if stream.write_all(&answer).is_err() {
                    return;
                }
            } else {
                BootRequest::from_frame(frame).unwrap();
                let version = if boot.get("strip_hello", "") == "version" { 9 } else { WIRE_VERSION };
                let layers = LayerSet::from_bits(u32::MAX);
                let layers = match boot.get("strip_hello", "") {
                    "unlocked" => layers.without(Layer::Seccomp),
                    _ => layers,
                };
                match boot.get("strip_hello", "") {
                    "never" => wait_for_ever(),
                    "fault" => {
                        let fault = StripHello::Fault { step: "pretend".to_owned(), errno: 5 };
                        stream.write_all(&fault.encode()).unwrap();
                    }
                    _ => stream.write_all(&StripHello::Ready { version, layers }.encode()).unwrap(),
                }
                booted = true;
            }
        }
    }
}

fn answer(boot: &Boot, id: u64, program: &str) -> Vec<u8> {
    let (first, _) = program.split_once('\n').unwrap_or((program, ""));
    match first.strip_prefix("//strip:").unwrap_or("") {
        "crash" if boot.get("strip_crashes", "abort") == "kill" => {
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        "crash" => std::process::abort(),
        "slow" => loop {
            std::hint::spin_loop();
        },
        "stall" => wait_for_ever(),
        "garbage" => return vec![1, 0, 0, 0, 99, 0],
        "wrong" => {
            let (shape, source) = (Shape::Body, String::new());
            return StripAnswer::Stripped { id: id + 1, shape, source, hints: Vec::new() }.encode();
        }
        "refuse" => {
            let message = "`enum` is not erasable; write an object".to_owned();
            return StripAnswer::Refused { id, message, line: 2, column: 3 }.encode();
        }
        "hint" => {
            let source = program.split_once('\n').map_or("", |(_, rest)| rest).to_owned();
            let hints = vec!["function `main` is defined and never called".to_owned(); 20];
            return StripAnswer::Stripped { id, shape: Shape::Body, source, hints }.encode();
        }
        _ => {}
    }
    let source = program.to_owned();
    StripAnswer::Stripped { id, shape: Shape::Body, source, hints: Vec::new() }.encode()
}
