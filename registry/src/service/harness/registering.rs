//! What a harness registers, checked and put into the registry; all of it goes when the stream does.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use codemode_proto::registry_v1 as proto;
use proto::harness_message::Message as Sent;
use proto::registry_message::Message;
use proto::{HookDeadline, HookKind, RegistrationKind};

use crate::json::Json;
use crate::policy::{ArgumentPattern, Glob};
use crate::present::Section;
use crate::schema::Schema;
use crate::service::approvals::Offer;
use crate::service::context::Context;
use crate::service::harness::Harness;
use crate::service::harness::remote::{RemoteBody, RemoteHook};
use crate::service::status;
use crate::store::{Registration, ScopeId};
use crate::tool::{Arguments, Concurrency, OutputContract, ToolDefinition};

const NAME_BYTES_MAX: usize = 256;
const GLOBS_MAX: usize = 1_000;
const PATTERNS_MAX: usize = 64;
const HOOK_DEADLINE_MS: u64 = 5_000;
const HOOK_DEADLINE_MS_MAX: u64 = 3_600_000;
const APPROVAL_DEADLINE_MS: u64 = 600_000;
const APPROVAL_DEADLINE_MS_MAX: u64 = 86_400_000;
const TIMEOUT_MS_MAX: u64 = i32::MAX as u64;

/// What keeps a registration; dropping it takes it back.
#[derive(Debug)]
enum Held {
    Registered { _registration: Registration },
    Offered { _offer: Offer },
}

/// All that one stream has registered.
#[derive(Debug)]
pub(super) struct Registrations {
    context: Arc<Context>,
    harness: Arc<Harness>,
    scope: ScopeId,
    session: Option<String>,
    held: HashMap<(RegistrationKind, String), Held>,
}

impl Registrations {
    pub(super) fn new(
        context: Arc<Context>,
        harness: Arc<Harness>,
        scope: ScopeId,
        session: Option<String>,
    ) -> Self {
        Self { context, harness, scope, session, held: HashMap::new() }
    }

    /// Takes one registration or removal, and gives the reply to it.
    pub(super) fn take(&mut self, message: Sent) -> Message {
        let (kind, name) = subject(&message);
        let done = match message {
            Sent::Unregister(_) => match self.held.remove(&(kind, name.clone())) {
                Some(_) => return acknowledged(kind, name, Vec::new(), true),
                None => Err(format!("this stream has no such {}", word(kind))),
            },
            registration => self.add(kind, &name, registration),
        };
        match done {
            Ok(warnings) => acknowledged(kind, name, warnings, false),
            Err(reason) => Message::Refused(proto::Refused { kind: kind.into(), name, reason }),
        }
    }

    fn add(&mut self, kind: RegistrationKind, name: &str, message: Sent) -> Result<Vec<String>, String> {
        let key = (kind, name.to_owned());
        if self.held.contains_key(&key) {
            return Err(format!("this stream has registered such a {} already", word(kind)));
        }
        let registrations_max = self.context.limits.registrations_max;
        if self.held.len() >= registrations_max {
            return Err(format!(
                "this stream has {registrations_max} registrations, which is all there may be"
            ));
        }
        let (registry, scope) = (&self.context.registry, self.scope);
        let text = |error: crate::RegistryError| error.to_string();
        let registration = match message {
            Sent::RegisterTool(tool) => {
                registry.register(scope, self.definition(tool)?).map_err(|error| with_causes(&error))?
            }
            Sent::RegisterSection(section) => {
                name_fault(name)?;
                let section = Section::fixed(section.name, section.order, section.text);
                registry.add_section(scope, section).map_err(text)?
            }
            Sent::RegisterHook(hook) => self.add_hook(hook)?,
            Sent::OfferApprovals(offer) => {
                let deadline = within(offer.deadline_ms, APPROVAL_DEADLINE_MS, APPROVAL_DEADLINE_MS_MAX)?;
                let offer =
                    self.context.approvals.offer(Arc::clone(&self.harness), self.session.clone(), deadline);
                self.held.insert(key, Held::Offered { _offer: offer });
                return Ok(Vec::new());
            }
            _ => return Err("this is no registration".to_owned()),
        };
        let warnings = registration.warnings().to_vec();
        self.held.insert(key, Held::Registered { _registration: registration });
        Ok(warnings)
    }

    fn add_hook(&self, hook: proto::RegisterHook) -> Result<Registration, String> {
        name_fault(&hook.name)?;
        if hook.tools.len() > GLOBS_MAX {
            return Err(format!("`tools` has {} entries; {GLOBS_MAX} are allowed", hook.tools.len()));
        }
        let kind = hook.kind();
        let deadline = within(hook.deadline_ms, HOOK_DEADLINE_MS, HOOK_DEADLINE_MS_MAX)?;
        let denies = match hook.on_deadline() {
            HookDeadline::Unspecified => matches!(kind, HookKind::PreExecute | HookKind::Guard),
            HookDeadline::Deny if kind == HookKind::DispatchLog => {
                return Err("a hook of `DISPATCH_LOG` cannot deny".to_owned());
            }
            HookDeadline::Deny => true,
            HookDeadline::Keep => false,
        };
        let tools = hook.tools.into_iter().map(Glob::new).collect();
        let remote = Arc::new(RemoteHook {
            name: hook.name,
            harness: Arc::clone(&self.harness),
            tools,
            deadline,
            denies,
        });
        let (registry, scope) = (&self.context.registry, self.scope);
        let added = match kind {
            HookKind::Unspecified => return Err("`kind` is not said".to_owned()),
            HookKind::PreExecute => registry.add_pre_execute(scope, remote),
            HookKind::Guard => registry.add_guard(scope, remote),
            HookKind::PostExecute => registry.add_post_execute(scope, remote),
            HookKind::DispatchLog => registry.add_dispatch_log(scope, remote),
        };
        added.map_err(|error| error.to_string())
    }

    fn definition(&self, tool: proto::RegisterTool) -> Result<ToolDefinition, String> {
        let mut faults = Vec::new();
        let mut noted = |what: &str, fault: String| faults.push(format!("`{what}` {fault}"));
        let concurrency = concurrency(&tool).unwrap_or_else(|fault| {
            noted("safe_when", fault);
            Concurrency::Exclusive
        });
        let parameters = match tool.parameters_json.is_empty() {
            true => schema(br#"{"type":"object"}"#),
            false => schema(&tool.parameters_json).and_then(of_an_object),
        };
        let output =
            if tool.output_json.is_empty() { Ok(Schema::anything()) } else { schema(&tool.output_json) };
        if let Err(fault) = &parameters {
            noted("parameters_json", fault.clone());
        }
        if let Err(fault) = &output {
            noted("output_json", fault.clone());
        }
        if let Some(ms) = tool.timeout_ms.filter(|ms| !(1..=TIMEOUT_MS_MAX).contains(ms)) {
            noted("timeout_ms", format!("is {ms}; it must be from 1 to {TIMEOUT_MS_MAX}"));
        }
        let (Ok(parameters), Ok(output), true) = (parameters, output, faults.is_empty()) else {
            return Err(status::in_one(&faults));
        };
        let body = Arc::new(RemoteBody { harness: Arc::clone(&self.harness) });
        let mut definition =
            ToolDefinition::new(tool.name, tool.description, parameters, OutputContract::new(output), body)
                .with_concurrency(concurrency);
        if let Some(ms) = tool.timeout_ms {
            definition = definition.with_timeout(Duration::from_millis(ms));
        }
        Ok(if tool.raw { definition.raw() } else { definition })
    }
}

fn concurrency(tool: &proto::RegisterTool) -> Result<Concurrency, String> {
    let patterns = &tool.safe_when;
    let wanted = tool.concurrency();
    if (wanted == proto::Concurrency::When) == patterns.is_empty() {
        return Err("goes with `CONCURRENCY_WHEN`".to_owned());
    }
    if patterns.len() > PATTERNS_MAX {
        return Err(format!("has {} patterns; {PATTERNS_MAX} are allowed", patterns.len()));
    }
    Ok(match wanted {
        proto::Concurrency::Unspecified | proto::Concurrency::Exclusive => Concurrency::Exclusive,
        proto::Concurrency::Safe => Concurrency::Safe,
        proto::Concurrency::When => {
            let pattern = |pattern: &proto::ArgumentPattern| ArgumentPattern {
                pointer: pattern.pointer.clone(),
                matches: Glob::new(pattern.matches.as_str()),
            };
            let patterns: Vec<ArgumentPattern> = patterns.iter().map(pattern).collect();
            Concurrency::When(Arc::new(move |arguments: &Arguments| {
                patterns.iter().all(|pattern| pattern.fits(arguments.value()))
            }))
        }
    })
}

fn schema(json: &[u8]) -> Result<Schema, String> {
    let text = std::str::from_utf8(json).map_err(|_| "is not UTF-8".to_owned())?;
    Schema::parse(text).map_err(|lossy| format!("is no lossless JSON: {lossy}"))
}

/// Arguments are an object, whatever else is said of them.
fn of_an_object(schema: Schema) -> Result<Schema, String> {
    let Json::Object(root) = schema.tree() else {
        return Err("must be a schema object".to_owned());
    };
    match root.get("type") {
        Some(Json::String(named)) if named.to_text_lossy() != "object" => {
            Err(format!("must be an object's, not of type `{}`", named.to_text_lossy()))
        }
        _ => Ok(schema),
    }
}

fn name_fault(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(format!("`name` has {} bytes; it must have from 1 to {NAME_BYTES_MAX}", name.len()));
    }
    Ok(())
}

fn within(given_ms: u64, default_ms: u64, ms_max: u64) -> Result<Duration, String> {
    match given_ms {
        0 => Ok(Duration::from_millis(default_ms)),
        ms if ms <= ms_max => Ok(Duration::from_millis(ms)),
        ms => Err(format!("`deadline_ms` is {ms}; it must be from 1 to {ms_max}")),
    }
}

fn subject(message: &Sent) -> (RegistrationKind, String) {
    match message {
        Sent::RegisterTool(tool) => (RegistrationKind::Tool, tool.name.clone()),
        Sent::RegisterSection(section) => (RegistrationKind::Section, section.name.clone()),
        Sent::RegisterHook(hook) => (RegistrationKind::Hook, hook.name.clone()),
        Sent::OfferApprovals(_) => (RegistrationKind::Approvals, String::new()),
        Sent::Unregister(gone) => (gone.kind(), gone.name.clone()),
        _ => (RegistrationKind::Unspecified, String::new()),
    }
}

const fn word(kind: RegistrationKind) -> &'static str {
    match kind {
        RegistrationKind::Unspecified => "registration",
        RegistrationKind::Tool => "tool",
        RegistrationKind::Section => "section",
        RegistrationKind::Hook => "hook",
        RegistrationKind::Approvals => "offer",
    }
}

fn acknowledged(kind: RegistrationKind, name: String, warnings: Vec<String>, removed: bool) -> Message {
    Message::Acknowledged(proto::Acknowledged { kind: kind.into(), name, warnings, removed })
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        if !text.ends_with(&cause.to_string()) {
            text.push_str(&format!(": {cause}"));
        }
        next = cause.source();
    }
    text
}
