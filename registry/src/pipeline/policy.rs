//! The second stage: may this call be carried out?

use std::sync::Arc;

use codemode_events::{ApprovalAnswered, ApprovalAsked, ApprovalOutcome as Logged, SessionLog};

use crate::agent::{Agent, record};
use crate::hook::{HookError, guarded_async};
use crate::pipeline::{ApprovalOutcome, ApprovalRequest, Call, Decision, FlightState, Guard};
use crate::policy::Effect;
use crate::registry::Registry;
use crate::store::ScopeId;
use crate::tool::{CallResult, ToolError};

/// What the call came to here; nothing if it may go on.
pub(super) async fn decide(registry: &Registry, call: &Arc<Call>) -> Option<FlightState> {
    let decided = tokio::select! {
        biased;
        decided = stages(registry, call) => decided,
        _ = call.signal().aborted() => Some(FlightState::Final(CallResult::failed(ToolError::aborted(false)))),
    };
    match decided {
        None if call.signal().is_aborted() => {
            Some(FlightState::Final(CallResult::failed(ToolError::aborted(false))))
        }
        decided => decided,
    }
}

async fn stages(registry: &Registry, call: &Arc<Call>) -> Option<FlightState> {
    let decision = match pre_execute(registry, call).await {
        Ok(decision) => decision,
        Err(error) => return Some(FlightState::Final(CallResult::failed(error.into()))),
    };
    let denial = match decision {
        Decision::Allow => None,
        Decision::Deny { reason, info } => Some(ToolError { message: reason, info }),
        Decision::Ask { reason } => ask(registry, call, reason).await.map(ToolError::plain),
    };
    let denial = match denial {
        Some(denial) => Some(denial),
        None => guards(registry, call).await.map(ToolError::plain),
    };
    denial.map(|denial| FlightState::Settled(CallResult::failed(denial)))
}

/// The rules, then the hooks. A denial by rule is final.
async fn pre_execute(registry: &Registry, call: &Arc<Call>) -> Result<Decision, HookError> {
    let mut decision = by_rule(registry, call);
    if matches!(decision, Decision::Deny { .. }) {
        return Ok(decision);
    }
    for hook in registry.snapshot().hooks(call.scope(), |layer| &layer.pre) {
        decision = guarded_async(hook.decide(call, decision)).await?;
    }
    Ok(decision)
}

fn by_rule(registry: &Registry, call: &Call) -> Decision {
    let policy = &call.surface().settings().policy;
    let (Some(arguments), false) = (call.arguments(), policy.rules.is_empty()) else {
        return Decision::Allow;
    };
    let state = registry.snapshot();
    let labels: Vec<&str> =
        state.layers_of(call.scope()).filter_map(|layer| layer.label.as_deref()).collect();
    let Some(rule) = policy.decide(call.name(), arguments, &labels) else { return Decision::Allow };
    match rule.effect {
        Effect::Allow => Decision::Allow,
        Effect::Ask => Decision::Ask { reason: rule.reason.clone() },
        Effect::Deny => {
            let reason = rule.reason.clone();
            Decision::deny(reason.unwrap_or_else(|| format!("tool \"{}\" is denied by policy", call.name())))
        }
    }
}

/// Asks. Gives the reason to deny; nothing after a yes.
async fn ask(registry: &Registry, call: &Arc<Call>, reason: Option<String>) -> Option<String> {
    let name = call.name();
    let Some((_, service)) = registry.snapshot().approvals.clone() else {
        return Some(
            reason.unwrap_or_else(|| format!("tool \"{name}\" requires approval (not yet supported)")),
        );
    };
    let Some(agent) = call.agent().cloned() else {
        return Some(format!("tool \"{name}\" requires approval but has no agent to route it through"));
    };
    let asked = log_question(call, &agent, reason.as_deref()).await;
    let request = ApprovalRequest { call: Arc::clone(call), agent, reason };
    let answer = tokio::select! {
        answer = guarded_async(service.ask(request, call.signal())) => Some(answer),
        _ = call.signal().aborted() => None,
    };
    if let Some(log) = asked {
        log_answer(call, &log, answer.as_ref()).await;
    }
    let Some(answer) = answer else {
        // The abort is the call's outcome, and whoever waits for this notices it.
        return std::future::pending().await;
    };
    match answer {
        Ok(ApprovalOutcome::AllowedOnce) => None,
        Ok(ApprovalOutcome::Rejected) => Some(format!("the user rejected tool \"{name}\"")),
        Ok(ApprovalOutcome::Cancelled) => Some(format!("approval of tool \"{name}\" was cancelled")),
        Ok(ApprovalOutcome::Unavailable) => {
            Some(format!("tool \"{name}\" requires approval and no approval channel is available"))
        }
        Ok(ApprovalOutcome::Unknown(outcome)) => {
            Some(format!("approval of tool \"{name}\" ended with the unknown outcome \"{outcome}\""))
        }
        Err(error) => Some(format!("approval of tool \"{name}\" failed: {error}")),
    }
}

/// Writes that somebody is asked. Gives the log that takes the answer; a question that it does not take is asked all the
/// same, since the log is no party to it.
async fn log_question(call: &Call, agent: &Agent, reason: Option<&str>) -> Option<SessionLog> {
    let log = agent.log()?;
    let question = ApprovalAsked {
        approval_id: approval_id(call),
        call_id: call.call_id().to_owned(),
        name: call.name().to_string(),
        arguments: record::json(call.arguments()?.text()),
        reason: reason.map(str::to_owned),
    };
    match log.append(question).await {
        Ok(_) => Some(log.clone()),
        Err(error) => {
            tracing::warn!(call = call.call_id(), %error, "a question for approval was not logged");
            None
        }
    }
}

async fn log_answer(call: &Call, log: &SessionLog, answer: Option<&Result<ApprovalOutcome, HookError>>) {
    let outcome = match answer {
        Some(Ok(ApprovalOutcome::AllowedOnce)) => Logged::AllowedOnce,
        Some(Ok(ApprovalOutcome::Rejected)) => Logged::Rejected,
        Some(Ok(ApprovalOutcome::Cancelled)) | None => Logged::Cancelled,
        Some(Ok(ApprovalOutcome::Unavailable | ApprovalOutcome::Unknown(_)) | Err(_)) => Logged::Unavailable,
    };
    if let Err(error) = log.append(ApprovalAnswered { approval_id: approval_id(call), outcome }).await {
        tracing::warn!(call = call.call_id(), %error, "an answer on approval was not logged");
    }
}

pub(crate) fn approval_id(call: &Call) -> String {
    format!("{}:approval", call.call_id())
}

/// Goes through the guards as they are while it goes: one added by another still counts.
async fn guards(registry: &Registry, call: &Call) -> Option<String> {
    let chain = registry.snapshot().chain(call.scope());
    for scope in chain {
        let epoch = registry.snapshot().layers.get(&scope).map(|layer| layer.guard_epoch);
        let mut last = 0;
        while let Some((id, guard)) = next_guard(registry, scope, epoch, last) {
            last = id;
            match guarded_async(guard.check(call)).await {
                Ok(None) => {}
                Ok(Some(reason)) => return Some(reason),
                Err(error) => return Some(error.to_string()),
            }
        }
    }
    None
}

/// The guard after `last`. None once a scope has lost its last guard since `epoch`: those that came later are for the
/// next call.
fn next_guard(
    registry: &Registry,
    scope: ScopeId,
    epoch: Option<u64>,
    last: u64,
) -> Option<(u64, Arc<dyn Guard>)> {
    let state = registry.snapshot();
    let layer = state.layers.get(&scope)?;
    if Some(layer.guard_epoch) != epoch {
        return None;
    }
    layer.guards.iter().find(|(id, _)| *id > last).cloned()
}
