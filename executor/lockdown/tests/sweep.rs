//! Every system call, through every door, in a real run's process: what the kernel does is what the policy file says.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and tells how much it did"
)]

mod common;

use std::collections::BTreeMap;

use codemode_lockdown::Engine;
use codemode_lockdown::policy::samples::interesting_calls;
use codemode_lockdown::policy::{Action, Phase, Policy, Verdict};
use common::{Answer, Run, SIGSYS, Setup, Zygote};
use nix::sys::signal::Signal;

/// Newer kernels exempt these two from seccomp: they are entered from trampolines that the kernel itself places, and do
/// nothing elsewhere (`uretprobe` raises SIGILL, `uprobe` answers an error).
#[cfg(target_arch = "x86_64")]
const EXEMPT: [u32; 2] = [335, 336];
#[cfg(not(target_arch = "x86_64"))]
const EXEMPT: [u32; 0] = [];

/// Above all numbers that exist today, with room.
const NUMBERS: std::ops::Range<u32> = 0..1024;

fn policy(engine: Engine, phase: Phase) -> BTreeMap<u32, Verdict> {
    Policy::load().unwrap().verdicts(engine, phase)
}

/// Keeps one process for as long as it survives.
struct Victim<'a> {
    zygote: &'a Zygote,
    run: Option<Run>,
    forks: u32,
}

impl<'a> Victim<'a> {
    fn new(zygote: &'a Zygote) -> Self {
        Self { zygote, run: None, forks: 0 }
    }

    fn run(&mut self) -> &mut Run {
        if self.run.is_none() {
            self.forks += 1;
        }
        self.run.get_or_insert_with(|| self.zygote.run())
    }

    fn own_id(&mut self) -> u32 {
        self.run().pid.unsigned_abs()
    }

    fn call(&mut self, number: i64, args: &[u64; 6]) -> Answer {
        let args = args.map(|arg| arg.cast_signed().to_string()).join(" ");
        let answer = self.run().attack(&format!("syscall {number} {args}"));
        if !matches!(answer, Answer::Returned(..)) {
            self.run = None;
        }
        answer
    }
}

/// Checks an answer against what the policy says. An allowed call may do anything but die of SIGSYS.
fn check(engine: Engine, number: u32, args: &[u64; 6], expected: Action, answer: Answer) {
    let agrees = match expected {
        Action::Kill => answer == SIGSYS,
        Action::Errno(errno) => answer == Answer::Returned(-1, errno),
        Action::Allow => answer != SIGSYS,
    };
    assert!(agrees, "{engine}: system call {number} {args:x?}: expected {expected:?}, got {answer:?}");
}

/// `ppoll` without anything to wait for never returns; the policy does not look at its arguments.
fn returns(number: u32) -> bool {
    i64::from(number) != libc::SYS_ppoll
}

fn sweep(engine: Engine) {
    let zygote = Zygote::start(Setup::new(engine));
    let verdicts = policy(engine, Phase::Run);
    let mut victim = Victim::new(&zygote);
    for number in NUMBERS.filter(|number| !EXEMPT.contains(number) && returns(*number)) {
        let args = [0; 6];
        let own_id = victim.own_id();
        let expected = verdicts.get(&number).unwrap_or(&Verdict::KILL).decide(&args, Some(own_id));
        let answer = victim.call(number.into(), &args);
        check(engine, number, &args, expected, answer);
    }
    // The one that was left out: with a time to wait, and nothing to wait for.
    let answer = victim.run().attack(&format!("syscall {} 0 0 z 0 0 0", libc::SYS_ppoll));
    assert_eq!(answer, Answer::Returned(0, 0), "{engine}: ppoll");
    println!("{engine}: {} processes", victim.forks);
}

#[test]
fn every_number_on_v8() {
    sweep(Engine::V8);
}

#[test]
fn every_number_on_v8_jitless() {
    sweep(Engine::V8Jitless);
}

#[test]
fn every_number_on_quickjs() {
    sweep(Engine::Quickjs);
}

/// Arguments that satisfy each rule, and each of its conditions broken in turn.
fn flip(engine: Engine) {
    let zygote = Zygote::start(Setup::new(engine));
    let (run, in_zygote) = (policy(engine, Phase::Run), policy(engine, Phase::Zygote));
    let mut victim = Victim::new(&zygote);
    let mut count = 0_u32;
    for (number, wider) in &in_zygote {
        let verdict = &run.get(number).cloned().unwrap_or(Verdict::KILL);
        if wider.clauses().iter().all(Vec::is_empty) {
            continue; // Nothing is conditioned: the sweep covers it.
        }
        for args in interesting_calls(&[verdict, wider], OWN_ID_MARK) {
            // The id changes with each process that dies: ask again.
            let own_id = victim.own_id();
            let args = args.map(|arg| if arg == u64::from(OWN_ID_MARK) { own_id.into() } else { arg });
            let expected = verdict.decide(&args, Some(own_id));
            let answer = victim.call((*number).into(), &args);
            check(engine, *number, &args, expected, answer);
            count += 1;
        }
    }
    assert!(count > 1000, "only {count} calls");
    println!("{engine}: {count} calls, {} processes", victim.forks);
}

/// Stands for the process's own id until the process is known. Larger than any process id.
const OWN_ID_MARK: u32 = 0x7fff_fff0;

#[test]
fn flipped_arguments_on_v8() {
    flip(Engine::V8);
}

#[test]
fn flipped_arguments_on_v8_jitless() {
    flip(Engine::V8Jitless);
}

#[test]
fn flipped_arguments_on_quickjs() {
    flip(Engine::Quickjs);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn foreign_doors_are_closed() {
    let zygote = Zygote::start(Setup::new(Engine::V8));
    let mut victim = Victim::new(&zygote);
    // x32: the same numbers with a bit set, and its own from 512 on.
    for number in 0..=600_i64 {
        assert_eq!(victim.call(0x4000_0000 | number, &[3, 0, 0, 0, 0, 0]), SIGSYS, "x32 {number}");
    }
    // The door of 32-bit programs, where the numbers mean something else.
    for number in 0..=470 {
        let answer = victim.run().attack(&format!("int80 {number}"));
        victim.run = None;
        // Without 32-bit emulation the kernel has no such door at all.
        let closed = answer == SIGSYS || answer == Answer::Killed(Signal::SIGSEGV);
        assert!(closed, "int 0x80 {number}: {answer:?}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn numbers_that_do_not_fit() {
    let zygote = Zygote::start(Setup::new(Engine::V8));
    let mut victim = Victim::new(&zygote);
    for number in [-1_i64, -2, i64::from(i32::MIN), i64::from(i32::MAX), 0x7fff_ffff] {
        assert_eq!(victim.call(number, &[0; 6]), SIGSYS, "{number}");
    }
    // The kernel and the filter both look at the lower half only: 1 << 32 is `read`, and judged as `read`.
    assert_eq!(victim.call(1 << 32, &[3, 0, 0, 0, 0, 0]), Answer::Returned(0, 0));
    assert_eq!(victim.call(1 << 32, &[0; 6]), SIGSYS);
    let execve = (1 << 32) | libc::SYS_execve;
    assert_eq!(victim.call(execve, &[0; 6]), SIGSYS);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_exempt_ones_are_harmless() {
    let zygote = Zygote::start(Setup::new(Engine::V8));
    for number in EXEMPT {
        let mut run = zygote.run();
        let answer = run.attack(&format!("syscall {number} 0 0 0 0 0 0"));
        println!("{number}: {answer:?}");
        let harmless = match answer {
            Answer::Killed(signal) => [Signal::SIGILL, Signal::SIGSYS, Signal::SIGSEGV].contains(&signal),
            Answer::Returned(result, _) => result == -1,
            Answer::Exited(_) => false,
        };
        assert!(harmless, "{number}: {answer:?}");
    }
}
