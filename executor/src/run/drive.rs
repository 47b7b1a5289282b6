//! The loop of a run while its process lives, and its one settlement.
//!
//! Everything here is bounded: frames handled in a turn, bytes read at once, events that wait for the caller, bytes
//! that wait for the process. A process that floods is read no faster than its caller takes what it says, and timers
//! come before frames in every turn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use codemode_proto::detail::Detail;
use codemode_wire::json::StringLiteral;
use codemode_wire::message::ChildFrame;
use codemode_wire::{Decoder, Frame, FrameError, Layer, LayerSet};
use futures::Stream;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::attribution::{self, Exit};
use super::budget::Budgets;
use super::confirm::{HelloFault, Unconfirmed};
use super::ledger::{Admission, Ledger};
use super::settle::{self, Facts, Terminal};
use super::state::{FrameKind, State, Verdict};
use super::talk::misuse;
use super::{End, Event, HostMessage, Refusal, RunSpec, Stopwatch, Talk, hand_over, wall_spent};
use crate::bridge::{Bridge, CallVerdict, ReplyVerdict};
use crate::context::Context;
use crate::outcome::{Failure, Outcome, Usage};
use crate::supervisor::pidfd::Ended;
use crate::supervisor::{CpuClock, FRAME_OVERHEAD_BYTES, Forked, Outgoing, Process};

/// Frames handled before anything else gets a turn.
const FRAMES_A_TURN: usize = 128;
/// Events that may wait for the caller before the process is read no further.
const OUTBOX_MAX: usize = 64;
/// Bytes read at once, at first and when a read filled what there was.
const READ_BYTES: [usize; 2] = [8 * 1024, 256 * 1024];
/// Between the end of a process's channel and its own end, either way round; it is a matter of microseconds.
const PARTING: Duration = Duration::from_millis(200);
/// Payloads from which checking a text is worth moving other tasks off this thread.
const HEAVY_BYTES: usize = 1 << 20;

/// A run with a process.
pub(crate) struct Drive<'a> {
    process: Process,
    /// The zygote that made it.
    maker: u64,
    stream: UnixStream,
    decoder: Decoder,
    read_bytes: usize,
    /// The process's channel has ended.
    eof: bool,
    /// The process has ended.
    dead: bool,
    clock: Deadlines,
    core: Core<'a>,
}

/// What time does to a run.
#[derive(Debug)]
struct Deadlines {
    wall: Instant,
    /// The process must have confirmed its lockdown by then.
    hello: Option<Instant>,
    /// When the compute budget could be spent at the earliest.
    compute: Option<Instant>,
    /// Channel and process must both have ended by then.
    parting: Option<Instant>,
    meter: Option<Meter>,
}

/// CPU time since the program began.
#[derive(Clone, Copy, Debug)]
struct Meter {
    clock: CpuClock,
    base: Duration,
}

/// Everything of a run but its I/O.
struct Core<'a> {
    context: &'a Context,
    spec: &'a RunSpec,
    stage: Stage,
    ledger: Ledger,
    outgoing: Outgoing,
    outbox: VecDeque<Event>,
    layers: LayerSet,
    /// Set when the gate opened: the program's time begins.
    confirmed: bool,
}

/// The state, with what exists only in it.
enum Stage {
    Unconfirmed(Unconfirmed),
    Running(Box<Bridge>),
    Settled { calls: u64 },
}

impl Stage {
    const fn state(&self) -> State {
        match self {
            Self::Unconfirmed(_) => State::Unconfirmed,
            Self::Running(_) => State::Running,
            Self::Settled { .. } => State::Settled,
        }
    }

    fn calls(&self) -> u64 {
        match self {
            Self::Unconfirmed(_) => 0,
            Self::Running(bridge) => bridge.calls(),
            Self::Settled { calls } => *calls,
        }
    }
}

impl<'a> Drive<'a> {
    pub(crate) fn new(
        context: &'a Context,
        spec: &'a RunSpec,
        forked: Forked,
        unconfirmed: Unconfirmed,
        wall: Instant,
    ) -> Self {
        let Forked { process, stream, maker, .. } = forked;
        let clock = Deadlines {
            wall,
            hello: Some(Instant::now() + context.config.lockdown),
            compute: None,
            parting: None,
            meter: None,
        };
        let started = Event::Started { id: spec.id, engine: spec.engine };
        let core = Core {
            context,
            spec,
            stage: Stage::Unconfirmed(unconfirmed),
            ledger: Ledger::new(spec.budgets.output_bytes, spec.budgets.log_entry_bytes),
            outgoing: Outgoing::default(),
            outbox: VecDeque::from([started]),
            layers: LayerSet::EMPTY,
            confirmed: false,
        };
        let decoder = Decoder::new(context.config.frame_bytes_max + FRAME_OVERHEAD_BYTES);
        Self {
            process,
            maker,
            stream,
            decoder,
            read_bytes: READ_BYTES[0],
            eof: false,
            dead: false,
            clock,
            core,
        }
    }

    /// Runs until something ends it, and settles. The answer is sent by the caller of this, after what happened
    /// before it was handed over here.
    pub(crate) async fn conclude<S>(
        mut self,
        talk: &mut Talk<S>,
        events: &mpsc::Sender<Event>,
        mut watch: Stopwatch,
    ) -> (Outcome, Option<Refusal>)
    where
        S: Stream<Item = Result<HostMessage, tonic::Status>> + Send + Unpin,
    {
        let end = self.until_terminal(talk, events, &mut watch).await;
        self.settle(end, events, watch).await
    }

    async fn until_terminal<S>(
        &mut self,
        talk: &mut Talk<S>,
        events: &mpsc::Sender<Event>,
        watch: &mut Stopwatch,
    ) -> End
    where
        S: Stream<Item = Result<HostMessage, tonic::Status>> + Send + Unpin,
    {
        loop {
            let more = match self.handle_frames() {
                Ok(more) => more,
                Err(end) => return *end,
            };
            if self.core.confirmed && self.clock.meter.is_none() {
                watch.lap(|phases| &mut phases.lockdown);
                if let Err(end) = self.clock.begin(&self.process, &self.core.spec.budgets) {
                    return end;
                }
            }
            self.core.send_events(events);
            // A process that takes nothing any more has ended or is about to, and its end tells why.
            let writable = self.core.outgoing.flush(&self.stream).is_ok() && !self.core.outgoing.is_empty();
            if self.dead && self.eof && !more {
                return Terminal::Died { inside_frame: self.decoder.finish().is_err() }.into();
            }
            self.clock.parting = match (self.dead, self.eof) {
                (false, false) | (true, true) => None,
                // What it said last is not read while what it said before is not handled, or the caller takes nothing.
                (true, false) if more || !self.core.has_room() => Some(Instant::now() + PARTING),
                (true, false) | (false, true) => self.clock.parting.or(Some(Instant::now() + PARTING)),
            };
            // Not before what was read is handled: small frames would pile up faster than they go.
            let readable = !self.eof && !more && self.core.has_room();
            let interest = match (readable, writable && !self.dead) {
                (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
                (true, false) => Some(Interest::READABLE),
                (false, true) => Some(Interest::WRITABLE),
                (false, false) => None,
            };
            let listen = self.core.outgoing.bytes() < self.core.reply_bytes_max();
            let Self { process, stream, core, clock, .. } = self;
            tokio::select! {
                biased;
                word = talk.word(listen) => match word.into_end() {
                    Ok(end) => return end,
                    Err(reply) => if let Some(end) = core.reply(reply) {
                        return end;
                    },
                },
                () = tokio::time::sleep_until(clock.next().into()) => {
                    if let Some(end) = clock.passed(core.spec, self.dead) {
                        return end;
                    }
                }
                permit = events.reserve(), if !core.outbox.is_empty() => {
                    // A caller that is gone is noticed by `word`.
                    if let (Ok(permit), Some(event)) = (permit, core.outbox.pop_front()) {
                        permit.send(event);
                    }
                }
                ready = ready(stream, interest) => {
                    if ready && readable {
                        self.read();
                    }
                }
                () = process.ended(), if !self.dead => {
                    self.dead = true;
                }
                () = tokio::task::yield_now(), if more && core.has_room() => {}
            }
        }
    }

    /// Takes a bounded number of frames. `Ok(true)`: there may be more.
    fn handle_frames(&mut self) -> Result<bool, Box<End>> {
        for _ in 0..FRAMES_A_TURN {
            if !self.core.has_room() {
                return Ok(true);
            }
            match self.decoder.next_frame() {
                Ok(Some(frame)) => {
                    let core = &mut self.core;
                    if let Some(end) = heavy(frame.payload.len(), || core.frame(frame)) {
                        return Err(Box::new(end));
                    }
                }
                Ok(None) => return Ok(false),
                Err(error) => return Err(Box::new(violation(&error).into())),
            }
        }
        Ok(true)
    }

    /// Reads once.
    fn read(&mut self) {
        let buffer = self.decoder.buffer();
        buffer.reserve(self.read_bytes);
        match self.stream.try_read_buf(buffer) {
            Ok(read) if read > 0 => {
                if read >= self.read_bytes {
                    self.read_bytes = READ_BYTES[1];
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            // A reset means that the process left bytes of ours unread: an end like any other.
            Ok(_) | Err(_) => self.eof = true,
        }
    }

    /// The one settlement: kill, drain, reap, close the books. Consumes the run.
    async fn settle(
        mut self,
        end: End,
        events: &mpsc::Sender<Event>,
        mut watch: Stopwatch,
    ) -> (Outcome, Option<Refusal>) {
        let End { terminal, refusal } = end;
        self.process.kill();
        let confirmed = self.core.confirmed;
        watch.lap(|phases| if confirmed { &mut phases.run } else { &mut phases.lockdown });
        self.process.ended().await;
        if terminal.counts_late_logs() && self.core.stage.state() == State::Running {
            self.drain();
        }
        let calls = self.core.stage.calls();
        self.core.stage = Stage::Settled { calls };
        let Self { process, maker, mut core, clock, .. } = self;
        if process.has_group() {
            core.layers.insert(Layer::Cgroup);
        }
        let pid = process.pid();
        let ended =
            process.reap().await.inspect_err(|error| tracing::error!(pid, %error, "cannot reap a run"));
        watch.lap(|phases| &mut phases.settle);
        // What the caller takes to read the rest is not the run's.
        let spent = watch.usage();
        let Core { context, spec, ledger, outbox, layers, .. } = core;
        if let (Terminal::Died { .. }, Ok(ended)) = (&terminal, &ended)
            && attribution::is_crash(ended.exit)
        {
            context.supervisor.crashed(spec.engine, maker);
        }
        for event in outbox {
            if !hand_over(events, event).await {
                break;
            }
        }
        let settled = settle::settle(terminal, ledger, |inside_frame| match &ended {
            Ok(Ended { memory_killed: true, .. }) => attribution::memory(&spec.budgets),
            Ok(Ended { exit, cpu, .. }) => {
                attribution::attribute(*exit, inside_frame, millis(*cpu), &spec.budgets)
            }
            Err(_) => Failure::new(Detail::Infrastructure, "the process's end was lost"),
        });
        // Confining itself and warming up were not the program's doing.
        let cpu = clock.meter.zip(ended.as_ref().ok());
        let usage = Usage {
            cpu: cpu.map_or(Duration::ZERO, |(meter, ended)| ended.cpu.saturating_sub(meter.base)),
            peak_memory_bytes: ended.as_ref().map_or(0, |ended| ended.peak_memory_bytes),
            binding_calls: calls,
            output_bytes: settled.output_bytes,
            layers,
            ..spent
        };
        if let Ok(Ended { exit: Exit::Signal(signal), .. }) = ended {
            tracing::trace!(signal, "the process ended by a signal");
        }
        let outcome = Outcome {
            value: settled.value,
            logs: settled.logs,
            failure: settled.failure,
            usage,
            hints: Vec::new(),
        };
        (outcome, refusal)
    }

    /// Enters the logs that the process sent before it ended. It has ended, so what there is to read is finite.
    fn drain(&mut self) {
        loop {
            loop {
                match self.decoder.next_frame() {
                    Ok(Some(frame)) => {
                        if !self.core.late_frame(frame) {
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            if self.eof {
                return;
            }
            let before = self.decoder.pending_bytes();
            self.read();
            if self.decoder.pending_bytes() == before {
                return;
            }
        }
    }
}

async fn ready(stream: &UnixStream, interest: Option<Interest>) -> bool {
    match interest {
        Some(interest) => stream.ready(interest).await.is_ok_and(|ready| ready.is_readable()),
        None => std::future::pending().await,
    }
}

/// Does work that may take long without holding up the other tasks of this thread.
fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let multi = || {
        tokio::runtime::Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread)
    };
    if bytes >= HEAVY_BYTES && multi() { tokio::task::block_in_place(work) } else { work() }
}

fn violation(error: &FrameError) -> Terminal {
    match error {
        FrameError::TooLong { length, limit } => {
            let failure = Failure::new(Detail::FrameBytes, format!("protocol violation: {error}"));
            Terminal::failed(failure.with_numbers(u64::from(*limit), Some(u64::from(*length))))
        }
        other => Terminal::violation(other),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Deadlines {
    /// The program's time begins.
    fn begin(&mut self, process: &Process, budgets: &Budgets) -> Result<(), End> {
        self.hello = None;
        let metered = process.cpu_clock().ok().and_then(|clock| Some(Meter { clock, base: clock.read()? }));
        let Some(meter) = metered else {
            // An unreaped child always has the clock; without it no budget holds, so nothing runs.
            let failure = Failure::new(Detail::Infrastructure, "the process's CPU time cannot be read");
            return Err(Terminal::failed(failure).into());
        };
        self.meter = Some(meter);
        self.compute = Some(Instant::now() + Duration::from_millis(budgets.compute_ms));
        Ok(())
    }

    fn next(&self) -> Instant {
        let others = [self.hello, self.compute, self.parting];
        others.into_iter().flatten().fold(self.wall, Instant::min)
    }

    /// What a deadline that has passed means. A single-threaded process cannot burn CPU time faster than time goes by,
    /// so it is enough to look again when the rest of the budget could be spent.
    fn passed(&mut self, spec: &RunSpec, dead: bool) -> Option<End> {
        let now = Instant::now();
        if self.parting.is_some_and(|at| at <= now) {
            return Some(match dead {
                true => Terminal::Died { inside_frame: false }.into(),
                false => Terminal::violation("the process closed its channel and went on").into(),
            });
        }
        if self.wall <= now {
            return Some(wall_spent(&spec.budgets).into());
        }
        if self.hello.is_some_and(|at| at <= now) {
            let failure =
                Failure::new(Detail::Infrastructure, "the process did not lock itself down in time");
            return Some(Terminal::failed(failure).into());
        }
        let (Some(at), Some(meter)) = (self.compute, self.meter) else { return None };
        if at > now {
            return None;
        }
        let budget = Duration::from_millis(spec.budgets.compute_ms);
        let used = meter.clock.read().map_or(budget, |cpu| cpu.saturating_sub(meter.base));
        if used >= budget {
            return Some(Terminal::failed(attribution::compute(&spec.budgets, millis(used))).into());
        }
        self.compute = Some(now + (budget - used).max(Duration::from_millis(1)));
        None
    }
}

impl Core<'_> {
    fn has_room(&self) -> bool {
        self.outbox.len() < OUTBOX_MAX
    }

    /// Bytes of replies that may wait for the process before the caller is read no further. A whole reply of the
    /// largest size always fits behind it.
    fn reply_bytes_max(&self) -> usize {
        usize::try_from(self.context.config.frame_bytes_max).unwrap_or(usize::MAX)
    }

    /// Hands the caller what it takes at once.
    fn send_events(&mut self, events: &mpsc::Sender<Event>) {
        while let Some(event) = self.outbox.pop_front() {
            if let Err(error) = events.try_send(event) {
                match error {
                    mpsc::error::TrySendError::Full(event) => self.outbox.push_front(event),
                    mpsc::error::TrySendError::Closed(_) => self.outbox.clear(),
                }
                return;
            }
        }
    }

    /// Handles one frame of the process.
    fn frame(&mut self, frame: Frame<'_>) -> Option<End> {
        let message = match ChildFrame::decode(frame) {
            Ok(message) => message,
            Err(error) => return Some(violation(&error).into()),
        };
        match self.stage.state().judge(FrameKind::of(&message)) {
            Verdict::Confirm => self.confirm(&message),
            Verdict::Fault => Some(fault(&message).into()),
            Verdict::Log => self.log(&message),
            Verdict::Call => self.call(&message),
            Verdict::Terminal => Some(self.terminal(&message).into()),
            Verdict::Violation(why) => {
                Some(Terminal::violation(format_args!("`{}` {why}", message.name())).into())
            }
            Verdict::Late => None,
        }
    }

    /// Handles a frame that is read after the executor has ended the process. False if nothing after it counts.
    fn late_frame(&mut self, frame: Frame<'_>) -> bool {
        match ChildFrame::decode(frame) {
            Ok(message @ ChildFrame::Log { .. }) => self.log(&message).is_none(),
            Ok(ChildFrame::Call { .. }) => true,
            _ => false,
        }
    }

    fn confirm(&mut self, message: &ChildFrame<'_>) -> Option<End> {
        let stage = std::mem::replace(&mut self.stage, Stage::Settled { calls: 0 });
        let (Stage::Unconfirmed(gate), ChildFrame::Hello { version, nonce, layers }) = (stage, message)
        else {
            return Some(Terminal::violation("`hello` out of place").into());
        };
        let confirmed = match gate.confirm(*version, nonce, *layers) {
            Ok(confirmed) => confirmed,
            Err(fault @ HelloFault::Layer(_)) => {
                let failure = Failure::new(Detail::Infrastructure, format!("sandbox incomplete: {fault}"));
                return Some(Terminal::failed(failure).into());
            }
            Err(fault) => return Some(Terminal::violation(fault).into()),
        };
        self.layers = confirmed.layers;
        self.outgoing.push(confirmed.frame);
        let max = self.context.config.frame_bytes_max;
        self.stage = Stage::Running(Box::new(Bridge::new(confirmed.namespaces, self.spec.budgets, max)));
        self.confirmed = true;
        None
    }

    fn log(&mut self, message: &ChildFrame<'_>) -> Option<End> {
        let ChildFrame::Log { text } = message else { return None };
        let literal = match StringLiteral::parse(text) {
            Ok(literal) => literal,
            Err(fault) => return Some(Terminal::violation(format_args!("log entry: {fault}")).into()),
        };
        match self.ledger.log(literal, text) {
            Admission::Kept(entry) => {
                self.outbox.push_back(Event::Log(entry));
                None
            }
            Admission::Overflow(kept) => {
                self.outbox.extend(kept.map(Event::Log));
                Some(Terminal::OutputLimit(None).into())
            }
        }
    }

    fn call(&mut self, message: &ChildFrame<'_>) -> Option<End> {
        let (ChildFrame::Call { id, namespace, function, args }, Stage::Running(bridge)) =
            (message, &mut self.stage)
        else {
            return None;
        };
        match bridge.call(*id, *namespace, *function, args) {
            CallVerdict::Forward { global, name } => {
                self.outbox.push_back(Event::Call {
                    id: *id,
                    global: global.to_owned(),
                    name: name.to_owned(),
                    args: Bytes::copy_from_slice(args),
                });
                None
            }
            CallVerdict::Refuse(reply) => {
                self.outgoing.push(reply);
                None
            }
            CallVerdict::End(failure) => Some(Terminal::Failed(failure, None).into()),
        }
    }

    fn terminal(&self, message: &ChildFrame<'_>) -> Terminal {
        let pending = if let Stage::Running(bridge) = &self.stage { bridge.pending() } else { 0 };
        let facts = Facts { budgets: &self.spec.budgets, pending };
        Terminal::of_frame(message, &self.spec.program, &self.ledger, facts)
    }

    /// Takes a caller's reply.
    fn reply(&mut self, message: HostMessage) -> Option<End> {
        let HostMessage::Reply { id, result } = message else { return None };
        let Stage::Running(bridge) = &mut self.stage else {
            return Some(misuse("`reply` before any `call`".to_owned()));
        };
        let bytes = result.as_ref().map_or(0, Bytes::len);
        let result = result.as_deref().map_err(String::as_str);
        match heavy(bytes, || bridge.reply(id, result)) {
            ReplyVerdict::Send(frame) => {
                self.outgoing.push(frame);
                None
            }
            ReplyVerdict::Misuse(what) => Some(misuse(what)),
        }
    }
}

/// The process could not lock itself down.
fn fault(message: &ChildFrame<'_>) -> Terminal {
    let what = match message {
        ChildFrame::Fault { step, errno } => {
            let step: String = step.chars().take(64).flat_map(char::escape_debug).collect();
            format!("sandbox step `{step}` failed with error number {errno}")
        }
        _ => "the sandbox failed".to_owned(),
    };
    Terminal::failed(Failure::new(Detail::Infrastructure, what))
}
