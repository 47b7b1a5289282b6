//! The sandbox layers by name: one bit each on the wire, one word each towards people.

use std::fmt;

/// One independent barrier around a run's process. The discriminant is its bit in a [`LayerSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Layer {
    /// The process was started with an empty environment and constant arguments.
    Environment = 0,
    /// No descriptor is open but the null device on 0 and 1, the bounded error pipe on 2, and the run's socket on 3.
    Descriptors = 1,
    /// Kernel resource limits: CPU, data, processes, files, locks, core.
    Rlimits = 2,
    /// `PR_SET_NO_NEW_PRIVS`.
    NoNewPrivileges = 3,
    /// `PR_SET_DUMPABLE` 0: no core, no ptrace or `/proc/PID/mem` by processes of the same user.
    NonDumpable = 4,
    /// The system call allowlist.
    Seccomp = 5,
    /// No memory can become executable (`PR_SET_MDWE` where there is one, and the allowlist's argument rules).
    NoExecMemory = 6,
    /// A Landlock domain without any right to files, TCP ports, or other processes.
    Landlock = 7,
    /// All capabilities dropped, the bounding set included.
    Capabilities = 8,
    /// An own user namespace.
    UserNamespace = 9,
    /// An empty root directory: an own mount namespace with an empty read-only file system, or where only that is allowed, a
    /// change of root to the `/proc` directory of a process that is gone.
    EmptyRoot = 10,
    /// An own network namespace without any configured interface.
    NetworkNamespace = 11,
    /// Own IPC, UTS and cgroup namespaces.
    MiscNamespaces = 12,
    /// A user id of its own, unprivileged.
    UidDrop = 13,
    /// The kernel kills the process when the executor dies.
    ParentDeathSignal = 14,
    /// A control group of its own with memory and process bounds.
    Cgroup = 15,
}

impl Layer {
    /// All layers in the order of their bits.
    pub const ALL: [Self; 16] = [
        Self::Environment,
        Self::Descriptors,
        Self::Rlimits,
        Self::NoNewPrivileges,
        Self::NonDumpable,
        Self::Seccomp,
        Self::NoExecMemory,
        Self::Landlock,
        Self::Capabilities,
        Self::UserNamespace,
        Self::EmptyRoot,
        Self::NetworkNamespace,
        Self::MiscNamespaces,
        Self::UidDrop,
        Self::ParentDeathSignal,
        Self::Cgroup,
    ];

    /// The stable name that configuration, `Describe` and logs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Descriptors => "descriptors",
            Self::Rlimits => "rlimits",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::NonDumpable => "non_dumpable",
            Self::Seccomp => "seccomp",
            Self::NoExecMemory => "no_exec_memory",
            Self::Landlock => "landlock",
            Self::Capabilities => "capabilities",
            Self::UserNamespace => "user_namespace",
            Self::EmptyRoot => "empty_root",
            Self::NetworkNamespace => "network_namespace",
            Self::MiscNamespaces => "misc_namespaces",
            Self::UidDrop => "uid_drop",
            Self::ParentDeathSignal => "parent_death_signal",
            Self::Cgroup => "cgroup",
        }
    }

    /// The layer of that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| layer.name() == name)
    }

    const fn bit(self) -> u32 {
        1 << self as u8
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of layers; one `u32` on the wire. Unknown bits of a foreign set are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerSet(u32);

impl LayerSet {
    /// The set without any layer.
    pub const EMPTY: Self = Self(0);

    /// The set of these bits, unknown ones dropped.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & 0xffff)
    }

    /// The bits, as they travel.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// This set and one layer more.
    #[must_use]
    pub const fn with(self, layer: Layer) -> Self {
        Self(self.0 | layer.bit())
    }

    /// This set without that layer.
    #[must_use]
    pub const fn without(self, layer: Layer) -> Self {
        Self(self.0 & !layer.bit())
    }

    /// Adds a layer.
    pub const fn insert(&mut self, layer: Layer) {
        self.0 |= layer.bit();
    }

    /// Whether the layer is in the set.
    #[must_use]
    pub const fn contains(self, layer: Layer) -> bool {
        self.0 & layer.bit() != 0
    }

    /// The layers of `self` that `other` lacks.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The layers, in the order of their bits.
    pub fn iter(self) -> impl Iterator<Item = Layer> {
        Layer::ALL.into_iter().filter(move |layer| self.contains(*layer))
    }
}

impl FromIterator<Layer> for LayerSet {
    fn from_iter<T: IntoIterator<Item = Layer>>(layers: T) -> Self {
        layers.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// How a layer stands on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerState {
    /// Applied to every run's process, and checked.
    InForce,
    /// The kernel, the container or the process's rights do not allow it.
    Unavailable,
    /// Turned off by configuration, or not meaningful for this engine.
    Off,
}

/// One layer's state and, where it is not in force, the reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerReport {
    /// Which layer.
    pub layer: Layer,
    /// How it stands.
    pub state: LayerState,
    /// Why it is not in force; empty if it is.
    pub reason: String,
}
