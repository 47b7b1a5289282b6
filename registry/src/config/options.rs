//! Options as they are given: every field optional, from a file, the environment or arguments. The ranges and defaults
//! of the numbers stand here too, as the one table that validation and the generated reference read.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::policy::Policy;

/// Where to listen by default: this machine only.
pub const LISTEN: &str = "127.0.0.1:50052";
/// Log filter by default.
pub const LOG_FILTER: &str = "info";
/// Where logs are kept by default.
pub const STORE: &str = "sqlite:codemode-registry.sqlite";

/// A numeric option.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Its name.
    pub name: &'static str,
    /// Its unit, or empty.
    pub unit: &'static str,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Value when absent; nothing: then there is no bound.
    pub default: Option<u64>,
    /// Why that default.
    pub why: &'static str,
}

macro_rules! numbers {
    ($($constant:ident = $name:literal $unit:literal $min:expr => $max:expr, $default:expr, $why:literal;)*) => {
        $(
            #[doc = concat!("Range and default of `", $name, "`.")]
            pub const $constant: Number = Number {
                name: $name, unit: $unit, min: $min, max: $max, default: $default, why: $why,
            };
        )*
        /// Every numeric option.
        pub const NUMBERS: &[Number] = &[$($constant,)*];
    };
}

const MIB: u64 = 1 << 20;
const DAY_MS: u64 = 24 * 3600 * 1000;

numbers! {
    SDK_TOKEN_BUDGET = "sdk_token_budget" "tokens" 0 => 10_000_000, None,
        "a model reads all of the text with every request; set what that may cost";
    MAX_PARALLEL_SUB_CALLS = "max_parallel_sub_calls" "calls" 1 => 1_024, Some(10),
        "what one program can put on its tools at once";
    MAX_PARALLEL_TOOL_CALLS = "max_parallel_tool_calls" "calls" 1 => 1_024, Some(10),
        "what one model answer can put on its tools at once";
    SESSIONS_MAX = "sessions_max" "sessions" 1 => 1_000_000, Some(1_024),
        "a session that does nothing costs some kilobytes";
    QUESTIONS_MAX = "questions_max" "questions" 1 => 65_536, Some(1_024),
        "far beyond what one harness works on at once";
    UNREAD_BYTES_MAX = "unread_bytes_max" "bytes" 65_536 => 512 * MIB, Some(64 * MIB),
        "bounds what one harness that does not read can hold";
    REGISTRATIONS_MAX = "registrations_max" "registrations" 1 => 1_000_000, Some(20_000),
        "ten thousand tools and as much again";
    MESSAGE_BYTES_MAX = "message_bytes_max" "bytes" 65_536 => 1_000 * MIB, Some(128 * MIB),
        "what an executor lets a value have";
    CANCEL_GRACE_MS = "cancel_grace_ms" "ms" 0 => 600_000, Some(5_000),
        "time to end a request or a process that the tool has started";
    DRAIN_GRACE_MS = "drain_grace_ms" "ms" 0 => DAY_MS, Some(20_000),
        "below Kubernetes' 30 s between the signal and the kill";
    CONNECT_MS = "connect_ms" "ms" 1 => 600_000, Some(10_000),
        "an executor that is being started needs some seconds";
}

/// Options of the registry. Each can be given as an argument (`--mode code`), in the environment
/// (`CODEMODE_REGISTRY_MODE=code`) or in a TOML file (`mode = "code"`); the first of these wins. Rules of policy are
/// given in the file alone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, Args)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Configuration file, TOML. Only as an argument or in the environment.
    #[serde(skip)]
    #[arg(long, env = "CODEMODE_REGISTRY_CONFIG", value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Where to serve gRPC: `unix:PATH` or `IP:PORT`; port 0 takes a free one. What was bound is said in one line on
    /// stdout, `listening on unix:PATH` or `listening on http://IP:PORT`, once sessions can be opened.
    #[arg(long, env = "CODEMODE_REGISTRY_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Lets `listen` be an address that other machines reach although TLS or the token is missing: whoever reaches
    /// it can call every tool.
    #[arg(long, env = "CODEMODE_REGISTRY_ALLOW_UNAUTHENTICATED_NETWORK", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub allow_unauthenticated_network: Option<bool>,
    /// Certificate chain of the listener, PEM. Goes with `tls_key`.
    #[arg(long, env = "CODEMODE_REGISTRY_TLS_CERT", value_name = "PATH")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the listener, PEM.
    #[arg(long, env = "CODEMODE_REGISTRY_TLS_KEY", value_name = "PATH")]
    pub tls_key: Option<PathBuf>,
    /// Authority that must have signed the certificates of harnesses, PEM. Absent: they need none.
    #[arg(long, env = "CODEMODE_REGISTRY_TLS_CLIENT_CA", value_name = "PATH")]
    pub tls_client_ca: Option<PathBuf>,
    /// File with the token that harnesses must send as `authorization: Bearer TOKEN`, at least 16 bytes. Health checks
    /// need none. Absent: nobody needs one.
    #[arg(long, env = "CODEMODE_REGISTRY_AUTH_TOKEN_FILE", value_name = "PATH")]
    pub auth_token_file: Option<PathBuf>,
    /// How tools are presented where no session says otherwise: `native` (each by itself), `code` (`run_code` alone)
    /// or `both`. Default `native`. Reloaded.
    #[arg(long, env = "CODEMODE_REGISTRY_MODE", value_name = "MODE")]
    pub mode: Option<String>,
    /// Names of tools in the order in which they are listed, with the entry `<unlisted-tools>` where all others go. A
    /// name that is no tool fails the assembly. Absent: lexicographic. Reloaded.
    #[arg(long, env = "CODEMODE_REGISTRY_TOOL_ORDER", value_name = "NAMES", value_delimiter = ',')]
    pub tool_order: Option<Vec<String>>,
    /// Tokens that the SDK's text may take in the prompt; beyond, programs are given a catalogue to search. Absent: no
    /// bound. Reloaded.
    #[arg(long, env = "CODEMODE_REGISTRY_SDK_TOKEN_BUDGET", value_name = "TOKENS")]
    pub sdk_token_budget: Option<u64>,
    /// Sub-calls of one run whose bodies may overlap. Reloaded.
    #[arg(long, env = "CODEMODE_REGISTRY_MAX_PARALLEL_SUB_CALLS", value_name = "CALLS")]
    pub max_parallel_sub_calls: Option<u64>,
    /// Native calls of one step whose bodies may overlap. Reloaded.
    #[arg(long, env = "CODEMODE_REGISTRY_MAX_PARALLEL_TOOL_CALLS", value_name = "CALLS")]
    pub max_parallel_tool_calls: Option<u64>,
    /// Where the logs of sessions are kept: `memory`, or `sqlite:PATH`. Default `sqlite:codemode-registry.sqlite`.
    #[arg(long, env = "CODEMODE_REGISTRY_STORE", value_name = "WHERE")]
    pub store: Option<String>,
    /// Where programs run: `auto` (on `executors`, or without any on a private executor that the registry starts and
    /// ends) or `none` (only mode `native` works). Default `auto`.
    #[arg(long, env = "CODEMODE_REGISTRY_PROGRAMS", value_name = "WHERE")]
    pub programs: Option<String>,
    /// Addresses of executors, `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`; runs are balanced over them.
    #[arg(long, env = "CODEMODE_REGISTRY_EXECUTORS", value_name = "ADDRESSES", value_delimiter = ',')]
    pub executors: Option<Vec<String>>,
    /// Authority that signed the executors' certificates, PEM. Absent: those that the system trusts.
    #[arg(long, env = "CODEMODE_REGISTRY_EXECUTOR_CA", value_name = "PATH")]
    pub executor_ca: Option<PathBuf>,
    /// Certificate that is shown to executors, PEM. Goes with `executor_key`.
    #[arg(long, env = "CODEMODE_REGISTRY_EXECUTOR_CERT", value_name = "PATH")]
    pub executor_cert: Option<PathBuf>,
    /// Key of that certificate, PEM.
    #[arg(long, env = "CODEMODE_REGISTRY_EXECUTOR_KEY", value_name = "PATH")]
    pub executor_key: Option<PathBuf>,
    /// File with the token that executors ask for.
    #[arg(long, env = "CODEMODE_REGISTRY_EXECUTOR_TOKEN_FILE", value_name = "PATH")]
    pub executor_token_file: Option<PathBuf>,
    /// Binary of the private executor. Default: `codemode-executor` beside the registry, or on the `PATH`.
    #[arg(long, env = "CODEMODE_REGISTRY_EXECUTOR_BIN", value_name = "PATH")]
    pub executor_bin: Option<PathBuf>,
    /// Configuration file of the private executor. Absent: its defaults.
    #[arg(long, env = "CODEMODE_REGISTRY_EXECUTOR_CONFIG", value_name = "PATH")]
    pub executor_config: Option<PathBuf>,
    /// How long an executor may take to be reached.
    #[arg(long, env = "CODEMODE_REGISTRY_CONNECT_MS", value_name = "MS")]
    pub connect_ms: Option<u64>,
    /// Sessions that may be open at once.
    #[arg(long, env = "CODEMODE_REGISTRY_SESSIONS_MAX", value_name = "SESSIONS")]
    pub sessions_max: Option<u64>,
    /// Questions (calls, hooks, approvals) that may be open at once on one harness's stream; further ones fail by name.
    #[arg(long, env = "CODEMODE_REGISTRY_QUESTIONS_MAX", value_name = "QUESTIONS")]
    pub questions_max: Option<u64>,
    /// Bytes of messages to one harness that may wait unread; beyond, questions to it fail by name.
    #[arg(long, env = "CODEMODE_REGISTRY_UNREAD_BYTES_MAX", value_name = "BYTES")]
    pub unread_bytes_max: Option<u64>,
    /// Tools, sections and hooks that one harness's stream may register.
    #[arg(long, env = "CODEMODE_REGISTRY_REGISTRATIONS_MAX", value_name = "REGISTRATIONS")]
    pub registrations_max: Option<u64>,
    /// Longest message, either way.
    #[arg(long, env = "CODEMODE_REGISTRY_MESSAGE_BYTES_MAX", value_name = "BYTES")]
    pub message_bytes_max: Option<u64>,
    /// How long an aborted call waits for its harness to say that it has ended.
    #[arg(long, env = "CODEMODE_REGISTRY_CANCEL_GRACE_MS", value_name = "MS")]
    pub cancel_grace_ms: Option<u64>,
    /// How long calls may go on after SIGTERM; then they are aborted. A second signal ends the grace at once.
    #[arg(long, env = "CODEMODE_REGISTRY_DRAIN_GRACE_MS", value_name = "MS")]
    pub drain_grace_ms: Option<u64>,
    /// Which events are logged (to stderr), e.g. `info` or `info,codemode_registry=debug`. Default `info`.
    #[arg(long, env = "CODEMODE_REGISTRY_LOG_FILTER", value_name = "FILTER")]
    pub log_filter: Option<String>,
    /// Form of log lines: `text` or `json`. Default `text`.
    #[arg(long, env = "CODEMODE_REGISTRY_LOG_FORMAT", value_name = "FORM")]
    pub log_format: Option<String>,
    /// Rules that allow, deny or ask, in order; the first that fits a call decides. Reloaded.
    #[arg(skip)]
    pub policy: Option<Policy>,
}

macro_rules! prefer {
    ($over:ident, $under:ident: $($field:ident)*) => {
        Options { $($field: $over.$field.or($under.$field),)* }
    };
}

impl Options {
    /// These options, and under them those of the file that they name.
    ///
    /// # Errors
    /// What is wrong with the file, in words.
    pub fn with_file(self) -> Result<Self, String> {
        let Some(path) = self.config.clone() else { return Ok(self) };
        let file = Self::from_file(&path)?;
        Ok(self.over(file))
    }

    /// Options from a TOML file.
    ///
    /// # Errors
    /// It cannot be read, or is no TOML of these options: in words.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("`{}`: {error}", path.display()))
    }

    /// These options where they are given, `under` where they are not.
    #[must_use]
    pub fn over(self, under: Self) -> Self {
        let over = self;
        prefer!(over, under:
            config listen allow_unauthenticated_network tls_cert tls_key tls_client_ca auth_token_file mode tool_order
            sdk_token_budget max_parallel_sub_calls max_parallel_tool_calls store programs executors executor_ca
            executor_cert executor_key executor_token_file executor_bin executor_config connect_ms sessions_max
            questions_max unread_bytes_max registrations_max message_bytes_max cancel_grace_ms drain_grace_ms log_filter
            log_format policy
        )
    }

    /// What holds where nothing is given.
    #[must_use]
    pub fn defaults() -> Self {
        Self {
            listen: Some(LISTEN.to_owned()),
            allow_unauthenticated_network: Some(false),
            mode: Some("native".to_owned()),
            max_parallel_sub_calls: MAX_PARALLEL_SUB_CALLS.default,
            max_parallel_tool_calls: MAX_PARALLEL_TOOL_CALLS.default,
            store: Some(STORE.to_owned()),
            programs: Some("auto".to_owned()),
            executors: Some(Vec::new()),
            connect_ms: CONNECT_MS.default,
            sessions_max: SESSIONS_MAX.default,
            questions_max: QUESTIONS_MAX.default,
            unread_bytes_max: UNREAD_BYTES_MAX.default,
            registrations_max: REGISTRATIONS_MAX.default,
            message_bytes_max: MESSAGE_BYTES_MAX.default,
            cancel_grace_ms: CANCEL_GRACE_MS.default,
            drain_grace_ms: DRAIN_GRACE_MS.default,
            log_filter: Some(LOG_FILTER.to_owned()),
            log_format: Some("text".to_owned()),
            ..Self::default()
        }
    }
}
