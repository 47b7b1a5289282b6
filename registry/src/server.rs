//! The listener, and everything that serves on it: the registry, health, reflection. Owns the order of a shutdown.

pub mod auth;
mod bind;
pub mod programs;

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use codemode_proto::{REGISTRY_FILE_DESCRIPTOR_SET, REGISTRY_SERVICE_NAME};
use futures::{Stream, StreamExt as _};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic_health::ServingStatus;

pub use bind::{BindError, Bound};

use crate::config::{Config, Tls};
use crate::service::{Context, Service};
use auth::AuthLayer;

/// HTTP/2 flow control of one stream, bytes: a value of megabytes must not wait for a window update for each 64 KiB.
const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// HTTP/2 flow control of one connection, bytes: a harness that is slow on one stream still gets its others.
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;
/// Streams of one connection: every call of every session that a harness may make at once.
const STREAMS_MAX: u32 = 16_384;
/// A peer that is silent so long is asked whether it is there, and has so long to answer.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// After a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long open connections may take to end after the last call has.
const CLOSING: Duration = Duration::from_secs(2);

/// Serves until `stop`, then drains: nothing new, `drain_grace` for calls that go on (none after `hurry`).
///
/// # Errors
/// The transport broke.
pub async fn serve(
    context: Arc<Context>,
    config: &Config,
    bound: Bound,
    stop: impl Future<Output = ()> + Send,
    hurry: impl Future<Output = ()> + Send,
) -> Result<(), tonic::transport::Error> {
    let closing = CancellationToken::new();
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status(REGISTRY_SERVICE_NAME, ServingStatus::Serving).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(REGISTRY_FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptor sets are compiled in and tested");
    let router = builder(config)?
        .layer(AuthLayer::new(config.token.clone()))
        .add_service(health)
        .add_service(reflection)
        .add_service(Service::server(Arc::clone(&context)));
    let signal = closing.clone().cancelled_owned();
    let serving = async move {
        match bound {
            Bound::Unix(listener, file) => {
                let incoming = unhurried(UnixListenerStream::new(listener));
                let served = router.serve_with_incoming_shutdown(incoming, signal).await;
                drop(file);
                served
            }
            Bound::Tcp(listener) => {
                let incoming = unhurried(TcpIncoming::from(listener).with_nodelay(Some(true)));
                router.serve_with_incoming_shutdown(incoming, signal).await
            }
        }
    };
    let mut serving = std::pin::pin!(serving);
    let drained = async {
        stop.await;
        tracing::info!("draining");
        reporter.set_service_status(REGISTRY_SERVICE_NAME, ServingStatus::NotServing).await;
        context.drain(config.drain_grace, hurry).await;
        tracing::info!("drained");
    };
    let served = tokio::select! {
        served = &mut serving => Some(served),
        () = drained => None,
    };
    if let Some(served) = served {
        // The transport broke under us: calls end with it.
        context.drain(Duration::ZERO, std::future::pending()).await;
        return served;
    }
    closing.cancel();
    tokio::time::timeout(CLOSING, serving).await.unwrap_or(Ok(()))
}

/// Connections, with a pause after one that could not be accepted: with no descriptor left the next fails at once too.
fn unhurried<S, C>(incoming: S) -> impl Stream<Item = io::Result<C>>
where
    S: Stream<Item = io::Result<C>>,
{
    incoming.then(|accepted| async {
        if let Err(error) = &accepted {
            tracing::warn!(%error, "a connection cannot be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
        accepted
    })
}

fn builder(config: &Config) -> Result<Server, tonic::transport::Error> {
    let builder = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .tcp_nodelay(true);
    match &config.tls {
        None => Ok(builder),
        Some(tls) => builder.tls_config(tls_config(tls)),
    }
}

/// Whether the certificate and the key can be used.
///
/// # Errors
/// Why not, in words.
pub(crate) fn check_tls(tls: &Tls) -> Result<(), String> {
    let checked = Server::builder().tls_config(tls_config(tls));
    checked.map(drop).map_err(|error| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })
}

fn tls_config(tls: &Tls) -> ServerTlsConfig {
    let config = ServerTlsConfig::new().identity(Identity::from_pem(&tls.certificate, &tls.key));
    match &tls.client_ca {
        None => config,
        Some(ca) => config.client_ca_root(Certificate::from_pem(ca)),
    }
}
