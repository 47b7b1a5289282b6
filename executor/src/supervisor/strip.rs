//! The stripping process: erases types from programs, outside the executor and before any engine is involved.
//!
//! A parser fed with hostile text may overflow its stack, loop or take all memory, so the process is locked down and
//! expendable. Requests are pipelined and answered in order; so the program at the head is the one being worked on,
//! and when the process dies or is too slow that program is to blame and the others are tried again.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codemode_wire::control::BootRequest;
use codemode_wire::message::Shape;
use codemode_wire::strip::{StripAnswer, StripRequest};
use codemode_wire::{Decoder, FrameError};
use lru::LruCache;
use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use super::outgoing::Outgoing;
use super::process::Process;
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
    /// For one program.
    pub(crate) deadline: Duration,
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

/// Access to the stripping process.
#[derive(Debug)]
pub(crate) struct Stripper {
    jobs: mpsc::Sender<Job>,
    cache: Arc<Mutex<Cache>>,
}

impl Stripper {
    /// Starts the keeper of the process; the process itself comes with it.
    pub(crate) fn start(plan: StripPlan, shutdown: tokio_util::sync::CancellationToken) -> (Self, Keeper) {
        let (jobs, receiver) = mpsc::channel(QUEUED_MAX);
        let cache = Arc::new(Mutex::new(Cache::new(plan.cache_bytes)));
        let keeper = tokio::spawn(keep(plan, receiver, shutdown, Arc::clone(&cache)));
        (Self { jobs, cache }, keeper)
    }

    /// Strips a program, or remembers what came of it. Cancel-safe: a dropped request's answer is thrown away.
    pub(crate) async fn strip(&self, program: &Arc<str>) -> Result_ {
        if let Some(known) = self.cache.lock().get(program) {
            return Ok(known);
        }
        let (answer, answered) = oneshot::channel();
        let job = Job { program: Arc::clone(program), answer, suspect: false };
        self.jobs.send(job).await.map_err(|_| StripError::Unusable)?;
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

/// A process and what it was asked.
struct Serving {
    process: Process,
    stream: UnixStream,
    decoder: Decoder,
    outgoing: Outgoing,
    asked: VecDeque<Job>,
    next_id: u64,
    head_since: Instant,
}

/// Why a process no longer serves.
enum End {
    /// It died, or its stream broke.
    Gone,
    /// The program at the head took too long.
    Slow,
    /// It broke its protocol.
    Violation(String),
    /// The executor shuts down.
    Shutdown,
}

async fn keep(
    plan: StripPlan,
    mut jobs: mpsc::Receiver<Job>,
    stop: tokio_util::sync::CancellationToken,
    cache: Arc<Mutex<Cache>>,
) {
    let mut again: VecDeque<Job> = VecDeque::new();
    loop {
        if stop.is_cancelled() {
            return;
        }
        let mut serving = match Serving::start(&plan, std::mem::take(&mut again)).await {
            Ok(serving) => serving,
            Err((error, waiting)) => {
                tracing::error!(%error, "cannot start the stripping process");
                fail(waiting);
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(RESTART_PAUSE) => {}
                }
                // Who queued meanwhile must not wait for ever.
                while let Ok(job) = jobs.try_recv() {
                    let _ = job.answer.send(Err(StripError::Unusable));
                }
                continue;
            }
        };
        let end = serving.serve(&plan, &mut jobs, &stop).await;
        let Serving { process, asked, .. } = serving;
        again = bury(process, asked, &end).await;
        // A process that was brought down may have been made to lie before; what it said is not believed any longer.
        *cache.lock() = Cache::new(plan.cache_bytes);
        if matches!(end, End::Shutdown) {
            return;
        }
    }
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
        // Ended from outside, perhaps: one more try tells.
        End::Gone | End::Shutdown => {
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
    /// Starts a process and asks it what is still to be answered.
    async fn start(plan: &StripPlan, again: VecDeque<Job>) -> Result<Self, (io::Error, VecDeque<Job>)> {
        match Self::launch(plan).await {
            Ok((process, stream)) => {
                let mut outgoing = Outgoing::default();
                outgoing.push(plan.request.encode());
                let decoder = Decoder::new(plan.answer_bytes_max);
                let head_since = Instant::now();
                let asked = VecDeque::new();
                let mut serving = Self { process, stream, decoder, outgoing, asked, next_id: 0, head_since };
                for job in again {
                    serving.ask(job);
                }
                Ok(serving)
            }
            Err(error) => Err((error, again)),
        }
    }

    async fn launch(plan: &StripPlan) -> io::Result<(Process, UnixStream)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (process, errors) = spawn::spawn(&plan.path, "strip", theirs.into()).await?;
        stderr::log(errors, "strip", process.pid());
        Ok((process, UnixStream::from_std(ours)?))
    }

    fn ask(&mut self, job: Job) {
        if job.answer.is_closed() {
            return;
        }
        if self.asked.is_empty() {
            self.head_since = Instant::now();
        }
        let id = self.next_id + self.asked.len() as u64;
        self.outgoing.push(StripRequest { id, program: &job.program }.encode());
        self.asked.push_back(job);
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
            let deadline = tokio::time::Instant::from_std(self.head_since + plan.deadline);
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
                () = tokio::time::sleep_until(deadline), if !self.asked.is_empty() => return End::Slow,
                job = jobs.recv(), if self.asked.len() < PIPELINED_MAX => match job {
                    Some(job) => self.ask(job),
                    None => return End::Shutdown,
                },
            }
        }
    }

    fn read(&mut self) -> Option<End> {
        let buffer = self.decoder.buffer();
        buffer.reserve(64 * 1024);
        match self.stream.try_read_buf(buffer) {
            Ok(0) => return Some(End::Gone),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(_) => return Some(End::Gone),
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
        self.head_since = Instant::now();
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
