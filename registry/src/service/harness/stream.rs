//! One stream of `Serve` from its first message to the removal of all that it registered.

use std::sync::Arc;

use codemode_proto::registry_v1 as proto;
use proto::harness_message::Message as Sent;
use proto::registry_message::Message;
use tonic::{Status, Streaming};

use crate::service::context::Context;
use crate::service::harness::registering::Registrations;
use crate::service::harness::{Answer, Harness, Responses, message_of};
use crate::service::session::{LOST, Session};
use crate::service::status;
use crate::store::ScopeId;

/// Begins: takes the first message, then serves the rest in a task of its own.
pub(in crate::service) async fn serve(
    context: Arc<Context>,
    mut incoming: Streaming<proto::HarnessMessage>,
) -> Result<Responses, Status> {
    let first = tokio::select! {
        first = incoming.message() => first?,
        () = context.draining.cancelled() => return Err(status::draining()),
    };
    let Some(proto::HarnessMessage { message: Some(Sent::Bind(bind)) }) = first else {
        return Err(Status::invalid_argument("the first message of the stream must be `bind`"));
    };
    if bind.harness.len() > 128 {
        return Err(Status::invalid_argument("`harness` is longer than 128 bytes"));
    }
    let session = match bind.scope {
        None => return Err(Status::invalid_argument("`bind` names neither a session nor the deployment")),
        Some(proto::bind::Scope::Deployment(_)) => None,
        Some(proto::bind::Scope::SessionId(id)) => Some(context.sessions.get(&id)?),
    };
    let (harness, responses) = Harness::new(bind.harness, context.limits.clone());
    let bound = proto::Bound {
        session_id: session.as_ref().map_or_else(String::new, |session| session.id().to_owned()),
        questions_max: u32::try_from(context.limits.questions_max).unwrap_or(u32::MAX),
        unread_bytes_max: context.limits.unread_bytes_max.into(),
    };
    harness.outgoing.push(message_of(Message::Bound(bound)));
    tracing::info!(
        harness = harness.name(),
        session = session.as_ref().map(|session| session.id()),
        "a harness serves"
    );
    let tasks = context.tasks.clone();
    tasks.spawn(run(context, harness, session, incoming));
    Ok(responses)
}

async fn run(
    context: Arc<Context>,
    harness: Arc<Harness>,
    session: Option<Arc<Session>>,
    incoming: Streaming<proto::HarnessMessage>,
) {
    let scope = session.as_ref().map_or(ScopeId::ROOT, |session| session.scope());
    let session_id = session.as_ref().map(|session| session.id().to_owned());
    let mut registrations = Registrations::new(Arc::clone(&context), Arc::clone(&harness), scope, session_id);
    let session_over = async {
        match &session {
            Some(session) => {
                session.closed.cancelled().await;
                session.abort.reason() == Some(LOST)
            }
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        // The more particular end is the one that is told.
        biased;
        lost = session_over => if lost { Err(Status::aborted(LOST)) } else { Ok(()) },
        () = context.closing.cancelled() => Err(status::draining()),
        () = harness.outgoing.closed() => Ok(()),
        ended = read(&harness, &mut registrations, incoming) => ended,
    };
    harness.leave();
    drop(registrations);
    tracing::info!(harness = harness.name(), "a harness has gone");
    harness.outgoing.end(ended.err());
}

/// Reads messages until the stream ends. One that cannot be taken ends it with a status.
async fn read(
    harness: &Arc<Harness>,
    registrations: &mut Registrations,
    mut incoming: Streaming<proto::HarnessMessage>,
) -> Result<(), Status> {
    while let Some(message) = incoming.message().await? {
        let Some(message) = message.message else {
            return Err(Status::invalid_argument("a message that this version does not know"));
        };
        let (id, answer) = match message {
            Sent::Bind(_) => return Err(Status::invalid_argument("a second `bind`")),
            Sent::ToolAnswer(answer) => (answer.id, Some(Answer::Tool(answer))),
            Sent::HookAnswer(answer) => (answer.id, answer.answer.map(Answer::Hook)),
            Sent::ApprovalAnswer(answer) => (answer.id, Some(Answer::Approval(answer.outcome()))),
            registration => {
                let reply = registrations.take(registration);
                harness.outgoing.send(message_of(reply)).await;
                continue;
            }
        };
        let settled = match answer {
            Some(answer) => harness.questions.lock().settle(id, answer),
            None => Err("the answer says nothing; the question is still open".to_owned()),
        };
        if let Err(reason) = settled {
            harness.refuse_answer(id, reason);
        }
    }
    Ok(())
}
