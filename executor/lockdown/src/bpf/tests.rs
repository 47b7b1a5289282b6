//! An interpreter for the programs, and its agreement with the policy's own meaning.
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;

use super::{
    AND, DATA_ARCH, DATA_ARGS, DATA_NUMBER, JUMP_EQ, JUMP_GE, JUMP_SET, LOAD, NATIVE_ARCH, Program, RETURN,
    RETURN_ALLOW, RETURN_KILL_PROCESS, X32_BIT, allowlist, delta, return_value,
};
use crate::engine::Engine;
use crate::policy::samples::interesting_calls;
use crate::policy::{Action, Phase, Policy, Verdict};

struct Call {
    number: u32,
    arch: u32,
    args: [u64; 6],
}

fn word(call: &Call, offset: u32) -> u32 {
    if offset == DATA_NUMBER {
        return call.number;
    }
    if offset == DATA_ARCH {
        return call.arch;
    }
    assert!(offset >= DATA_ARGS, "the instruction pointer is not looked at");
    let argument = call.args[((offset - DATA_ARGS) / 8) as usize];
    let half = if (offset - DATA_ARGS).is_multiple_of(8) { argument } else { argument >> 32 };
    (half & 0xffff_ffff) as u32
}

fn interpret(program: &Program, call: &Call) -> u32 {
    let instructions = program.instructions();
    let (mut at, mut accumulator) = (0_usize, 0_u32);
    for _ in 0..=instructions.len() {
        let instruction = instructions[at];
        let k = instruction.k;
        at += 1;
        let taken = match instruction.code {
            LOAD => {
                accumulator = word(call, k);
                continue;
            }
            AND => {
                accumulator &= k;
                continue;
            }
            RETURN => return k,
            JUMP_EQ => accumulator == k,
            JUMP_GE => accumulator >= k,
            JUMP_SET => accumulator & k != 0,
            other => panic!("unknown instruction {other:#x}"),
        };
        at += usize::from(if taken { instruction.jt } else { instruction.jf });
    }
    panic!("the program does not end");
}

const OWN_ID: u32 = 4711;

fn programs(engine: Engine) -> (Program, Program, BTreeMap<u32, Verdict>, BTreeMap<u32, Verdict>) {
    let policy = Policy::load().expect("the policy is valid");
    let (zygote, run) = (policy.verdicts(engine, Phase::Zygote), policy.verdicts(engine, Phase::Run));
    let mut own = delta(&policy.delta(engine)).expect("compiles");
    own.set_own_id(OWN_ID);
    (allowlist(&zygote).expect("compiles"), own, zygote, run)
}

fn strictest(a: u32, b: u32) -> u32 {
    let rank = |value: u32| match value {
        RETURN_KILL_PROCESS => 0,
        RETURN_ALLOW => 2,
        _ => 1,
    };
    if rank(a) <= rank(b) { a } else { b }
}

#[test]
fn both_filters_together_say_what_the_policy_says() {
    for engine in Engine::ALL {
        let (zygote, own, in_zygote, in_run) = programs(engine);
        let mut checked = 0_u32;
        for number in 0..1024_u32 {
            let verdict = &in_run.get(&number).cloned().unwrap_or(Verdict::KILL);
            let zygote_verdict = &in_zygote.get(&number).cloned().unwrap_or(Verdict::KILL);
            for args in interesting_calls(&[verdict, zygote_verdict], OWN_ID) {
                let call = Call { number, arch: NATIVE_ARCH, args };
                let of_zygote = interpret(&zygote, &call);
                let expected = return_value(zygote_verdict.decide(&args, None));
                assert_eq!(of_zygote, expected, "{engine} zygote {number} {args:x?}");
                let of_run = strictest(of_zygote, interpret(&own, &call));
                let expected = return_value(verdict.decide(&args, Some(OWN_ID)));
                assert_eq!(of_run, expected, "{engine} run {number} {args:x?}");
                checked += 1;
            }
        }
        assert!(checked > 2000, "only {checked} calls");
    }
}

#[test]
fn foreign_doors_are_closed() {
    let (zygote, ..) = programs(Engine::V8);
    let check = |number: u32, arch: u32| {
        let call = Call { number, arch, args: [3, 0, 0, 0, 0, 0] };
        assert_eq!(interpret(&zygote, &call), RETURN_KILL_PROCESS, "{number:#x} {arch:#x}");
    };
    for number in 0..1024 {
        check(number, 0x4000_0003); // i386
        check(number | X32_BIT, NATIVE_ARCH);
        check(number | 0x8000_0000, NATIVE_ARCH);
    }
    check(u32::MAX, NATIVE_ARCH);
    let read = Call { number: 0, arch: NATIVE_ARCH, args: [3, 0, 0, 0, 0, 0] };
    assert_eq!(interpret(&zygote, &read), return_value(Action::Allow));
}

#[test]
fn a_runs_own_filter_is_short() {
    for engine in Engine::ALL {
        let (zygote, own, ..) = programs(engine);
        assert!(own.len() * 4 < zygote.len(), "{engine}: {} of {}", own.len(), zygote.len());
        assert!(own.len() < 64, "{engine}: {}", own.len());
    }
}
