//! What a program can call: namespaces of named async functions, and how one call is carried out.

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::chain;
use crate::json::JsonText;
use crate::request::RunId;

/// A call's failure; the program's promise rejects with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BindingError {
    /// What the program sees as the error's message.
    pub message: String,
}

impl BindingError {
    /// A failure with that message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// What a function knows about the call that it serves.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The run that the call belongs to.
    pub run_id: RunId,
    /// The call's id within the run, from 1.
    pub call_id: u64,
    /// The namespace's global.
    pub global: Arc<str>,
    /// The function's name.
    pub name: Arc<str>,
    /// Cancelled when the run settles or its caller goes away; the function's future is dropped right after. Work that must
    /// end in order belongs into a task of the function's own that watches this token.
    pub cancellation: CancellationToken,
    /// When the caller's deadline for the whole run ends, if there is one.
    pub deadline: Option<Instant>,
}

/// An async function of a namespace: one JSON value in, one out.
type Function =
    Arc<dyn Fn(JsonText, CallContext) -> BoxFuture<'static, Result<JsonText, BindingError>> + Send + Sync>;

/// Class of the errors that failing calls of a namespace reject with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorClass {
    /// Name of the class, a global of the program.
    pub name: String,
    /// Property of the error that holds the function's name.
    pub member_name_property: String,
}

/// One global object of async functions. Names are checked by the executor, all faults at once.
#[derive(Clone)]
pub struct Namespace {
    pub(crate) global: String,
    pub(crate) functions: Vec<(String, Function)>,
    pub(crate) error_class: Option<ErrorClass>,
}

impl Namespace {
    /// A namespace without functions, called `global` in the program.
    #[must_use]
    pub fn new(global: impl Into<String>) -> Self {
        Self { global: global.into(), functions: Vec::new(), error_class: None }
    }

    /// Adds a function. Its calls run concurrently, and their results may come in any order.
    #[must_use]
    pub fn function<F, R>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(JsonText, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<JsonText, BindingError>> + Send + 'static,
    {
        self.functions.push((name.into(), Arc::new(move |args, call| function(args, call).boxed())));
        self
    }

    /// Adds a function of Rust types. Arguments that do not fit, and results without a JSON form, fail the call.
    #[must_use]
    pub fn typed<A, T, F, R>(self, name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        T: Serialize,
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, BindingError>> + Send + 'static,
    {
        let function = Arc::new(function);
        self.function(name, move |args, call| {
            let function = Arc::clone(&function);
            async move {
                let args = args.to::<A>().map_err(|error| BindingError::new(chain(&error)))?;
                let value = function(args, call).await?;
                JsonText::of(&value).map_err(|error| BindingError::new(chain(&error)))
            }
        })
    }

    /// Makes failing calls reject with errors of that class, `name` being a global of the program too, whose property
    /// `member_name_property` holds the function's name.
    #[must_use]
    pub fn with_error_class(
        mut self,
        name: impl Into<String>,
        member_name_property: impl Into<String>,
    ) -> Self {
        self.error_class =
            Some(ErrorClass { name: name.into(), member_name_property: member_name_property.into() });
        self
    }

    /// Name of the global.
    #[must_use]
    pub fn global(&self) -> &str {
        &self.global
    }

    /// Names of the functions, in the order of their registration.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|(name, _)| name.as_str())
    }

    /// The class of its errors, if it has one.
    #[must_use]
    pub fn error_class(&self) -> Option<&ErrorClass> {
        self.error_class.as_ref()
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Namespace")
            .field("global", &self.global)
            .field("functions", &self.function_names().collect::<Vec<_>>())
            .field("error_class", &self.error_class)
            .finish()
    }
}

/// The functions of one run, found by name.
pub(crate) struct BindingTable {
    functions: HashMap<String, HashMap<String, Function>>,
}

impl BindingTable {
    pub(crate) fn new(namespaces: &[Namespace]) -> Self {
        let functions = namespaces
            .iter()
            .map(|namespace| (namespace.global.clone(), namespace.functions.iter().cloned().collect()))
            .collect();
        Self { functions }
    }

    /// Carries out one call. Whatever goes wrong is the call's failure: an unknown name, a panic of the function.
    pub(crate) async fn call(&self, args: JsonText, call: CallContext) -> Result<JsonText, BindingError> {
        let full_name = format!("{}.{}", call.global, call.name);
        let found = self.functions.get(&*call.global).and_then(|functions| functions.get(&*call.name));
        let Some(function) = found else {
            return Err(BindingError::new(format!("unknown binding \"{full_name}\"")));
        };
        // The function's own code runs on both sides of the first await; a panic on either is this call's failure only.
        let run = AssertUnwindSafe(async { function(args, call).await }).catch_unwind();
        run.await.unwrap_or_else(|_| Err(BindingError::new(format!("binding \"{full_name}\" panicked"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(global: &str, name: &str) -> CallContext {
        CallContext {
            run_id: RunId::random(),
            call_id: 1,
            global: global.into(),
            name: name.into(),
            cancellation: CancellationToken::new(),
            deadline: None,
        }
    }

    fn table() -> BindingTable {
        BindingTable::new(&[Namespace::new("tools")
            .typed("add", |(a, b): (i64, i64), _| async move { Ok(a + b) })
            .function("__proto__", |args, _| async move { Ok(args) })
            .typed("panics", |(): (), _| async move { panic!("on purpose") as Result<(), _> })])
    }

    async fn check(name: &str, args: &str, wanted: Result<&str, &str>) {
        let args = JsonText::parse(args).expect("well-formed");
        let got = table().call(args, call("tools", name)).await;
        match wanted {
            Ok(value) => assert_eq!(got.expect("must succeed").as_str(), value),
            Err(fragment) => {
                let message = got.expect_err("must fail").message;
                assert!(message.contains(fragment), "`{message}` lacks `{fragment}`");
            }
        }
    }

    #[tokio::test]
    async fn calls_find_their_function_by_its_exact_name() {
        check("add", "[1,2]", Ok("3")).await;
        check("__proto__", "{\"x\":1e999}", Ok("{\"x\":1e999}")).await;
        check("Add", "[1,2]", Err("unknown binding \"tools.Add\"")).await;
        check("constructor", "{}", Err("unknown binding \"tools.constructor\"")).await;
    }

    #[tokio::test]
    async fn faults_of_a_function_are_failures_of_its_call() {
        check("add", "[1]", Err("invalid length 1")).await;
        check("panics", "null", Err("binding \"tools.panics\" panicked")).await;
    }
}
