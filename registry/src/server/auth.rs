//! The bearer token, as a tower layer in front of every service but health checks.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::Either;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::header::AUTHORIZATION;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

use crate::config::Token;

/// How paths begin that need no token: what an orchestrator asks has no secrets, and it has no token.
const OPEN_PREFIX: &str = "/grpc.health.v1.Health/";

/// Asks for a token, if there is one.
#[derive(Clone, Debug)]
pub struct AuthLayer {
    token: Option<Arc<Token>>,
}

impl AuthLayer {
    /// A layer that lets through who shows the token; everyone, if it is `None`.
    #[must_use]
    pub fn new(token: Option<Token>) -> Self {
        Self { token: token.map(Arc::new) }
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = Auth<S>;

    fn layer(&self, inner: S) -> Auth<S> {
        Auth { inner, token: self.token.clone() }
    }
}

/// A service behind the token.
#[derive(Clone, Debug)]
pub struct Auth<S> {
    inner: S,
    token: Option<Arc<Token>>,
}

impl<S, B> Service<Request<B>> for Auth<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<S::Response, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if self.token.as_ref().is_none_or(|token| admits(token, &request)) {
            return Either::Left(self.inner.call(request));
        }
        let refused = Status::unauthenticated("a valid bearer token is needed");
        Either::Right(ready(Ok(refused.into_http())))
    }
}

fn admits<B>(token: &Token, request: &Request<B>) -> bool {
    if request.uri().path().starts_with(OPEN_PREFIX) {
        return true;
    }
    let shown = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let shown = shown.and_then(|value| {
        let (scheme, rest) = value.split_at_checked(b"bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(rest)
    });
    shown.is_some_and(|shown| token.matches(shown.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_admitted() {
        let token = Token::new("0123456789abcdef");
        let check = |path: &str, header: Option<&str>| {
            let mut request = Request::builder().uri(path);
            if let Some(header) = header {
                request = request.header(AUTHORIZATION, header);
            }
            admits(&token, &request.body(()).expect("a request"))
        };
        let call = "/codemode.registry.v1.Registry/Call";
        assert!(check(call, Some("Bearer 0123456789abcdef")));
        assert!(check(call, Some("bearer 0123456789abcdef ")));
        assert!(!check(call, Some("0123456789abcdef")));
        assert!(!check(call, Some("Bearer 0123456789abcdeX")));
        assert!(!check(call, Some("Bearer ")));
        assert!(!check(call, Some("é")));
        assert!(!check(call, None));
        assert!(!check("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", None));
        assert!(check("/grpc.health.v1.Health/Check", None));
        assert!(!check("/x/grpc.health.v1.Health/Check", None));
    }
}
