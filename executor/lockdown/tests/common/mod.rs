//! A small executor for the tests: starts the hostile runner as its zygote, asks it for processes, tells them what to do, and
//! reaps them. Skips what this machine or this user cannot do, and says so.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(unreachable_pub, reason = "shared by several test binaries")]
#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "tests")]

use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use codemode_lockdown::Engine;
use codemode_wire::codec::Decoder;
use codemode_wire::control::{BootRequest, ForkRequest, ZygoteFrame};
use codemode_wire::message::ChildFrame;
use codemode_wire::{Layer, LayerReport, LayerSet, LayerState};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

pub const NOBODY: u32 = 65534;
/// The user id that a runner started as root drops to.
pub const RUN_UID: u32 = 64_999;
const PATIENCE: Duration = Duration::from_secs(20);

/// How a zygote is started.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub engine: Engine,
    pub outer: &'static str,
    pub role: &'static str,
    /// Start it as this user; `None` as the test's own.
    pub uid: Option<u32>,
    pub off: LayerSet,
}

impl Setup {
    pub fn new(engine: Engine) -> Self {
        Self { engine, outer: "none", role: "zygote", uid: None, off: LayerSet::EMPTY }
    }

    pub fn outer(self, outer: &'static str) -> Self {
        Self { outer, ..self }
    }

    pub fn role(self, role: &'static str) -> Self {
        Self { role, ..self }
    }

    pub fn uid(self, uid: u32) -> Self {
        Self { uid: Some(uid), ..self }
    }

    pub fn without(self, layers: &[Layer]) -> Self {
        Self { off: layers.iter().copied().fold(self.off, LayerSet::with), ..self }
    }

    /// All layers off but these.
    pub fn only(self, layers: &[Layer]) -> Self {
        let all: LayerSet = Layer::ALL.into_iter().collect();
        Self { off: layers.iter().copied().fold(all, LayerSet::without), ..self }
    }
}

/// The setups of the matrix: root, nobody, and each under what Docker's default profile refuses.
pub fn matrix(engine: Engine) -> Vec<Setup> {
    let plain = Setup::new(engine);
    if is_root() {
        vec![plain, plain.uid(NOBODY), plain.outer("docker"), plain.uid(NOBODY).outer("docker")]
    } else {
        eprintln!("skipped: the rows that start as root, because this test does not run as root");
        vec![plain, plain.outer("docker")]
    }
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Prints why a test does nothing.
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// A running zygote.
pub struct Zygote {
    pub process: Child,
    control: OwnedFd,
    pub layers: Vec<LayerReport>,
}

/// What a zygote said instead of `Ready`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub step: String,
    pub errno: i32,
}

fn command(setup: Setup, input: OwnedFd) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockdown-hostile"));
    command.arg0("codemode-runner");
    command.arg(format!("{}/{}/{}", setup.engine, setup.outer, setup.role));
    command.env_clear().current_dir("/");
    command.stdin(Stdio::from(input)).stdout(Stdio::null()).stderr(Stdio::piped());
    if let Some(uid) = setup.uid {
        command.uid(uid).gid(uid);
    }
    command
}

pub fn boot_request(setup: Setup) -> BootRequest {
    BootRequest {
        layers_off: setup.off,
        jitless: setup.engine == Engine::V8Jitless,
        frame_bytes_max: 1 << 20,
        uid: RUN_UID,
    }
}

impl Zygote {
    pub fn start(setup: Setup) -> Self {
        Self::try_start(setup).unwrap_or_else(|fault| panic!("{setup:?} did not start: {fault:?}"))
    }

    pub fn try_start(setup: Setup) -> Result<Self, Fault> {
        let (control, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap();
        let mut process = command(setup, theirs).spawn().expect("the hostile runner starts");
        nix::unistd::write(&control, &boot_request(setup).encode()).unwrap();
        let mut buffer = vec![0_u8; 16 * 1024];
        let len = nix::unistd::read(&control, &mut buffer).unwrap();
        if len == 0 {
            let status = process.wait().unwrap();
            let mut text = String::new();
            process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
            panic!("{setup:?} died before it said anything: {status}, {text}");
        }
        match ZygoteFrame::decode(&buffer[..len]).unwrap() {
            ZygoteFrame::Ready { layers, .. } => Ok(Self { process, control, layers }),
            ZygoteFrame::Fault { step, errno } => {
                process.wait().unwrap();
                Err(Fault { step, errno })
            }
            other => panic!("unexpected {other:?}"),
        }
    }

    pub fn report(&self, layer: Layer) -> &LayerReport {
        self.layers.iter().find(|report| report.layer == layer).expect("a report per layer")
    }

    pub fn in_force(&self, layer: Layer) -> bool {
        self.report(layer).state == LayerState::InForce
    }

    pub fn run(&self) -> Run {
        self.run_with(60, 256 << 20)
    }

    pub fn run_with(&self, cpu_seconds: u32, data_bytes: u64) -> Run {
        self.try_run(cpu_seconds, data_bytes).unwrap_or_else(|fault| panic!("no run: {fault:?}"))
    }

    pub fn try_run(&self, cpu_seconds: u32, data_bytes: u64) -> Result<Run, Fault> {
        let (mine, theirs) = UnixStream::pair().unwrap();
        let request = ForkRequest { nonce: [7; 16], cpu_seconds, data_bytes, ahead: false }.encode();
        let fds = [theirs.as_raw_fd()];
        sendmsg::<()>(
            self.control.as_raw_fd(),
            &[IoSlice::new(&request)],
            &[ControlMessage::ScmRights(&fds)],
            MsgFlags::empty(),
            None,
        )
        .unwrap();
        drop(theirs);
        let mut buffer = [0_u8; 1024];
        let len = nix::unistd::read(&self.control, &mut buffer).unwrap();
        match ZygoteFrame::decode(&buffer[..len]).expect("an answer") {
            ZygoteFrame::Forked { pid } => Run::greet(pid, mine),
            ZygoteFrame::ForkFailed { step, errno } => Err(Fault { step, errno }),
            other => panic!("unexpected {other:?}"),
        }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).unwrap()
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A run's process after its hello.
pub struct Run {
    pub pid: i32,
    pub socket: UnixStream,
    pub layers: LayerSet,
    reaped: bool,
    line: Vec<u8>,
}

/// What came of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The process is alive: result and error number.
    Returned(i64, i32),
    /// It was killed by a signal.
    Killed(Signal),
    /// It exited.
    Exited(i32),
}

pub const SIGSYS: Answer = Answer::Killed(Signal::SIGSYS);

impl Run {
    fn greet(pid: i32, mut socket: UnixStream) -> Result<Self, Fault> {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut run = Self {
            pid,
            socket: socket.try_clone().unwrap(),
            layers: LayerSet::EMPTY,
            reaped: false,
            line: Vec::new(),
        };
        let mut decoder = Decoder::new(4096);
        loop {
            if let Some(frame) = decoder.next_frame().expect("frames") {
                match ChildFrame::decode(frame).expect("a hello") {
                    ChildFrame::Hello { layers, .. } => run.layers = layers,
                    ChildFrame::Fault { step, errno } => {
                        let fault = Fault { step: step.to_owned(), errno };
                        run.reap();
                        return Err(fault);
                    }
                    other => panic!("unexpected {}", other.name()),
                }
                break;
            }
            let mut byte = [0_u8; 1];
            if socket.read(&mut byte).expect("a hello in time") == 0 {
                panic!("no hello but {:?}", run.reap());
            }
            decoder.buffer().extend_from_slice(&byte);
        }
        Ok(run)
    }

    /// The stripping process or `once`, whose process is known from elsewhere.
    pub fn adopt(pid: i32, socket: UnixStream) -> Result<Self, Fault> {
        Self::greet(pid, socket)
    }

    /// Sends a command and returns its line of answer, or how the process ended.
    pub fn ask(&mut self, command: &str) -> Result<String, Answer> {
        let sent = self.socket.write_all(format!("{command}\n").as_bytes());
        if sent.is_err() {
            return Err(self.reap());
        }
        self.answer()
    }

    pub fn answer(&mut self) -> Result<String, Answer> {
        loop {
            if let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.line.drain(..=end).collect();
                return Ok(String::from_utf8(line[..end].to_vec()).unwrap());
            }
            let mut buffer = [0_u8; 512];
            match self.socket.read(&mut buffer) {
                Ok(0) | Err(_) => return Err(self.reap()),
                Ok(len) => self.line.extend_from_slice(&buffer[..len]),
            }
        }
    }

    /// Sends a command whose answer is a result and an error number.
    pub fn attack(&mut self, command: &str) -> Answer {
        match self.ask(command) {
            Ok(line) => {
                let (result, errno) = line.split_once(' ').unwrap_or_else(|| panic!("{command}: {line}"));
                Answer::Returned(
                    result.parse().unwrap_or_else(|_| panic!("{command}: {line}")),
                    errno.parse().unwrap(),
                )
            }
            Err(answer) => answer,
        }
    }

    /// Waits until the process is gone.
    pub fn reap(&mut self) -> Answer {
        let started = Instant::now();
        loop {
            match waitpid(Pid::from_raw(self.pid), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Signaled(_, signal, _)) => {
                    self.reaped = true;
                    return Answer::Killed(signal);
                }
                Ok(WaitStatus::Exited(_, code)) => {
                    self.reaped = true;
                    return Answer::Exited(code);
                }
                Ok(_) => {}
                Err(errno) => panic!("process {} is not ours: {errno}", self.pid),
            }
            assert!(started.elapsed() < PATIENCE, "process {} does not end", self.pid);
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    pub fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(Pid::from_raw(self.pid), signal).unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = nix::sys::signal::kill(Pid::from_raw(self.pid), Signal::SIGKILL);
            let _ = waitpid(Pid::from_raw(self.pid), None);
        }
    }
}

/// A process in the `strip` role after its hello.
pub fn start_strip(setup: Setup) -> (Child, Run) {
    let (mut mine, theirs) = UnixStream::pair().unwrap();
    let process = command(setup.role("strip"), OwnedFd::from(theirs)).spawn().unwrap();
    mine.write_all(&boot_request(setup).encode()).unwrap();
    let pid = i32::try_from(process.id()).unwrap();
    let run = Run::adopt(pid, mine).expect("the stripping process locks itself down");
    (process, run)
}

/// Runs something in a forked child of the test and exits with what it returns.
#[expect(unsafe_code, reason = "fork has no safe wrapper")]
pub fn fork_in_test(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: other threads of the harness may hold the allocator's lock, which the C library's fork takes care of; the
    // child takes no other lock that the harness uses, and ends without unwinding into it.
    match unsafe { nix::unistd::fork() }.expect("a process") {
        nix::unistd::ForkResult::Parent { child } => child.as_raw(),
        nix::unistd::ForkResult::Child => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(101);
            // SAFETY: always allowed.
            unsafe { libc::_exit(code) }
        }
    }
}
