//! The listener, and everything that serves on it: the executor, health, reflection. Owns the order of a shutdown.

use std::error::Error as _;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codemode_proto::{EXECUTOR_SERVICE_NAME, FILE_DESCRIPTOR_SET};
use futures::{Stream, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::config::{Config, Listen, Tls};
use crate::context::Context;
use crate::service::Service;
use crate::service::auth::AuthLayer;
use crate::supervisor::process::live_children;

/// HTTP/2 flow control of one stream, bytes: a value of megabytes must not wait for a window update for each 64 KiB.
const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// HTTP/2 flow control of one connection, bytes: room for several such streams.
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;
/// Largest HTTP/2 frame, bytes.
const HTTP_FRAME_BYTES: u32 = 1 << 20;
/// A peer that is silent so long is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// And has so long to answer.
const KEEPALIVE_PATIENCE: Duration = Duration::from_secs(20);
/// After a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long open connections may take to end after the last run has.
const CLOSING: Duration = Duration::from_secs(2);
/// Streams of one connection beyond the runs it may have: health checks and the like.
const EXTRA_STREAMS: u32 = 64;

/// A bound listener.
#[derive(Debug)]
pub enum Bound {
    /// On a Unix socket, which is removed when this is dropped.
    Unix(UnixListener, SocketFile),
    /// On TCP.
    Tcp(TcpListener),
}

/// The file of a Unix socket.
#[derive(Debug)]
pub struct SocketFile(std::path::PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on `{listen}`")]
pub struct BindError {
    listen: Listen,
    #[source]
    source: io::Error,
}

impl Bound {
    /// Binds. A Unix socket that a dead executor left is replaced, a live one is not; it is for our user only.
    ///
    /// # Errors
    /// It cannot be bound.
    pub async fn bind(listen: &Listen) -> Result<Self, BindError> {
        let bound = match listen {
            Listen::Unix(path) => bind_unix(path).await,
            Listen::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
        };
        bound.map_err(|source| BindError { listen: listen.clone(), source })
    }

    /// Where it listens, as a client would say it.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn address(&self) -> io::Result<String> {
        Ok(match self {
            Self::Unix(_, file) => format!("unix:{}", file.0.display()),
            Self::Tcp(listener) => format!("http://{}", listener.local_addr()?),
        })
    }
}

async fn bind_unix(path: &Path) -> io::Result<Bound> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something else is at this path"));
        }
        if tokio::net::UnixStream::connect(path).await.is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(Bound::Unix(listener, SocketFile(path.to_owned())))
}

/// Serves until `stop`, then drains: no new runs, `grace` for those that go on (none after `hurry`), no process left.
///
/// # Errors
/// The transport broke.
pub async fn serve(
    context: Arc<Context>,
    bound: Bound,
    stop: impl Future<Output = ()> + Send,
    hurry: impl Future<Output = ()> + Send,
) -> Result<(), tonic::transport::Error> {
    let closing = CancellationToken::new();
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status(EXECUTOR_SERVICE_NAME, ServingStatus::Serving).await;
    let readiness = tokio::spawn(follow_readiness(Arc::clone(&context), reporter.clone()));
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptor sets are compiled in and tested");
    let router = builder(&context.config)?
        .layer(AuthLayer::new(context.config.token.clone()))
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
        reporter.set_service_status(EXECUTOR_SERVICE_NAME, ServingStatus::NotServing).await;
        context.drain(context.config.drain_grace, hurry).await;
        tracing::info!("drained; no process is left");
    };
    let served = tokio::select! {
        served = &mut serving => Some(served),
        () = drained => None,
    };
    readiness.abort();
    if let Some(served) = served {
        // The transport broke under us: runs end with it.
        context.drain(Duration::ZERO, std::future::pending()).await;
        return served;
    }
    closing.cancel();
    // Connections that stay open have no run any more.
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
        .max_frame_size(HTTP_FRAME_BYTES)
        .max_concurrent_streams(
            config.concurrent_runs_max.saturating_add(config.queued_runs_max).saturating_add(EXTRA_STREAMS),
        )
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_PATIENCE))
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
pub fn check_tls(tls: &Tls) -> Result<(), String> {
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

/// Readiness is that every engine has a zygote. Liveness (the service without a name) stays as it is: an executor that
/// cannot fork just now, or drains, is not helped by a restart.
async fn follow_readiness(context: Arc<Context>, reporter: HealthReporter) {
    let mut dry = context.supervisor.dry();
    loop {
        let ready = *dry.borrow_and_update() == 0 && !context.draining.is_cancelled();
        let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        reporter.set_service_status(EXECUTOR_SERVICE_NAME, status).await;
        tokio::select! {
            changed = dry.changed() => if changed.is_err() { return },
            () = context.draining.cancelled() => {
                reporter.set_service_status(EXECUTOR_SERVICE_NAME, ServingStatus::NotServing).await;
                return;
            }
        }
    }
}

/// Serves metrics as text over HTTP, one request a connection, until the task is dropped.
pub async fn serve_metrics(context: Arc<Context>, listener: TcpListener) {
    let mut incoming = TcpListenerStream::new(listener);
    while let Some(accepted) = incoming.next().await {
        let Ok(stream) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let answered = tokio::time::timeout(Duration::from_secs(5), answer_metrics(&context, stream)).await;
        if !matches!(answered, Ok(Ok(()))) {
            tracing::debug!("a metrics request was not answered");
        }
    }
}

async fn answer_metrics(context: &Context, mut stream: TcpStream) -> io::Result<()> {
    let mut request = [0; 4096];
    let mut length = 0;
    while !request[..length].windows(4).any(|end| end == b"\r\n\r\n") && length < request.len() {
        match stream.read(&mut request[length..]).await? {
            0 => return Ok(()),
            read => length += read,
        }
    }
    let (status, body) = if request[..length].starts_with(b"GET /metrics ") {
        ("200 OK", context.metrics.render(live_children(), context.admission.waiting()))
    } else {
        ("404 Not Found", String::new())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
