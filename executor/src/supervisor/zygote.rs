//! One runner process that makes run processes: booted once, asked over a `SOCK_SEQPACKET` socket, never given a
//! program. In `exec` mode the same conversation is held with a process that serves one request by becoming the run's.
//!
//! Requests are pipelined: each is sent at once, answers come in order. Nothing a runner says is believed beyond its
//! shape, and every wait for it has a deadline after which it is killed.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use codemode_wire::control::{BootRequest, ForkRequest, ZygoteFrame};
use codemode_wire::limits::{CONTROL_BYTES_MAX, WIRE_VERSION};
use codemode_wire::{LayerReport, LayerSet, LayerState};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, Shutdown, SockFlag, SockType, recv, sendmsg, shutdown,
    socketpair,
};
use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::process::Process;
use super::{pidfd, spawn, stderr};
use crate::config::Engine;

/// What an engine says of itself when it has booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineInfo {
    /// Which engine.
    pub engine: Engine,
    /// Its own version.
    pub version: String,
    /// Whether it compiles to machine code.
    pub jit: bool,
    /// How each layer stands in a run's process.
    pub layers: Vec<LayerReport>,
    /// Globals that a program finds, sorted.
    pub globals: Vec<String>,
}

impl EngineInfo {
    /// Layers in force for every run's process.
    #[must_use]
    pub fn in_force(&self) -> LayerSet {
        let in_force = self.layers.iter().filter(|report| report.state == LayerState::InForce);
        in_force.map(|report| report.layer).collect()
    }
}

/// Why a runner did not come up.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The process cannot be started.
    #[error("cannot start `{path}`")]
    Spawn {
        /// The runner.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The control channel broke.
    #[error("control channel failed")]
    Channel(#[source] io::Error),
    /// A step of its own failed.
    #[error("step `{step}` failed with error number {errno}")]
    Fault {
        /// The step.
        step: String,
        /// The error number, or 0.
        errno: i32,
    },
    /// It said something else than that it is ready.
    #[error("the runner's first message is wrong: {0}")]
    Garbled(String),
    /// It is of another build.
    #[error("the runner speaks wire version {theirs}; this executor speaks {WIRE_VERSION}")]
    Version {
        /// The runner's version.
        theirs: u16,
    },
    /// It runs another engine than its place in the configuration says.
    #[error("the runner is `{theirs}`, configured as `{ours}`")]
    WrongEngine {
        /// What it says.
        theirs: String,
        /// What the configuration says.
        ours: Engine,
    },
    /// Layers that the configuration requires are not in force.
    #[error("required layers not in force: {0}")]
    Layers(String),
    /// It did not answer in time.
    #[error("no answer within {0:?}")]
    Deadline(Duration),
    /// The executor shuts down.
    #[error("the executor shuts down")]
    Stopped,
}

/// Why there is no process.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The zygote is gone or was given up; another may do.
    #[error("the zygote is gone")]
    Gone,
    /// No runner came up for so long.
    #[error("no runner was ready within {0:?}")]
    NoneReady(Duration),
    /// The zygote could not make one.
    #[error("step `{step}` failed with error number {errno}")]
    Failed {
        /// The step.
        step: String,
        /// The error number.
        errno: i32,
    },
    /// The process that it named cannot be taken over.
    #[error("cannot take over process {pid}")]
    Adopt {
        /// What the zygote said.
        pid: i32,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The process could not be put into a control group.
    #[error("cannot put process {pid} into a control group")]
    Group {
        /// The process.
        pid: i32,
        /// Why not.
        #[source]
        source: codemode_lockdown::cgroup::CgroupError,
    },
    /// A process that was made ahead said nothing in time.
    #[error("it did not lock itself down in time")]
    Silent,
    /// The kernel gave no random bytes.
    #[error("no random bytes")]
    Random(#[source] io::Error),
    /// A local resource is missing.
    #[error("cannot make a channel")]
    Channel(#[from] io::Error),
}

type Answer = Result<Process, ForkError>;

/// How a runner is started.
#[derive(Clone, Debug)]
pub(crate) struct BootPlan {
    pub(crate) engine: Engine,
    pub(crate) path: Arc<Path>,
    pub(crate) request: BootRequest,
    pub(crate) required: LayerSet,
    /// How the layer stands that the executor applies itself.
    pub(crate) cgroup: LayerReport,
    pub(crate) boot_deadline: Duration,
    pub(crate) control_deadline: Duration,
    /// `once` instead of `zygote`.
    pub(crate) single_use: bool,
}

/// Numbers of zygotes, over all engines.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A booted zygote.
#[derive(Debug)]
pub(crate) struct Zygote {
    /// Its own for as long as the executor lives.
    pub(crate) id: u64,
    socket: AsyncFd<OwnedFd>,
    pub(crate) info: Arc<EngineInfo>,
    pub(crate) in_force: LayerSet,
    waiting: Mutex<VecDeque<oneshot::Sender<Answer>>>,
    forks: AtomicU64,
    gone: AtomicBool,
    /// To be replaced as soon as there is a spare.
    tainted: AtomicBool,
    /// Its process is reaped, or is a run's.
    pub(crate) reaped: CancellationToken,
    control_deadline: Duration,
    single_use: bool,
    /// Tells the keeper to kill it at once.
    condemned: Notify,
    /// Tells the keeper that it was told to end.
    retired: Notify,
}

impl Zygote {
    /// Starts a runner, boots it, and starts its keeper, which reports to `died` when the process is reaped.
    pub(crate) async fn boot(plan: &BootPlan, died: Arc<Notify>) -> Result<Arc<Self>, BootError> {
        let (ours, theirs) = seqpacket_pair().map_err(BootError::Channel)?;
        let role = if plan.single_use { "once" } else { "zygote" };
        let (process, errors) = spawn::spawn(&plan.path, role, theirs)
            .await
            .map_err(|source| BootError::Spawn { path: plan.path.display().to_string(), source })?;
        stderr::log(errors, plan.engine.name(), process.pid());
        let greeted = tokio::time::timeout(plan.boot_deadline, greet(&ours, plan)).await;
        let info = match greeted.unwrap_or(Err(BootError::Deadline(plan.boot_deadline))) {
            Ok(info) => info,
            Err(error) => {
                process.kill();
                let _ = process.reap().await;
                return Err(error);
            }
        };
        let zygote = Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            socket: ours,
            in_force: info.in_force(),
            info: Arc::new(info),
            waiting: Mutex::default(),
            forks: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            tainted: AtomicBool::new(false),
            reaped: CancellationToken::new(),
            control_deadline: plan.control_deadline,
            single_use: plan.single_use,
            condemned: Notify::new(),
            retired: Notify::new(),
        });
        let process = if plan.single_use { Keeping::Becoming(process) } else { Keeping::Zygote(process) };
        tokio::spawn(Arc::clone(&zygote).keep(process, died));
        Ok(zygote)
    }

    /// Requests answered with a process so far.
    pub(crate) fn forks(&self) -> u64 {
        self.forks.load(Ordering::Relaxed)
    }

    /// Whether nothing can be asked of it any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Whether it is to be replaced as soon as there is a spare.
    pub(crate) fn is_tainted(&self) -> bool {
        self.tainted.load(Ordering::Relaxed)
    }

    /// Has it replaced as soon as there is a spare.
    pub(crate) fn taint(&self) {
        self.tainted.store(true, Ordering::Relaxed);
    }

    /// Makes it serve what was asked and then exit; if it does not in time, it is killed.
    pub(crate) fn retire(&self) {
        self.gone.store(true, Ordering::Release);
        self.retired.notify_one();
        // An error means that it is disconnected already.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
    }

    /// Asks for one process that holds `run_socket`. To be awaited to its end: dropped early, the process that comes
    /// is killed and reaped.
    pub(crate) async fn fork(&self, request: &ForkRequest, run_socket: OwnedFd) -> Answer {
        let packet = request.encode();
        let answered = loop {
            if self.is_gone() {
                return Err(ForkError::Gone);
            }
            match self.ask(&packet, run_socket.as_fd()) {
                Ok(answered) => break answered,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // The socket's buffer is full of requests. Only `writable` may clear the readiness it saw.
                    let waited = tokio::time::timeout(self.control_deadline, self.socket.writable()).await;
                    match waited {
                        Ok(Ok(mut ready)) => ready.clear_ready(),
                        Ok(Err(_)) => return Err(self.lost()),
                        Err(_) => return Err(self.condemn("takes no requests")),
                    }
                }
                Err(_) => return Err(self.lost()),
            }
        };
        drop(run_socket);
        match tokio::time::timeout(self.control_deadline, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(self.lost()),
            Err(_) => Err(self.condemn("does not answer")),
        }
    }

    /// Sends the request and queues for its answer; both under one lock, so that answers find their requests.
    fn ask(&self, packet: &[u8], run_socket: BorrowedFd<'_>) -> io::Result<oneshot::Receiver<Answer>> {
        let descriptors = [run_socket.as_raw_fd()];
        let control = [ControlMessage::ScmRights(&descriptors)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let mut waiting = self.waiting.lock();
        sendmsg::<()>(self.socket.as_raw_fd(), &[IoSlice::new(packet)], &control, flags, None)?;
        let (answer, answered) = oneshot::channel();
        waiting.push_back(answer);
        Ok(answered)
    }

    /// The socket says so before the process's end is noticed: who asks again shall not ask this one.
    fn lost(&self) -> ForkError {
        self.gone.store(true, Ordering::Release);
        ForkError::Gone
    }

    fn condemn(&self, why: &'static str) -> ForkError {
        tracing::error!(engine = %self.info.engine, why, "a zygote is killed");
        self.condemned.notify_one();
        self.lost()
    }

    /// Reads answers until the zygote ends, then reaps it.
    async fn keep(self: Arc<Self>, process: Keeping, died: Arc<Notify>) {
        let mut process = Some(process);
        tokio::select! {
            () = self.read_answers(&mut process) => {}
            () = self.condemned.notified() => {}
            () = self.overstays() => tracing::error!(engine = %self.info.engine, "a zygote does not end"),
        }
        self.gone.store(true, Ordering::Release);
        self.waiting.lock().clear();
        if let Some(Keeping::Zygote(process) | Keeping::Becoming(process)) = process {
            // It has said all that it will be heard saying.
            process.kill();
            match process.reap().await {
                Ok(ended) => {
                    tracing::debug!(engine = %self.info.engine, exit = ?ended.exit, "a zygote ended")
                }
                Err(error) => tracing::error!(%error, "cannot reap a zygote"),
            }
        }
        self.reaped.cancel();
        died.notify_one();
    }

    /// Resolves when it was told to end and has not, for as long as it may take to serve what it was asked before.
    async fn overstays(&self) {
        self.retired.notified().await;
        tokio::time::sleep(self.control_deadline).await;
    }

    /// Hands out answers until the zygote ends or cannot be believed. Cancel-safe between two answers.
    async fn read_answers(&self, process: &mut Option<Keeping>) {
        let mut packet = vec![0; CONTROL_BYTES_MAX];
        loop {
            let received = tokio::select! {
                biased;
                received = receive(&self.socket, &mut packet) => received,
                () = ended(process.as_ref()) => return,
            };
            let Ok(frame) = received else { return };
            if !self.answer(frame, process) {
                return;
            }
        }
    }

    /// Hands an answer to the request it belongs to. False if the zygote cannot be believed any more.
    fn answer(&self, frame: ZygoteFrame, process: &mut Option<Keeping>) -> bool {
        let Some(waiter) = self.waiting.lock().pop_front() else {
            tracing::error!(engine = %self.info.engine, "a zygote answers what was not asked");
            return false;
        };
        let (answer, believed) = match frame {
            ZygoteFrame::Forked { pid } => match self.take_over(pid, process) {
                Ok(child) => {
                    self.forks.fetch_add(1, Ordering::Relaxed);
                    (Ok(child), true)
                }
                Err(source) => (Err(ForkError::Adopt { pid, source }), false),
            },
            ZygoteFrame::ForkFailed { step, errno } => (Err(ForkError::Failed { step, errno }), true),
            ZygoteFrame::Fault { step, errno } => (Err(ForkError::Failed { step, errno }), false),
            ZygoteFrame::Ready { .. } => (Err(ForkError::Gone), false),
        };
        // If nobody waits any more, dropping the answer kills and reaps the process.
        let _ = waiter.send(answer);
        believed && !self.single_use
    }

    fn take_over(&self, pid: i32, keeping: &mut Option<Keeping>) -> io::Result<Process> {
        if !self.single_use {
            return Process::adopt(pid);
        }
        match keeping.take() {
            Some(Keeping::Becoming(process)) if process.pid() == pid => Ok(process),
            other => {
                *keeping = other;
                Err(io::Error::other("the process is not the one that was started"))
            }
        }
    }
}

/// The process behind the socket.
#[derive(Debug)]
enum Keeping {
    /// It forks; it is reaped by its keeper.
    Zygote(Process),
    /// It becomes the run's process, and is the run's from then on.
    Becoming(Process),
}

async fn ended(keeping: Option<&Keeping>) {
    match keeping {
        Some(Keeping::Zygote(process) | Keeping::Becoming(process)) => process.ended().await,
        None => std::future::pending().await,
    }
}

fn seqpacket_pair() -> io::Result<(AsyncFd<OwnedFd>, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    let ours = pidfd::watch(ours, Interest::READABLE | Interest::WRITABLE)?;
    Ok((ours, theirs))
}

/// Sends the boot request and judges the answer.
async fn greet(socket: &AsyncFd<OwnedFd>, plan: &BootPlan) -> Result<EngineInfo, BootError> {
    let packet = plan.request.encode();
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&packet)], &[], flags, None)
        .map_err(|errno| BootError::Channel(errno.into()))?;
    let mut packet = vec![0; CONTROL_BYTES_MAX];
    let frame = receive(socket, &mut packet).await.map_err(BootError::Channel)?;
    let (version, engine, info) = match frame {
        ZygoteFrame::Ready { version, engine, engine_version, jit, mut layers, globals } => {
            layers.retain(|report| report.layer != plan.cgroup.layer);
            layers.push(plan.cgroup.clone());
            let info = EngineInfo { engine: plan.engine, version: engine_version, jit, layers, globals };
            (version, engine, info)
        }
        ZygoteFrame::Fault { step, errno } => return Err(BootError::Fault { step, errno }),
        other => return Err(BootError::Garbled(format!("{other:?}"))),
    };
    if version != WIRE_VERSION {
        return Err(BootError::Version { theirs: version });
    }
    if engine != plan.engine.name() {
        return Err(BootError::WrongEngine { theirs: engine, ours: plan.engine });
    }
    let missing = plan.required.minus(info.in_force());
    if missing.is_empty() { Ok(info) } else { Err(BootError::Layers(describe_missing(&info, missing))) }
}

fn describe_missing(info: &EngineInfo, missing: LayerSet) -> String {
    let reason = |layer| {
        let report = info.layers.iter().find(|report| report.layer == layer);
        report.map_or("not reported", |report| report.reason.as_str())
    };
    let words: Vec<String> = missing.iter().map(|layer| format!("`{layer}` ({})", reason(layer))).collect();
    words.join(", ")
}

/// One packet as a frame. Cancel-safe. Descriptors that a peer sends along are dropped by the kernel: there is no room
/// for them in a plain `recv`.
async fn receive(socket: &AsyncFd<OwnedFd>, packet: &mut [u8]) -> io::Result<ZygoteFrame> {
    let length = socket
        .async_io(Interest::READABLE, |fd| {
            // MSG_TRUNC answers the packet's real length.
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
            Ok(recv(fd.as_raw_fd(), packet, flags)?)
        })
        .await?;
    match packet.get(..length) {
        Some([]) => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(packet) => ZygoteFrame::decode(packet).map_err(io::Error::other),
        None => Err(io::Error::other("packet longer than any message")),
    }
}
