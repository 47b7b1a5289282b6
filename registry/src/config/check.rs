//! From options to a configuration, or to everything that is wrong with them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codemode_client::grpc::{ConfigError, GrpcConfig, Identity};
use codemode_client::local::LocalOptions;

use crate::config::options::{self, Number, Options};
use crate::config::{
    Config, ConfigFaults, Limits, Listen, LogFormat, ProgramsChoice, StoreChoice, Tls, Token,
};
use crate::policy::Policy;
use crate::present::{Mode, ToolOrder};
use crate::settings::Settings;

/// Bytes that an authentication token needs, so that it cannot be guessed.
const TOKEN_BYTES_MIN: usize = 16;

pub(super) fn validate(options: &Options) -> Result<Config, ConfigFaults> {
    let mut check = Check { options, faults: Vec::new() };
    let config = Config {
        listen: check.listen(),
        tls: check.tls(),
        token: check.token("auth_token_file", options.auth_token_file.as_deref()).map(Token::new),
        settings: check.settings(),
        store: check.store(),
        programs: check.programs(),
        limits: check.limits(),
        drain_grace: check.millis(options::DRAIN_GRACE_MS, options.drain_grace_ms),
        log_filter: check.log_filter(),
        log_format: check.choice(
            "log_format",
            options.log_format.as_deref(),
            &[("text", LogFormat::Text), ("json", LogFormat::Json)],
        ),
    };
    check.exposure(&config);
    if check.faults.is_empty() { Ok(config) } else { Err(ConfigFaults(check.faults)) }
}

/// Collects faults while fields are read.
struct Check<'a> {
    options: &'a Options,
    faults: Vec<String>,
}

impl Check<'_> {
    fn number(&mut self, number: Number, given: Option<u64>) -> Option<u64> {
        let value = given.or(number.default)?;
        if !(number.min..=number.max).contains(&value) {
            let Number { name, min, max, unit, .. } = number;
            self.faults.push(format!("`{name}` is {value}; it must be from {min} to {max} {unit}"));
        }
        Some(value)
    }

    fn size(&mut self, number: Number, given: Option<u64>) -> usize {
        usize::try_from(self.number(number, given).unwrap_or_default()).unwrap_or(usize::MAX)
    }

    fn millis(&mut self, number: Number, given: Option<u64>) -> Duration {
        Duration::from_millis(self.number(number, given).unwrap_or_default())
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

    fn settings(&mut self) -> Settings {
        let options = self.options;
        let tool_order = options.tool_order.as_ref().and_then(|names| match ToolOrder::new(names.clone()) {
            Ok(order) => Some(order),
            Err(fault) => {
                self.faults.push(format!("`tool_order`: {fault}"));
                None
            }
        });
        let budget = self.number(options::SDK_TOKEN_BUDGET, options.sdk_token_budget);
        Settings {
            mode: self.choice(
                "mode",
                options.mode.as_deref(),
                &[("native", Mode::Native), ("code", Mode::Code), ("both", Mode::Both)],
            ),
            tool_order,
            sdk_token_budget: budget.map(|tokens| usize::try_from(tokens).unwrap_or(usize::MAX)),
            policy: self.policy(),
            max_parallel_sub_calls: self
                .size(options::MAX_PARALLEL_SUB_CALLS, options.max_parallel_sub_calls),
            max_parallel_tool_calls: self
                .size(options::MAX_PARALLEL_TOOL_CALLS, options.max_parallel_tool_calls),
        }
    }

    fn policy(&mut self) -> Policy {
        let policy = self.options.policy.clone().unwrap_or_default();
        for (place, rule) in (1..).zip(&policy.rules) {
            if rule.tools.is_empty() {
                self.faults.push(format!("rule {place} of `policy` names no `tools`; `*` is all"));
            }
            for pattern in &rule.arguments {
                let pointer = &pattern.pointer;
                if !pointer.is_empty() && !pointer.starts_with('/') {
                    self.faults.push(format!(
                        "rule {place} of `policy`: the pointer `{pointer}` must be empty or begin with `/`"
                    ));
                }
            }
        }
        policy
    }

    fn limits(&mut self) -> Limits {
        let options = self.options;
        let unread = self.number(options::UNREAD_BYTES_MAX, options.unread_bytes_max).unwrap_or_default();
        Limits {
            sessions_max: self.size(options::SESSIONS_MAX, options.sessions_max),
            questions_max: self.size(options::QUESTIONS_MAX, options.questions_max),
            unread_bytes_max: u32::try_from(unread).unwrap_or(u32::MAX),
            registrations_max: self.size(options::REGISTRATIONS_MAX, options.registrations_max),
            message_bytes_max: self.size(options::MESSAGE_BYTES_MAX, options.message_bytes_max),
            cancel_grace: self.millis(options::CANCEL_GRACE_MS, options.cancel_grace_ms),
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

    fn store(&mut self) -> StoreChoice {
        let given = self.options.store.as_deref().unwrap_or(options::STORE);
        match given.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => return StoreChoice::Sqlite(PathBuf::from(path)),
            None if given == "memory" => {}
            _ => self.faults.push(format!("`store` is `{given}`; it must be `memory` or `sqlite:PATH`")),
        }
        StoreChoice::Memory
    }

    fn programs(&mut self) -> ProgramsChoice {
        let options = self.options;
        let anywhere =
            self.choice("programs", options.programs.as_deref(), &[("auto", true), ("none", false)]);
        let executors: Vec<String> =
            options.executors.iter().flatten().filter(|name| !name.is_empty()).cloned().collect();
        let connect = self.millis(options::CONNECT_MS, options.connect_ms);
        if !anywhere {
            if !executors.is_empty() {
                self.faults.push("`executors` are named, and `programs` is `none`".to_owned());
            }
            return ProgramsChoice::Nowhere;
        }
        if executors.is_empty() {
            let local = LocalOptions {
                binary: options.executor_bin.clone(),
                config: options.executor_config.clone(),
                shows_log: false,
            };
            return ProgramsChoice::Private(local, connect);
        }
        match self.executors(&executors, connect) {
            Ok(config) => ProgramsChoice::Executors(Box::new(config), executors),
            Err(error) => {
                self.faults.push(format!("`executors`: {error}"));
                ProgramsChoice::Nowhere
            }
        }
    }

    fn executors(&mut self, addresses: &[String], connect: Duration) -> Result<GrpcConfig, ConfigError> {
        let options = self.options;
        let mut config = GrpcConfig::new(addresses)?;
        config.connect_timeout = connect;
        if let Some(ca) = &options.executor_ca {
            config = config.with_ca(self.file("executor_ca", ca))?;
        }
        match (&options.executor_cert, &options.executor_key) {
            (Some(certificate), Some(key)) => {
                let certificate_pem = self.file("executor_cert", certificate);
                let key_pem = self.file("executor_key", key);
                config = config.with_identity(Identity { certificate_pem, key_pem })?;
            }
            (None, None) => {}
            _ => self.faults.push("`executor_cert` and `executor_key` go together".to_owned()),
        }
        match self.token("executor_token_file", options.executor_token_file.as_deref()) {
            Some(token) => config.with_bearer_token(&String::from_utf8_lossy(&token)),
            None => Ok(config),
        }
    }

    fn file(&mut self, name: &str, path: &Path) -> Vec<u8> {
        std::fs::read(path).unwrap_or_else(|error| {
            self.faults.push(format!("`{name}`: cannot read `{}`: {error}", path.display()));
            Vec::new()
        })
    }

    fn token(&mut self, name: &str, path: Option<&Path>) -> Option<Vec<u8>> {
        let faults_before = self.faults.len();
        let token = self.file(name, path?).trim_ascii().to_vec();
        if token.len() < TOKEN_BYTES_MIN && self.faults.len() == faults_before {
            let bytes = token.len();
            self.faults
                .push(format!("`{name}`: the token has {bytes} bytes; it needs at least {TOKEN_BYTES_MIN}"));
        }
        Some(token)
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

    fn log_filter(&mut self) -> String {
        let filter = self.options.log_filter.clone().unwrap_or_else(|| options::LOG_FILTER.to_owned());
        if let Err(error) = filter.parse::<tracing_subscriber::filter::EnvFilter>() {
            self.faults.push(format!("`log_filter` is `{filter}`: {error}"));
        }
        filter
    }

    /// Tools are not offered to a network by accident.
    fn exposure(&mut self, config: &Config) {
        let Listen::Tcp(address) = config.listen else { return };
        let allowed = self.options.allow_unauthenticated_network.unwrap_or(false);
        if !address.ip().is_loopback() && !allowed && (config.tls.is_none() || config.token.is_none()) {
            self.faults.push(format!(
                "`listen` is `{address}`, which other machines can reach: set `tls_cert`, `tls_key` and \
                 `auth_token_file`, or say `allow_unauthenticated_network = true`"
            ));
        }
    }
}
