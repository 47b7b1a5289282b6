//! What a caller asks for: a program, what it may call, and tighter budgets.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::binding::Namespace;

/// Names one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(Uuid);

impl RunId {
    /// A new id, unlike any other.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl FromStr for RunId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl From<Uuid> for RunId {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// What a run may spend. Absent: the runtime's own budget; a looser value than that is misuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// CPU time of the run, milliseconds. Waiting costs nothing.
    pub compute_ms: Option<u64>,
    /// Elapsed time, milliseconds, 1 to 2 147 483 647.
    pub wall_ms: Option<u64>,
    /// Bytes of the JSON form of logs plus value or failure message, from 4.
    pub output_bytes: Option<u64>,
    /// Engine heap, bytes.
    pub heap_bytes: Option<u64>,
    /// Binding calls in all.
    pub binding_calls: Option<u64>,
    /// Binding calls in flight at once.
    pub pending_calls: Option<u64>,
    /// Bytes of arguments of the calls in flight.
    pub pending_argument_bytes: Option<u64>,
    /// Bytes of one log entry; a longer one is cut and marked.
    pub log_entry_bytes: Option<u64>,
}

/// One run, as it is asked for. What happens while it runs is [`crate::RunHost`]'s.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// Body of an async function in the runtime's language.
    pub program: String,
    /// What the program can call, in the order of its parameters.
    pub namespaces: Vec<Namespace>,
    /// Tighter budgets for this run.
    pub budgets: Budgets,
    /// The run's id, unique among live runs. Absent: the runtime makes one.
    pub run_id: Option<RunId>,
    /// Engine to run on (`v8`, `quickjs`). Absent: the runtime's default.
    pub engine: Option<String>,
    /// Sandbox layers that must be in force.
    pub required_layers: Vec<String>,
    /// The caller's labels for logs and traces.
    pub labels: BTreeMap<String, String>,
}

impl RunRequest {
    /// A run of that program with nothing to call and the runtime's own budgets.
    #[must_use]
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// Adds a namespace.
    #[must_use]
    pub fn with_namespace(mut self, namespace: Namespace) -> Self {
        self.namespaces.push(namespace);
        self
    }

    /// Sets the budgets.
    #[must_use]
    pub fn with_budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// Sets the run's id.
    #[must_use]
    pub fn with_run_id(mut self, run_id: RunId) -> Self {
        self.run_id = Some(run_id);
        self
    }

    /// Pins an engine.
    #[must_use]
    pub fn with_engine(mut self, engine: impl Into<String>) -> Self {
        self.engine = Some(engine.into());
        self
    }
}
