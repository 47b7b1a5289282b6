//! The system call policy as data: `policy/seccomp.toml`, read and checked, and what it says about one call.
//!
//! Pure: knows nothing of BPF and installs nothing. [`Verdict::decide`] is the meaning of the file; the compiled filter
//! must agree with it, which the sweep tests check call by call.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::engine::Engine;

mod names;
#[doc(hidden)]
pub mod samples;

const SOURCE: &str = include_str!("../policy/seccomp.toml");

/// What is wrong with a policy file.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It is not TOML of the right shape.
    #[error("the policy cannot be read")]
    Parse(#[from] toml::de::Error),
    /// A word that stands for a number is not known.
    #[error("unknown {kind} `{name}` in the policy")]
    Unknown {
        /// What kind of word.
        kind: &'static str,
        /// The word.
        name: String,
    },
    /// A rule contradicts itself.
    #[error("the rule for `{syscall}`: {fault}")]
    Rule {
        /// The rule's first system call.
        syscall: String,
        /// What is wrong.
        fault: &'static str,
    },
}

/// What happens to a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// It runs.
    Allow,
    /// It fails with this error number.
    Errno(i32),
    /// The process dies by SIGSYS.
    Kill,
}

/// When a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// In a run's process, and so in the zygote too.
    Run,
    /// Only in the zygote; a run's process has taken it back.
    Zygote,
}

/// How much of an argument the kernel looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// An `int`: the upper half is ignored by the kernel and by the filter.
    Bits32,
    /// A `long`: both halves count.
    Bits64,
}

/// A value to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// This number.
    Number(u64),
    /// The process's own id, which is its only thread's id too.
    OwnId,
}

/// A test of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// Equal to one of these.
    In(Vec<Operand>),
    /// No bits beyond these.
    Within(u64),
    /// All of these bits.
    Has(u64),
}

/// One test on one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which argument, from 0.
    pub arg: u8,
    /// How wide it is.
    pub width: Width,
    /// The test.
    pub test: Test,
}

impl Condition {
    /// Whether it holds. Without an own id, [`Operand::OwnId`] equals anything.
    #[must_use]
    pub fn holds(&self, args: &[u64; 6], own_id: Option<u32>) -> bool {
        let (value, relevant) = match self.width {
            Width::Bits32 => (args[usize::from(self.arg)] & 0xffff_ffff, 0xffff_ffff),
            Width::Bits64 => (args[usize::from(self.arg)], u64::MAX),
        };
        match &self.test {
            Test::In(operands) => operands.iter().any(|operand| match operand {
                Operand::Number(number) => value == number & relevant,
                Operand::OwnId => own_id.is_none_or(|id| value == u64::from(id)),
            }),
            Test::Within(mask) => value & !mask == 0,
            Test::Has(mask) => value & mask == *mask,
        }
    }
}

/// All that the policy says about one system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Allowed if all conditions of one of these hold.
    clauses: Vec<Vec<Condition>>,
    /// What happens if none does.
    otherwise: Action,
}

impl Verdict {
    /// The verdict on a system call that the policy does not name.
    pub const KILL: Self = Self { clauses: Vec::new(), otherwise: Action::Kill };

    /// What happens to a call with these arguments.
    #[must_use]
    pub fn decide(&self, args: &[u64; 6], own_id: Option<u32>) -> Action {
        let allowed =
            self.clauses.iter().any(|clause| clause.iter().all(|condition| condition.holds(args, own_id)));
        if allowed { Action::Allow } else { self.otherwise }
    }

    /// The action, where it is the same for all arguments.
    #[must_use]
    pub fn constant(&self) -> Option<Action> {
        match self.clauses.as_slice() {
            [] => Some(self.otherwise),
            clauses if clauses.iter().any(Vec::is_empty) => Some(Action::Allow),
            _ => None,
        }
    }

    /// The alternatives under which it is allowed.
    #[must_use]
    pub fn clauses(&self) -> &[Vec<Condition>] {
        &self.clauses
    }

    /// What happens where no alternative holds.
    #[must_use]
    pub const fn otherwise(&self) -> Action {
        self.otherwise
    }

    fn names_own_id(&self) -> bool {
        self.clauses.iter().flatten().any(
            |condition| matches!(&condition.test, Test::In(operands) if operands.contains(&Operand::OwnId)),
        )
    }
}

/// One rule of the file, for this architecture.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The system calls it is about: name and number.
    pub syscalls: Vec<(String, u32)>,
    /// What happens to them.
    pub action: Action,
    /// Only if all of these hold.
    pub when: Vec<Condition>,
    /// Only with these engines.
    pub engines: Vec<Engine>,
    /// In which phase.
    pub phase: Phase,
    /// Why.
    pub reason: String,
}

/// The policy for this architecture.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<Rule>,
}

impl Policy {
    /// The policy that this crate was built with.
    ///
    /// # Errors
    /// Any [`PolicyError`]; a test makes sure that there is none.
    pub fn load() -> Result<Self, PolicyError> {
        Self::parse(SOURCE)
    }

    fn parse(source: &str) -> Result<Self, PolicyError> {
        let raw: RawPolicy = toml::from_str(source)?;
        let mut rules = Vec::with_capacity(raw.rule.len());
        for rule in raw.rule {
            if rule.arches.contains(&Arch::NATIVE) {
                rules.push(rule.check()?);
            }
        }
        Ok(Self { rules })
    }

    /// The rules, as they stand in the file.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What the policy says in a phase, by system call number; all others are [`Verdict::KILL`].
    #[must_use]
    pub fn verdicts(&self, engine: Engine, phase: Phase) -> BTreeMap<u32, Verdict> {
        let mut verdicts: BTreeMap<u32, Verdict> = BTreeMap::new();
        let rules = self.rules.iter().filter(|rule| {
            rule.engines.contains(&engine) && (phase == Phase::Zygote || rule.phase == Phase::Run)
        });
        for rule in rules {
            for (_, number) in &rule.syscalls {
                let verdict = verdicts.entry(*number).or_insert(Verdict::KILL);
                match rule.action {
                    Action::Allow => verdict.clauses.push(rule.when.clone()),
                    other => verdict.otherwise = other,
                }
            }
        }
        verdicts
    }

    /// What a run's process adds to the zygote's filter: the verdicts that differ, and those that name the process.
    #[must_use]
    pub fn delta(&self, engine: Engine) -> BTreeMap<u32, Verdict> {
        let run = self.verdicts(engine, Phase::Run);
        self.verdicts(engine, Phase::Zygote)
            .into_iter()
            .filter_map(|(number, in_zygote)| {
                let in_run = run.get(&number).cloned().unwrap_or(Verdict::KILL);
                (in_run != in_zygote || in_run.names_own_id()).then_some((number, in_run))
            })
            .collect()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    rule: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    syscalls: Vec<String>,
    action: RawAction,
    #[serde(default)]
    when: Vec<RawCondition>,
    #[serde(default = "all_engines")]
    engines: Vec<String>,
    #[serde(default = "all_arches")]
    arches: Vec<Arch>,
    #[serde(default = "run_phase")]
    phase: Phase,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawAction {
    Allow,
    Errno(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCondition {
    arg: u8,
    #[serde(default)]
    bits: Option<u8>,
    #[serde(default, rename = "in")]
    any_of: Option<Vec<RawValue>>,
    #[serde(default)]
    within: Option<RawValue>,
    #[serde(default)]
    has: Option<RawValue>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawValue {
    Number(i64),
    Word(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Arch {
    #[serde(rename = "x86_64")]
    X8664,
    #[serde(rename = "aarch64")]
    Aarch64,
}

impl Arch {
    #[cfg(target_arch = "x86_64")]
    const NATIVE: Self = Self::X8664;
    #[cfg(target_arch = "aarch64")]
    const NATIVE: Self = Self::Aarch64;
}

fn all_engines() -> Vec<String> {
    Engine::ALL.iter().map(|engine| engine.name().to_owned()).collect()
}

fn all_arches() -> Vec<Arch> {
    vec![Arch::X8664, Arch::Aarch64]
}

const fn run_phase() -> Phase {
    Phase::Run
}

impl RawRule {
    fn check(self) -> Result<Rule, PolicyError> {
        let first = self.syscalls.first().cloned().unwrap_or_default();
        let fault = |fault| PolicyError::Rule { syscall: first.clone(), fault };
        if self.syscalls.is_empty() {
            return Err(fault("names no system call"));
        }
        if self.reason.is_empty() {
            return Err(fault("gives no reason"));
        }
        let action = match self.action {
            RawAction::Allow => Action::Allow,
            RawAction::Errno(_) if !self.when.is_empty() => {
                return Err(fault("an error answer is for all arguments that nothing allows"));
            }
            RawAction::Errno(name) => Action::Errno(known("error number", &name, names::errno)?),
        };
        let when =
            self.when.into_iter().map(|condition| condition.check(&first)).collect::<Result<_, _>>()?;
        let engines = self
            .engines
            .iter()
            .map(|name| {
                known("engine", name, |name| Engine::ALL.into_iter().find(|engine| engine.name() == name))
            })
            .collect::<Result<_, _>>()?;
        let syscalls = self
            .syscalls
            .into_iter()
            .map(|name| known("system call", &name, names::syscall).map(|number| (name, number)))
            .collect::<Result<_, _>>()?;
        Ok(Rule { syscalls, action, when, engines, phase: self.phase, reason: self.reason })
    }
}

impl RawCondition {
    fn check(self, syscall: &str) -> Result<Condition, PolicyError> {
        let fault = |fault| PolicyError::Rule { syscall: syscall.to_owned(), fault };
        let width = match self.bits {
            None | Some(32) => Width::Bits32,
            Some(64) => Width::Bits64,
            Some(_) => return Err(fault("an argument has 32 or 64 bits")),
        };
        if self.arg > 5 {
            return Err(fault("a system call has arguments 0 to 5"));
        }
        let test = match (self.any_of, self.within, self.has) {
            (Some(values), None, None) if !values.is_empty() => {
                let operands =
                    values.iter().map(|value| value.operand(width)).collect::<Result<Vec<_>, _>>()?;
                if !share_upper_half(&operands) {
                    return Err(fault("the values of one list must share their upper half"));
                }
                Test::In(operands)
            }
            (None, Some(mask), None) => Test::Within(mask.number(width)?),
            (None, None, Some(mask)) => Test::Has(mask.number(width)?),
            _ => return Err(fault("a condition is one of `in`, `within` and `has`")),
        };
        if let Test::Within(mask) | Test::Has(mask) = test
            && mask > u64::from(u32::MAX)
        {
            return Err(fault("a mask has 32 bits"));
        }
        Ok(Condition { arg: self.arg, width, test })
    }
}

fn share_upper_half(operands: &[Operand]) -> bool {
    let mut halves = operands.iter().map(|operand| match operand {
        Operand::Number(value) => value >> 32,
        Operand::OwnId => 0,
    });
    let first = halves.next();
    halves.all(|half| Some(half) == first)
}

impl RawValue {
    fn operand(&self, width: Width) -> Result<Operand, PolicyError> {
        match self {
            Self::Word(word) if word == "own_id" => Ok(Operand::OwnId),
            other => other.number(width).map(Operand::Number),
        }
    }

    fn number(&self, width: Width) -> Result<u64, PolicyError> {
        let number = match self {
            Self::Number(number) => number.cast_unsigned(),
            Self::Word(words) => words
                .split('|')
                .map(|word| known("constant", word.trim(), names::constant))
                .try_fold(0, |sum, bits| bits.map(|bits| sum | bits))?,
        };
        Ok(if width == Width::Bits32 { number & 0xffff_ffff } else { number })
    }
}

fn known<T>(
    kind: &'static str,
    name: &str,
    lookup: impl FnOnce(&str) -> Option<T>,
) -> Result<T, PolicyError> {
    lookup(name).ok_or_else(|| PolicyError::Unknown { kind, name: name.to_owned() })
}

#[cfg(test)]
mod tests;
