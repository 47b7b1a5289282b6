//! Makes the connection to one executor: dialling with a deadline, TLS, and the credentials on every request.

use std::net::SocketAddr;
use std::time::Duration;

use codemode_proto::executor_v1::executor_client::ExecutorClient;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Uri};
use tonic::{Request, Status};

use super::config::{Address, GrpcConfig};

/// A message's bytes, either way: well above the executor's own `frame_bytes_max`, far above tonic's 4 MiB.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// How often a silent peer is asked whether it is there while runs are live, and how long it may take to say so. Together
/// they bound how long a run waits on a machine that vanished.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Receive windows: one large value fits without a round trip per 64 KiB, one slow run does not hold up the others.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// The generated client with credentials.
pub(super) type Client = ExecutorClient<InterceptedService<Channel, Authorization>>;

/// Adds the bearer token.
#[derive(Clone, Debug)]
pub(super) struct Authorization(Option<MetadataValue<Ascii>>);

impl Interceptor for Authorization {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

/// A client that dials when it is first used. `pinned` replaces the resolution of the address's host.
pub(super) fn client(
    config: &GrpcConfig,
    address: &Address,
    pinned: Option<SocketAddr>,
) -> Result<Client, tonic::transport::Error> {
    let channel = match address {
        Address::Unix(path) => unix_channel(config, path.clone()),
        Address::Net { uri, host, port, tls } => {
            let endpoint = tuned(Endpoint::from(uri.clone()), config);
            let endpoint = if *tls { endpoint.tls_config(tls_config(config, host))? } else { endpoint };
            net_channel(&endpoint, host.clone(), *port, pinned)
        }
    };
    Ok(ExecutorClient::with_interceptor(channel, Authorization(config.authorization.clone()))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX))
}

fn tuned(endpoint: Endpoint, config: &GrpcConfig) -> Endpoint {
    endpoint
        .connect_timeout(config.connect_timeout)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
}

fn tls_config(config: &GrpcConfig, host: &str) -> ClientTlsConfig {
    let tls = ClientTlsConfig::new().domain_name(config.server_name.as_deref().unwrap_or(host));
    let tls = match &config.ca_pem {
        Some(pem) => tls.ca_certificate(Certificate::from_pem(pem)),
        None => tls.with_native_roots(),
    };
    match &config.identity {
        Some(identity) => {
            tls.identity(tonic::transport::Identity::from_pem(&identity.certificate_pem, &identity.key_pem))
        }
        None => tls,
    }
}

// tonic's own connectors put the connect deadline around dialling only; a connector of ours is bounded with its TLS handshake.
fn net_channel(endpoint: &Endpoint, host: String, port: u16, pinned: Option<SocketAddr>) -> Channel {
    endpoint.connect_with_connector_lazy(tower::service_fn(move |_: Uri| {
        let host = host.clone();
        async move {
            let stream = match pinned {
                Some(address) => TcpStream::connect(address).await?,
                None => TcpStream::connect((host.as_str(), port)).await?,
            };
            stream.set_nodelay(true)?;
            Ok::<_, std::io::Error>(TokioIo::new(stream))
        }
    }))
}

fn unix_channel(config: &GrpcConfig, path: String) -> Channel {
    // The authority is never resolved: the connector ignores it.
    let endpoint = tuned(Endpoint::from_static("http://executor"), config);
    endpoint.connect_with_connector_lazy(tower::service_fn(move |_: Uri| {
        let path = path.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
    }))
}
