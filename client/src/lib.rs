//! The seam between a host and whatever runs its programs.
//!
//! A host builds a [`RunRequest`] (a program and the [`Namespace`]s it may call), hands it to a [`CodeRuntime`] and gets an
//! [`Outcome`]. [`grpc::GrpcRuntime`] is the implementation that talks to executors; [`fake::FakeRuntime`] is a scripted
//! one for tests of hosts. With the feature `local`, `local` starts an executor of the host's own. Start reading at
//! [`CodeRuntime`].
//!
//! Two rules hold for every implementation:
//!
//! - A program's failure, of whatever kind, is a value: [`Outcome::failure`]. A [`RuntimeError`] means misuse of the seam or
//!   a service that could not be reached.
//! - A run that has started is never replayed: the program may have acted. [`RuntimeError::may_have_acted`] says which
//!   errors leave that open.
//!
//! JSON values are [`JsonText`]: text, checked once, never turned into a tree on the way.
//!
//! ```no_run
//! use codemode_client::{grpc::{GrpcConfig, GrpcRuntime}, CodeRuntime, Namespace, RunHost, RunRequest};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = GrpcRuntime::connect(GrpcConfig::new(["unix:/run/codemode/executor.sock"])?).await?;
//! let tools = Namespace::new("tools")
//!     .typed("add", |(a, b): (f64, f64), _call| async move { Ok(a + b) });
//! let request = RunRequest::new("return await tools.add([1, 2])").with_namespace(tools);
//! let outcome = runtime.run(request, RunHost::default()).await?;
//! assert_eq!(outcome.value.map(|value| value.to_string()).as_deref(), Some("3.0"));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod abort;
pub mod binding;
pub mod description;
pub mod error;
pub mod event;
pub mod fake;
pub mod grpc;
pub mod json;
#[cfg(feature = "local")]
pub mod local;
pub mod outcome;
pub mod request;
pub mod runtime;

pub use abort::AbortSignal;
pub use binding::{BindingError, CallContext, ErrorClass, Namespace};
pub use description::{Description, Engine, Layer, Limits};
pub use error::RuntimeError;
pub use event::{RunEvent, RunObserver};
pub use json::{JsonError, JsonText};
pub use outcome::{Failure, FailureKind, Outcome, Phases, Position, Usage};
pub use request::{Budgets, RunId, RunRequest};
pub use runtime::{CodeRuntime, RunHost};

/// The README's examples, compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
