//! From verdicts per system call to a classic BPF program for `seccomp`.
//!
//! Why not `seccompiler`: it knows one action for a match and one for the rest, so a policy with three actions would
//! become a stack of six filters, each walked on every system call whose arguments are looked at; and it cannot say "allow on
//! these arguments, otherwise answer EINVAL", which the child's delta is made of. This file is pure and has no
//! unsafe code; its output is checked instruction by instruction by an interpreter (in the tests below) and system
//! call by system call against the kernel (`tests/sweep.rs`).

use std::collections::BTreeMap;

use crate::policy::{Action, Condition, Operand, Test, Verdict, Width};
use crate::sys::Instruction;

/// Offsets in `struct seccomp_data`: number, architecture, instruction pointer (8 bytes), six arguments of 8 bytes.
const DATA_NUMBER: u32 = 0;
const DATA_ARCH: u32 = 4;
const DATA_ARGS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const NATIVE_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE_ARCH: u32 = 0xc000_00b7;

/// Set in the number of every x32 system call, which reports the same architecture as x86_64.
#[cfg(target_arch = "x86_64")]
const X32_BIT: u32 = 0x4000_0000;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP_EQ: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
#[cfg(target_arch = "x86_64")]
const JUMP_GE: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const JUMP_SET: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

const RETURN_KILL_PROCESS: u32 = 0x8000_0000;
const RETURN_ERRNO: u32 = 0x0005_0000;
const RETURN_ALLOW: u32 = 0x7fff_0000;

/// Longest program the kernel takes, instructions.
const PROGRAM_MAX: usize = 4096;

/// Why verdicts did not become a program. Only a policy file that was edited wrongly can cause either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A conditional jump reaches at most 255 instructions.
    #[error("a jump over `{distance}` instructions is longer than a conditional jump reaches")]
    JumpTooLong {
        /// Its length, instructions.
        distance: usize,
    },
    /// The kernel takes no more than 4 096.
    #[error("the filter has `{instructions}` instructions, the kernel takes {PROGRAM_MAX}")]
    TooLong {
        /// Its length, instructions.
        instructions: usize,
    },
}

/// A compiled filter.
#[derive(Clone)]
pub struct Program {
    instructions: Vec<Instruction>,
    /// Where an instruction compares with the process's own id, which only the process itself can fill in.
    own_id: Vec<usize>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("instructions", &self.instructions.len()).finish_non_exhaustive()
    }
}

impl Program {
    /// Fills in the process's own id. Allocates nothing.
    pub(crate) fn set_own_id(&mut self, id: u32) {
        for &at in &self.own_id {
            self.instructions[at].k = id;
        }
    }

    pub(crate) fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Number of instructions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }
}

/// A place in the program that is known by name before its number is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Label(usize);

enum Line {
    Plain { code: u16, k: u32 },
    Jump { code: u16, k: u32, yes: Label, no: Label, own_id: bool },
    Here(Label),
}

/// Collects lines with labels, then resolves them. All jumps go forward.
#[derive(Default)]
struct Assembler {
    lines: Vec<Line>,
    labels: usize,
    returns: BTreeMap<u32, Label>,
    /// Whether the filter is for one process, which will fill in its id. Otherwise any id will do.
    for_one_process: bool,
}

impl Assembler {
    fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    fn here(&mut self, label: Label) {
        self.lines.push(Line::Here(label));
    }

    fn load(&mut self, offset: u32) {
        self.lines.push(Line::Plain { code: LOAD, k: offset });
    }

    fn jump(&mut self, code: u16, k: u32, yes: Label, no: Label) {
        self.lines.push(Line::Jump { code, k, yes, no, own_id: false });
    }

    fn ret(&mut self, action: Action) {
        self.lines.push(Line::Plain { code: RETURN, k: return_value(action) });
    }

    /// The label of a shared return at the end of the program.
    fn shared_return(&mut self, action: Action) -> Label {
        let value = return_value(action);
        if let Some(label) = self.returns.get(&value) {
            return *label;
        }
        let label = self.label();
        self.returns.insert(value, label);
        label
    }

    fn emit_shared_returns(&mut self) {
        for (value, label) in std::mem::take(&mut self.returns) {
            self.here(label);
            self.lines.push(Line::Plain { code: RETURN, k: value });
        }
    }

    fn resolve(self) -> Result<Program, CompileError> {
        let mut places = BTreeMap::new();
        let mut count = 0_usize;
        for line in &self.lines {
            match line {
                Line::Here(label) => {
                    places.insert(*label, count);
                }
                Line::Plain { .. } | Line::Jump { .. } => count += 1,
            }
        }
        if count > PROGRAM_MAX {
            return Err(CompileError::TooLong { instructions: count });
        }
        let mut program = Program { instructions: Vec::with_capacity(count), own_id: Vec::new() };
        for line in &self.lines {
            let at = program.instructions.len();
            let reach = |label: &Label| {
                let distance = places.get(label).copied().unwrap_or(usize::MAX).wrapping_sub(at + 1);
                u8::try_from(distance).map_err(|_| CompileError::JumpTooLong { distance })
            };
            match line {
                Line::Here(_) => {}
                Line::Plain { code, k } => {
                    program.instructions.push(Instruction { code: *code, jt: 0, jf: 0, k: *k });
                }
                Line::Jump { code, k, yes, no, own_id } => {
                    if *own_id {
                        program.own_id.push(at);
                    }
                    let (jt, jf) = (reach(yes)?, reach(no)?);
                    program.instructions.push(Instruction { code: *code, jt, jf, k: *k });
                }
            }
        }
        Ok(program)
    }
}

const fn return_value(action: Action) -> u32 {
    match action {
        Action::Allow => RETURN_ALLOW,
        Action::Errno(number) => RETURN_ERRNO | (number.unsigned_abs() & 0xffff),
        Action::Kill => RETURN_KILL_PROCESS,
    }
}

/// The whole filter: foreign architectures and x32 die, then each system call gets its verdict, all others die.
pub(crate) fn allowlist(verdicts: &BTreeMap<u32, Verdict>) -> Result<Program, CompileError> {
    let mut asm = Assembler::default();
    let (native, foreign) = (asm.label(), asm.label());
    asm.load(DATA_ARCH);
    asm.jump(JUMP_EQ, NATIVE_ARCH, native, foreign);
    asm.here(foreign);
    asm.ret(Action::Kill);
    asm.here(native);
    asm.load(DATA_NUMBER);
    #[cfg(target_arch = "x86_64")]
    {
        let (x32, no_x32) = (asm.label(), asm.label());
        asm.jump(JUMP_GE, X32_BIT, x32, no_x32);
        asm.here(x32);
        asm.ret(Action::Kill);
        asm.here(no_x32);
    }
    dispatch(&mut asm, verdicts, Action::Kill);
    asm.resolve()
}

/// A short filter for a process that already lives under an [`allowlist`]: only these verdicts, the rest as before.
/// The kernel takes the strictest answer of all filters, so it needs no look at the architecture.
pub(crate) fn delta(verdicts: &BTreeMap<u32, Verdict>) -> Result<Program, CompileError> {
    let mut asm = Assembler { for_one_process: true, ..Assembler::default() };
    asm.load(DATA_NUMBER);
    dispatch(&mut asm, verdicts, Action::Allow);
    asm.resolve()
}

/// Verdicts that look at arguments come first: the kernel remembers the constant ones per number (since 5.11) and never
/// runs the program for those that are always allowed.
fn dispatch(asm: &mut Assembler, verdicts: &BTreeMap<u32, Verdict>, default: Action) {
    for (number, verdict) in verdicts.iter().filter(|(_, verdict)| verdict.constant().is_none()) {
        let (matched, next) = (asm.label(), asm.label());
        asm.jump(JUMP_EQ, *number, matched, next);
        asm.here(matched);
        for clause in verdict.clauses() {
            emit_clause(asm, clause);
        }
        asm.ret(verdict.otherwise());
        asm.here(next);
    }
    for (number, verdict) in verdicts {
        let Some(action) = verdict.constant() else { continue };
        let (matched, next) = (asm.shared_return(action), asm.label());
        asm.jump(JUMP_EQ, *number, matched, next);
        asm.here(next);
    }
    asm.ret(default);
    asm.emit_shared_returns();
}

/// Allows if all conditions hold, else falls through behind itself.
fn emit_clause(asm: &mut Assembler, conditions: &[Condition]) {
    let failed = asm.label();
    for condition in conditions {
        emit_condition(asm, condition, failed);
    }
    asm.ret(Action::Allow);
    asm.here(failed);
}

/// Falls through if the condition holds, else goes to `failed`.
fn emit_condition(asm: &mut Assembler, condition: &Condition, failed: Label) {
    let low = DATA_ARGS + 8 * u32::from(condition.arg);
    let held = asm.label();
    match &condition.test {
        Test::In(operands) if operands.contains(&Operand::OwnId) && !asm.for_one_process => {}
        Test::In(operands) => {
            // All values of one list share their upper half, or each would need its own (`Policy` checks that).
            if condition.width == Width::Bits64 {
                emit_upper_half(asm, low + 4, upper(operands.first().copied()), failed);
            }
            asm.load(low);
            for (index, operand) in operands.iter().enumerate() {
                let next = if index + 1 == operands.len() { failed } else { asm.label() };
                let (k, own_id) = match operand {
                    Operand::Number(value) => (lower(*value), false),
                    Operand::OwnId => (0, true),
                };
                asm.lines.push(Line::Jump { code: JUMP_EQ, k, yes: held, no: next, own_id });
                if next != failed {
                    asm.here(next);
                }
            }
        }
        Test::Within(mask) => {
            if condition.width == Width::Bits64 {
                emit_upper_half(asm, low + 4, 0, failed);
            }
            asm.load(low);
            asm.jump(JUMP_SET, !lower(*mask), failed, held);
        }
        Test::Has(mask) => {
            asm.load(low);
            asm.lines.push(Line::Plain { code: AND, k: lower(*mask) });
            asm.jump(JUMP_EQ, lower(*mask), held, failed);
        }
    }
    asm.here(held);
}

fn emit_upper_half(asm: &mut Assembler, offset: u32, value: u32, failed: Label) {
    let equal = asm.label();
    asm.load(offset);
    asm.jump(JUMP_EQ, value, equal, failed);
    asm.here(equal);
}

const fn lower(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

fn upper(operand: Option<Operand>) -> u32 {
    match operand {
        Some(Operand::Number(value)) => (value >> 32) as u32,
        Some(Operand::OwnId) | None => 0,
    }
}

#[cfg(test)]
mod tests;
