//! Requests, questions and answers between prost types and our own.

use codemode_proto::registry_v1 as proto;
use proto::decision::Decision as Said;
use proto::verdict::Decision as Judged;

use crate::pipeline::{Call, Decision, PostDecision, PostVerdict};
use crate::present::Mode;
use crate::service::content;
use crate::service::session::Wishes;
use crate::service::sessions::How;
use crate::store::Restriction;
use crate::tool::ErrorInfo;

/// Longest label of a session, bytes.
const LABEL_BYTES_MAX: usize = 256;
/// Names in one list.
const NAMES_MAX: usize = 10_000;

/// A call as harnesses are told of it.
pub(super) fn call_info(call: &Call) -> proto::CallInfo {
    let arguments = call.arguments().map(|arguments| arguments.text().as_str().to_owned().into());
    proto::CallInfo {
        call_id: call.call_id().to_owned(),
        root_call_id: call.root_call_id().to_owned(),
        name: call.name().to_string(),
        arguments_json: arguments.unwrap_or_default(),
        session_id: call.agent().map_or_else(String::new, |agent| agent.id().to_owned()),
        is_sub_call: call.parent().is_some(),
    }
}

pub(super) fn to_decision(decision: &Decision) -> proto::Decision {
    let said = match decision {
        Decision::Allow => Said::Allow(proto::Allow {}),
        Decision::Deny { reason, info } => {
            Said::Deny(proto::Deny { reason: reason.clone(), info: info.as_ref().map(content::to_info) })
        }
        Decision::Ask { reason } => Said::Ask(proto::Ask { reason: reason.clone().unwrap_or_default() }),
    };
    proto::Decision { decision: Some(said) }
}

pub(super) fn from_decision(decision: proto::Decision) -> Result<Decision, String> {
    match decision.decision {
        Some(Said::Allow(_)) => Ok(Decision::Allow),
        Some(Said::Deny(deny)) => {
            let info = deny.info.map(|info| ErrorInfo { name: info.name, code: info.code });
            Ok(Decision::Deny { reason: deny.reason, info })
        }
        Some(Said::Ask(ask)) => {
            Ok(Decision::Ask { reason: Some(ask.reason).filter(|reason| !reason.is_empty()) })
        }
        None => Err("the decision says nothing".to_owned()),
    }
}

pub(super) fn to_verdict(verdict: &PostVerdict) -> proto::Verdict {
    let judged = match &verdict.decision {
        PostDecision::Accept { content, value } => Judged::Accept(proto::Accept {
            content_json: content.as_deref().map(content::to_json).unwrap_or_default(),
            value_json: value.as_ref().map(|value| value.as_str().to_owned().into()),
        }),
        PostDecision::Block { feedback } => {
            Judged::Block(proto::Block { feedback_json: content::to_json(feedback) })
        }
    };
    proto::Verdict { decision: Some(judged), contexts: content::to_contexts(&verdict.contexts) }
}

pub(super) fn from_verdict(verdict: proto::Verdict, harness: &str) -> Result<PostVerdict, String> {
    let decision = match verdict.decision {
        Some(Judged::Accept(accept)) => {
            let replaced = Some(&accept.content_json).filter(|json| !json.is_empty());
            PostDecision::Accept {
                content: replaced.map(|json| content::from_json(json)).transpose()?,
                value: accept.value_json.map(content::value).transpose()?,
            }
        }
        Some(Judged::Block(block)) => {
            PostDecision::Block { feedback: content::from_json(&block.feedback_json)? }
        }
        None => return Err("the verdict says nothing".to_owned()),
    };
    Ok(PostVerdict { decision, contexts: content::contexts(verdict.contexts, harness)? })
}

pub(super) const fn to_mode(mode: Mode) -> proto::Mode {
    match mode {
        Mode::Native => proto::Mode::Native,
        Mode::Code => proto::Mode::Code,
        Mode::Both => proto::Mode::Both,
    }
}

const fn from_mode(mode: proto::Mode) -> Option<Mode> {
    match mode {
        proto::Mode::Unspecified => None,
        proto::Mode::Native => Some(Mode::Native),
        proto::Mode::Code => Some(Mode::Code),
        proto::Mode::Both => Some(Mode::Both),
    }
}

/// How a session is to be opened, and what is wrong with the request.
pub(super) fn opening(request: proto::OpenSessionRequest) -> (How, Wishes, Vec<String>) {
    let mut faults = Vec::new();
    let how = match request.open() {
        proto::Open::Unspecified => How::Either,
        proto::Open::Create => How::Create,
        proto::Open::Resume => How::Resume,
    };
    if how == How::Resume && request.session_id.is_empty() {
        faults.push("`OPEN_RESUME` needs a `session_id`".to_owned());
    }
    if request.label.len() > LABEL_BYTES_MAX {
        faults.push(format!("`label` has {} bytes; {LABEL_BYTES_MAX} are allowed", request.label.len()));
    }
    if proto::Mode::try_from(request.mode).is_err() {
        faults.push(format!("`mode` is {}, which this version does not know", request.mode));
    }
    let mode = from_mode(request.mode());
    let restriction = request.restriction.map(|restriction| Restriction {
        allow: restriction.allow.map(|allow| allow.names.into_iter().collect()),
        deny: restriction.deny.into_iter().collect(),
    });
    if let Some(Restriction { allow, deny }) = &restriction {
        let named = allow.as_ref().map_or(0, std::collections::BTreeSet::len) + deny.len();
        if named > NAMES_MAX {
            faults.push(format!("`restriction` has {named} names; {NAMES_MAX} are allowed"));
        }
    }
    let label = Some(request.label).filter(|label| !label.is_empty());
    (how, Wishes { label, mode, restriction }, faults)
}
