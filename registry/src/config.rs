//! What an operator decides: [`options::Options`] as given, [`Config`] as checked. The only place that reads arguments,
//! the environment and the configuration file; everything else gets a [`Config`].
//!
//! Defaults < file < environment < arguments. All faults are reported together, before a port is bound. `live` reads it
//! all again while the registry serves.

mod check;
pub mod live;
pub mod options;
pub mod reference;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use codemode_client::grpc::GrpcConfig;
use codemode_client::local::LocalOptions;

use crate::settings::Settings;
use options::Options;

/// Exit code for a configuration that cannot be used (`EX_USAGE`).
pub const EXIT_CONFIG: u8 = 64;
/// Exit code where something that the configuration names cannot be had (`EX_UNAVAILABLE`): a store, an executor.
pub const EXIT_UNAVAILABLE: u8 = 69;

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
    /// Who signs the certificates that harnesses must show; `None`: none is asked for.
    pub client_ca: Option<Vec<u8>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// The token that harnesses must show.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl Token {
    /// A token.
    #[must_use]
    pub fn new(token: impl Into<Vec<u8>>) -> Self {
        Self(token.into())
    }

    /// Whether `shown` is the token. Takes the same time wherever they differ.
    #[must_use]
    pub fn matches(&self, shown: &[u8]) -> bool {
        let differing = self.0.iter().zip(shown).fold(0, |differing, (own, shown)| differing | (own ^ shown));
        std::hint::black_box(differing) == 0 && self.0.len() == shown.len()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Where logs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChoice {
    /// In memory: gone with the process.
    Memory,
    /// In a SQLite file.
    Sqlite(PathBuf),
}

/// Where programs run.
#[derive(Clone, Debug)]
pub enum ProgramsChoice {
    /// Nowhere.
    Nowhere,
    /// On these executors.
    Executors(Box<GrpcConfig>, Vec<String>),
    /// On one that the registry starts.
    Private(LocalOptions, Duration),
}

/// Bounds that no harness can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions that may be open.
    pub sessions_max: usize,
    /// Questions that may be open on one stream.
    pub questions_max: usize,
    /// Bytes that may wait for one harness.
    pub unread_bytes_max: u32,
    /// Registrations of one stream.
    pub registrations_max: usize,
    /// Bytes of one message.
    pub message_bytes_max: usize,
    /// How long an aborted call waits for its harness.
    pub cancel_grace: Duration,
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// A configuration that can be used.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen.
    pub listen: Listen,
    /// TLS of the listener.
    pub tls: Option<Tls>,
    /// What harnesses must show.
    pub token: Option<Token>,
    /// What can be reloaded.
    pub settings: Settings,
    /// Where logs are kept.
    pub store: StoreChoice,
    /// Where programs run.
    pub programs: ProgramsChoice,
    /// Bounds.
    pub limits: Limits,
    /// How long calls may go on after the signal to stop.
    pub drain_grace: Duration,
    /// Filter of log events, as `tracing` reads it.
    pub log_filter: String,
    /// Form of log lines.
    pub log_format: LogFormat,
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

impl Config {
    /// Checks what was given. Reads the files that the options name.
    ///
    /// # Errors
    /// Every fault there is.
    pub fn validate(options: &Options) -> Result<Self, ConfigFaults> {
        check::validate(options)
    }
}

#[cfg(test)]
mod tests;
