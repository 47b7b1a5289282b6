//! Options as they are given: every field optional, from a file, the environment or arguments. The ranges and defaults
//! of the numbers stand here too, as the one table that validation and the generated reference read.

use std::path::{Path, PathBuf};

use clap::Parser;
use serde::Deserialize;

use crate::run::budget::{HEAP_BYTES_MIN, OUTPUT_BYTES_MIN, WALL_MS_MAX};

/// Where to listen by default: this machine only.
pub const LISTEN: &str = "127.0.0.1:50051";
/// Log filter by default.
pub const LOG_FILTER: &str = "info";
/// Layers that every kernel and container we support can give; without one of them nothing is served.
pub const REQUIRED_LAYERS: &[&str] =
    &["environment", "descriptors", "rlimits", "no_new_privileges", "non_dumpable", "seccomp"];

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
    /// Value when absent.
    pub default: u64,
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
    ROTATE_RUNS = "rotate_runs" "runs" 1 => 1_000_000_000, 1_000,
        "a spare stands ready, so rotation costs a boot of some 50 ms in the background";
    ROTATE_MS = "rotate_ms" "ms" 1_000 => DAY_MS, 600_000,
        "an idle executor renews its layouts as well";
    PROCESSES_AHEAD = "processes_ahead" "processes" 0 => 64, 1,
        "saves a run the fork and the lockdown, for a megabyte of memory each (with `exec`, a whole booted engine's); more serve bursts";
    COMPUTE_MS = "compute_ms" "ms" 1 => DAY_MS, 60_000,
        "a minute of pure computing is far beyond what glue code needs";
    WALL_MS = "wall_ms" "ms" 1 => WALL_MS_MAX, 600_000,
        "ten minutes cover slow bindings and people who approve them; 32-bit timers end the range";
    OUTPUT_BYTES = "output_bytes" "bytes" OUTPUT_BYTES_MIN => 512 * MIB, 64 * MIB,
        "what a caller can be expected to hold";
    HEAP_BYTES = "heap_bytes" "bytes" HEAP_BYTES_MIN => 16 * 1024 * MIB, 512 * MIB,
        "times `concurrent_runs_max` it is the memory that runs can take: size them together";
    BINDING_CALLS = "binding_calls" "calls" 0 => 1_000_000_000, 10_000,
        "bounds what one runaway loop can do to the tools behind the bindings";
    PENDING_CALLS = "pending_calls" "calls" 1 => 65_536, 256,
        "wide enough for honest fan-out";
    PENDING_ARGUMENT_BYTES = "pending_argument_bytes" "bytes" 1 => 1024 * MIB, 64 * MIB,
        "bounds what waits in the executor and in the caller for one run";
    LOG_ENTRY_BYTES = "log_entry_bytes" "bytes" 1 => 64 * MIB, MIB,
        "nobody reads a longer line";
    PROGRAM_BYTES_MAX = "program_bytes_max" "bytes" 1 => 16 * MIB, MIB,
        "models write kilobytes; parsing a megabyte takes a noticeable part of a second";
    FRAME_BYTES_MAX = "frame_bytes_max" "bytes" 4_096 => 1_000 * MIB, 128 * MIB,
        "twice the output budget, so that a value over budget is told from a frame over its limit";
    CONCURRENT_RUNS_MAX = "concurrent_runs_max" "runs" 1 => 4_096, 64,
        "runs mostly wait for bindings; compute-bound loads want no more than a few for each core";
    QUEUED_RUNS_MAX = "queued_runs_max" "runs" 0 => 65_536, 256,
        "a short burst waits, a long one is told to come back";
    QUEUE_MS_MAX = "queue_ms_max" "ms" 0 => 600_000, 10_000,
        "longer than any trivial run, shorter than a caller's patience";
    UID = "uid" "" 1 => 4_294_967_294, 65_532,
        "the customary number of `nonroot` in container images; only means something where the executor is root";
    DRAIN_GRACE_MS = "drain_grace_ms" "ms" 0 => DAY_MS, 20_000,
        "below Kubernetes' 30 s between the signal and the kill";
    BOOT_MS = "boot_ms" "ms" 100 => 600_000, 10_000,
        "a boot takes 20 to 50 ms; a loaded machine a hundred times that";
    CONTROL_MS = "control_ms" "ms" 10 => 60_000, 2_000,
        "a fork takes a fraction of a millisecond; a zygote that takes seconds is lost";
    LOCKDOWN_MS = "lockdown_ms" "ms" 10 => 60_000, 5_000,
        "locking down takes less than a millisecond";
    STRIP_MS = "strip_ms" "ms" 10 => 60_000, 2_000,
        "a megabyte of honest program parses in a tenth of that";
    STRIP_CACHE_BYTES = "strip_cache_bytes" "bytes" 0 => 1024 * MIB, 16 * MIB,
        "models repeat themselves little, retries and tests a lot; 0 turns it off";
}

/// Options of the executor. Each can be given as an argument (`--compute-ms 1000`), in the environment
/// (`CODEMODE_EXECUTOR_COMPUTE_MS=1000`) or in a TOML file (`compute_ms = 1000`); the first of these wins.
#[derive(Clone, Debug, Default, Deserialize, Parser)]
#[serde(default, deny_unknown_fields)]
#[command(
    name = "codemode-executor",
    version,
    about = "Runs untrusted programs in fresh, locked-down processes",
    args_override_self = true
)]
pub struct Options {
    /// Configuration file, TOML. Only as an argument or in the environment.
    #[serde(skip)]
    #[arg(long, env = "CODEMODE_EXECUTOR_CONFIG", value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Where to serve gRPC: `unix:PATH` or `IP:PORT`; port 0 takes a free one. What was bound is said in one line on
    /// stdout, `listening on unix:PATH` or `listening on http://IP:PORT`, once runs are accepted.
    #[arg(long, env = "CODEMODE_EXECUTOR_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Lets `listen` be an address that other machines reach although TLS or the token is missing: whoever reaches
    /// it can run programs.
    #[arg(long, env = "CODEMODE_EXECUTOR_ALLOW_UNAUTHENTICATED_NETWORK", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub allow_unauthenticated_network: Option<bool>,
    /// Certificate chain of the listener, PEM. Goes with `tls_key`.
    #[arg(long, env = "CODEMODE_EXECUTOR_TLS_CERT", value_name = "PATH")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the listener, PEM.
    #[arg(long, env = "CODEMODE_EXECUTOR_TLS_KEY", value_name = "PATH")]
    pub tls_key: Option<PathBuf>,
    /// Authority that must have signed the certificates of clients, PEM. Absent: clients need none.
    #[arg(long, env = "CODEMODE_EXECUTOR_TLS_CLIENT_CA", value_name = "PATH")]
    pub tls_client_ca: Option<PathBuf>,
    /// File with the token that callers must send as `authorization: Bearer TOKEN`, at least 16 bytes. Health checks
    /// need none. Absent: nobody needs one.
    #[arg(long, env = "CODEMODE_EXECUTOR_AUTH_TOKEN_FILE", value_name = "PATH")]
    pub auth_token_file: Option<PathBuf>,
    /// Where to serve metrics as Prometheus text over HTTP, `IP:PORT`, loopback only. Absent: nowhere.
    #[arg(long, env = "CODEMODE_EXECUTOR_METRICS_LISTEN", value_name = "ADDRESS")]
    pub metrics_listen: Option<String>,
    /// Engines to serve: `v8`, `quickjs`. Absent: those whose runner is there.
    #[arg(long, env = "CODEMODE_EXECUTOR_ENGINES", value_name = "NAMES", value_delimiter = ',')]
    pub engines: Option<Vec<String>>,
    /// Engine of runs that name none: `auto` (v8 where it is served), `v8`, `quickjs`. Default `auto`.
    #[arg(long, env = "CODEMODE_EXECUTOR_DEFAULT_ENGINE", value_name = "NAME")]
    pub default_engine: Option<String>,
    /// Runner of v8. Default: `codemode-runner-v8` beside the executor.
    #[arg(long, env = "CODEMODE_EXECUTOR_RUNNER_V8", value_name = "PATH")]
    pub runner_v8: Option<PathBuf>,
    /// Runner of quickjs. Default: `codemode-runner-quickjs` beside the executor.
    #[arg(long, env = "CODEMODE_EXECUTOR_RUNNER_QUICKJS", value_name = "PATH")]
    pub runner_quickjs: Option<PathBuf>,
    /// How run processes are made: `fork` (from a zygote, about a millisecond) or `exec` (a fresh image for each run,
    /// so that no two share a memory layout; costs a boot). Default `fork`.
    #[arg(long, env = "CODEMODE_EXECUTOR_SPAWN", value_name = "HOW")]
    pub spawn: Option<String>,
    /// Runs that one zygote makes before a fresh one takes its place.
    #[arg(long, env = "CODEMODE_EXECUTOR_ROTATE_RUNS", value_name = "RUNS")]
    pub rotate_runs: Option<u64>,
    /// How long one zygote serves before a fresh one takes its place; what it made ahead goes with it.
    #[arg(long, env = "CODEMODE_EXECUTOR_ROTATE_MS", value_name = "MS")]
    pub rotate_ms: Option<u64>,
    /// Processes of each engine that are made before a run asks for one: forked, locked down, waiting for the one
    /// program that each will ever get. 0 makes each when its run comes. With `spawn = "exec"`, processes that are
    /// booted ahead, at least one.
    #[arg(long, env = "CODEMODE_EXECUTOR_PROCESSES_AHEAD", value_name = "PROCESSES")]
    pub processes_ahead: Option<u64>,
    /// Budget and ceiling: CPU time of a run.
    #[arg(long, env = "CODEMODE_EXECUTOR_COMPUTE_MS", value_name = "MS")]
    pub compute_ms: Option<u64>,
    /// Budget and ceiling: elapsed time of a run.
    #[arg(long, env = "CODEMODE_EXECUTOR_WALL_MS", value_name = "MS")]
    pub wall_ms: Option<u64>,
    /// Budget and ceiling: JSON bytes of a run's logs and value.
    #[arg(long, env = "CODEMODE_EXECUTOR_OUTPUT_BYTES", value_name = "BYTES")]
    pub output_bytes: Option<u64>,
    /// Budget and ceiling: engine heap of a run.
    #[arg(long, env = "CODEMODE_EXECUTOR_HEAP_BYTES", value_name = "BYTES")]
    pub heap_bytes: Option<u64>,
    /// Budget and ceiling: binding calls of a run in all.
    #[arg(long, env = "CODEMODE_EXECUTOR_BINDING_CALLS", value_name = "CALLS")]
    pub binding_calls: Option<u64>,
    /// Budget and ceiling: binding calls of a run in flight.
    #[arg(long, env = "CODEMODE_EXECUTOR_PENDING_CALLS", value_name = "CALLS")]
    pub pending_calls: Option<u64>,
    /// Budget and ceiling: argument bytes of a run's calls in flight.
    #[arg(long, env = "CODEMODE_EXECUTOR_PENDING_ARGUMENT_BYTES", value_name = "BYTES")]
    pub pending_argument_bytes: Option<u64>,
    /// Budget and ceiling: bytes of one log entry; a longer one is cut.
    #[arg(long, env = "CODEMODE_EXECUTOR_LOG_ENTRY_BYTES", value_name = "BYTES")]
    pub log_entry_bytes: Option<u64>,
    /// Longest program.
    #[arg(long, env = "CODEMODE_EXECUTOR_PROGRAM_BYTES_MAX", value_name = "BYTES")]
    pub program_bytes_max: Option<u64>,
    /// Longest value, argument or reply.
    #[arg(long, env = "CODEMODE_EXECUTOR_FRAME_BYTES_MAX", value_name = "BYTES")]
    pub frame_bytes_max: Option<u64>,
    /// Runs at once.
    #[arg(long, env = "CODEMODE_EXECUTOR_CONCURRENT_RUNS_MAX", value_name = "RUNS")]
    pub concurrent_runs_max: Option<u64>,
    /// Runs that may wait for a slot; beyond it they are refused at once.
    #[arg(long, env = "CODEMODE_EXECUTOR_QUEUED_RUNS_MAX", value_name = "RUNS")]
    pub queued_runs_max: Option<u64>,
    /// How long a run may wait for a slot.
    #[arg(long, env = "CODEMODE_EXECUTOR_QUEUE_MS_MAX", value_name = "MS")]
    pub queue_ms_max: Option<u64>,
    /// Sandbox layers that must be in force, by name; where one is not, the executor does not start. Default:
    /// `environment`, `descriptors`, `rlimits`, `no_new_privileges`, `non_dumpable`, `seccomp`.
    #[arg(long, env = "CODEMODE_EXECUTOR_REQUIRED_LAYERS", value_name = "NAMES", value_delimiter = ',')]
    pub required_layers: Option<Vec<String>>,
    /// Sandbox layers to leave off, by name. For finding faults, never for production.
    #[arg(long, env = "CODEMODE_EXECUTOR_LAYERS_OFF", value_name = "NAMES", value_delimiter = ',')]
    pub layers_off: Option<Vec<String>>,
    /// Run v8 without its compiler: slower, but memory need never be executable. Default `false`.
    #[arg(long, env = "CODEMODE_EXECUTOR_JITLESS", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub jitless: Option<bool>,
    /// What to do with `undefined` inside values and arguments: `refuse`, as the contract says, or `omit`. Default
    /// `refuse`.
    #[arg(long, env = "CODEMODE_EXECUTOR_UNDEFINED", value_name = "HOW")]
    pub undefined: Option<String>,
    /// User and group id that runners take where the executor runs as root.
    #[arg(long, env = "CODEMODE_EXECUTOR_UID", value_name = "ID")]
    pub uid: Option<u64>,
    /// How long runs may go on after SIGTERM; then they settle as `abort`. A second signal ends the grace at once.
    #[arg(long, env = "CODEMODE_EXECUTOR_DRAIN_GRACE_MS", value_name = "MS")]
    pub drain_grace_ms: Option<u64>,
    /// How long a runner may take to boot.
    #[arg(long, env = "CODEMODE_EXECUTOR_BOOT_MS", value_name = "MS")]
    pub boot_ms: Option<u64>,
    /// How long a zygote may take to answer; then it is replaced.
    #[arg(long, env = "CODEMODE_EXECUTOR_CONTROL_MS", value_name = "MS")]
    pub control_ms: Option<u64>,
    /// How long a run's process may take to lock itself down.
    #[arg(long, env = "CODEMODE_EXECUTOR_LOCKDOWN_MS", value_name = "MS")]
    pub lockdown_ms: Option<u64>,
    /// CPU time that erasing one program's types may take; elapsed, five times that, and once more if the process did
    /// nothing meanwhile.
    #[arg(long, env = "CODEMODE_EXECUTOR_STRIP_MS", value_name = "MS")]
    pub strip_ms: Option<u64>,
    /// Memory for stripped programs that are remembered: half for short ones, half for those from 32 KiB. One that would
    /// take more than half of its half is not.
    #[arg(long, env = "CODEMODE_EXECUTOR_STRIP_CACHE_BYTES", value_name = "BYTES")]
    pub strip_cache_bytes: Option<u64>,
    /// Which events are logged (to stderr), e.g. `info` or `info,codemode_executor=debug`. Default `info`.
    #[arg(long, env = "CODEMODE_EXECUTOR_LOG_FILTER", value_name = "FILTER")]
    pub log_filter: Option<String>,
    /// Form of log lines: `text` or `json`. Default `text`.
    #[arg(long, env = "CODEMODE_EXECUTOR_LOG_FORMAT", value_name = "FORM")]
    pub log_format: Option<String>,
    /// End, like on SIGTERM but without grace, when stdin ends: for an executor that serves one parent process, which
    /// keeps the other end of the pipe. Default `false`.
    #[arg(long, env = "CODEMODE_EXECUTOR_PARENT_WATCH", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub parent_watch: Option<bool>,
}

macro_rules! prefer {
    ($over:ident, $under:ident: $($field:ident)*) => {
        Options { $($field: $over.$field.or($under.$field),)* }
    };
}

impl Options {
    /// Options from arguments and the environment, and from the file that they name.
    ///
    /// # Errors
    /// What is wrong with the file, in words. Faults of the arguments end the process the way clap does it, but with
    /// [`super::EXIT_CONFIG`]; see `main`.
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
            config listen allow_unauthenticated_network tls_cert tls_key tls_client_ca auth_token_file
            metrics_listen engines default_engine runner_v8 runner_quickjs spawn rotate_runs rotate_ms processes_ahead compute_ms
            wall_ms output_bytes heap_bytes binding_calls pending_calls pending_argument_bytes log_entry_bytes
            program_bytes_max frame_bytes_max concurrent_runs_max queued_runs_max queue_ms_max required_layers
            layers_off jitless undefined uid drain_grace_ms boot_ms control_ms lockdown_ms strip_ms
            strip_cache_bytes log_filter log_format parent_watch
        )
    }
}
