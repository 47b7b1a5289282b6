//! Why the registry refuses to be set up in some way. Nothing here is a failure of a call.

use crate::present::Mode;
use crate::store::ScopeId;
use crate::tool::DefinitionFault;

/// The reserved name of the Code Mode transport.
pub const RUN_CODE: &str = "run_code";

/// Why a registration or a change was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The scope was never there or is gone.
    #[error("no such {scope}")]
    UnknownScope {
        /// The scope.
        scope: ScopeId,
    },
    /// A definition that cannot be.
    #[error(transparent)]
    Definition(#[from] DefinitionFault),
    /// The scope has a tool of that name.
    #[error("tool `{tool}` is already registered in this scope")]
    DuplicateTool {
        /// The name.
        tool: String,
    },
    /// The name of the transport.
    #[error("tool name `{RUN_CODE}` is reserved for the Code Mode presentation transport")]
    ReservedName,
    /// A listener did not take the change.
    #[error("registration of `{tool}` was taken back: {reason}")]
    ListenerFailed {
        /// The tool.
        tool: String,
        /// What the listener said.
        reason: String,
    },
    /// A filter that hides nothing.
    #[error("a restriction needs `allow` or `deny`")]
    EmptyRestriction,
    /// A filter that names the transport.
    #[error("a restriction cannot name reserved Code Mode presentation transport `{RUN_CODE}`")]
    RestrictsTransport,
    /// A filter that names tools which the scope does not inherit.
    #[error("restriction names unknown tool(s) {}; known tools: {}", list(unknown), list(known))]
    RestrictsUnknown {
        /// The names.
        unknown: Vec<String>,
        /// What it could name.
        known: Vec<String>,
    },
    /// Something that only a scope can have was asked for the whole deployment.
    #[error("`{what}` requires a scoped context")]
    RequiresScope {
        /// What it was.
        what: &'static str,
    },
    /// The scope has a mode.
    #[error("presentation \"{wanted}\" conflicts with \"{declared}\" already declared in this scope")]
    ModeConflict {
        /// What was asked for.
        wanted: Mode,
        /// What it has.
        declared: Mode,
    },
    /// There is one already.
    #[error("{what} is already registered")]
    AlreadyRegistered {
        /// A code runtime, an approval service.
        what: &'static str,
    },
    /// A setting that cannot be.
    #[error(transparent)]
    Settings(#[from] crate::settings::SettingsFault),
}

/// Names in a row, or that there are none.
pub(crate) fn list<T: AsRef<str>>(names: &[T]) -> String {
    if names.is_empty() {
        return "(none)".to_owned();
    }
    names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}
