//! What an operator decides: [`options::Options`] as given, [`Config`] as checked. The only place that reads arguments,
//! the environment and the configuration file; everything else gets a [`Config`].
//!
//! Defaults < file < environment < arguments. All faults are reported together, before a port is bound.

pub mod options;
pub mod reference;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use codemode_wire::{Layer, LayerSet};

use crate::run::budget::Budgets;
use options::{Number, Options};

/// Exit code for a configuration that cannot be used (`EX_USAGE`).
pub const EXIT_CONFIG: u8 = 64;
/// Exit code where the machine lacks what the configuration asks for (`EX_UNAVAILABLE`): an engine does not boot, or a
/// required layer is not in force.
pub const EXIT_UNAVAILABLE: u8 = 69;

/// Bytes that an authentication token needs, so that it cannot be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// A JavaScript engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Engine {
    /// V8.
    V8,
    /// QuickJS-ng.
    Quickjs,
}

impl Engine {
    /// Every engine, the preferred one first.
    pub const ALL: [Self; 2] = [Self::V8, Self::Quickjs];

    /// The name that requests, configuration and logs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V8 => "v8",
            Self::Quickjs => "quickjs",
        }
    }

    /// The engine of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How run processes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spawn {
    /// Forked from a zygote.
    Fork,
    /// A fresh image for each run.
    Exec,
}

impl Spawn {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Exec => "exec",
        }
    }
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket at this path.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

/// TLS for the listener, PEM texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificate chain.
    pub certificate: Vec<u8>,
    /// Private key.
    pub key: Vec<u8>,
    /// Who signs the certificates that clients must show; `None`: none is asked for.
    pub client_ca: Option<Vec<u8>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("client_ca", &self.client_ca.is_some()).finish_non_exhaustive()
    }
}

/// The bearer token that callers must show. Compared in constant time, never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl Token {
    /// A token of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Whether this is the token. How long it takes tells the length at most.
    #[must_use]
    pub fn matches(&self, shown: &[u8]) -> bool {
        if shown.len() != self.0.len() {
            return false;
        }
        let differing = self.0.iter().zip(shown).fold(0, |acc, (a, b)| acc | (a ^ b));
        std::hint::black_box(differing) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object each.
    Json,
}

/// A checked configuration: nothing optional is left but what may be absent for good.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen.
    pub listen: Listen,
    /// TLS of the listener.
    pub tls: Option<Tls>,
    /// What callers must show.
    pub token: Option<Token>,
    /// Where metrics are served, loopback only.
    pub metrics_listen: Option<SocketAddr>,
    /// Engines and their runners, the preferred one first; never empty.
    pub runners: Vec<(Engine, PathBuf)>,
    /// The engine of runs that name none; one of `runners`.
    pub default_engine: Engine,
    /// The runner that strips types.
    pub strip_runner: PathBuf,
    /// How processes are made.
    pub spawn: Spawn,
    /// Runs of one zygote.
    pub rotate_runs: u64,
    /// Life of one zygote.
    pub rotate_after: Duration,
    /// Processes of each engine made before a run asks for one.
    pub processes_ahead: u32,
    /// Budgets of a run, and their ceilings.
    pub budgets: Budgets,
    /// Bytes of a program.
    pub program_bytes_max: u32,
    /// Bytes of a value, an argument or a reply.
    pub frame_bytes_max: u32,
    /// Runs at once.
    pub concurrent_runs_max: u32,
    /// Runs that wait for a slot.
    pub queued_runs_max: u32,
    /// How long a run waits for a slot.
    pub queue: Duration,
    /// Layers without which nothing is served.
    pub required_layers: LayerSet,
    /// Layers turned off.
    pub layers_off: LayerSet,
    /// V8 without its compiler.
    pub jitless: bool,
    /// `undefined` in values is left out instead of refused.
    pub undefined_omit: bool,
    /// User and group that runners drop to where they start as root.
    pub uid: u32,
    /// How long runs may go on after the signal to stop.
    pub drain_grace: Duration,
    /// For a runner to boot.
    pub boot: Duration,
    /// For a zygote to answer.
    pub control: Duration,
    /// For a process to lock itself down.
    pub lockdown: Duration,
    /// For one program to be stripped.
    pub strip: Duration,
    /// Bytes of remembered stripped programs; 0: none.
    pub strip_cache_bytes: usize,
    /// Filter of log events, as `tracing` reads it.
    pub log_filter: String,
    /// Form of log lines.
    pub log_format: LogFormat,
    /// Ends when stdin does.
    pub parent_watch: bool,
}

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFaults(pub Vec<String>);

impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration cannot be used:")?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  - {fault}"))
    }
}

impl std::error::Error for ConfigFaults {}

/// Collects faults while fields are read.
struct Check<'a> {
    options: &'a Options,
    faults: Vec<String>,
}

impl Config {
    /// Checks what was given. `beside` is the folder of the executor's own binary, where runners are looked for. Reads
    /// the files that the options name.
    ///
    /// # Errors
    /// Every fault there is.
    pub fn validate(options: &Options, beside: &Path) -> Result<Self, ConfigFaults> {
        let mut check = Check { options, faults: Vec::new() };
        let runners = check.runners(beside);
        let default_engine = check.default_engine(&runners);
        let strip_runner = runners
            .iter()
            .find(|(engine, _)| *engine == default_engine)
            .map_or_else(PathBuf::new, |(_, path)| path.clone());
        let required_layers = check.layers("required_layers", options.required_layers.as_deref());
        let layers_off = check.layers("layers_off", options.layers_off.as_deref());
        for layer in required_layers.iter().filter(|layer| layers_off.contains(*layer)) {
            check.faults.push(format!("layer `{layer}` is in `required_layers` and in `layers_off`"));
        }
        let config = Self {
            listen: check.listen(),
            tls: check.tls(),
            token: check.token(),
            metrics_listen: check.metrics_listen(),
            runners,
            default_engine,
            strip_runner,
            spawn: check.choice(
                "spawn",
                options.spawn.as_deref(),
                &[("fork", Spawn::Fork), ("exec", Spawn::Exec)],
            ),
            rotate_runs: check.number(options::ROTATE_RUNS, options.rotate_runs),
            rotate_after: check.millis(options::ROTATE_MS, options.rotate_ms),
            processes_ahead: check.number_u32(options::PROCESSES_AHEAD, options.processes_ahead),
            budgets: check.budgets(),
            program_bytes_max: check.number_u32(options::PROGRAM_BYTES_MAX, options.program_bytes_max),
            frame_bytes_max: check.number_u32(options::FRAME_BYTES_MAX, options.frame_bytes_max),
            concurrent_runs_max: check.number_u32(options::CONCURRENT_RUNS_MAX, options.concurrent_runs_max),
            queued_runs_max: check.number_u32(options::QUEUED_RUNS_MAX, options.queued_runs_max),
            queue: check.millis(options::QUEUE_MS_MAX, options.queue_ms_max),
            required_layers,
            layers_off,
            jitless: options.jitless.unwrap_or(false),
            undefined_omit: check.choice(
                "undefined",
                options.undefined.as_deref(),
                &[("refuse", false), ("omit", true)],
            ),
            uid: check.number_u32(options::UID, options.uid),
            drain_grace: check.millis(options::DRAIN_GRACE_MS, options.drain_grace_ms),
            boot: check.millis(options::BOOT_MS, options.boot_ms),
            control: check.millis(options::CONTROL_MS, options.control_ms),
            lockdown: check.millis(options::LOCKDOWN_MS, options.lockdown_ms),
            strip: check.millis(options::STRIP_MS, options.strip_ms),
            strip_cache_bytes: usize::try_from(
                check.number(options::STRIP_CACHE_BYTES, options.strip_cache_bytes),
            )
            .unwrap_or(usize::MAX),
            log_filter: check.log_filter(),
            log_format: check.choice(
                "log_format",
                options.log_format.as_deref(),
                &[("text", LogFormat::Text), ("json", LogFormat::Json)],
            ),
            parent_watch: options.parent_watch.unwrap_or(false),
        };
        check.exposure(&config);
        if check.faults.is_empty() { Ok(config) } else { Err(ConfigFaults(check.faults)) }
    }
}

impl Check<'_> {
    fn number(&mut self, number: Number, given: Option<u64>) -> u64 {
        let value = given.unwrap_or(number.default);
        if !(number.min..=number.max).contains(&value) {
            let Number { name, min, max, unit, .. } = number;
            self.faults.push(format!("`{name}` is {value}; it must be from {min} to {max} {unit}"));
        }
        value
    }

    fn number_u32(&mut self, number: Number, given: Option<u64>) -> u32 {
        // The table keeps these ranges within 32 bits; a value beyond them is already a fault.
        u32::try_from(self.number(number, given)).unwrap_or(u32::MAX / 4)
    }

    fn millis(&mut self, number: Number, given: Option<u64>) -> Duration {
        Duration::from_millis(self.number(number, given))
    }

    fn choice<T: Copy>(&mut self, name: &str, given: Option<&str>, choices: &[(&str, T)]) -> T {
        let Some(given) = given else { return choices[0].1 };
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == given) {
            return *value;
        }
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
        self.faults.push(format!("`{name}` is `{given}`; it must be one of {}", words.join(", ")));
        choices[0].1
    }

    fn budgets(&mut self) -> Budgets {
        let options = self.options;
        Budgets {
            compute_ms: self.number(options::COMPUTE_MS, options.compute_ms),
            wall_ms: self.number(options::WALL_MS, options.wall_ms),
            output_bytes: self.number(options::OUTPUT_BYTES, options.output_bytes),
            heap_bytes: self.number(options::HEAP_BYTES, options.heap_bytes),
            binding_calls: self.number(options::BINDING_CALLS, options.binding_calls),
            pending_calls: self.number(options::PENDING_CALLS, options.pending_calls),
            pending_argument_bytes: self
                .number(options::PENDING_ARGUMENT_BYTES, options.pending_argument_bytes),
            log_entry_bytes: self.number(options::LOG_ENTRY_BYTES, options.log_entry_bytes),
        }
    }

    fn layers(&mut self, name: &str, given: Option<&[String]>) -> LayerSet {
        let default: &[&str] = if name == "required_layers" { options::REQUIRED_LAYERS } else { &[] };
        let names: Vec<&str> =
            given.map_or_else(|| default.to_vec(), |given| given.iter().map(String::as_str).collect());
        let mut set = LayerSet::EMPTY;
        for word in names.into_iter().filter(|word| !word.is_empty()) {
            match Layer::from_name(word) {
                Some(layer) => set.insert(layer),
                None => {
                    let known: Vec<String> = Layer::ALL.iter().map(|layer| format!("`{layer}`")).collect();
                    self.faults.push(format!("`{name}` names `{word}`; known are {}", known.join(", ")));
                }
            }
        }
        set
    }

    /// The engines that are there: those asked for, or without a wish those whose runner is found.
    fn runners(&mut self, beside: &Path) -> Vec<(Engine, PathBuf)> {
        let wanted: Option<Vec<Engine>> = self.options.engines.clone().map(|names| {
            let engines = names.iter().filter(|name| !name.is_empty()).filter_map(|name| {
                let engine = Engine::from_name(name);
                if engine.is_none() {
                    self.faults.push(format!("`engines` names `{name}`; known are `v8`, `quickjs`"));
                }
                engine
            });
            engines.collect()
        });
        let mut runners = Vec::new();
        for engine in Engine::ALL {
            let given = match engine {
                Engine::V8 => self.options.runner_v8.as_ref(),
                Engine::Quickjs => self.options.runner_quickjs.as_ref(),
            };
            let asked = wanted.as_ref().map_or(given.is_some(), |wanted| wanted.contains(&engine));
            let path = given.cloned().unwrap_or_else(|| beside.join(format!("codemode-runner-{engine}")));
            if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&engine)) {
                continue;
            }
            // The runner is started in `/`, so its path must not depend on the directory.
            match std::path::absolute(&path) {
                Ok(path) if path.is_file() => runners.push((engine, path)),
                _ if asked => {
                    self.faults.push(format!("the runner of `{engine}` is not a file: `{}`", path.display()));
                }
                _ => {}
            }
        }
        if runners.is_empty() && self.faults.is_empty() {
            self.faults.push(format!(
                "no runner is found in `{}`; build one, or set `runner_v8` or `runner_quickjs`",
                beside.display()
            ));
        }
        runners
    }

    fn default_engine(&mut self, runners: &[(Engine, PathBuf)]) -> Engine {
        let first = runners.first().map_or(Engine::V8, |(engine, _)| *engine);
        let given = self.options.default_engine.as_deref();
        match self.choice(
            "default_engine",
            given,
            &[("auto", None), ("v8", Some(Engine::V8)), ("quickjs", Some(Engine::Quickjs))],
        ) {
            None => first,
            Some(engine) => {
                if !runners.iter().any(|(there, _)| *there == engine) {
                    self.faults.push(format!("`default_engine` is `{engine}`, which has no runner here"));
                }
                engine
            }
        }
    }

    fn listen(&mut self) -> Listen {
        let given = self.options.listen.as_deref().unwrap_or(options::LISTEN);
        if let Some(path) = given.strip_prefix("unix:") {
            if path.is_empty() {
                self.faults.push("`listen` is `unix:` without a path".to_owned());
            }
            return Listen::Unix(PathBuf::from(path));
        }
        match given.parse() {
            Ok(address) => Listen::Tcp(address),
            Err(_) => {
                self.faults.push(format!("`listen` is `{given}`; it must be `unix:PATH` or `IP:PORT`"));
                Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
            }
        }
    }

    fn metrics_listen(&mut self) -> Option<SocketAddr> {
        let given = self.options.metrics_listen.as_deref().filter(|given| !given.is_empty())?;
        match given.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() => Some(address),
            Ok(_) => {
                self.faults.push(format!("`metrics_listen` is `{given}`; it must be a loopback address"));
                None
            }
            Err(_) => {
                self.faults.push(format!("`metrics_listen` is `{given}`; it must be `IP:PORT`"));
                None
            }
        }
    }

    fn file(&mut self, name: &str, path: &Path) -> Vec<u8> {
        std::fs::read(path).unwrap_or_else(|error| {
            self.faults.push(format!("`{name}`: cannot read `{}`: {error}", path.display()));
            Vec::new()
        })
    }

    fn tls(&mut self) -> Option<Tls> {
        let options = self.options;
        match (&options.tls_cert, &options.tls_key) {
            (Some(certificate), Some(key)) => {
                let faults_before = self.faults.len();
                let tls = Tls {
                    certificate: self.file("tls_cert", certificate),
                    key: self.file("tls_key", key),
                    client_ca: options.tls_client_ca.as_ref().map(|path| self.file("tls_client_ca", path)),
                };
                let readable = self.faults.len() == faults_before;
                if let (true, Err(fault)) = (readable, crate::server::check_tls(&tls)) {
                    self.faults.push(format!("`tls_cert`, `tls_key`, `tls_client_ca`: {fault}"));
                }
                Some(tls)
            }
            (None, None) => {
                if options.tls_client_ca.is_some() {
                    self.faults.push("`tls_client_ca` needs `tls_cert` and `tls_key`".to_owned());
                }
                None
            }
            _ => {
                self.faults.push("`tls_cert` and `tls_key` go together".to_owned());
                None
            }
        }
    }

    fn token(&mut self) -> Option<Token> {
        let path = self.options.auth_token_file.as_ref()?;
        let token = self.file("auth_token_file", path).trim_ascii().to_vec();
        if token.len() < TOKEN_BYTES_MIN && self.faults.is_empty() {
            self.faults.push(format!(
                "`auth_token_file`: the token has {} bytes; it needs at least {TOKEN_BYTES_MIN}",
                token.len()
            ));
        }
        Some(Token::new(token))
    }

    fn log_filter(&mut self) -> String {
        let filter = self.options.log_filter.clone().unwrap_or_else(|| options::LOG_FILTER.to_owned());
        if let Err(error) = filter.parse::<tracing_subscriber::filter::EnvFilter>() {
            self.faults.push(format!("`log_filter` is `{filter}`: {error}"));
        }
        filter
    }

    /// Untrusted programs are not offered to a network by accident.
    fn exposure(&mut self, config: &Config) {
        let Listen::Tcp(address) = config.listen else { return };
        let is_local = match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => ip.is_loopback(),
        };
        let allowed = self.options.allow_unauthenticated_network.unwrap_or(false);
        if !is_local && !allowed && (config.tls.is_none() || config.token.is_none()) {
            self.faults.push(format!(
                "`listen` is `{address}`, which other machines can reach: set `tls_cert`, `tls_key` and \
                 `auth_token_file`, or say `allow_unauthenticated_network = true`"
            ));
        }
    }
}

#[cfg(test)]
mod tests;
