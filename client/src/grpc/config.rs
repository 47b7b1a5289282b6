//! Which executors, and how to reach them. Reads no files and no environment: the caller hands over what it read.

use std::fmt;
use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Uri;

/// A configuration that cannot work.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No executor was named.
    #[error("no executor address given")]
    NoEndpoint,
    /// An address is none of the three forms.
    #[error(
        "`{address}` is not an executor address: want `unix:/path`, `http://host:port` or `https://host:port`"
    )]
    Endpoint {
        /// What was given.
        address: String,
    },
    /// A token that no header can hold.
    #[error("bearer token holds characters that no header can")]
    Token,
    /// A name, CA or client certificate without any `https` address to use it with.
    #[error("TLS settings are given, but no address is `https`")]
    TlsUnused,
    /// Certificates or keys that cannot be read.
    #[error("TLS settings cannot be used: {message}")]
    Tls {
        /// Why.
        message: String,
    },
}

/// A client certificate with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// Certificate chain, PEM.
    pub certificate_pem: Vec<u8>,
    /// Private key, PEM.
    pub key_pem: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Identity(..)")
    }
}

/// Where an executor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A Unix socket's path.
    Unix(String),
    /// A host and port, in the clear or over TLS.
    Net { uri: Uri, host: String, port: u16, tls: bool },
}

impl Address {
    fn parse(address: &str) -> Option<Self> {
        if let Some(path) = address.strip_prefix("unix://").or_else(|| address.strip_prefix("unix:")) {
            return path.starts_with('/').then(|| Self::Unix(path.to_owned()));
        }
        let uri: Uri = address.parse().ok()?;
        let tls = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return None;
        }
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Some(Self::Net { uri, host, port, tls })
    }

    const fn is_tls(&self) -> bool {
        matches!(self, Self::Net { tls: true, .. })
    }
}

/// Settings of a [`super::GrpcRuntime`].
#[derive(Clone)]
pub struct GrpcConfig {
    pub(crate) endpoints: Vec<(String, Address)>,
    pub(crate) ca_pem: Option<Vec<u8>>,
    pub(crate) identity: Option<Identity>,
    pub(crate) server_name: Option<String>,
    pub(crate) authorization: Option<MetadataValue<Ascii>>,
    /// For a connection, its TLS handshake included, and for `Describe`. 5 s by default: a sidecar answers in one, a node
    /// that is gone must not hold up the next attempt for long.
    pub connect_timeout: Duration,
    /// Deadline of runs whose host sets none. None by default: the executor's wall budget bounds every run.
    pub run_deadline: Option<Duration>,
    /// Attempts to get a run started, from 1. By default 5, or twice the number of executors where that is more.
    pub attempts_max: u32,
    /// Longest wait between attempts, whatever an executor advises. 5 s by default.
    pub retry_delay_max: Duration,
    /// How long an aborted run may take to settle before the stream is closed without its outcome. 10 s by default: the
    /// executor kills at once, but a saturated machine reaps late.
    pub abort_grace: Duration,
}

impl GrpcConfig {
    /// Settings with defaults for executors at `unix:/path`, `http://host:port` or `https://host:port`. Runs are
    /// balanced over several; a host name that stands for several addresses is balanced over those.
    ///
    /// # Errors
    /// The first address that is none of these.
    pub fn new<A: AsRef<str>>(addresses: impl IntoIterator<Item = A>) -> Result<Self, ConfigError> {
        let parse = |address: A| {
            let address = address.as_ref();
            let parsed = Address::parse(address)
                .ok_or_else(|| ConfigError::Endpoint { address: address.to_owned() })?;
            Ok((address.to_owned(), parsed))
        };
        let endpoints = addresses.into_iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        if endpoints.is_empty() {
            return Err(ConfigError::NoEndpoint);
        }
        let attempts_max = u32::try_from(endpoints.len() * 2).unwrap_or(u32::MAX).max(5);
        Ok(Self {
            endpoints,
            ca_pem: None,
            identity: None,
            server_name: None,
            authorization: None,
            connect_timeout: Duration::from_secs(5),
            run_deadline: None,
            attempts_max,
            retry_delay_max: Duration::from_secs(5),
            abort_grace: Duration::from_secs(10),
        })
    }

    /// Trusts only certificates signed by that CA (PEM) instead of the system's.
    ///
    /// # Errors
    /// [`ConfigError::TlsUnused`].
    pub fn with_ca(mut self, pem: impl Into<Vec<u8>>) -> Result<Self, ConfigError> {
        self.ca_pem = Some(pem.into());
        self.tls_used()
    }

    /// Shows a client certificate.
    ///
    /// # Errors
    /// [`ConfigError::TlsUnused`].
    pub fn with_identity(mut self, identity: Identity) -> Result<Self, ConfigError> {
        self.identity = Some(identity);
        self.tls_used()
    }

    /// Expects that name in the server's certificate instead of the address's host.
    ///
    /// # Errors
    /// [`ConfigError::TlsUnused`].
    pub fn with_server_name(mut self, name: impl Into<String>) -> Result<Self, ConfigError> {
        self.server_name = Some(name.into());
        self.tls_used()
    }

    /// Sends `authorization: Bearer <token>` with every request.
    ///
    /// # Errors
    /// [`ConfigError::Token`].
    pub fn with_bearer_token(mut self, token: &str) -> Result<Self, ConfigError> {
        let mut value: MetadataValue<Ascii> =
            format!("Bearer {token}").parse().map_err(|_| ConfigError::Token)?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    fn tls_used(self) -> Result<Self, ConfigError> {
        let used = self.endpoints.iter().any(|(_, address)| address.is_tls());
        if used { Ok(self) } else { Err(ConfigError::TlsUnused) }
    }
}

impl fmt::Debug for GrpcConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GrpcConfig")
            .field("endpoints", &self.endpoints.iter().map(|(address, _)| address).collect::<Vec<_>>())
            .field("own_ca", &self.ca_pem.is_some())
            .field("identity", &self.identity.is_some())
            .field("bearer_token", &self.authorization.is_some())
            .field("connect_timeout", &self.connect_timeout)
            .field("run_deadline", &self.run_deadline)
            .field("attempts_max", &self.attempts_max)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_three_forms_are_taken() {
        for address in [
            "unix:/run/x.sock",
            "unix:///run/x.sock",
            "http://h:1",
            "http://h:1/",
            "https://h",
            "http://[::1]:50",
            "http://127.0.0.1:1",
        ] {
            assert!(GrpcConfig::new([address]).is_ok(), "{address}");
        }
        let config = GrpcConfig::new(["http://[::1]:50"]).expect("an address");
        assert!(
            matches!(&config.endpoints[0].1, Address::Net { host, port: 50, tls: false, .. } if host == "::1")
        );
    }

    #[test]
    fn other_addresses_are_refused_by_name() {
        for address in [
            "",
            "h:1",
            "unix:relative",
            "ftp://h",
            "http://",
            "http://h/path",
            "http://h/?q",
            "127.0.0.1:50051",
        ] {
            let refused = GrpcConfig::new([address]).expect_err("must be refused");
            assert_eq!(refused, ConfigError::Endpoint { address: address.to_owned() });
        }
        assert_eq!(GrpcConfig::new([""; 0]).expect_err("must be refused"), ConfigError::NoEndpoint);
    }

    #[test]
    fn tls_settings_need_something_to_apply_to() {
        let plain = || GrpcConfig::new(["http://h:1"]).expect("an address");
        assert_eq!(plain().with_ca("x").expect_err("must be refused"), ConfigError::TlsUnused);
        assert_eq!(plain().with_bearer_token("a\nb").expect_err("must be refused"), ConfigError::Token);
    }

    #[test]
    fn secrets_do_not_show() {
        let identity = Identity { certificate_pem: b"SECRET".to_vec(), key_pem: b"SECRET".to_vec() };
        let config = GrpcConfig::new(["https://h:1"])
            .and_then(|config| config.with_identity(identity))
            .and_then(|config| config.with_bearer_token("SECRET"))
            .expect("a configuration");
        let shown = format!("{config:?} {:?} {:?}", config.identity, config.authorization);
        assert!(!shown.contains("SECRET") && !shown.contains("83, 69"), "{shown}");
    }
}
