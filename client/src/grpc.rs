//! The runtime that talks to executors over gRPC.
//!
//! [`config`] says which executors and how to reach them, `pool` picks one per attempt, `drive` carries one attempt on its
//! stream, and this file decides what may be tried again: only a run that an executor turned away, or whose connection was
//! lost, before it started. A program acts through its bindings alone and those are carried out here, so a run whose `started`
//! never arrived has not acted. Prost types stop at `convert`.

pub mod config;

mod channel;
mod convert;
mod drive;
mod pool;
mod status;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::binding::BindingTable;
use crate::description::Description;
use crate::error::{RuntimeError, chain};
use crate::event::RunEvent;
use crate::outcome::Outcome;
use crate::request::{RunId, RunRequest};
use crate::runtime::{CodeRuntime, RunHost};

pub use config::{ConfigError, GrpcConfig, Identity};
use drive::{Attempt, Ended, Stop};
use pool::{Lease, Pool};
use status::Refusal;

/// Answers for [`CodeRuntime::language`] and [`CodeRuntime::isolation`] until an executor was asked; what contract 1 has.
const LANGUAGE: &str = "typescript";
const ISOLATION: &str = "process";

/// Reason with which disposal ends runs.
const DISPOSED_REASON: &str = "runtime disposed";

/// First delay before an executor is tried again that gave no advice; doubled with each further one.
const BACKOFF_FIRST: Duration = Duration::from_millis(50);

/// Runs programs on one or more executors. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct GrpcRuntime {
    config: GrpcConfig,
    pool: Pool,
    described: OnceLock<Description>,
    disposal: CancellationToken,
    live: TaskTracker,
}

impl GrpcRuntime {
    /// A runtime over the configured executors, at least one of which must answer `Describe` within the connect deadline.
    ///
    /// # Errors
    /// [`RuntimeError::Unavailable`] where none answers, [`RuntimeError::Incompatible`] for a foreign contract version,
    /// [`RuntimeError::Config`] for settings that cannot work.
    pub async fn connect(config: GrpcConfig) -> Result<Self, RuntimeError> {
        let runtime = Self::connect_lazy(config)?;
        let deadline = Instant::now() + runtime.config.connect_timeout;
        loop {
            match runtime.describe().await {
                Ok(_) => return Ok(runtime),
                // An executor that is just starting is worth waiting for, within the deadline.
                Err(RuntimeError::Unavailable { .. }) if Instant::now() + BACKOFF_FIRST < deadline => {
                    tokio::time::sleep(BACKOFF_FIRST).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A runtime that connects when it is first used. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ConfigError::Tls`] for certificates or keys that cannot be read.
    pub fn connect_lazy(config: GrpcConfig) -> Result<Self, ConfigError> {
        let pool = Pool::new(&config).map_err(|error| ConfigError::Tls { message: chain(&error) })?;
        Ok(Self {
            config,
            pool,
            described: OnceLock::new(),
            disposal: CancellationToken::new(),
            live: TaskTracker::new(),
        })
    }

    async fn describe_at(&self, lease: &Lease) -> Result<Description, Refusal> {
        let mut client = lease.client();
        let answer = client.describe(convert::describe_request());
        let answer = tokio::time::timeout(self.config.connect_timeout, answer)
            .await
            .map_err(|_| Refusal::no_answer(lease.endpoint(), self.config.connect_timeout))?;
        let answer = answer.map_err(|status| Refusal::from_status(lease.endpoint(), &status))?;
        let description = convert::description(answer.into_inner());
        convert::check_version(&description.contract_version).map_err(Refusal::final_error)?;
        Ok(description)
    }

    /// Attempts until one starts, gives a final answer, or the bounds are used up.
    async fn run_attempts(
        &self,
        request: &RunRequest,
        host: &RunHost,
        stop: &Stop<'_>,
    ) -> Result<Outcome, RuntimeError> {
        let table = Arc::new(BindingTable::new(&request.namespaces));
        let mut tried = BTreeSet::new();
        let mut attempt = 1;
        loop {
            let lease = self.pool.lease(&tried).await;
            let refusal = match Attempt::new(&lease, request, host, stop, &table).drive().await {
                Ended::Settled(outcome) => return Ok(*outcome),
                Ended::Broken(error) => return Err(error),
                Ended::Refused(refusal) => refusal,
            };
            if !refusal.retryable || attempt >= self.config.attempts_max {
                return Err(refusal.error);
            }
            lease.mark_failed();
            tried.insert(lease.id());
            let delay = self.delay(&refusal, attempt, &mut tried);
            host.notify(RunEvent::Retrying {
                endpoint: lease.endpoint(),
                message: &refusal.error.to_string(),
                delay,
            });
            drop(lease);
            attempt += 1;
            if let Some(early) = stop.within(delay).await {
                return early.before_start(request);
            }
        }
    }

    /// An executor that was not tried yet is tried at once; after a whole round, the advice or a growing delay is kept.
    fn delay(&self, refusal: &Refusal, attempt: u32, tried: &mut BTreeSet<usize>) -> Duration {
        if self.pool.has_untried(tried) {
            return Duration::ZERO;
        }
        tried.clear();
        let backoff = BACKOFF_FIRST.saturating_mul(1 << attempt.min(10));
        refusal.retry_after().unwrap_or(backoff).min(self.config.retry_delay_max)
    }
}

#[async_trait]
impl CodeRuntime for GrpcRuntime {
    async fn run(&self, request: RunRequest, host: RunHost) -> Result<Outcome, RuntimeError> {
        let _live = self.live.token();
        if self.disposal.is_cancelled() {
            return Err(RuntimeError::Disposed);
        }
        if let Some(reason) = host.abort.reason() {
            return Ok(Outcome::aborted(request.run_id.unwrap_or_else(RunId::random), reason));
        }
        let stop = Stop::new(
            &host.abort,
            &self.disposal,
            host.deadline.or(self.config.run_deadline),
            self.config.abort_grace,
        );
        Box::pin(self.run_attempts(&request, &host, &stop)).await
    }

    fn language(&self) -> &str {
        self.described.get().map_or(LANGUAGE, |description| &description.language)
    }

    fn isolation(&self) -> &str {
        self.described.get().map_or(ISOLATION, |description| &description.isolation)
    }

    async fn describe(&self) -> Result<Description, RuntimeError> {
        let mut tried = BTreeSet::new();
        loop {
            let lease = self.pool.lease(&tried).await;
            match self.describe_at(&lease).await {
                Ok(description) => {
                    // Later answers do not replace the first: the descriptors are constant for a runtime.
                    let _ = self.described.set(description.clone());
                    return Ok(description);
                }
                Err(refusal) => {
                    lease.mark_failed();
                    tried.insert(lease.id());
                    if !refusal.retryable || !self.pool.has_untried(&tried) {
                        return Err(refusal.error);
                    }
                }
            }
        }
    }

    async fn dispose(&self) {
        self.disposal.cancel();
        self.live.close();
        self.live.wait().await;
    }
}
