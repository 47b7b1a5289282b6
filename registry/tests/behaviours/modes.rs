//! Presentation modes: behaviours 105 to 135.

use std::sync::Arc;

use crate::support::{Fixture, Odd, code, echo, text};
use async_trait::async_trait;
use codemode_registry::present::{
    Assembly, AssemblyListener, CODE_ONLY_SECTION, SDK_SECTION, Section, ToolOrder,
};
use codemode_registry::{HookError, Mode, Registry, RegistryError, Restriction, ScopeId, Settings};

fn names(assembly: &Assembly) -> Vec<&str> {
    assembly.tools.iter().map(|listing| &*listing.name).collect()
}

/// Whether the text declares a tool: as a member of the map of all tools' arguments.
fn declares(sdk: &str, tool: &str) -> bool {
    sdk.contains(&format!("\n  {tool}: "))
}

async fn fixture(mode: Mode) -> Fixture {
    let mut fixture = Fixture::new(mode).await;
    fixture.tools([echo("read"), echo("bash")]);
    fixture.scripts([]);
    fixture
}

async fn assembled(fixture: &Fixture, scope: ScopeId) -> Assembly {
    fixture.registry.assemble(scope).await.expect("an assembly")
}

#[tokio::test]
async fn native_lists_tools_and_nothing_of_code_mode_105() {
    let mut fixture = Fixture::new(Mode::Native).await;
    fixture.tools([echo("read"), echo("bash")]);
    let assembly = assembled(&fixture, ScopeId::ROOT).await;
    assert_eq!(names(&assembly), ["bash", "read"]);
    assert!(assembly.sections.is_empty());
    assert_eq!(assembly.system(), "");
}

#[tokio::test]
async fn code_lists_run_code_alone_and_declares_the_rest_106() {
    let assembly = assembled(&fixture(Mode::Code).await, ScopeId::ROOT).await;
    assert_eq!(names(&assembly), ["run_code"]);
    let sdk = assembly.section(SDK_SECTION).expect("an SDK");
    assert!(declares(sdk, "bash") && declares(sdk, "read"), "{sdk}");
    assert!(!declares(sdk, "run_code"), "{sdk}");
}

#[tokio::test]
async fn the_rule_precedes_guidance_and_sdk_107() {
    let mut fixture = fixture(Mode::Code).await;
    let guidance = Section::fixed("guidance", 100, "Use bash with care.");
    fixture.keep(fixture.registry.add_section(ScopeId::ROOT, guidance).expect("root"));
    let assembly = assembled(&fixture, ScopeId::ROOT).await;
    let order: Vec<&str> = assembly.sections.iter().map(|section| &*section.name).collect();
    assert_eq!(order, [CODE_ONLY_SECTION, "guidance", SDK_SECTION]);
    assert!(assembly.section(CODE_ONLY_SECTION).expect("there").contains("Only `run_code`"));
}

#[tokio::test]
async fn both_has_an_empty_rule_and_all_tools_108_112() {
    let assembly = assembled(&fixture(Mode::Both).await, ScopeId::ROOT).await;
    assert_eq!(assembly.section(CODE_ONLY_SECTION), Some(""));
    assert_eq!(names(&assembly), ["bash", "read", "run_code"]);
    assert!(assembly.section(SDK_SECTION).is_some_and(|text| declares(text, "bash")));
}

#[tokio::test]
async fn an_output_union_5000_deep_renders_109_183() {
    let mut fixture = fixture(Mode::Code).await;
    let deep = r#"{"oneOf":[{"type":"null"},"#.repeat(5_000) + r#"{"type":"string"}"# + &"]}".repeat(5_000);
    let mut definition = echo("deep");
    definition.output = codemode_registry::tool::OutputContract::new(crate::support::schema(&deep));
    definition.parameters =
        crate::support::schema(&format!(r#"{{"type":"object","properties":{{"a":{deep}}}}}"#));
    fixture.tools([definition]);
    let assembly = assembled(&fixture, ScopeId::ROOT).await;
    assert!(assembly.section(SDK_SECTION).is_some_and(|text| declares(text, "deep")));
    assert_eq!(code(&fixture.call("deep", r#"{"a":"x"}"#).await), "UNKNOWN_TOOL");
}

struct Dropper;

#[async_trait]
impl AssemblyListener for Dropper {
    async fn assemble(&self, mut assembly: Assembly) -> Result<Assembly, HookError> {
        assembly.tools.retain(|listing| &*listing.name != "run_code");
        assembly.sections.retain(|section| &*section.name != SDK_SECTION);
        Ok(assembly)
    }
}

#[tokio::test]
async fn what_a_listener_takes_out_stays_out_110() {
    for mode in [Mode::Code, Mode::Both] {
        let mut fixture = fixture(mode).await;
        fixture.keep(fixture.registry.add_assembly_listener(ScopeId::ROOT, Arc::new(Dropper)).expect("root"));
        let assembly = assembled(&fixture, ScopeId::ROOT).await;
        assert!(!names(&assembly).contains(&"run_code"));
        assert_eq!(assembly.section(SDK_SECTION), None);
    }
}

#[tokio::test]
async fn a_scoped_sdk_section_shadows_for_its_scope_111() {
    for mode in [Mode::Code, Mode::Both] {
        let fixture = fixture(mode).await;
        let scope = fixture.registry.open_scope(ScopeId::ROOT, None).expect("root");
        let section = Section::fixed(SDK_SECTION, 150, "my own");
        let _own = fixture.registry.add_section(scope.id(), section).expect("a scope");
        assert_eq!(assembled(&fixture, scope.id()).await.section(SDK_SECTION), Some("my own"));
        assert!(
            assembled(&fixture, ScopeId::ROOT)
                .await
                .section(SDK_SECTION)
                .is_some_and(|text| declares(text, "bash"))
        );
    }
}

#[tokio::test]
async fn filters_reach_sdk_and_bindings_and_not_the_transport_113_114() {
    for mode in [Mode::Code, Mode::Both] {
        for restriction in [Restriction::allow(["read"]), Restriction::deny(["bash"])] {
            let fixture = fixture(mode).await;
            let scope = fixture.registry.open_scope(ScopeId::ROOT, None).expect("root");
            let filter = fixture.registry.restrict(scope.id(), restriction).expect("a scope");
            let assembly = assembled(&fixture, scope.id()).await;
            assert!(names(&assembly).contains(&"run_code") && !names(&assembly).contains(&"bash"));
            let sdk = assembly.section(SDK_SECTION).expect("an SDK");
            assert!(declares(sdk, "read") && !declares(sdk, "bash"), "{sdk}");
            assert_eq!(assembly.surface.names().map(|name| &**name).collect::<Vec<_>>(), ["read"]);
            filter.dispose();
            assert!(
                assembled(&fixture, scope.id())
                    .await
                    .section(SDK_SECTION)
                    .is_some_and(|text| declares(text, "bash"))
            );
        }
    }
}

#[tokio::test]
async fn run_code_cannot_be_registered_shadowed_or_filtered_115_134() {
    for mode in [Mode::Native, Mode::Code, Mode::Both] {
        let fixture = fixture(mode).await;
        let scope = fixture.registry.open_scope(ScopeId::ROOT, None).expect("root");
        for scope in [ScopeId::ROOT, scope.id()] {
            let error = fixture.registry.register(scope, echo("run_code")).expect_err("reserved");
            assert!(
                error.to_string().contains("is reserved for the Code Mode presentation transport"),
                "{error}"
            );
        }
        for restriction in [Restriction::allow(["run_code"]), Restriction::deny(["run_code"])] {
            let error = fixture.registry.restrict(scope.id(), restriction).expect_err("reserved");
            assert!(
                error.to_string().contains("cannot name reserved Code Mode presentation transport"),
                "{error}"
            );
        }
        if mode.has_transport() {
            assert_eq!(text(&fixture.run_code().await), "(run_code completed with no output)");
        }
    }
}

#[tokio::test]
async fn tool_order_places_the_transport_116_123_234() {
    let order = |names: &[&str]| Some(ToolOrder::new(names.iter().copied()).expect("an order"));
    let fixture = fixture(Mode::Both).await;
    let set = |mode, tool_order| {
        fixture.registry.reconfigure(Settings { mode, tool_order, ..Settings::default() }).expect("settings");
    };
    set(Mode::Both, order(&["run_code", "<unlisted-tools>"]));
    assert_eq!(names(&assembled(&fixture, ScopeId::ROOT).await), ["run_code", "bash", "read"]);
    set(Mode::Both, order(&["read", "<unlisted-tools>", "bash"]));
    assert_eq!(names(&assembled(&fixture, ScopeId::ROOT).await), ["read", "run_code", "bash"]);
    set(Mode::Code, order(&["run_code", "<unlisted-tools>"]));
    assert_eq!(names(&assembled(&fixture, ScopeId::ROOT).await), ["run_code"]);
    set(Mode::Code, order(&["<unlisted-tools>", "bash"]));
    let error = fixture.registry.assemble(ScopeId::ROOT).await.expect_err("bash is not contributed");
    assert_eq!(error.to_string(), "toolOrder lists unregistered tool(s) bash; known tools: run_code");
}

#[tokio::test]
async fn bindings_are_one_namespace_without_run_code_117() {
    let mut fixture = Fixture::new(Mode::Both).await;
    fixture.tools([echo("read"), echo("__proto__"), echo("my-tool")]);
    let fake = fixture.scripts([]);
    fixture.run_code().await;
    let namespaces = fake.runs()[0].request.namespaces.clone();
    assert_eq!(namespaces.len(), 1);
    assert_eq!(namespaces[0].global(), "tools");
    assert_eq!(namespaces[0].function_names().collect::<Vec<_>>(), ["__proto__", "my-tool", "read"]);
    let class = namespaces[0].error_class().expect("an error class");
    assert_eq!((class.name.as_str(), class.member_name_property.as_str()), ("ToolCallError", "toolName"));
}

#[tokio::test]
async fn the_same_tools_give_the_same_bytes_118() {
    let first = assembled(&fixture(Mode::Both).await, ScopeId::ROOT).await;
    let mut other = Fixture::new(Mode::Both).await;
    other.tools([echo("bash"), echo("read")]);
    other.scripts([]);
    let second = assembled(&other, ScopeId::ROOT).await;
    assert_eq!(first.system(), second.system());
    assert_eq!(
        serde_json::to_string(&first.tools).expect("JSON"),
        serde_json::to_string(&second.tools).expect("JSON")
    );
    assert_eq!(assembled(&other, ScopeId::ROOT).await.system(), second.system());
}

#[tokio::test]
async fn without_runtime_every_assembly_but_native_is_refused_119_135() {
    let mut fixture = Fixture::new(Mode::Code).await;
    fixture.tools([echo("read")]);
    let error = fixture.registry.assemble(ScopeId::ROOT).await.expect_err("no runtime");
    assert_eq!(error.to_string(), "mode \"code\" requires a code runtime");
    fixture.registry.reconfigure(Settings::default()).expect("settings");
    let scope = fixture.registry.open_scope(ScopeId::ROOT, None).expect("root");
    let _mode = fixture.registry.present_as(scope.id(), Mode::Both).expect("a scope");
    let error = fixture.registry.assemble(scope.id()).await.expect_err("no runtime");
    assert_eq!(error.to_string(), "mode \"both\" requires a code runtime");
    assert_eq!(names(&assembled(&fixture, ScopeId::ROOT).await), ["read"]);
}

#[tokio::test]
async fn an_unknown_language_is_refused_120() {
    for mode in [Mode::Code, Mode::Both] {
        let mut fixture = Fixture::new(mode).await;
        fixture.runtime(Odd::speaking("ruby"));
        let error = fixture.registry.assemble(ScopeId::ROOT).await.expect_err("no renderer").to_string();
        assert!(error.contains("no SDK renderer registered") && error.contains("ruby"), "{error}");
        let error = fixture.registry.run_code_listing().expect_err("no flavor").for_schema();
        assert!(error.contains("no run_code schema flavor"), "{error}");
        assert!(error.contains("typescript") && error.contains("python"), "{error}");
    }
}

#[tokio::test]
async fn python_is_spoken_throughout_121() {
    for mode in [Mode::Code, Mode::Both] {
        let mut fixture = Fixture::new(mode).await;
        fixture.tools([echo("read")]);
        fixture.runtime(Odd::speaking("python"));
        let assembly = assembled(&fixture, ScopeId::ROOT).await;
        let listed = serde_json::to_string(&assembly.tools).expect("JSON");
        assert!(listed.contains("Python") && !listed.contains("TypeScript"), "{listed}");
        let system = assembly.system();
        assert!(system.contains("async def read") && !system.contains("TypeScript"), "{system}");
    }
}

#[tokio::test]
async fn without_runtime_the_definition_speaks_typescript_122() {
    let fixture = Fixture::new(Mode::Native).await;
    let listing = fixture.registry.run_code_listing().expect("a wording");
    assert!(listing.description.contains("TypeScript"));
    assert!(listing.description.contains("`code`") && listing.description.contains("`description`"));
}

#[tokio::test]
async fn a_mode_that_ends_takes_the_transport_with_it_124_132() {
    let fixture = fixture(Mode::Native).await;
    let scope = fixture.registry.open_scope(ScopeId::ROOT, None).expect("root");
    let mode = fixture.registry.present_as(scope.id(), Mode::Code).expect("a scope");
    assert_eq!(names(&assembled(&fixture, scope.id()).await), ["run_code"]);
    mode.dispose();
    let assembly = assembled(&fixture, scope.id()).await;
    assert_eq!(names(&assembly), ["bash", "read"]);
    assert!(assembly.sections.is_empty());
}

#[test]
fn settings_are_checked_at_once_125_230() {
    let error =
        Registry::new(Settings { max_parallel_sub_calls: 0, ..Settings::default() }).expect_err("no pool");
    assert_eq!(error.to_string(), "maxParallelSubCalls must be a positive integer");
    let error =
        Registry::new(Settings { max_parallel_tool_calls: 0, ..Settings::default() }).expect_err("no pool");
    assert_eq!(error.to_string(), "maxParallelToolCalls must be a positive integer");
    let settings = Settings::default();
    assert_eq!(
        (settings.max_parallel_sub_calls, settings.max_parallel_tool_calls, settings.mode),
        (10, 10, Mode::Native)
    );
}

#[tokio::test]
async fn a_direct_call_in_code_mode_is_refused_with_the_way_out_126_127() {
    let mut fixture = fixture(Mode::Code).await;
    fixture.pre(|_, _| panic!("no policy is asked"));
    let ran = crate::support::Journal::default();
    let seen = ran.clone();
    fixture.tools([crate::support::tool("write", crate::support::body_with(move |_| seen.note("ran")))]);
    let result = fixture.call("write", "{}").await;
    assert_eq!(code(&result), "UNKNOWN_TOOL");
    let message = text(&result);
    assert!(message.starts_with("Error: unknown tool \"write\": "), "{message}");
    assert!(message.contains("only `run_code` can be called directly"), "{message}");
    assert!(message.contains("return await tools.write({})"), "{message}");
    let abort = codemode_client::AbortSignal::new();
    abort.abort("late");
    let aborted = fixture.registry.execute(fixture.request("write", "{}").with_signal(abort)).await;
    assert_eq!(code(&aborted), "ABORTED_BEFORE_DISPATCH");
    assert!(ran.lines().is_empty());
}

#[tokio::test]
async fn one_scope_presents_code_in_a_native_deployment_128_129_130() {
    let fixture = fixture(Mode::Native).await;
    let registry = &fixture.registry;
    let parent = registry.open_scope(ScopeId::ROOT, None).expect("root");
    let child = registry.open_scope(parent.id(), None).expect("a scope");
    let sibling = registry.open_scope(ScopeId::ROOT, None).expect("root");
    let _mode = registry.present_as(parent.id(), Mode::Code).expect("a scope");
    let arguments = codemode_registry::tool::Arguments::parse(crate::support::json("{}")).expect("lossless");
    let _safe = registry.register(ScopeId::ROOT, crate::support::safe(echo("safe"))).expect("registered");
    for scope in [parent.id(), child.id()] {
        assert_eq!(names(&assembled(&fixture, scope).await), ["run_code"]);
        let agent = codemode_registry::Agent::new("a", scope);
        let denied = registry
            .execute(codemode_registry::CallRequest::new("c", "read", crate::support::json("{}")).by(agent))
            .await;
        assert_eq!(code(&denied), "UNKNOWN_TOOL");
        assert!(!registry.is_parallel(&registry.surface(scope), "safe", &arguments, false));
    }
    for scope in [sibling.id(), ScopeId::ROOT] {
        assert_eq!(names(&assembled(&fixture, scope).await), ["bash", "read", "safe"]);
        let agent = codemode_registry::Agent::new("a", scope);
        let request = |name: &str| {
            codemode_registry::CallRequest::new("c", name, crate::support::json("{}")).by(agent.clone())
        };
        assert!(!registry.execute(request("read")).await.is_error());
        let unknown = registry.execute(request("run_code")).await;
        assert_eq!(text(&unknown), "Error: unknown tool \"run_code\"");
        assert!(registry.is_parallel(&registry.surface(scope), "safe", &arguments, false));
    }
}

#[tokio::test]
async fn a_scope_presents_native_in_a_code_deployment_131() {
    let fixture = fixture(Mode::Code).await;
    let scope = fixture.registry.open_scope(ScopeId::ROOT, None).expect("root");
    let _mode = fixture.registry.present_as(scope.id(), Mode::Native).expect("a scope");
    let assembly = assembled(&fixture, scope.id()).await;
    assert_eq!(names(&assembly), ["bash", "read"]);
    assert_eq!(assembly.section(SDK_SECTION).unwrap_or_default(), "");
}

#[tokio::test]
async fn a_scope_declares_one_mode_and_the_deployment_none_133() {
    let fixture = fixture(Mode::Native).await;
    let scope = fixture.registry.open_scope(ScopeId::ROOT, None).expect("root");
    let _mode = fixture.registry.present_as(scope.id(), Mode::Code).expect("a scope");
    let error = fixture.registry.present_as(scope.id(), Mode::Both).expect_err("has one");
    assert!(error.to_string().contains("conflicts with \"code\" already declared"), "{error}");
    let error = fixture.registry.present_as(ScopeId::ROOT, Mode::Code).expect_err("unscoped");
    assert_eq!(error, RegistryError::RequiresScope { what: "presentAs" });
    assert!(error.to_string().contains("requires a scoped context"), "{error}");
}

/// Mode and policy of a call are those of the assembly that the model answered.
#[tokio::test]
async fn a_change_of_settings_takes_effect_with_the_next_assembly() {
    let fixture = fixture(Mode::Native).await;
    let before = assembled(&fixture, ScopeId::ROOT).await;
    fixture.registry.reconfigure(Settings { mode: Mode::Code, ..Settings::default() }).expect("settings");
    let with = |surface| fixture.request("read", "{}").with_surface(surface);
    assert!(!fixture.registry.execute(with(before.surface)).await.is_error());
    let after = assembled(&fixture, ScopeId::ROOT).await;
    assert_eq!(names(&after), ["run_code"]);
    assert_eq!(code(&fixture.registry.execute(with(after.surface)).await), "UNKNOWN_TOOL");
}
