//! The definition of a tool: all that its author says of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::hook::HookError;
use crate::json::Json;
use crate::pipeline::Call;
use crate::schema::{Schema, SchemaFault};
use crate::tool::{Arguments, CallResult, Content, OutputContract, ToolBody};

/// Bytes of a tool's name.
pub const DEFINITION_NAME_BYTES_MAX: usize = 512;

/// Why a definition cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionFault {
    /// The name is empty or too long.
    #[error("tool name has {bytes} bytes; allowed are 1 to {DEFINITION_NAME_BYTES_MAX}")]
    Name {
        /// Its length.
        bytes: usize,
    },
    /// The timeout is zero.
    #[error("tool `{tool}`: timeout must be positive")]
    Timeout {
        /// The tool.
        tool: String,
    },
    /// A schema is beyond what authors may write.
    #[error("tool `{tool}`: {fault}")]
    Schema {
        /// The tool.
        tool: String,
        /// All that is wrong with it.
        #[source]
        fault: SchemaFault,
    },
}

/// Whether calls of a tool may overlap with others.
#[derive(Clone, Default)]
pub enum Concurrency {
    /// Never. What does not say otherwise runs alone.
    #[default]
    Exclusive,
    /// Always.
    Safe,
    /// Where the function says `true` of the arguments. A panic is a no.
    When(Arc<dyn Fn(&Arguments) -> bool + Send + Sync>),
}

/// Who checks the arguments of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArgumentCheck {
    /// The registry, against the parameter schema.
    #[default]
    Declared,
    /// The body: the definition came from elsewhere, e.g. an MCP server.
    Raw,
}

impl fmt::Debug for Concurrency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Exclusive => "Exclusive",
            Self::Safe => "Safe",
            Self::When(_) => "When",
        })
    }
}

/// Has the last word on the content of each result of a tool.
#[async_trait]
pub trait Finalizer: Send + Sync {
    /// Replaces the content, or leaves it (`None`). Called once for each call, whatever it came to.
    ///
    /// # Errors
    /// A failure becomes the call's own.
    async fn finalize(&self, call: &Call, result: &CallResult) -> Result<Option<Vec<Content>>, HookError>;
}

/// How a call is shown to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCard {
    /// What kind of work: `execute`, `read`.
    pub kind: String,
    /// One line.
    pub title: String,
    /// The input as a person would want to read it.
    pub raw_input: String,
}

/// Makes the card of a call from its arguments. Pure.
pub type Presenter = Arc<dyn Fn(&Arguments) -> Option<CallCard> + Send + Sync>;

/// A tool. Callbacks never appear in what a model is shown.
#[derive(Clone)]
pub struct ToolDefinition {
    /// Its name: any text that is not empty.
    pub name: Arc<str>,
    /// What it does, for the model.
    pub description: Arc<str>,
    /// What arguments there are.
    pub parameters: Schema,
    /// Who checks them.
    pub argument_check: ArgumentCheck,
    /// What it promises of its value.
    pub output: OutputContract,
    /// What carries out its calls.
    pub body: Arc<dyn ToolBody>,
    /// Whether they may overlap.
    pub concurrency: Concurrency,
    /// How long one may take.
    pub timeout: Option<Duration>,
    /// Has the last word on content.
    pub finalizer: Option<Arc<dyn Finalizer>>,
    /// Makes cards.
    pub presenter: Option<Presenter>,
}

impl ToolDefinition {
    /// A tool that runs alone, without timeout, whose arguments the registry checks.
    #[must_use]
    pub fn new(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        parameters: Schema,
        output: OutputContract,
        body: Arc<dyn ToolBody>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
            argument_check: ArgumentCheck::default(),
            output,
            body,
            concurrency: Concurrency::default(),
            timeout: None,
            finalizer: None,
            presenter: None,
        }
    }

    /// Sets whether calls may overlap.
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Sets how long a call may take.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets who has the last word on content.
    #[must_use]
    pub fn with_finalizer(mut self, finalizer: Arc<dyn Finalizer>) -> Self {
        self.finalizer = Some(finalizer);
        self
    }

    /// Sets who makes cards.
    #[must_use]
    pub fn with_presenter(mut self, presenter: Presenter) -> Self {
        self.presenter = Some(presenter);
        self
    }

    /// Leaves the check of arguments to the body.
    #[must_use]
    pub const fn raw(mut self) -> Self {
        self.argument_check = ArgumentCheck::Raw;
        self
    }

    /// Checks what can be checked before anything is registered.
    pub(crate) fn check(&self) -> Result<(), DefinitionFault> {
        let bytes = self.name.len();
        if bytes == 0 || bytes > DEFINITION_NAME_BYTES_MAX {
            return Err(DefinitionFault::Name { bytes });
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(DefinitionFault::Timeout { tool: self.name.to_string() });
        }
        Ok(())
    }

    /// Schemas that nothing will be validated against, each with the reason.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let schemas = [("parameters", &self.parameters), ("output", &self.output.schema)];
        let warning = |(which, schema): (&str, &Schema)| {
            schema.warning().map(|warning| format!("{which} schema of `{}`: {warning}", self.name))
        };
        schemas.into_iter().filter_map(warning).collect()
    }

    /// Whether a call with these arguments may overlap with others. Whatever is not a plain yes is a no.
    pub(crate) fn is_parallel(&self, arguments: &Arguments) -> bool {
        let valid = |arguments: &Arguments| {
            self.argument_check == ArgumentCheck::Raw
                || self.parameters.violations_of_arguments(arguments.value()).is_empty()
        };
        match &self.concurrency {
            Concurrency::Exclusive => false,
            Concurrency::Safe => valid(arguments),
            Concurrency::When(classify) => {
                valid(arguments)
                    && std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| classify(arguments)))
                        .unwrap_or(false)
            }
        }
    }

    /// Renders a value, its panics being faults.
    pub(crate) fn render(&self, arguments: &Arguments, value: &Json) -> Result<Vec<Content>, String> {
        crate::hook::guarded(|| (self.output.render)(arguments, value).map_err(|fault| fault.0))
    }
}

impl fmt::Debug for ToolDefinition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ToolDefinition").field("name", &self.name).finish_non_exhaustive()
    }
}
