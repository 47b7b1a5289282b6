//! TLS: whom the client trusts, under which name, and as whom it shows itself.

mod support;

use std::time::Duration;

use codemode_client::grpc::{ConfigError, GrpcConfig, GrpcRuntime, Identity};
use codemode_client::{CodeRuntime, RunHost, RunRequest, RuntimeError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::ScriptedExecutor;
use tonic::transport::{Certificate, ServerTlsConfig};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new([]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate")
}

/// Certificate and key, both PEM, for that name.
fn issued(authority: &Authority, name: &str) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([name.to_owned()]).expect("a name");
    (params.signed_by(&key, authority).expect("a certificate").pem(), key.serialize_pem())
}

/// An executor that calls itself `executor.test`; with `clients`, it lets in only whom that authority knows.
fn executor(authority: &Authority, clients: Option<&Authority>) -> ScriptedExecutor {
    let (certificate, key) = issued(authority, "executor.test");
    let mut tls = ServerTlsConfig::new().identity(tonic::transport::Identity::from_pem(certificate, key));
    if let Some(clients) = clients {
        tls = tls.client_ca_root(Certificate::from_pem(clients.pem()));
    }
    ScriptedExecutor::with_tls(tls)
}

fn config(executor: &ScriptedExecutor) -> GrpcConfig {
    let mut config = GrpcConfig::new([&executor.address]).expect("an address");
    config.connect_timeout = Duration::from_secs(2);
    config.with_server_name("executor.test").expect("https")
}

async fn run(config: GrpcConfig) -> Result<String, RuntimeError> {
    let mut config = config;
    config.attempts_max = 1;
    let runtime = GrpcRuntime::connect_lazy(config)?;
    let outcome = runtime.run(RunRequest::new("return 7"), RunHost::default()).await?;
    Ok(outcome.value.map(|value| value.to_string()).unwrap_or_default())
}

#[tokio::test]
async fn an_executor_of_the_trusted_authority_is_used() {
    let ours = authority();
    let executor = executor(&ours, None);
    let config = config(&executor).with_ca(ours.pem()).expect("https");
    assert_eq!(run(config).await.expect("an outcome"), "7");
}

#[tokio::test]
async fn a_foreign_authority_or_name_is_refused() {
    let (ours, theirs) = (authority(), authority());
    let executor = executor(&ours, None);
    let foreign = config(&executor).with_ca(theirs.pem()).expect("https");
    let misnamed = config(&executor)
        .with_ca(ours.pem())
        .and_then(|config| config.with_server_name("other.test"))
        .expect("https");
    for (config, fragment) in
        [(foreign, "certificate"), (misnamed, "not valid for name"), (config(&executor), "certificate")]
    {
        let error = run(config).await.expect_err("no trust");
        assert!(matches!(error, RuntimeError::Unavailable { .. }), "{error:?}");
        assert!(error.to_string().contains(fragment), "{error}");
    }
    assert_eq!(executor.seen.attempts(), 0);
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_it_is_asked_for() {
    let (ours, clients) = (authority(), authority());
    let executor = executor(&ours, Some(&clients));
    let (certificate, key) = issued(&clients, "client.test");
    let identity = Identity { certificate_pem: certificate.into(), key_pem: key.into() };
    let config = || config(&executor).with_ca(ours.pem()).expect("https");
    assert_eq!(run(config().with_identity(identity).expect("https")).await.expect("an outcome"), "7");
    run(config()).await.expect_err("a nameless client is let in");
}

#[tokio::test]
async fn pem_that_is_none_is_named_before_anything_is_dialled() {
    let executor = executor(&authority(), None);
    let identity = Identity { certificate_pem: b"nonsense".to_vec(), key_pem: b"nonsense".to_vec() };
    let config = config(&executor).with_identity(identity).expect("https");
    let refused = GrpcRuntime::connect_lazy(config).expect_err("must be refused");
    assert!(matches!(refused, ConfigError::Tls { .. }), "{refused:?}");
}
