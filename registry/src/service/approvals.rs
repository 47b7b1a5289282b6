//! Routes questions whether a call may go on to whoever offered to answer them, and writes question and answer to the
//! session's log.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use codemode_events::{ApprovalAnswered, ApprovalAsked, ApprovalOutcome as Logged, SessionLog};
use codemode_proto::registry_v1 as proto;
use parking_lot::Mutex;
use proto::registry_message::Message;
use uuid::Uuid;

use crate::agent::record;
use crate::hook::HookError;
use crate::pipeline::{ApprovalOutcome, ApprovalRequest, ApprovalService};
use crate::service::convert;
use crate::service::harness::{Answer, Expected, Harness};
use crate::signal::Signal;

#[derive(Clone, Debug)]
struct Offered {
    id: Uuid,
    harness: Arc<Harness>,
    /// Whose questions; everybody's without one.
    session: Option<String>,
    deadline: Duration,
}

/// The offers there are, the latest last.
#[derive(Debug, Default)]
pub(super) struct Approvals(Mutex<Vec<Offered>>);

/// Holds an offer; dropping it takes the offer back.
#[derive(Debug)]
pub(super) struct Offer {
    approvals: Weak<Approvals>,
    id: Uuid,
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(approvals) = self.approvals.upgrade() {
            approvals.0.lock().retain(|offered| offered.id != self.id);
        }
    }
}

impl Approvals {
    pub(super) fn offer(
        self: &Arc<Self>,
        harness: Arc<Harness>,
        session: Option<String>,
        deadline: Duration,
    ) -> Offer {
        let id = Uuid::new_v4();
        self.0.lock().push(Offered { id, harness, session, deadline });
        Offer { approvals: Arc::downgrade(self), id }
    }

    /// Who is asked for a session: the latest offer for it alone, else the latest for everybody.
    fn who(&self, session: &str) -> Option<Offered> {
        let offers = self.0.lock();
        let own = offers.iter().rev().find(|offered| offered.session.as_deref() == Some(session));
        own.or_else(|| offers.iter().rev().find(|offered| offered.session.is_none())).cloned()
    }
}

#[async_trait]
impl ApprovalService for Approvals {
    async fn ask(&self, request: ApprovalRequest, signal: &Signal) -> Result<ApprovalOutcome, HookError> {
        let mut record = Record::begin(&request).await?;
        let outcome = match self.who(request.agent.id()) {
            None => ApprovalOutcome::Unavailable,
            Some(offered) => tokio::select! {
                outcome = put(&offered, &request, &record.approval_id) => outcome,
                _ = signal.aborted() => ApprovalOutcome::Cancelled,
            },
        };
        record.end(&outcome).await;
        Ok(outcome)
    }
}

async fn put(offered: &Offered, request: &ApprovalRequest, approval_id: &str) -> ApprovalOutcome {
    let message = |id| {
        Message::Approval(proto::ApprovalQuestion {
            id,
            approval_id: approval_id.to_owned(),
            call: Some(convert::call_info(&request.call)),
            reason: request.reason.clone().unwrap_or_default(),
        })
    };
    let answer = match offered.harness.pose(Expected::Approval, message) {
        Ok(mut question) => question.answer_within(offered.deadline).await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(Answer::Approval(proto::ApprovalOutcome::AllowedOnce)) => ApprovalOutcome::AllowedOnce,
        Ok(Answer::Approval(proto::ApprovalOutcome::Rejected)) => ApprovalOutcome::Rejected,
        Ok(Answer::Approval(proto::ApprovalOutcome::Cancelled)) => ApprovalOutcome::Cancelled,
        Ok(_) => ApprovalOutcome::Unavailable,
        Err(error) => {
            tracing::warn!(approval = approval_id, %error, "an approval has no answer");
            ApprovalOutcome::Unavailable
        }
    }
}

/// Question and answer in the log. One that is dropped on the way is written as withdrawn.
struct Record {
    approval_id: String,
    log: Option<SessionLog>,
}

impl Record {
    async fn begin(request: &ApprovalRequest) -> Result<Self, HookError> {
        let approval_id = Uuid::new_v4().to_string();
        let log = request.agent.log().cloned();
        if let (Some(log), Some(arguments)) = (&log, request.call.arguments()) {
            let asked = ApprovalAsked {
                approval_id: approval_id.clone(),
                call_id: request.call.call_id().to_owned(),
                name: request.call.name().to_string(),
                arguments: record::json(arguments.text()),
                reason: request.reason.clone(),
            };
            let appended = log.append(asked).await;
            drop(
                appended.map_err(|error| {
                    HookError(format!("the session log did not take the question: {error}"))
                })?,
            );
        }
        Ok(Self { approval_id, log })
    }

    async fn end(&mut self, outcome: &ApprovalOutcome) {
        if let Some(log) = self.log.take() {
            write(&log, &self.approval_id, outcome).await;
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let Some(log) = self.log.take() else { return };
        let approval_id = std::mem::take(&mut self.approval_id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { write(&log, &approval_id, &ApprovalOutcome::Cancelled).await });
        }
    }
}

async fn write(log: &SessionLog, approval_id: &str, outcome: &ApprovalOutcome) {
    let outcome = match outcome {
        ApprovalOutcome::AllowedOnce => Logged::AllowedOnce,
        ApprovalOutcome::Rejected => Logged::Rejected,
        ApprovalOutcome::Cancelled => Logged::Cancelled,
        ApprovalOutcome::Unavailable | ApprovalOutcome::Unknown(_) => Logged::Unavailable,
    };
    let answered = ApprovalAnswered { approval_id: approval_id.to_owned(), outcome };
    if let Err(error) = log.append(answered).await {
        tracing::error!(approval = approval_id, %error, "the answer to an approval was not logged");
    }
}
