//! The listener with TLS: whom it lets in, and what a caller sees of it. The real binary, real certificates.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use codemode_proto::executor_v1 as pb;
use common::{Executor, command, folder};
use pb::executor_client::ExecutorClient;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

const TOKEN: &str = "0123456789abcdef";

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Certificate and key, both PEM, for that name.
fn issued(authority: &Authority, name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

/// An executor on a network address of this machine, with all that such a listener wants.
fn executor(ours: &Authority, clients: &Authority) -> Executor {
    let folder = folder("");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (certificate, key) = issued(ours, "executor.test");
    for (name, text) in
        [("cert", certificate), ("key", key), ("clients", clients.pem()), ("token", TOKEN.to_owned())]
    {
        std::fs::write(path(name), text).unwrap();
    }
    let mut command = command(folder.path(), &["--listen", "127.0.0.1:0"]);
    command.args(["--tls-cert", &path("cert"), "--tls-key", &path("key")]);
    command.args(["--tls-client-ca", &path("clients"), "--auth-token-file", &path("token")]);
    Executor::from_command(command, folder)
}

async fn connect(executor: &Executor, tls: ClientTlsConfig) -> Result<Channel, tonic::transport::Error> {
    let address = executor.address.replace("http://", "https://");
    Endpoint::from_shared(address).unwrap().tls_config(tls.domain_name("executor.test"))?.connect().await
}

async fn describe(channel: Channel, token: Option<&str>) -> Result<pb::DescribeResponse, Status> {
    let mut request = Request::new(pb::DescribeRequest {});
    if let Some(token) = token {
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    ExecutorClient::new(channel).describe(request).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn certificates_on_both_sides_and_a_token() {
    let (ours, clients, strangers) = (authority(), authority(), authority());
    let executor = executor(&ours, &clients);
    let trusting = || ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ours.pem()));
    let as_client = |issuer: &Authority| {
        let (certificate, key) = issued(issuer, "caller.test");
        trusting().identity(Identity::from_pem(certificate, key))
    };

    let known = connect(&executor, as_client(&clients)).await.expect("a client that is known");
    assert_eq!(describe(known.clone(), Some(TOKEN)).await.expect("let in").contract_version, "1.0");
    for wrong in [None, Some("0123456789abcdeX")] {
        let refused = describe(known.clone(), wrong).await.expect_err("the token is asked for too");
        assert_eq!(refused.code(), Code::Unauthenticated);
    }

    // TLS 1.3 tells a client that it is not let in only when it says something.
    for tls in [trusting(), as_client(&strangers)] {
        if let Ok(channel) = connect(&executor, tls).await {
            let refused = describe(channel, Some(TOKEN)).await.expect_err("no certificate of ours");
            assert_ne!(refused.code(), Code::Ok);
        }
    }
    let foreign = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(strangers.pem()));
    connect(&executor, foreign).await.expect_err("the executor's certificate is checked as well");
    let plain = Endpoint::from_shared(executor.address.clone()).unwrap().connect().await;
    if let Ok(channel) = plain {
        describe(channel, Some(TOKEN)).await.expect_err("no plain text");
    }
    assert!(describe(known, Some(TOKEN)).await.is_ok(), "the others have harmed nothing");
}

#[test]
fn what_is_no_certificate_is_a_fault_of_the_configuration() {
    let folder = folder("");
    let file = folder.path().join("file").display().to_string();
    std::fs::write(&file, "this is no PEM").unwrap();
    let ended = command(folder.path(), &["--tls-cert", &file, "--tls-key", &file]).output().unwrap();
    assert_eq!(ended.status.code(), Some(64), "{ended:?}");
}
