//! The stripping processes: they erase types from programs, outside the executor and before any engine is involved.
//!
//! A parser fed with hostile text may overflow its stack, loop or take all memory, so each process is locked down and
//! expendable. Requests are pipelined and answered in order; so the program at the head is the one being worked on,
//! and when the process dies or has spent its time that program is to blame and the others are tried again.
//!
//! There are two: what is short never waits behind what is long ([`LONG_BYTES`]).

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codemode_wire::control::BootRequest;
use codemode_wire::limits::WIRE_VERSION;
use codemode_wire::message::Shape;
use codemode_wire::strip::{StripAnswer, StripHello, StripRequest};
use codemode_wire::{Decoder, FrameError, LayerSet};
use lru::LruCache;
use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::outgoing::Outgoing;
use super::process::{CpuClock, Process};
use super::zygote::BootError;
use super::{spawn, stderr};
use crate::run::attribution::{Exit, is_crash};

/// Programs handed to the process and not answered yet, at most: enough to keep it busy.
const PIPELINED_MAX: usize = 16;
/// Programs that wait for the process, at most; beyond it callers wait.
const QUEUED_MAX: usize = 64;
/// Pieces of advice of one program that are kept, as the contract says.
const HINTS_MAX: usize = 8;
/// Bytes of one piece of advice that are kept.
const HINT_BYTES_MAX: usize = 1024;
/// Bytes of a refusal's message that are kept.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Programs from this length on have a stripping process of their own, bytes. Parsing a shorter one takes milliseconds.
const LONG_BYTES: usize = 32 * 1024;
/// Elapsed time that a program may take, in multiples of the CPU time that it may: on a busy machine a process waits.
const ELAPSED_FACTOR: u32 = 5;
/// Pause before the process is started again after it could not be.
const RESTART_PAUSE: Duration = Duration::from_millis(200);
/// What a cache entry costs beside its texts, bytes.
const ENTRY_OVERHEAD_BYTES: usize = 256;

/// What stripping made of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stripped {
    /// JavaScript that means what the program meant.
    Program {
        /// How to run it.
        shape: Shape,
        /// The text.
        source: String,
        /// Advice for the author.
        hints: Vec<String>,
    },
    /// Not a program that can run.
    Refused {
        /// What is wrong.
        message: String,
        /// Line, or 0.
        line: u32,
        /// Column, or 0.
        column: u32,
    },
}

/// Why a program could not even be judged: the executor's own fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StripError {
    /// The process cannot be started, or does not follow its protocol.
    #[error("the stripping process cannot be used")]
    Unusable,
}

/// How the process is started.
#[derive(Clone, Debug)]
pub(crate) struct StripPlan {
    pub(crate) path: Arc<Path>,
    pub(crate) request: BootRequest,
    /// Layers that it must confirm before it is given a program.
    pub(crate) required: LayerSet,
    pub(crate) boot_deadline: Duration,
    /// CPU time for one program.
    pub(crate) cpu: Duration,
    pub(crate) answer_bytes_max: u32,
    pub(crate) cache_bytes: usize,
}

type Result_ = Result<Arc<Stripped>, StripError>;

/// What a program is answered, and by whom.
#[derive(Debug)]
enum Answer {
    /// The process's own word: the same for the same program, so it may be remembered.
    Judged(Arc<Stripped>),
    /// The executor's, of a program that the process did not survive or not finish: another time it may.
    GivenUp(Arc<Stripped>),
}

/// One program on its way.
#[derive(Debug)]
struct Job {
    program: Arc<str>,
    answer: oneshot::Sender<Result<Answer, StripError>>,
    /// The process died over it once, for a reason that may not be its.
    suspect: bool,
}

/// Access to the stripping processes.
#[derive(Debug)]
pub(crate) struct Stripper {
    short: mpsc::Sender<Job>,
    long: mpsc::Sender<Job>,
    cache: Arc<Mutex<Cache>>,
}

impl Stripper {
    /// Starts the processes and their keepers.
    ///
    /// # Errors
    /// A process does not come up, or lacks a required layer.
    pub(crate) async fn start(
        plan: &StripPlan,
        stop: &CancellationToken,
    ) -> Result<(Self, Vec<Keeper>), BootError> {
        let cache = Arc::new(Mutex::new(Cache::new(plan.cache_bytes)));
        let (short, keeps_short) = lane(plan, stop, &cache).await?;
        let (long, keeps_long) = lane(plan, stop, &cache).await?;
        Ok((Self { short, long, cache }, vec![keeps_short, keeps_long]))
    }

    /// Strips a program, or remembers what came of it. Cancel-safe: a dropped request's answer is thrown away.
    pub(crate) async fn strip(&self, program: &Arc<str>) -> Result_ {
        if let Some(known) = self.cache.lock().get(program) {
            return Ok(known);
        }
        let (answer, answered) = oneshot::channel();
        let job = Job { program: Arc::clone(program), answer, suspect: false };
        let lane = if program.len() < LONG_BYTES { &self.short } else { &self.long };
        lane.send(job).await.map_err(|_| StripError::Unusable)?;
        match answered.await.map_err(|_| StripError::Unusable)?? {
            Answer::Judged(stripped) => {
                self.cache.lock().insert(program, &stripped);
                Ok(stripped)
            }
            Answer::GivenUp(stripped) => Ok(stripped),
        }
    }
}

/// The keeper's task; it ends at shutdown, when the process is reaped.
pub(crate) type Keeper = tokio::task::JoinHandle<()>;

/// One process with the queue in front of it.
async fn lane(
    plan: &StripPlan,
    stop: &CancellationToken,
    cache: &Arc<Mutex<Cache>>,
) -> Result<(mpsc::Sender<Job>, Keeper), BootError> {
    let (jobs, receiver) = mpsc::channel(QUEUED_MAX);
    let serving = Serving::start(plan, stop).await?;
    let keeper = tokio::spawn(keep(plan.clone(), serving, receiver, stop.clone(), Arc::clone(cache)));
    Ok((jobs, keeper))
}

/// A process and what it was asked.
struct Serving {
    process: Process,
    stream: UnixStream,
    decoder: Decoder,
    outgoing: Outgoing,
    asked: VecDeque<Job>,
    next_id: u64,
    head: Head,
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

/// Why a process no longer serves.
enum End {
    /// It died, or its stream broke.
    Gone,
    /// The program at the head has spent its CPU time.
    Slow,
    /// The process does nothing, or gets no share of the machine.
    Stalled,
    /// It broke its protocol.
    Violation(String),
    /// The executor shuts down.
    Shutdown,
}

async fn keep(
    plan: StripPlan,
    mut serving: Serving,
    mut jobs: mpsc::Receiver<Job>,
    stop: CancellationToken,
    cache: Arc<Mutex<Cache>>,
) {
    loop {
        let end = serving.serve(&plan, &mut jobs, &stop).await;
        let Serving { process, asked, .. } = serving;
        let again = bury(process, asked, &end).await;
        // A process that was brought down may have been made to lie before; what it said is not believed any longer.
        *cache.lock() = Cache::new(plan.cache_bytes);
        if matches!(end, End::Shutdown) {
            return;
        }
        let Some(next) = replace(&plan, again, &mut jobs, &stop).await else { return };
        serving = next;
    }
}

/// Another process, asked what is still to be answered. Tries until there is one; `None` at shutdown.
async fn replace(
    plan: &StripPlan,
    mut again: VecDeque<Job>,
    jobs: &mut mpsc::Receiver<Job>,
    stop: &CancellationToken,
) -> Option<Serving> {
    while !stop.is_cancelled() {
        match Serving::start(plan, stop).await {
            Ok(mut serving) => {
                for job in again {
                    serving.ask(job);
                }
                return Some(serving);
            }
            Err(error) => {
                report(&error);
                fail(std::mem::take(&mut again));
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(RESTART_PAUSE) => {}
                }
                // Who queued meanwhile must not wait for ever.
                while let Ok(job) = jobs.try_recv() {
                    let _ = job.answer.send(Err(StripError::Unusable));
                }
            }
        }
    }
    fail(again);
    None
}

fn report(error: &(dyn std::error::Error + 'static)) {
    tracing::error!(error, "cannot start a stripping process");
}

fn fail(jobs: VecDeque<Job>) {
    for job in jobs {
        let _ = job.answer.send(Err(StripError::Unusable));
    }
}

/// Kills and reaps the process, answers the program that ended it, and returns those to be tried again.
async fn bury(process: Process, mut asked: VecDeque<Job>, end: &End) -> VecDeque<Job> {
    process.kill();
    let exit = process.reap().await.map(|ended| ended.exit);
    if matches!(end, End::Shutdown) {
        fail(asked);
        return VecDeque::new();
    }
    let Some(mut head) = asked.pop_front() else { return asked };
    tracing::warn!(?exit, "the stripping process ended over a program");
    let crashed = exit.as_ref().is_ok_and(|exit| is_crash(*exit));
    let exited = matches!(exit, Ok(Exit::Code(_)));
    match end {
        End::Slow => refuse(head, "the program takes too long to parse; make it simpler or shorter"),
        End::Violation(what) => {
            tracing::error!(what, "the stripping process broke its protocol");
            let _ = head.answer.send(Err(StripError::Unusable));
        }
        // It exits by itself only where it cannot serve at all, which no program is to blame for.
        End::Gone | End::Shutdown if exited && head.suspect => {
            let _ = head.answer.send(Err(StripError::Unusable));
        }
        End::Gone | End::Shutdown if crashed || head.suspect => {
            refuse(head, "the program is nested too deeply to be parsed; make it flatter");
        }
        End::Stalled if head.suspect => {
            let _ = head.answer.send(Err(StripError::Unusable));
        }
        // Ended or held up from outside, perhaps: one more try tells.
        End::Gone | End::Stalled | End::Shutdown => {
            head.suspect = true;
            asked.push_front(head);
        }
    }
    asked
}

fn refuse(job: Job, message: &str) {
    let refused = Stripped::Refused { message: message.to_owned(), line: 0, column: 0 };
    let _ = job.answer.send(Ok(Answer::GivenUp(Arc::new(refused))));
}

impl Serving {
    /// Starts a process and waits until it says that it is locked down.
    async fn start(plan: &StripPlan, stop: &CancellationToken) -> Result<Self, BootError> {
        let (process, stream) = Self::launch(plan)
            .await
            .map_err(|source| BootError::Spawn { path: plan.path.display().to_string(), source })?;
        let mut outgoing = Outgoing::default();
        outgoing.push(plan.request.encode());
        let now = Instant::now();
        let head = Head { since: now, cpu: Duration::ZERO, look: now };
        let decoder = Decoder::new(plan.answer_bytes_max);
        let mut serving =
            Self { process, stream, decoder, outgoing, asked: VecDeque::new(), next_id: 0, head };
        let greeted = tokio::select! {
            () = stop.cancelled() => Err(BootError::Deadline(now.elapsed())),
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

    fn ask(&mut self, job: Job) {
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
        self.head = Head { since, cpu: self.cpu(), look: since };
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
        if self.head.since.elapsed() >= plan.cpu * ELAPSED_FACTOR {
            return Some(End::Stalled);
        }
        self.head.look = Instant::now() + (plan.cpu - used).max(Duration::from_millis(1));
        None
    }

    async fn serve(
        &mut self,
        plan: &StripPlan,
        jobs: &mut mpsc::Receiver<Job>,
        stop: &tokio_util::sync::CancellationToken,
    ) -> End {
        loop {
            // A process that takes nothing any more may have answered before: the end is what reading says.
            let writable = self.outgoing.flush(&self.stream).is_ok() && !self.outgoing.is_empty();
            let interest =
                if writable { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            let look = tokio::time::Instant::from_std(self.head.look);
            tokio::select! {
                biased;
                () = stop.cancelled() => return End::Shutdown,
                ready = self.stream.ready(interest) => match ready {
                    Ok(ready) if ready.is_readable() => {
                        if let Some(end) = self.read() {
                            return end;
                        }
                    }
                    Ok(_) => {}
                    Err(_) => return End::Gone,
                },
                () = tokio::time::sleep_until(look), if !self.asked.is_empty() => {
                    if let Some(end) = self.overdue(plan) {
                        return end;
                    }
                }
                job = jobs.recv(), if self.asked.len() < PIPELINED_MAX => match job {
                    Some(job) => self.ask(job),
                    None => return End::Shutdown,
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
        let _ = job.answer.send(Ok(Answer::Judged(Arc::new(stripped))));
        None
    }
}

/// Programs and what became of them, the least recently used forgotten first. The key is the whole text: a hash that two
/// programs share must never run one for the other.
#[derive(Debug)]
struct Cache {
    entries: LruCache<Arc<str>, Arc<Stripped>>,
    bytes: usize,
    bytes_max: usize,
}

impl Cache {
    fn new(bytes_max: usize) -> Self {
        Self { entries: LruCache::unbounded(), bytes: 0, bytes_max }
    }

    fn get(&mut self, program: &str) -> Option<Arc<Stripped>> {
        if self.bytes_max == 0 { None } else { self.entries.get(program).cloned() }
    }

    fn insert(&mut self, program: &Arc<str>, stripped: &Arc<Stripped>) {
        let cost = cost(program, stripped);
        if cost > self.bytes_max / 4 {
            return;
        }
        if let Some(replaced) = self.entries.put(Arc::clone(program), Arc::clone(stripped)) {
            self.bytes -= self::cost(program, &replaced);
        }
        self.bytes += cost;
        while self.bytes > self.bytes_max {
            let Some((program, stripped)) = self.entries.pop_lru() else { break };
            self.bytes -= self::cost(&program, &stripped);
        }
    }
}

fn cost(program: &str, stripped: &Stripped) -> usize {
    let texts = match stripped {
        Stripped::Program { source, hints, .. } => {
            source.len() + hints.iter().map(String::len).sum::<usize>()
        }
        Stripped::Refused { message, .. } => message.len(),
    };
    program.len() + texts + ENTRY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: &str) -> Arc<Stripped> {
        Arc::new(Stripped::Refused { message: message.to_owned(), line: 0, column: 0 })
    }

    #[test]
    fn the_cache_is_bounded_in_bytes_and_forgets_the_least_used() {
        let mut cache = Cache::new(8 * ENTRY_OVERHEAD_BYTES);
        let programs: Vec<Arc<str>> = (0..10).map(|i| Arc::from(format!("p{i}"))).collect();
        for program in &programs {
            cache.insert(program, &refused(""));
            cache.get("p0").expect("used all the time");
        }
        assert!(cache.bytes <= cache.bytes_max);
        assert!(cache.get("p1").is_none() && cache.get("p9").is_some());
        let kept: usize = cache.entries.iter().map(|(p, s)| cost(p, s)).sum();
        assert_eq!(kept, cache.bytes);
        cache.insert(&programs[0], &refused("other"));
        let kept: usize = cache.entries.iter().map(|(p, s)| cost(p, s)).sum();
        assert_eq!(kept, cache.bytes);
    }

    #[test]
    fn a_giant_is_not_cached_and_zero_turns_it_off() {
        let mut cache = Cache::new(4096);
        let giant: Arc<str> = Arc::from("x".repeat(2000));
        cache.insert(&giant, &refused(""));
        assert!(cache.get(&giant).is_none());
        let mut off = Cache::new(0);
        let small: Arc<str> = Arc::from("x");
        off.insert(&small, &refused(""));
        assert!(off.get("x").is_none());
    }
}
