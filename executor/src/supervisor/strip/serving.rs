//! One stripping process and what it was asked: its hello, its answers, and the time that the program at the head may
//! take. Owns the conversation; who is to blame for its end, and what is tried again, is its caller's.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codemode_wire::limits::WIRE_VERSION;
use codemode_wire::strip::{StripAnswer, StripHello, StripRequest};
use codemode_wire::{Decoder, FrameError};
use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::cache::Cache;
use super::{Job, StripPlan, Stripped};
use crate::supervisor::outgoing::Outgoing;
use crate::supervisor::process::{CpuClock, Process};
use crate::supervisor::zygote::BootError;
use crate::supervisor::{spawn, stderr};

/// Programs handed to the process and not answered yet, at most: enough to keep it busy.
const PIPELINED_MAX: usize = 16;
/// Pieces of advice of one program that are kept, as the contract says.
const HINTS_MAX: usize = 8;
/// Bytes of one piece of advice that are kept.
const HINT_BYTES_MAX: usize = 1024;
/// Bytes of a refusal's message that are kept.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Elapsed time that a program may take, in multiples of the CPU time that it may: on a busy machine a process waits.
const ELAPSED_FACTOR: u32 = 5;
/// Longest time between two looks at a process that works on a program: it may have been stopped.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Why a process no longer serves.
#[derive(Debug)]
pub(super) enum End {
    /// It died, or its stream broke.
    Gone,
    /// The program at the head has spent its CPU time.
    Slow,
    /// The process is stopped, does nothing, or gets no share of the machine.
    Stalled,
    /// It broke its protocol.
    Violation(String),
}

/// A process and what it was asked.
pub(super) struct Serving {
    process: Process,
    stream: UnixStream,
    decoder: Decoder,
    outgoing: Outgoing,
    asked: VecDeque<Job>,
    next_id: u64,
    head: Head,
    /// How long after a program came to the head it is looked at first.
    first_look: Duration,
    /// Where its answers are remembered.
    cache: Arc<Mutex<Cache>>,
}

/// What the program at the head may still take.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// When it came to the head.
    since: Instant,
    /// CPU time that the process had used by then.
    cpu: Duration,
    /// When its time could be spent at the earliest.
    look: Instant,
}

impl Serving {
    /// Starts a process and waits until it says that it is locked down.
    pub(super) async fn start(
        plan: &StripPlan,
        stop: &CancellationToken,
        cache: &Arc<Mutex<Cache>>,
    ) -> Result<Self, BootError> {
        let (process, stream) = Self::launch(plan)
            .await
            .map_err(|source| BootError::Spawn { path: plan.path.display().to_string(), source })?;
        let mut outgoing = Outgoing::default();
        outgoing.push(plan.request.encode());
        let now = Instant::now();
        let head = Head { since: now, cpu: Duration::ZERO, look: now };
        let decoder = Decoder::new(plan.answer_bytes_max);
        let (asked, cache) = (VecDeque::new(), Arc::clone(cache));
        let first_look = plan.cpu.min(LOOK_AGAIN);
        let mut serving =
            Self { process, stream, decoder, outgoing, asked, next_id: 0, head, first_look, cache };
        let greeted = tokio::select! {
            () = stop.cancelled() => Err(BootError::Stopped),
            greeted = tokio::time::timeout(plan.boot_deadline, serving.greeted(plan)) => {
                greeted.unwrap_or(Err(BootError::Deadline(plan.boot_deadline)))
            }
        };
        match greeted {
            Ok(()) => Ok(serving),
            Err(error) => {
                serving.process.kill();
                // It never served: how it ended tells nothing more.
                let _ = serving.process.reap().await;
                Err(error)
            }
        }
    }

    /// Whether it was of any use.
    pub(super) const fn has_answered(&self) -> bool {
        self.next_id > 0
    }

    /// The process, to be ended, and what it has not answered.
    pub(super) fn into_parts(self) -> (Process, VecDeque<Job>) {
        (self.process, self.asked)
    }

    async fn launch(plan: &StripPlan) -> io::Result<(Process, UnixStream)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (process, errors) = spawn::spawn(&plan.path, "strip", theirs.into()).await?;
        stderr::log(errors, "strip", process.pid());
        Ok((process, UnixStream::from_std(ours)?))
    }

    /// Sends the boot request and judges the hello.
    async fn greeted(&mut self, plan: &StripPlan) -> Result<(), BootError> {
        while !self.outgoing.is_empty() {
            self.stream.writable().await.map_err(BootError::Channel)?;
            self.outgoing.flush(&self.stream).map_err(BootError::Channel)?;
        }
        let hello = loop {
            self.stream.readable().await.map_err(BootError::Channel)?;
            if self.read_some().is_some() {
                return Err(BootError::Channel(io::ErrorKind::UnexpectedEof.into()));
            }
            let hello = self.decoder.next_frame().and_then(|frame| frame.map(StripHello::decode).transpose());
            match hello {
                Ok(Some(hello)) => break hello,
                Ok(None) => {}
                Err(error) => return Err(BootError::Garbled(error.to_string())),
            }
        };
        match hello {
            StripHello::Fault { step, errno } => Err(BootError::Fault { step, errno }),
            StripHello::Ready { version, .. } if version != WIRE_VERSION => {
                Err(BootError::Version { theirs: version })
            }
            StripHello::Ready { layers, .. } => {
                let missing: Vec<_> =
                    plan.required.minus(layers).iter().map(|layer| layer.to_string()).collect();
                if missing.is_empty() { Ok(()) } else { Err(BootError::Layers(missing.join(", "))) }
            }
        }
    }

    /// Asks for one program.
    pub(super) fn ask(&mut self, job: Job) {
        if job.answer.is_closed() {
            return;
        }
        let first = self.asked.is_empty();
        let id = self.next_id + self.asked.len() as u64;
        self.outgoing.push(StripRequest { id, program: &job.program }.encode());
        self.asked.push_back(job);
        if first {
            self.begin_head();
        }
    }

    /// The next program is at the head.
    fn begin_head(&mut self) {
        let since = Instant::now();
        self.head = Head { since, cpu: self.cpu(), look: since + self.first_look };
    }

    fn cpu(&self) -> Duration {
        self.process.cpu_clock().ok().and_then(CpuClock::read).unwrap_or_default()
    }

    /// Whether the program at the head has had its time; else when to look again. One thread cannot burn CPU time
    /// faster than time goes by.
    fn overdue(&mut self, plan: &StripPlan) -> Option<End> {
        let used = self.cpu().saturating_sub(self.head.cpu);
        if used >= plan.cpu {
            return Some(End::Slow);
        }
        let elapsed = self.head.since.elapsed();
        if self.process.has_ended() {
            return Some(End::Gone);
        }
        if elapsed >= plan.cpu * ELAPSED_FACTOR || !self.process.is_running() {
            return Some(End::Stalled);
        }
        self.head.look = Instant::now() + (plan.cpu - used).clamp(Duration::from_millis(1), LOOK_AGAIN);
        None
    }

    /// Serves until the process cannot any more; `None` at shutdown.
    pub(super) async fn serve(
        &mut self,
        plan: &StripPlan,
        jobs: &mut mpsc::Receiver<Job>,
        stop: &CancellationToken,
    ) -> Option<End> {
        loop {
            // A process that takes nothing any more may have answered before: the end is what reading says.
            let writable = self.outgoing.flush(&self.stream).is_ok() && !self.outgoing.is_empty();
            let interest =
                if writable { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            let look = self.head.look.into();
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                ready = self.stream.ready(interest) => match ready {
                    Ok(ready) if ready.is_readable() => {
                        if let Some(end) = self.read() {
                            return Some(end);
                        }
                    }
                    Ok(_) => {}
                    Err(_) => return Some(End::Gone),
                },
                () = tokio::time::sleep_until(look), if !self.asked.is_empty() => {
                    if let Some(end) = self.overdue(plan) {
                        return Some(end);
                    }
                }
                job = jobs.recv(), if self.asked.len() < PIPELINED_MAX => match job {
                    Some(job) => self.ask(job),
                    None => return None,
                },
            }
        }
    }

    /// Reads what is there.
    fn read_some(&mut self) -> Option<End> {
        let buffer = self.decoder.buffer();
        buffer.reserve(64 * 1024);
        match self.stream.try_read_buf(buffer) {
            Ok(0) => Some(End::Gone),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => Some(End::Gone),
        }
    }

    fn read(&mut self) -> Option<End> {
        if let Some(end) = self.read_some() {
            return Some(end);
        }
        loop {
            match self.next_answer() {
                Ok(Some(answer)) => {
                    if let Some(violation) = self.deliver(answer) {
                        return Some(violation);
                    }
                }
                Ok(None) => return None,
                Err(error) => return Some(End::Violation(error.to_string())),
            }
        }
    }

    fn next_answer(&mut self) -> Result<Option<StripAnswer>, FrameError> {
        self.decoder.next_frame()?.map(StripAnswer::decode).transpose()
    }

    fn deliver(&mut self, answer: StripAnswer) -> Option<End> {
        let (id, stripped) = match answer {
            StripAnswer::Stripped { id, shape, source, mut hints } => {
                hints.truncate(HINTS_MAX);
                for hint in &mut hints {
                    hint.truncate(hint.floor_char_boundary(HINT_BYTES_MAX));
                }
                (id, Stripped::Program { shape, source, hints })
            }
            StripAnswer::Refused { id, mut message, line, column } => {
                message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
                (id, Stripped::Refused { message, line, column })
            }
        };
        if id != self.next_id {
            return Some(End::Violation(format!("answer {id} where {} was due", self.next_id)));
        }
        let Some(job) = self.asked.pop_front() else {
            return Some(End::Violation("an answer to nothing".to_owned()));
        };
        self.next_id += 1;
        if !self.asked.is_empty() {
            self.begin_head();
        }
        let stripped = Arc::new(stripped);
        self.cache.lock().insert(&job.program, &stripped);
        job.answer(Ok(stripped));
        None
    }
}
