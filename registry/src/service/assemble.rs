//! What a model request is made of, as JSON that a model's service takes.

use codemode_client::JsonText;
use codemode_events::Json;
use codemode_proto::registry_v1 as proto;
use serde::Serialize;
use tonic::Status;

use crate::present::{Assembly, Listing};
use crate::service::context::Context;
use crate::service::convert;

#[derive(Serialize)]
struct WithInputSchema<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a JsonText,
}

#[derive(Serialize)]
struct Function<'a> {
    r#type: &'static str,
    function: &'a Listing,
}

/// Assembles, and logs the header if it is another than the last.
pub(super) async fn assemble(
    context: &Context,
    request: proto::AssembleRequest,
) -> Result<proto::AssembleResponse, Status> {
    let session = context.sessions.get(&request.session_id)?;
    let config = config(&request.config_json)?;
    if proto::ToolFormat::try_from(request.tool_format).is_err() {
        return Err(Status::invalid_argument("`tool_format` is one that this version does not know"));
    }
    let assembly = context.registry.assemble(session.scope()).await;
    let assembly = assembly.map_err(|error| Status::failed_precondition(error.to_string()))?;
    let assembly_id = session.keep(&assembly.surface);
    let system = assembly.system();
    let tools = tools(&assembly, request.tool_format())?;
    let tools_json = format!("[{}]", tools.iter().map(Json::get).collect::<Vec<_>>().join(","));
    let header = session.log.request_header(config, Some(system.clone()), Some(tools)).await;
    let header = header.map_err(|error| context.sessions.failed(&session, &error))?;
    let header_seq = match header {
        None => None,
        Some(appended) => {
            let durable = appended.durable().await;
            Some(durable.map_err(|error| context.sessions.failed(&session, &error.into()))?)
        }
    };
    let sections = assembly.sections.iter().map(|section| proto::Section {
        name: section.name.to_string(),
        order: section.order,
        text: section.text.to_string(),
    });
    Ok(proto::AssembleResponse {
        assembly_id,
        mode: convert::to_mode(assembly.surface.mode()).into(),
        tools_json: tools_json.into(),
        sections: sections.collect(),
        system,
        revision: assembly.surface.revision(),
        header_seq,
    })
}

fn config(json: &[u8]) -> Result<Json, Status> {
    let text = if json.is_empty() { "{}" } else { std::str::from_utf8(json).unwrap_or_default().trim() };
    if !text.starts_with('{') {
        return Err(Status::invalid_argument("`config_json` is no JSON object"));
    }
    Json::parse(text).map_err(|error| Status::invalid_argument(format!("`config_json` is no JSON: {error}")))
}

fn tools(assembly: &Assembly, format: proto::ToolFormat) -> Result<Vec<Json>, Status> {
    let tool = |listing: &Listing| match format {
        proto::ToolFormat::Unspecified | proto::ToolFormat::Plain => Json::of(listing),
        proto::ToolFormat::InputSchema => Json::of(&WithInputSchema {
            name: &listing.name,
            description: &listing.description,
            input_schema: listing.parameters.text(),
        }),
        proto::ToolFormat::Function => Json::of(&Function { r#type: "function", function: listing }),
    };
    let tools: Result<Vec<Json>, _> = assembly.tools.iter().map(tool).collect();
    tools.map_err(|error| Status::internal(format!("the tool list cannot be said in JSON: {error}")))
}
