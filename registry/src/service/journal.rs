//! The session log's face: appending the harness's own events, deriving messages, following.

use std::sync::Arc;

use codemode_events::{self as events, Event, Page, SessionId};
use codemode_proto::registry_v1 as proto;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tonic::Status;

use crate::service::context::Context;
use crate::service::session::Session;
use crate::service::status;

/// Events of one request.
const EVENTS_MAX: usize = 1_000;

/// Entries as the transport takes them.
pub(super) type Entries = BoxStream<'static, Result<proto::Entry, Status>>;

/// Appends events of the harness's own and waits until they are durable.
pub(super) async fn append(
    context: &Context,
    request: proto::AppendRequest,
) -> Result<proto::AppendResponse, Status> {
    let session = context.sessions.get(&request.session_id)?;
    let given = request.events_json;
    if given.is_empty() || given.len() > EVENTS_MAX {
        let message =
            format!("`events_json` has {} entries; it must have from 1 to {EVENTS_MAX}", given.len());
        return Err(Status::invalid_argument(message));
    }
    let mut faults = Vec::new();
    let mut events = Vec::with_capacity(given.len());
    for (place, json) in (1..).zip(&given) {
        match own_event(json) {
            Ok(event) => events.push(event),
            Err(fault) => faults.push(format!("event {place}: {fault}")),
        }
    }
    status::check(&faults)?;
    let mut seqs = Vec::with_capacity(events.len());
    for (place, event) in (1..).zip(events) {
        let starts_turn = matches!(event, Event::TurnStart(_));
        match session.log.append(event).await {
            Ok(appended) => seqs.push(appended.seq),
            Err(error) => return Err(refused(context, &session, place, &error).await),
        }
        if starts_turn {
            session.release_parked().await.map_err(|error| context.sessions.failed(&session, &error))?;
        }
    }
    context.sessions.flush(&session).await?;
    Ok(proto::AppendResponse { seqs })
}

/// The status that names the event; what came before it is durable when it is told.
async fn refused(
    context: &Context,
    session: &Arc<Session>,
    place: u32,
    error: &events::AppendError,
) -> Status {
    let status = context.sessions.failed(session, error);
    // What went wrong first is what is told.
    let _ = session.log.flush().await;
    Status::new(status.code(), format!("event {place}: {}", status.message()))
}

/// An event that a harness may write.
fn own_event(json: &[u8]) -> Result<Event, String> {
    let text = std::str::from_utf8(json).map_err(|_| "it is not UTF-8".to_owned())?;
    let event = Event::from_json(text).map_err(|error| format!("it is no event: {error}"))?;
    match event {
        Event::TurnStart(_)
        | Event::TurnEnd(_)
        | Event::StepStart(_)
        | Event::StepEnd(_)
        | Event::UserMessage(_)
        | Event::AssistantMessage(_) => Ok(event),
        other => Err(format!("`{}` is not for a harness to write", other.tag())),
    }
}

/// The messages for the model.
pub(super) async fn messages(
    context: &Context,
    request: proto::MessagesRequest,
) -> Result<proto::MessagesResponse, Status> {
    let session = context.sessions.get(&request.session_id)?;
    let last_seq = context.sessions.flush(&session).await?;
    let mut entries = Vec::new();
    while (entries.len() as u64) < last_seq {
        let page = session.log.read(Page::from(entries.len() as u64 + 1)).await;
        let page = page.map_err(|error| status::of_read(&error))?;
        if page.is_empty() {
            return Err(Status::data_loss(format!("entry {} cannot be read", entries.len() + 1)));
        }
        entries.extend(page);
    }
    entries.truncate(usize::try_from(last_seq).unwrap_or(usize::MAX));
    let messages = serde_json::to_vec(&events::messages(&entries));
    let messages_json = messages.map_err(|error| Status::internal(error.to_string()))?.into();
    Ok(proto::MessagesResponse { messages_json, last_seq })
}

/// Entries from a number on.
pub(super) async fn follow(context: &Arc<Context>, request: proto::FollowRequest) -> Result<Entries, Status> {
    let id = session_id(&request.session_id)?;
    let head = context.store.head(&id).await.map_err(|error| status::of_store(&error))?;
    let entries = events::follow(Arc::clone(&context.store), id, request.from_seq).map(to_entry);
    if request.live {
        return Ok(entries.take_until(context.closing.clone().cancelled_owned()).boxed());
    }
    let from = request.from_seq.max(1);
    let wanted = (head.last + 1).saturating_sub(from);
    Ok(entries.take(usize::try_from(wanted).unwrap_or(usize::MAX)).boxed())
}

fn to_entry(entry: Result<events::Entry, events::ReadError>) -> Result<proto::Entry, Status> {
    let entry = entry.map_err(|error| status::of_read(&error))?;
    let event = serde_json::to_vec(&entry.event).map_err(|error| Status::internal(error.to_string()))?;
    Ok(proto::Entry { seq: entry.seq, at_ms: entry.at, version: entry.v, event_json: event.into() })
}

/// An id as a request gives it.
pub(super) fn session_id(id: &str) -> Result<SessionId, Status> {
    SessionId::new(id).map_err(|error| Status::invalid_argument(format!("`session_id`: {error}")))
}
