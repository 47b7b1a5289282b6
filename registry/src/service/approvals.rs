//! Routes questions whether a call may go on to whoever offered to answer them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use codemode_proto::registry_v1 as proto;
use parking_lot::Mutex;
use proto::registry_message::Message;
use uuid::Uuid;

use crate::hook::HookError;
use crate::pipeline::{ApprovalOutcome, ApprovalRequest, ApprovalService, approval_id};
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
        let Some(offered) = self.who(request.agent.id()) else {
            return Ok(ApprovalOutcome::Unavailable);
        };
        Ok(tokio::select! {
            outcome = put(&offered, &request) => outcome,
            _ = signal.aborted() => ApprovalOutcome::Cancelled,
        })
    }
}

async fn put(offered: &Offered, request: &ApprovalRequest) -> ApprovalOutcome {
    let message = |id| {
        Message::Approval(proto::ApprovalQuestion {
            id,
            approval_id: approval_id(&request.call),
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
            tracing::warn!(call = request.call.call_id(), %error, "an approval has no answer");
            ApprovalOutcome::Unavailable
        }
    }
}
