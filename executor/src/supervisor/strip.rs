//! The stripping processes: they erase types from programs, outside the executor and before any engine is involved.
//!
//! A parser fed with hostile text may overflow its stack, loop or take all memory, so each process is locked down and
//! expendable. Requests are pipelined and answered in order; so the program at the head is the one being worked on,
//! and when the process dies or has spent its time that program is to blame and the others are tried again.
//!
//! There are two: what is short never waits behind what is long ([`LONG_BYTES`]).

mod cache;
mod serving;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codemode_wire::LayerSet;
use codemode_wire::control::BootRequest;
use codemode_wire::message::Shape;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::pause::Pause;
use super::process::Process;
use super::zygote::BootError;
use crate::run::attribution::Exit;
use cache::Cache;
use serving::{End, Serving};

/// Programs that wait for the process, at most; beyond it callers wait.
const QUEUED_MAX: usize = 64;
/// Programs from this length on have a stripping process of their own, bytes. Parsing a shorter one takes milliseconds,
/// unless it was written to take long.
const LONG_BYTES: usize = 32 * 1024;

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

/// One program on its way.
#[derive(Debug)]
struct Job {
    program: Arc<str>,
    answer: oneshot::Sender<Result<Arc<Stripped>, StripError>>,
    /// The process died over it once, for a reason that may not be its.
    suspect: bool,
}

impl Job {
    fn answer(self, answer: Result<Arc<Stripped>, StripError>) {
        // Who does not wait any more does not need it.
        let _ = self.answer.send(answer);
    }
}

/// Access to the stripping processes.
#[derive(Debug)]
pub(crate) struct Stripper {
    short: Lane,
    long: Lane,
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
        let (short, keeps_short) = Lane::start(plan, stop).await?;
        let (long, keeps_long) = Lane::start(plan, stop).await?;
        Ok((Self { short, long }, vec![keeps_short, keeps_long]))
    }

    /// Strips a program, or remembers what came of it. Cancel-safe: a dropped request's answer is thrown away.
    pub(crate) async fn strip(&self, program: &Arc<str>) -> Result<Arc<Stripped>, StripError> {
        let lane = if program.len() < LONG_BYTES { &self.short } else { &self.long };
        if let Some(known) = lane.cache.lock().get(program) {
            return Ok(known);
        }
        let (answer, answered) = oneshot::channel();
        let job = Job { program: Arc::clone(program), answer, suspect: false };
        lane.jobs.send(job).await.map_err(|_| StripError::Unusable)?;
        answered.await.map_err(|_| StripError::Unusable)?
    }
}

/// The keeper's task; it ends at shutdown, when the process is reaped.
pub(crate) type Keeper = tokio::task::JoinHandle<()>;

/// One process with the queue in front of it, and what it has answered.
#[derive(Debug)]
struct Lane {
    jobs: mpsc::Sender<Job>,
    cache: Arc<Mutex<Cache>>,
}

impl Lane {
    async fn start(plan: &StripPlan, stop: &CancellationToken) -> Result<(Self, Keeper), BootError> {
        let (jobs, receiver) = mpsc::channel(QUEUED_MAX);
        let cache = Arc::new(Mutex::new(Cache::new(plan.cache_bytes / 2)));
        let serving = Serving::start(plan, stop, &cache).await?;
        let keeper = tokio::spawn(keep(plan.clone(), serving, receiver, stop.clone(), Arc::clone(&cache)));
        Ok((Self { jobs, cache }, keeper))
    }
}

async fn keep(
    plan: StripPlan,
    mut serving: Serving,
    mut jobs: mpsc::Receiver<Job>,
    stop: CancellationToken,
    cache: Arc<Mutex<Cache>>,
) {
    let mut pause = Pause::new();
    while let Some(end) = serving.serve(&plan, &mut jobs, &stop).await {
        // A process that was brought down may have been made to lie before; what it said is not believed any longer.
        // Nobody but the process's own conversation adds to it, and that is over.
        cache.lock().clear();
        if serving.has_answered() {
            pause.reset();
        } else {
            pause.wait(&stop).await;
        }
        let (process, asked) = serving.into_parts();
        let again = bury(process, asked, &end).await;
        let Some(next) = replace(&plan, again, &mut jobs, &stop, &cache, &mut pause).await else { return };
        serving = next;
    }
    let (process, asked) = serving.into_parts();
    fail(asked);
    process.kill();
    if let Err(error) = process.reap().await {
        tracing::error!(%error, "cannot reap a stripping process");
    }
}

/// Another process, asked what is still to be answered. Tries until there is one; `None` at shutdown.
async fn replace(
    plan: &StripPlan,
    mut again: VecDeque<Job>,
    jobs: &mut mpsc::Receiver<Job>,
    stop: &CancellationToken,
    cache: &Arc<Mutex<Cache>>,
    pause: &mut Pause,
) -> Option<Serving> {
    while !stop.is_cancelled() {
        match Serving::start(plan, stop, cache).await {
            Ok(mut serving) => {
                for job in again {
                    serving.ask(job);
                }
                return Some(serving);
            }
            Err(BootError::Stopped) => break,
            Err(error) => {
                report(&error);
                fail(std::mem::take(&mut again));
                // Who comes meanwhile must not wait.
                tokio::select! {
                    () = pause.wait(stop) => {}
                    () = refuse_all(jobs) => {}
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

async fn refuse_all(jobs: &mut mpsc::Receiver<Job>) {
    while let Some(job) = jobs.recv().await {
        job.answer(Err(StripError::Unusable));
    }
    std::future::pending().await
}

fn fail(jobs: VecDeque<Job>) {
    for job in jobs {
        job.answer(Err(StripError::Unusable));
    }
}

/// Kills and reaps the process, answers the program that ended it, and returns those to be tried again.
async fn bury(process: Process, mut asked: VecDeque<Job>, end: &End) -> VecDeque<Job> {
    process.kill();
    let exit = process.reap().await.map(|ended| ended.exit);
    if let End::Violation(what) = end {
        tracing::error!(what, "the stripping process broke its protocol");
    }
    let Some(mut head) = asked.pop_front() else {
        tracing::warn!(?exit, ?end, "an idle stripping process ended");
        return asked;
    };
    tracing::warn!(?exit, ?end, "the stripping process ended over a program");
    match blame(end, exit.ok(), head.suspect) {
        Blame::Program(why) => {
            let refused = Stripped::Refused { message: why.to_owned(), line: 0, column: 0 };
            head.answer(Ok(Arc::new(refused)));
        }
        Blame::Process => head.answer(Err(StripError::Unusable)),
        Blame::Unclear => {
            head.suspect = true;
            asked.push_front(head);
        }
    }
    asked
}

/// Whose fault it is that a process ended with a program at its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blame {
    /// The program's: it is refused with this.
    Program(&'static str),
    /// The process's: it cannot be used.
    Process,
    /// It was ended or held up from outside, perhaps: one more try tells.
    Unclear,
}

fn blame(end: &End, exit: Option<Exit>, suspect: bool) -> Blame {
    match (end, exit) {
        (End::Slow, _) => Blame::Program("the program takes too long to parse; make it simpler or shorter"),
        (End::Violation(_), _) => Blame::Process,
        // It exits by itself only where it cannot serve at all, which no program is to blame for.
        (End::Stalled, _) | (End::Gone, Some(Exit::Code(_))) if suspect => Blame::Process,
        (End::Stalled, _) | (End::Gone, Some(Exit::Code(_))) => Blame::Unclear,
        (End::Gone, _) if suspect => {
            Blame::Program("the program is nested too deeply to be parsed; make it flatter")
        }
        (End::Gone, _) => Blame::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_blame() {
        let (segv, kill) = (Some(Exit::Signal(libc::SIGSEGV)), Some(Exit::Signal(libc::SIGKILL)));
        let deep = Blame::Program("the program is nested too deeply to be parsed; make it flatter");
        for (end, exit, first, second) in [
            (End::Gone, segv, Blame::Unclear, deep),
            (End::Gone, kill, Blame::Unclear, deep),
            (End::Gone, Some(Exit::Code(10)), Blame::Unclear, Blame::Process),
            (End::Stalled, kill, Blame::Unclear, Blame::Process),
            (End::Violation(String::new()), kill, Blame::Process, Blame::Process),
        ] {
            assert_eq!(
                (blame(&end, exit, false), blame(&end, exit, true)),
                (first, second),
                "{end:?} {exit:?}"
            );
        }
    }
}
