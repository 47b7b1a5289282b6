//! Every RPC in a few lines: what is asked, who does it.

use std::sync::Arc;

use codemode_proto::registry_v1 as proto;
use codemode_proto::{REGISTRY_CONTRACT_VERSION, registry_v1::registry_server};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use registry_server::RegistryServer;
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use crate::config::StoreChoice;
use crate::service::context::Context;
use crate::service::harness;
use crate::service::journal::Entries;
use crate::service::{assemble, calls, convert, journal, status};

/// Sessions of one list.
const SESSIONS_LISTED: u32 = 100;
const SESSIONS_LISTED_MAX: u32 = 1_000;

/// The service.
#[derive(Clone, Debug)]
pub struct Service {
    context: Arc<Context>,
}

impl Service {
    /// The service as a tonic server, with the configured bound on messages.
    #[must_use]
    pub fn server(context: Arc<Context>) -> RegistryServer<Self> {
        let bytes = context.limits.message_bytes_max;
        RegistryServer::new(Self { context })
            .max_decoding_message_size(bytes)
            .max_encoding_message_size(bytes)
    }

    fn begins(&self) -> Result<(), Status> {
        if self.context.draining.is_cancelled() { Err(status::draining()) } else { Ok(()) }
    }
}

#[tonic::async_trait]
impl registry_server::Registry for Service {
    type ServeStream = BoxStream<'static, Result<proto::RegistryMessage, Status>>;
    type FollowStream = Entries;

    async fn open_session(
        &self,
        request: Request<proto::OpenSessionRequest>,
    ) -> Result<Response<proto::OpenSessionResponse>, Status> {
        self.begins()?;
        let request = request.into_inner();
        let given = request.session_id.clone();
        let (how, wishes, faults) = convert::opening(request);
        status::check(&faults)?;
        let id = if given.is_empty() { Uuid::new_v4().to_string() } else { given };
        let opened = self.context.sessions.open(&journal::session_id(&id)?, how, wishes).await?;
        let mode = self.context.registry.surface(opened.session.scope()).mode();
        Ok(Response::new(proto::OpenSessionResponse {
            session_id: id,
            mode: convert::to_mode(mode).into(),
            last_seq: opened.session.log.last(),
            resumed: opened.resumed,
            joined: opened.joined,
        }))
    }

    async fn close_session(
        &self,
        request: Request<proto::CloseSessionRequest>,
    ) -> Result<Response<proto::CloseSessionResponse>, Status> {
        let id = request.into_inner().session_id;
        let context = Arc::clone(&self.context);
        // Begun, it is done to the end, whether or not the caller waits.
        let closing =
            tokio::spawn(async move { context.sessions.close(&id, "the session was closed").await });
        let last_seq = closing.await.map_err(|error| Status::internal(error.to_string()))??;
        Ok(Response::new(proto::CloseSessionResponse { last_seq }))
    }

    async fn list_sessions(
        &self,
        request: Request<proto::ListSessionsRequest>,
    ) -> Result<Response<proto::ListSessionsResponse>, Status> {
        let request = request.into_inner();
        let limit = if request.limit == 0 { SESSIONS_LISTED } else { request.limit };
        if limit > SESSIONS_LISTED_MAX {
            let message = format!("`limit` is {limit}; it must be from 1 to {SESSIONS_LISTED_MAX}");
            return Err(Status::invalid_argument(message));
        }
        let after = if request.after.is_empty() { None } else { Some(journal::session_id(&request.after)?) };
        let listed = self.context.store.sessions(after.as_ref(), limit as usize).await;
        let listed = listed.map_err(|error| status::of_store(&error))?;
        let sessions = listed.into_iter().map(|info| proto::SessionInfo {
            open_here: self.context.sessions.get(info.session.as_str()).is_ok(),
            session_id: info.session.as_str().to_owned(),
            created_at_ms: info.created_at,
            last_seq: info.head.last,
            open: info.head.open,
        });
        Ok(Response::new(proto::ListSessionsResponse { sessions: sessions.collect() }))
    }

    async fn serve(
        &self,
        request: Request<Streaming<proto::HarnessMessage>>,
    ) -> Result<Response<Self::ServeStream>, Status> {
        self.begins()?;
        let responses = harness::serve(Arc::clone(&self.context), request.into_inner()).await?;
        Ok(Response::new(responses.boxed()))
    }

    async fn assemble(
        &self,
        request: Request<proto::AssembleRequest>,
    ) -> Result<Response<proto::AssembleResponse>, Status> {
        self.begins()?;
        assemble::assemble(&self.context, request.into_inner()).await.map(Response::new)
    }

    async fn call(
        &self,
        request: Request<proto::CallRequest>,
    ) -> Result<Response<proto::CallResult>, Status> {
        self.begins()?;
        calls::call(&self.context, request.into_inner()).await.map(Response::new)
    }

    async fn step(
        &self,
        request: Request<proto::StepRequest>,
    ) -> Result<Response<proto::StepResponse>, Status> {
        self.begins()?;
        calls::step(&self.context, request.into_inner()).await.map(Response::new)
    }

    async fn append(
        &self,
        request: Request<proto::AppendRequest>,
    ) -> Result<Response<proto::AppendResponse>, Status> {
        journal::append(&self.context, request.into_inner()).await.map(Response::new)
    }

    async fn messages(
        &self,
        request: Request<proto::MessagesRequest>,
    ) -> Result<Response<proto::MessagesResponse>, Status> {
        journal::messages(&self.context, request.into_inner()).await.map(Response::new)
    }

    async fn follow(&self, request: Request<proto::FollowRequest>) -> Result<Response<Entries>, Status> {
        journal::follow(&self.context, request.into_inner()).await.map(Response::new)
    }

    async fn describe(
        &self,
        _: Request<proto::DescribeRequest>,
    ) -> Result<Response<proto::DescribeResponse>, Status> {
        Ok(Response::new(description(&self.context)))
    }

    async fn reload(
        &self,
        _: Request<proto::ReloadRequest>,
    ) -> Result<Response<proto::ReloadResponse>, Status> {
        self.begins()?;
        let live = Arc::clone(self.context.live());
        let reloaded = tokio::task::spawn_blocking(move || live.reload()).await;
        let reloaded = reloaded.map_err(|error| Status::internal(error.to_string()))?;
        let reloaded = reloaded.map_err(|faults| Status::failed_precondition(faults.to_string()))?;
        Ok(Response::new(proto::ReloadResponse {
            configuration_revision: reloaded.revision,
            changed: reloaded.changed,
            needs_restart: reloaded.needs_restart,
        }))
    }
}

fn description(context: &Context) -> proto::DescribeResponse {
    let (limits, settings) = (&context.limits, context.registry.settings());
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let runtime = context.programs.runtime.as_ref();
    proto::DescribeResponse {
        contract_version: REGISTRY_CONTRACT_VERSION.to_owned(),
        registry_version: env!("CARGO_PKG_VERSION").to_owned(),
        mode: convert::to_mode(settings.mode).into(),
        language: runtime.map_or_else(String::new, |runtime| runtime.language().to_owned()),
        isolation: runtime.map_or_else(String::new, |runtime| runtime.isolation().to_owned()),
        executors: context.programs.executors.clone(),
        store: match context.store_choice {
            StoreChoice::Memory => "memory".to_owned(),
            StoreChoice::Sqlite(_) => "sqlite".to_owned(),
        },
        configuration_revision: context.live.revision(),
        open_sessions: count(context.sessions.count()),
        limits: Some(proto::Limits {
            sessions_max: count(limits.sessions_max),
            questions_max: count(limits.questions_max),
            unread_bytes_max: limits.unread_bytes_max.into(),
            registrations_max: count(limits.registrations_max),
            message_bytes_max: limits.message_bytes_max as u64,
            parallel_sub_calls_max: count(settings.max_parallel_sub_calls),
            parallel_tool_calls_max: count(settings.max_parallel_tool_calls),
            cancel_grace_ms: u64::try_from(limits.cancel_grace.as_millis()).unwrap_or(u64::MAX),
        }),
    }
}
