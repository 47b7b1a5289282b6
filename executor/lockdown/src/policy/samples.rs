//! Calls worth trying against a verdict: arguments that satisfy each alternative, and each condition broken in turn.
//!
//! Used by this crate's tests on both sides of the process boundary; decides nothing.

use super::{Condition, Operand, Test, Verdict, Width};

/// Argument lists around the verdicts' conditions, without duplicates. The unconditioned arguments are 0.
#[must_use]
pub fn interesting_calls(verdicts: &[&Verdict], own_id: u32) -> Vec<[u64; 6]> {
    let mut calls = vec![[0; 6], [u64::MAX; 6]];
    for clause in verdicts.iter().flat_map(|verdict| verdict.clauses()) {
        let base = satisfying(clause, own_id);
        calls.push(base);
        for condition in clause {
            for value in around(condition, base[usize::from(condition.arg)], own_id) {
                let mut args = base;
                args[usize::from(condition.arg)] = value;
                calls.push(args);
            }
        }
    }
    calls.sort_unstable();
    calls.dedup();
    calls
}

/// Arguments under which all conditions hold.
fn satisfying(clause: &[Condition], own_id: u32) -> [u64; 6] {
    let mut args = [0; 6];
    for condition in clause {
        let slot = &mut args[usize::from(condition.arg)];
        match &condition.test {
            Test::In(operands) => *slot = operands.first().map_or(0, |operand| value_of(*operand, own_id)),
            Test::Has(mask) => *slot |= mask,
            Test::Within(_) => {}
        }
    }
    args
}

fn value_of(operand: Operand, own_id: u32) -> u64 {
    match operand {
        Operand::Number(number) => number,
        Operand::OwnId => u64::from(own_id),
    }
}

/// Values that satisfy a condition and values just beside them.
fn around(condition: &Condition, base: u64, own_id: u32) -> Vec<u64> {
    let mut values = vec![0, 1, u64::MAX];
    match &condition.test {
        Test::In(operands) => {
            for value in operands.iter().map(|operand| value_of(*operand, own_id)) {
                values.extend([value, value.wrapping_add(1), value.wrapping_sub(1)]);
                values.extend((0..64).map(|bit| value ^ (1 << bit)));
            }
        }
        Test::Within(mask) => {
            values.push(base | mask);
            values.extend((0..64).map(|bit| base ^ (1 << bit)));
        }
        Test::Has(mask) => {
            values.extend((0..64).filter(|bit| mask & (1 << bit) != 0).map(|bit| base ^ (1 << bit)))
        }
    }
    if condition.width == Width::Bits32 {
        values.push(base | 1 << 32);
    }
    values
}
