//! What kind of runner is being locked down.

use std::fmt;

/// The engine, as far as its needs towards the kernel differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// V8 with its just-in-time compiler: memory can become executable.
    V8,
    /// V8 interpreting only.
    V8Jitless,
    /// QuickJS.
    Quickjs,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::V8, Self::V8Jitless, Self::Quickjs];

    /// The engine of a runner that calls itself `v8` or `quickjs`. `jitless` means nothing to the latter.
    #[must_use]
    pub fn of(name: &str, jitless: bool) -> Option<Self> {
        match (name, jitless) {
            ("v8", false) => Some(Self::V8),
            ("v8", true) => Some(Self::V8Jitless),
            ("quickjs", _) => Some(Self::Quickjs),
            _ => None,
        }
    }

    /// The word that the policy file uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V8 => "v8",
            Self::V8Jitless => "v8-jitless",
            Self::Quickjs => "quickjs",
        }
    }

    /// Whether it makes machine code while it runs.
    #[must_use]
    pub const fn compiles(self) -> bool {
        matches!(self, Self::V8)
    }

    /// Whether it reserves so much address space that `RLIMIT_AS` cannot bound it, and needs the list of its own
    /// mappings to become forkable.
    #[must_use]
    pub const fn is_v8(self) -> bool {
        matches!(self, Self::V8 | Self::V8Jitless)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the process will do once it is locked down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Fork a process per run; the control socket stays.
    Zygote,
    /// Become the one run's process itself.
    Once,
    /// Strip programs; there is no control socket, its stream stands where a run's socket does.
    Strip,
}
