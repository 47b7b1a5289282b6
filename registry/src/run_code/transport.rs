//! The definition of `run_code`.

use std::sync::Arc;

use async_trait::async_trait;
use codemode_client::JsonText;
use codemode_sdk::Language;
use codemode_sdk::flavor::flavor;

use crate::error::RUN_CODE;
use crate::json::Json;
use crate::registry::WeakRegistry;
use crate::run_code::{output, run};
use crate::schema::Schema;
use crate::store::Tool;
use crate::tool::{Arguments, BodyError, CallCard, CallContext, OutputContract, ToolBody, ToolDefinition};

/// The tool, speaking of the language; of TypeScript where it is not known, since no assembly shows it then.
pub(crate) fn transport(language: Option<Language>, registry: WeakRegistry) -> Arc<Tool> {
    let flavor = flavor(language.unwrap_or(Language::TypeScript));
    let parameters = schema(&flavor.parameters().to_string());
    let output = OutputContract::new(schema(output::SCHEMA)).rendered_by(|_, value| output::render(value));
    let definition =
        ToolDefinition::new(RUN_CODE, flavor.tool, parameters, output, Arc::new(RunCode { registry }))
            .with_presenter(Arc::new(card));
    Arc::new(Tool::new(0, definition))
}

fn schema(text: &str) -> Schema {
    Schema::parse(text).unwrap_or_else(|_| Schema::anything())
}

fn card(arguments: &Arguments) -> Option<CallCard> {
    let text = |name| arguments.value().get(name).and_then(Json::as_str).map(str::to_owned);
    Some(CallCard { kind: "execute".to_owned(), title: text("description")?, raw_input: text("code")? })
}

#[derive(Debug)]
struct RunCode {
    registry: WeakRegistry,
}

#[async_trait]
impl ToolBody for RunCode {
    async fn call(&self, arguments: Arguments, context: CallContext) -> Result<JsonText, BodyError> {
        let text = |name| match arguments.value().get(name) {
            Some(Json::String(text)) => text.to_text_lossy().into_owned(),
            _ => String::new(),
        };
        if text("description").trim().is_empty() {
            return Err(BodyError::new("invalid description: say what the program does in 5-10 words"));
        }
        let registry = self.registry.upgrade().ok_or_else(|| BodyError::new("the registry is gone"))?;
        let Some((_, runtime)) = registry.snapshot().runtime.clone() else {
            return Err(BodyError::new(format!("{RUN_CODE} requires a code runtime")));
        };
        run::run(registry, runtime, text("code"), context).await
    }
}
