//! What a runtime says about itself.

use crate::request::Budgets;

/// What an executor is, as it answered when it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Version of the contract, `1.0`.
    pub contract_version: String,
    /// Language of the programs, lower case: `typescript`.
    pub language: String,
    /// What separates a run from everything else: `process`. Informs, gates nothing.
    pub isolation: String,
    /// Version of the executor.
    pub executor_version: String,
    /// Engines that can be asked for.
    pub engines: Vec<Engine>,
    /// Engine that a run gets by default.
    pub default_engine: String,
    /// Budgets that a run gets by default, which are its ceilings too.
    pub budgets: Budgets,
    /// Bounds that no run can change.
    pub limits: Limits,
    /// Every sandbox layer known, in force or not.
    pub layers: Vec<Layer>,
    /// How processes are made: `fork` or `exec`.
    pub spawn: String,
}

/// An engine that runs programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// `v8` or `quickjs`.
    pub name: String,
    /// Version as the engine reports it.
    pub version: String,
    /// Whether code is compiled to machine code while it runs.
    pub jit: bool,
}

/// Bounds of an executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a program, at most.
    pub program_bytes_max: u64,
    /// Bytes of one value, argument or reply, at most.
    pub frame_bytes_max: u64,
    /// Levels of nesting of a JSON value, at most.
    pub json_depth_max: u32,
    /// Runs at once.
    pub concurrent_runs_max: u32,
    /// Runs waiting for a slot.
    pub queued_runs_max: u32,
    /// How long a run waits for a slot, milliseconds.
    pub queue_ms_max: u64,
}

/// A sandbox layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Stable name: `seccomp`, `landlock`.
    pub name: String,
    /// Whether every run's process has it.
    pub in_force: bool,
    /// Why it is not in force; empty if it is.
    pub reason: String,
    /// Whether the configuration requires it.
    pub required: bool,
    /// Engine that this line is about; may be empty.
    pub engine: String,
}
