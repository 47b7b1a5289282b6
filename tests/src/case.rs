//! The format of conformance cases: what a file under `tests/conformance` may say. Pure data; nothing is run here.
//!
//! `tests/conformance/README.md` explains each field, `case.schema.json` beside it is the same for machines.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

/// One file of cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// What the cases have in common, for people.
    #[serde(default)]
    pub about: String,
    /// What every case has that does not say otherwise.
    #[serde(default)]
    pub defaults: Defaults,
    /// The cases.
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
}

/// What cases of a file share.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Namespaces of cases that name none.
    #[serde(default)]
    pub namespaces: Vec<Namespace>,
    /// Budgets that a case's own are laid over.
    #[serde(default)]
    pub budgets: Budgets,
}

/// One program, how it is run, and what may come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique among all cases; begins with a letter for the source and its number.
    pub id: String,
    /// What is tried, in a line.
    #[serde(default)]
    pub about: String,
    /// Numbers of the behaviours of the reference that this case covers.
    #[serde(default)]
    pub behaviours: Vec<u32>,
    /// What is run.
    #[serde(flatten)]
    pub request: Request,
    /// Keys of the executor's configuration that differ from its defaults, as its configuration file spells them.
    #[serde(default)]
    pub configuration: toml::Table,
    /// Engines that this is for; empty: all.
    #[serde(default)]
    pub engines: Vec<String>,
    /// Why not all; required with `engines`.
    #[serde(default)]
    pub engines_reason: String,
    /// Why engines, or runs, may come to different ones of the expectations; empty: they may not.
    #[serde(default)]
    pub may_differ: String,
    /// Runs of it one after the other, each of which must meet the expectation.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Copies of it at the same time, each of which must meet the expectation.
    #[serde(default = "one")]
    pub together: u32,
    /// Whether all runs must come to the same value, failure kind and logs.
    #[serde(default)]
    pub same: bool,
    /// Whether the values of all runs must differ.
    #[serde(default)]
    pub differ: bool,
    /// Most that all its runs together may take, milliseconds.
    #[serde(default)]
    pub batch_ms_max: Option<u64>,
    /// What may come of it; one of these must hold in all its parts.
    pub expect: Vec<Expectation>,
    /// Runs that follow on the same executor, in order.
    #[serde(default)]
    pub then: Vec<FollowUp>,
}

/// A run after a case's own, on the same executor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowUp {
    /// What is run.
    #[serde(flatten)]
    pub request: Request,
    /// What may come of it.
    pub expect: Vec<Expectation>,
}

/// All that is sent to the executor for one run.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Request {
    /// The program, or
    pub program: Option<String>,
    /// the name of a file beside the case file that holds it, byte for byte, or
    pub program_file: Option<PathBuf>,
    /// pieces that make it.
    pub program_parts: Option<Vec<Part>>,
    /// What it can call. Absent: the file's default.
    pub namespaces: Option<Vec<Namespace>>,
    /// Budgets of the run, over the file's default.
    #[serde(default)]
    pub budgets: Budgets,
    /// When the caller aborts.
    pub abort: Option<Abort>,
    /// Whether the caller closes its side right after the start.
    #[serde(default)]
    pub half_close: bool,
    /// Run id to ask for.
    #[serde(default)]
    pub run_id: String,
    /// Layers to ask for.
    #[serde(default)]
    pub required_layers: Vec<String>,
    /// Engine to ask for instead of the one the case is run on.
    pub engine: Option<String>,
}

/// A piece of a long text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The text.
    pub text: String,
    /// How many times.
    #[serde(default = "one")]
    pub times: u32,
}

/// The text that parts make.
#[must_use]
pub fn assemble(parts: &[Part]) -> String {
    parts.iter().map(|part| part.text.repeat(part.times as usize)).collect()
}

/// One namespace and how its functions answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Name of the global.
    pub global: String,
    /// Class of its errors.
    pub error_class: Option<ErrorClass>,
    /// Whether it has the standard tools, in their order, before its own functions.
    #[serde(default)]
    pub standard: bool,
    /// Its functions, in order.
    #[serde(default)]
    pub functions: Vec<Function>,
}

/// Class of a namespace's errors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorClass {
    /// Name of the class.
    pub name: String,
    /// Property that holds the function's name.
    pub member_name_property: String,
}

/// One function and its script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it answers to its first call, its second, …; the last one answers all that follow.
    #[serde(default)]
    pub replies: Vec<Reply>,
}

/// How one call is answered. Exactly one of the answers is given.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// Time before the answer, milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// Answers with this JSON text, sent as it stands whatever it is.
    pub value: Option<String>,
    /// The same in pieces.
    pub value_parts: Option<Vec<Part>>,
    /// Answers with bytes that are no UTF-8: these, in hexadecimal.
    pub value_hex: Option<String>,
    /// Answers with the call's own argument.
    #[serde(default)]
    pub echo: bool,
    /// Fails with this message.
    pub error: Option<String>,
    /// Answers never.
    #[serde(default)]
    pub never: bool,
}

/// Budgets of a run; absent ones are the executor's.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budgets {
    /// CPU time, milliseconds.
    pub compute_ms: Option<u64>,
    /// Elapsed time, milliseconds.
    pub wall_ms: Option<u64>,
    /// Output ledger, bytes.
    pub output_bytes: Option<u64>,
    /// Heap, bytes.
    pub heap_bytes: Option<u64>,
    /// Calls in all.
    pub binding_calls: Option<u64>,
    /// Calls in flight.
    pub pending_calls: Option<u64>,
    /// Bytes of arguments in flight.
    pub pending_argument_bytes: Option<u64>,
    /// Bytes of a log entry.
    pub log_entry_bytes: Option<u64>,
}

impl Budgets {
    /// These, and where they say nothing, `below`.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            compute_ms: self.compute_ms.or(below.compute_ms),
            wall_ms: self.wall_ms.or(below.wall_ms),
            output_bytes: self.output_bytes.or(below.output_bytes),
            heap_bytes: self.heap_bytes.or(below.heap_bytes),
            binding_calls: self.binding_calls.or(below.binding_calls),
            pending_calls: self.pending_calls.or(below.pending_calls),
            pending_argument_bytes: self.pending_argument_bytes.or(below.pending_argument_bytes),
            log_entry_bytes: self.log_entry_bytes.or(below.log_entry_bytes),
        }
    }
}

/// When and why the caller aborts; without any `when` at once.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abort {
    /// The reason, or
    #[serde(default)]
    pub reason: String,
    /// pieces that make it.
    pub reason_parts: Option<Vec<Part>>,
    /// So long after the start, milliseconds.
    pub after_ms: Option<u64>,
    /// When this log entry has come.
    pub after_log: Option<String>,
    /// When this function, `global.name`, is called.
    pub on_call: Option<String>,
}

/// One way a run may come out. Every field that is given must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Only for this engine.
    pub engine: Option<String>,
    /// Why the engine differs; required with `engine`.
    #[serde(default)]
    pub reason: String,

    /// The value as JSON; order of members and form of numbers do not matter.
    pub value: Option<String>,
    /// The value's JSON text, byte for byte.
    pub value_text: Option<String>,
    /// The same in pieces.
    pub value_parts: Option<Vec<Part>>,
    /// Beginning of the value's JSON text.
    pub value_starts_with: Option<String>,
    /// What the value's JSON text contains.
    #[serde(default)]
    pub value_contains: Vec<String>,
    /// What it does not contain.
    #[serde(default)]
    pub value_excludes: Vec<String>,
    /// Whether there must be some value.
    #[serde(default)]
    pub some_value: bool,
    /// Whether the run completes without a value.
    #[serde(default)]
    pub no_value: bool,

    /// Kinds of failure, any one of them: `exception`, `timeout`, `abort`, `worker-exit`, `invalid-output`, `output-limit`.
    #[serde(default)]
    pub failure: Vec<String>,
    /// Detail words, any one of them.
    #[serde(default)]
    pub detail: Vec<String>,
    /// The whole message.
    pub message: Option<String>,
    /// What the message contains, in any case.
    #[serde(default)]
    pub message_contains: Vec<String>,
    /// What the message does not contain, in any case.
    #[serde(default)]
    pub message_excludes: Vec<String>,
    /// Line of the failure in the program.
    pub line: Option<u32>,
    /// Column of it.
    pub column: Option<u32>,
    /// What the excerpt contains.
    pub excerpt_contains: Option<String>,
    /// Class name of what was thrown.
    pub error_name: Option<String>,
    /// The budget's limit.
    pub limit: Option<u64>,
    /// What was used, at least.
    pub used_min: Option<u64>,
    /// The signal.
    pub signal: Option<i32>,

    /// All log entries.
    pub logs: Option<Vec<String>>,
    /// The first log entries.
    pub logs_start: Option<Vec<String>>,
    /// Texts that occur in some log entry.
    #[serde(default)]
    pub logs_contain: Vec<String>,
    /// Texts that occur in no log entry.
    #[serde(default)]
    pub logs_exclude: Vec<String>,
    /// Number of log entries.
    pub logs_count: Option<usize>,
    /// Bytes of every log entry's text, in order.
    pub logs_bytes: Option<Vec<usize>>,
    /// Texts that occur in some hint.
    #[serde(default)]
    pub hints_contain: Vec<String>,
    /// Most that logs and value or message may come to on the output ledger, bytes.
    pub output_bytes_max: Option<u64>,
    /// Exactly what they come to.
    pub output_bytes: Option<u64>,

    /// Every call, in order: `global.name` and the argument's JSON text with a blank between.
    pub calls: Option<Vec<String>>,
    /// Number of calls.
    pub calls_count: Option<usize>,
    /// Most calls.
    pub calls_max: Option<usize>,

    /// gRPC status that refuses the run: `INVALID_ARGUMENT`, ….
    pub status: Option<String>,
    /// What its message contains, in any case.
    #[serde(default)]
    pub status_contains: Vec<String>,

    /// Most that the run may take as its caller sees it, milliseconds.
    pub wall_ms_max: Option<u64>,
    /// Least that it takes.
    pub wall_ms_min: Option<u64>,
    /// Most CPU time that it may report, milliseconds.
    pub compute_ms_max: Option<u64>,
}

const fn one() -> u32 {
    1
}

/// A case with what its file adds.
#[derive(Clone, Debug)]
pub struct LoadedCase {
    /// The case, its program read and its defaults filled in.
    pub case: Case,
    /// Name of its folder.
    pub group: String,
    /// Its file.
    pub file: PathBuf,
}

impl Request {
    /// Reads the program and fills in the defaults.
    fn complete(&mut self, folder: &Path, defaults: &Defaults) -> anyhow::Result<()> {
        let sources = (self.program.take(), self.program_file.take(), self.program_parts.take());
        self.program = Some(match sources {
            (Some(text), None, None) => text,
            (None, Some(file), None) => {
                let path = folder.join(file);
                std::fs::read_to_string(&path).with_context(|| format!("read `{}`", path.display()))?
            }
            (None, None, Some(parts)) => assemble(&parts),
            _ => bail!("exactly one of `program`, `program_file` and `program_parts` is needed"),
        });
        self.namespaces.get_or_insert_with(|| defaults.namespaces.clone());
        self.budgets = self.budgets.over(defaults.budgets);
        for namespace in self.namespaces.iter().flatten() {
            for reply in namespace.functions.iter().flat_map(|function| &function.replies) {
                reply.validate().with_context(|| format!("a reply of namespace `{}`", namespace.global))?;
            }
        }
        Ok(())
    }
}

impl Reply {
    fn validate(&self) -> anyhow::Result<()> {
        let answers = [
            self.value.is_some(),
            self.value_parts.is_some(),
            self.value_hex.is_some(),
            self.echo,
            self.error.is_some(),
            self.never,
        ];
        ensure!(answers.iter().filter(|given| **given).count() == 1, "needs exactly one answer");
        Ok(())
    }
}

impl Expectation {
    fn validate(&self) -> anyhow::Result<()> {
        let value = self.value.is_some()
            || self.value_text.is_some()
            || self.value_parts.is_some()
            || self.value_starts_with.is_some()
            || !self.value_contains.is_empty()
            || !self.value_excludes.is_empty()
            || self.some_value;
        let ways = [value, self.no_value, !self.failure.is_empty(), self.status.is_some()];
        ensure!(
            ways.iter().filter(|way| **way).count() == 1,
            "an expectation is one of: a value, no value, a failure, a status"
        );
        ensure!(self.engine.is_none() == self.reason.is_empty(), "`engine` and `reason` come together");
        for kind in &self.failure {
            ensure!(crate::judge::FAILURE_KINDS.contains(&kind.as_str()), "no failure kind `{kind}`");
        }
        for word in &self.detail {
            let known = codemode_proto::detail::Detail::ALL.iter().any(|detail| detail.word() == word);
            ensure!(known, "no detail word `{word}`");
        }
        if let Some(value) = &self.value {
            serde_json::from_str::<serde_json::Value>(value).context("`value` must be JSON")?;
        }
        Ok(())
    }
}

impl Case {
    fn complete(&mut self, folder: &Path, defaults: &Defaults) -> anyhow::Result<()> {
        ensure!(!self.expect.is_empty(), "nothing is expected");
        ensure!(
            self.engines.is_empty() == self.engines_reason.is_empty(),
            "`engines` and `engines_reason` come together"
        );
        ensure!(!(self.same || self.differ) || self.repeat * self.together > 1, "one run cannot be compared");
        self.request.complete(folder, defaults)?;
        for follow_up in &mut self.then {
            follow_up.request.complete(folder, defaults)?;
        }
        for expectation in self.expect.iter().chain(self.then.iter().flat_map(|follow_up| &follow_up.expect))
        {
            expectation.validate()?;
        }
        Ok(())
    }

    /// Whether it is for that engine.
    #[must_use]
    pub fn is_for(&self, engine: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|name| name == engine)
    }
}

/// The folder of the cases.
#[must_use]
pub fn conformance_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance")
}

/// Every case file under `folder`, sorted: `folder/GROUP/FILE.toml`.
///
/// # Errors
/// If a folder cannot be read.
pub fn case_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for group in std::fs::read_dir(folder).with_context(|| format!("read `{}`", folder.display()))? {
        let group = group?.path();
        if !group.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&group)? {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "toml") {
                files.push(file);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Every case under `folder`, programs read, defaults filled in, ids unique, no program file unused.
///
/// # Errors
/// Naming the file and the case at fault.
pub fn load(folder: &Path) -> anyhow::Result<Vec<LoadedCase>> {
    let mut cases = Vec::new();
    let mut ids = HashSet::new();
    for file in case_files(folder)? {
        for case in load_file(&file).with_context(|| format!("in `{}`", file.display()))? {
            ensure!(ids.insert(case.case.id.clone()), "two cases are called `{}`", case.case.id);
            cases.push(case);
        }
    }
    ensure!(!cases.is_empty(), "no cases in `{}`", folder.display());
    Ok(cases)
}

fn load_file(file: &Path) -> anyhow::Result<Vec<LoadedCase>> {
    let text = std::fs::read_to_string(file)?;
    let parsed: CaseFile = toml::from_str(&text)?;
    let folder = file.parent().context("a case file has a folder")?;
    let group = folder.file_name().context("a group has a name")?.to_string_lossy().into_owned();
    let mut cases = Vec::new();
    for mut case in parsed.cases {
        let id = case.id.clone();
        case.complete(folder, &parsed.defaults).with_context(|| format!("case `{id}`"))?;
        cases.push(LoadedCase { case, group: group.clone(), file: file.to_owned() });
    }
    Ok(cases)
}

/// Program files that no case names.
///
/// # Errors
/// If a folder cannot be read or a file is no case file.
pub fn unused_programs(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut used = HashSet::new();
    let mut present = Vec::new();
    for file in case_files(folder)? {
        let group = file.parent().context("a case file has a folder")?.to_owned();
        let parsed: CaseFile = toml::from_str(&std::fs::read_to_string(&file)?)?;
        for case in parsed.cases {
            let requests =
                std::iter::once(&case.request).chain(case.then.iter().map(|follow_up| &follow_up.request));
            used.extend(
                requests.filter_map(|request| request.program_file.as_ref()).map(|name| group.join(name)),
            );
        }
        for entry in std::fs::read_dir(&group)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "ts") {
                present.push(path);
            }
        }
    }
    present.sort();
    present.dedup();
    present.retain(|path| !used.contains(path));
    Ok(present)
}
