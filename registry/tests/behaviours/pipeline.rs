//! The stages of a call: behaviours 181 to 196 and 202 to 206.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Fixture, Journal, Latch, code, echo, failing, json, safe, text, tool};
use async_trait::async_trait;
use codemode_client::{AbortSignal, JsonText};
use codemode_registry::pipeline::{
    ApprovalOutcome, ApprovalRequest, ApprovalService, AroundRequest, AroundService, Decision, PostDecision,
    PostVerdict,
};
use codemode_registry::policy::Policy;
use codemode_registry::schema::Schema;
use codemode_registry::tool::{
    Arguments, BodyError, CallContext, Concurrency, Content, ContextMessage, Finalizer, OutputContract,
    RenderFault, body_fn,
};
use codemode_registry::{CallResult, HookError, Mode, ScopeId, Settings, Signal};
use tower::ServiceExt;

async fn fixture() -> Fixture {
    let mut fixture = Fixture::new(Mode::Native).await;
    fixture.tools([echo("echo"), failing("fails", "no")]);
    fixture
}

fn context(text: &str) -> ContextMessage {
    ContextMessage::from_plugin(text, vec![])
}

fn sources(result: &CallResult) -> Vec<&str> {
    result.contexts.iter().map(|context| context.source.plugin.as_str()).collect()
}

#[tokio::test]
async fn only_a_plain_yes_is_parallel_181_182() {
    let mut fixture = fixture().await;
    let strict = |name: &str, concurrency| {
        let mut definition = echo(name).with_concurrency(concurrency);
        definition.parameters =
            crate::support::schema(r#"{"type":"object","properties":{"ok":{"type":"boolean"}}}"#);
        definition
    };
    let ok = |arguments: &Arguments| arguments.value().get("ok").is_some_and(|ok| ok.to_string() == "true");
    fixture.tools([
        strict("safe", Concurrency::Safe),
        strict("sometimes", Concurrency::When(Arc::new(ok))),
        strict("panics", Concurrency::When(Arc::new(|_| panic!("on purpose")))),
        strict("raw", Concurrency::When(Arc::new(ok))).raw(),
    ]);
    let surface = fixture.registry.surface(ScopeId::ROOT);
    let parallel = |name: &str, arguments: &str| {
        let arguments = Arguments::parse(json(arguments)).expect("lossless");
        fixture.registry.is_parallel(&surface, name, &arguments, false)
    };
    assert!(
        parallel("safe", "{}")
            && parallel("sometimes", r#"{"ok":true}"#)
            && parallel("raw", r#"{"ok":true}"#)
    );
    for (name, arguments) in [
        ("echo", "{}"),
        ("sometimes", "{}"),
        ("panics", "{}"),
        ("safe", r#"{"ok":"yes"}"#),
        ("safe", "1"),
        ("unknown", "{}"),
    ] {
        assert!(!parallel(name, arguments), "{name} {arguments}");
    }
    let listed = serde_json::to_value(&fixture.registry.assemble(ScopeId::ROOT).await.expect("native").tools)
        .expect("JSON");
    for listing in listed.as_array().expect("a list") {
        let keys: Vec<_> = listing.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["name", "description", "parameters"]);
    }
}

#[tokio::test]
async fn registrations_are_checked_and_taken_back_184() {
    let fixture = fixture().await;
    let registry = &fixture.registry;
    let error =
        registry.register(ScopeId::ROOT, echo("x").with_timeout(Duration::ZERO)).expect_err("no time");
    assert!(error.to_string().contains("timeout must be positive"), "{error}");
    assert!(registry.register(ScopeId::ROOT, echo("")).is_err());
    let error = registry.register(ScopeId::ROOT, echo("echo")).expect_err("taken");
    assert!(error.to_string().contains("already registered"), "{error}");
    let first = registry.register(ScopeId::ROOT, echo("x")).expect("registered");
    first.dispose();
    let listener =
        registry.on_change(Arc::new(|_, name| if name == "bad" { panic!("no {name}") } else { Ok(()) }));
    let error = registry.register(ScopeId::ROOT, echo("bad")).expect_err("taken back");
    assert!(error.to_string().contains("no bad"), "{error}");
    assert!(registry.surface(ScopeId::ROOT).tool("bad").is_none());
    listener.dispose();
    registry.register(ScopeId::ROOT, echo("bad")).expect("nobody minds").keep();
    assert!(registry.surface(ScopeId::ROOT).tool("bad").is_some());
}

#[tokio::test]
async fn a_value_that_breaks_the_contract_is_no_value_185() {
    let mut fixture = fixture().await;
    let gives = |name: &str, value: &'static str, output: OutputContract| {
        let mut definition = tool(name, body_fn(move |_, _| async move { Ok(json(value)) }));
        definition.output = output;
        definition
    };
    let number = || {
        OutputContract::new(crate::support::schema(
            r#"{"type":"object","properties":{"n":{"type":"number"}}}"#,
        ))
    };
    fixture.tools([
        gives("lossy", "-0", OutputContract::new(Schema::anything())),
        gives("mismatch", r#"{"n":"1"}"#, number()),
        gives("render", r#"{"n":1}"#, number().rendered_by(|_, _| panic!("renderer broke"))),
        gives(
            "faulty",
            r#"{"n":1}"#,
            number().rendered_by(|_, _| Err(RenderFault("cannot show".to_owned()))),
        ),
        gives("meta", r#"{"n":1}"#, number().with_meta(|_, _| panic!("projector broke"))),
    ]);
    for (name, fragment) in [
        ("lossy", "`value` is -0"),
        ("mismatch", "tool \"mismatch\" returned invalid output: \"value.n\" must be a number"),
        ("render", "renderer broke"),
        ("faulty", "cannot show"),
        ("meta", "projector broke"),
    ] {
        let result = fixture.call(name, "{}").await;
        assert_eq!(code(&result), "INVALID_TOOL_OUTPUT", "{name}");
        assert!(text(&result).contains(fragment), "{}", text(&result));
        assert_eq!(result.value(), None);
    }
}

fn accept(content: Option<&str>, value: Option<&str>) -> PostVerdict {
    let content = content.map(|text| vec![Content::text(text)]);
    PostVerdict { decision: PostDecision::Accept { content, value: value.map(json) }, contexts: vec![] }
}

#[tokio::test]
async fn post_policy_replaces_content_or_value_186_188() {
    let with_meta = || {
        let mut definition =
            tool("show", body_fn(|arguments: Arguments, _| async move { Ok(arguments.text().clone()) }));
        definition.output = OutputContract::new(crate::support::schema(r#"{"type":"object"}"#))
            .with_meta(|_, value| Ok(json(&format!("{{\"seen\":{value}}}"))));
        definition
    };
    let run = async |verdict: PostVerdict, name: &'static str| {
        let mut fixture = fixture().await;
        fixture.tools([with_meta()]);
        fixture.post(move |_, _, _| Ok(verdict.clone()));
        fixture.call(name, r#"{"a":1}"#).await
    };
    let content = run(accept(Some("seen"), None), "show").await;
    assert_eq!(
        (text(&content).as_str(), content.value().map(JsonText::as_str)),
        ("seen", Some(r#"{"a":1}"#))
    );
    assert_eq!(content.meta, Some(json(r#"{"seen":{"a":1}}"#)));
    let value = run(accept(None, Some(r#"{"b":2}"#)), "show").await;
    assert_eq!(
        (text(&value).as_str(), value.value().map(JsonText::as_str)),
        ("{\n  \"b\": 2\n}", Some(r#"{"b":2}"#))
    );
    assert_eq!(value.meta, Some(json(r#"{"seen":{"b":2}}"#)));
    let invalid = run(accept(None, Some("3")), "show").await;
    assert_eq!(code(&invalid), "INVALID_TOOL_OUTPUT");
    let both = run(accept(Some("seen"), Some("{}")), "show").await;
    assert!(text(&both).contains("not both"), "{}", text(&both));
    let failed = run(accept(None, Some("{}")), "fails").await;
    assert!(text(&failed).contains("cannot replace the value of a failed call"), "{}", text(&failed));
}

#[tokio::test]
async fn a_value_for_a_tool_that_is_gone_is_unknown_186() {
    let mut fixture = fixture().await;
    let gone = std::sync::Mutex::new(Some(
        fixture.registry.register(ScopeId::ROOT, echo("gone")).expect("registered"),
    ));
    fixture.post(move |_, _, _| {
        drop(gone.lock().expect("not poisoned").take());
        Ok(accept(None, Some("{}")))
    });
    assert_eq!(code(&fixture.call("gone", "{}").await), "UNKNOWN_TOOL");
}

#[tokio::test]
async fn a_block_leaves_feedback_187() {
    for (feedback, wanted) in [
        (
            vec![Content::text("no"), Content::Reasoning { text: "hidden".to_owned() }],
            "Error: no\n[reasoning content]",
        ),
        (vec![], "Error: the tool result was blocked by policy"),
    ] {
        let mut fixture = fixture().await;
        fixture.post(move |_, _, _| {
            Ok(PostVerdict { decision: PostDecision::Block { feedback: feedback.clone() }, contexts: vec![] })
        });
        let result = fixture.call("echo", "{}").await;
        assert_eq!((text(&result).as_str(), result.value()), (wanted, None));
    }
}

struct Answers(ApprovalOutcome);

#[async_trait]
impl ApprovalService for Answers {
    async fn ask(&self, request: ApprovalRequest, _: &Signal) -> Result<ApprovalOutcome, HookError> {
        assert_eq!(request.call.name().as_ref(), "echo");
        Ok(self.0.clone())
    }
}

#[tokio::test]
async fn asks_are_answered_in_words_189() {
    let ask = async |outcome: Option<ApprovalOutcome>, reason: Option<&'static str>, agent: bool| {
        let mut fixture = fixture().await;
        fixture.pre(move |_, _| Ok(Decision::Ask { reason: reason.map(str::to_owned) }));
        if let Some(outcome) = outcome {
            fixture.keep(fixture.registry.set_approvals(Arc::new(Answers(outcome))).expect("the first"));
        }
        let mut request = fixture.request("echo", "{}");
        request.agent = request.agent.filter(|_| agent);
        text(&fixture.registry.execute(request).await)
    };
    for (outcome, reason, agent, wanted) in [
        (None, None, true, "requires approval (not yet supported)"),
        (None, Some("dangerous"), true, "Error: dangerous"),
        (Some(ApprovalOutcome::AllowedOnce), None, false, "has no agent to route it through"),
        (Some(ApprovalOutcome::Rejected), None, true, "the user rejected tool"),
        (Some(ApprovalOutcome::Cancelled), None, true, "was cancelled"),
        (Some(ApprovalOutcome::Unavailable), None, true, "no approval channel is available"),
        (Some(ApprovalOutcome::Unknown("maybe".to_owned())), None, true, "unknown outcome \"maybe\""),
        (Some(ApprovalOutcome::AllowedOnce), None, true, "{}"),
    ] {
        let shown = ask(outcome, reason, agent).await;
        assert!(shown.contains(wanted), "`{shown}` lacks `{wanted}`");
    }
}

/// A question that nobody answers is taken back by the call's abort, and the log says so.
#[tokio::test]
async fn an_abort_takes_a_question_back_190() {
    struct Never(Latch);
    #[async_trait]
    impl ApprovalService for Never {
        async fn ask(&self, _: ApprovalRequest, _: &Signal) -> Result<ApprovalOutcome, HookError> {
            self.0.open();
            std::future::pending().await
        }
    }
    let (mut fixture, asked, abort) = (fixture().await, Latch::default(), AbortSignal::new());
    fixture.pre(|_, _| Ok(Decision::Ask { reason: None }));
    fixture.keep(fixture.registry.set_approvals(Arc::new(Never(asked.clone()))).expect("the first"));
    let request = fixture.request("echo", "{}").with_signal(abort.clone());
    let (result, ()) = tokio::join!(fixture.registry.execute(request), async {
        asked.wait().await;
        abort.abort("now");
    });
    assert_eq!(code(&result), "ABORTED_BEFORE_DISPATCH");
    assert_eq!(fixture.event_lines().await, ["approval/asked", "approval/answered"]);
}

fn around(
    wrap: impl Fn(
        AroundService,
        AroundRequest,
    ) -> futures::future::BoxFuture<'static, Result<CallResult, HookError>>
    + Clone
    + Send
    + Sync
    + 'static,
) -> Arc<dyn codemode_registry::pipeline::AroundLayer> {
    Arc::new(tower::layer::layer_fn(move |inner: AroundService| {
        let wrap = wrap.clone();
        tower::service_fn(move |request| wrap(inner.clone(), request))
    }))
}

#[tokio::test]
async fn an_abort_before_the_body_is_one_before_dispatch_190_193() {
    let ran = Journal::default();
    let aborted = async |prepare: &dyn Fn(&mut Fixture, AbortSignal)| {
        let mut fixture = fixture().await;
        let seen = ran.clone();
        fixture.tools([tool("act", crate::support::body_with(move |_| seen.note("ran")))]);
        let abort = AbortSignal::new();
        prepare(&mut fixture, abort.clone());
        let observed = Journal::default();
        let seen = observed.clone();
        fixture.observer(move |call, _| seen.note(call.arguments().expect("lossless").text().as_str()));
        let result = fixture.registry.execute(fixture.request("act", "{}").with_signal(abort)).await;
        assert_eq!(code(&result), "ABORTED_BEFORE_DISPATCH");
        assert_eq!(observed.lines(), ["{}"]);
    };
    aborted(&|_, abort| abort.abort("early")).await;
    aborted(&|fixture, abort| {
        fixture.pre(move |_, current| {
            abort.abort("policy");
            Ok(current)
        })
    })
    .await;
    let layered = |fixture: &mut Fixture, layer| {
        let registration = fixture.registry.add_around(ScopeId::ROOT, layer).expect("root");
        fixture.keep(registration);
    };
    aborted(&|fixture, abort| {
        layered(
            fixture,
            around(move |inner, request| {
                abort.abort("wrapper");
                Box::pin(inner.oneshot(request))
            }),
        )
    })
    .await;
    aborted(&|fixture, _| {
        layered(
            fixture,
            around(|inner, request| {
                let own = AbortSignal::new();
                own.abort("supplied");
                Box::pin(inner.oneshot(AroundRequest { signal: own.into(), ..request }))
            }),
        )
    })
    .await;
    aborted(&|fixture, abort| {
        layered(
            fixture,
            around(move |_, _| {
                abort.abort("overtaken");
                let mut result = CallResult::failed(codemode_registry::tool::ToolError::plain(""));
                result.outcome = Ok(codemode_registry::tool::CallSuccess {
                    value: JsonText::null(),
                    concludes_turn: false,
                });
                Box::pin(async { Ok(result) })
            }),
        )
    })
    .await;
    assert!(ran.lines().is_empty());
}

#[tokio::test]
async fn an_abort_after_the_start_takes_only_values_away_191_192() {
    let run = async |fails: bool| {
        let mut fixture = fixture().await;
        let (begun, abort, done) = (Latch::default(), AbortSignal::new(), Journal::default());
        let (started, ended) = (begun.clone(), done.clone());
        fixture.tools([tool(
            "stubborn",
            body_fn(move |_, context: CallContext| {
                let (started, ended) = (started.clone(), ended.clone());
                async move {
                    context.defer_context(support_context());
                    started.open();
                    for _ in 0..100 {
                        tokio::task::yield_now().await;
                    }
                    ended.note("done");
                    if fails { Err(BodyError::new("real failure")) } else { Ok(JsonText::null()) }
                }
            }),
        )]);
        let request = fixture.request("stubborn", "{}").with_signal(abort.clone());
        let (result, ()) = tokio::join!(fixture.registry.execute(request), async {
            begun.wait().await;
            abort.abort("now");
        });
        assert_eq!(done.lines(), ["done"], "awaited and not abandoned");
        assert_eq!(sources(&result), ["body"]);
        (code(&result), text(&result))
    };
    assert_eq!(run(false).await, ("ABORTED".to_owned(), "Error: tool call aborted".to_owned()));
    assert_eq!(run(true).await, (String::new(), "Error: real failure".to_owned()));
}

fn support_context() -> ContextMessage {
    context("body")
}

#[tokio::test]
async fn lossy_arguments_beat_an_abort_193_203() {
    let mut fixture = fixture().await;
    fixture.pre(|_, _| panic!("no policy is asked"));
    let observed = Journal::default();
    let seen = observed.clone();
    fixture.observer(move |call, _| seen.note(format!("{:?}", call.arguments().is_some())));
    let abort = AbortSignal::new();
    abort.abort("early");
    let result = fixture.registry.execute(fixture.request("echo", r#"{"n":-0}"#).with_signal(abort)).await;
    assert!(
        text(&result).contains("tool execution arguments must be losslessly JSON-serializable"),
        "{}",
        text(&result)
    );
    assert_eq!(observed.lines(), ["false"]);
}

#[tokio::test]
async fn what_throws_where_decides_what_is_reviewed_194() {
    let mut fixture = fixture().await;
    let seen = Journal::default();
    let (wrapped, reviewed) = (seen.clone(), seen.clone());
    let layer = around(move |inner, request| {
        let wrapped = wrapped.clone();
        Box::pin(async move {
            if &**request.call.name() == "around" {
                panic!("wrapper broke");
            }
            let result = inner.oneshot(request).await?;
            wrapped.note(format!("around sees {}", result.text()));
            Ok(result)
        })
    });
    fixture.keep(fixture.registry.add_around(ScopeId::ROOT, layer).expect("root"));
    fixture.tools([
        echo("around"),
        echo("denied"),
        tool("panics", body_fn(|_, _| async { panic!("body broke") })),
    ]);
    fixture
        .pre(|call, current| if &**call.name() == "denied" { Ok(Decision::deny("no")) } else { Ok(current) });
    fixture.post(move |_, result, verdict| {
        reviewed.note(format!("post sees {}", result.text()));
        Ok(verdict)
    });
    assert_eq!(text(&fixture.call("denied", "{}").await), "Error: no");
    assert_eq!(text(&fixture.call("around", "{}").await), "Error: wrapper broke");
    assert_eq!(text(&fixture.call("panics", "{}").await), "Error: body broke");
    assert_eq!(
        seen.lines(),
        ["post sees Error: no", "around sees Error: body broke", "post sees Error: body broke"]
    );
    let mut broken = Fixture::new(Mode::Native).await;
    broken.tools([echo("echo")]);
    broken.post(|_, _, _| panic!("review broke"));
    broken.observer(|_, _| panic!("observers only watch"));
    assert_eq!(text(&broken.call("echo", "{}").await), "Error: review broke");
}

#[tokio::test]
async fn contexts_come_in_the_order_of_the_stages_195() {
    for (name, blocked, wanted) in [
        ("gives", false, vec!["body", "wrapper", "post"]),
        ("throws", false, vec!["body", "wrapper", "post"]),
        ("gives", true, vec!["post"]),
    ] {
        let mut fixture = fixture().await;
        let body = |fails: bool| {
            body_fn(move |_, call: CallContext| async move {
                call.defer_context(context("body"));
                if fails { Err(BodyError::new("no")) } else { Ok(JsonText::null()) }
            })
        };
        fixture.tools([tool("gives", body(false)), tool("throws", body(true))]);
        let layer = around(|inner, request| {
            Box::pin(async move {
                let mut result = inner.oneshot(request).await?;
                result.contexts.push(context("wrapper"));
                Ok(result)
            })
        });
        fixture.keep(fixture.registry.add_around(ScopeId::ROOT, layer).expect("root"));
        fixture.post(move |_, _, verdict| {
            let decision = if blocked { PostDecision::Block { feedback: vec![] } } else { verdict.decision };
            Ok(PostVerdict { decision, contexts: vec![context("post")] })
        });
        assert_eq!(sources(&fixture.call(name, "{}").await), wanted);
    }
}

struct Last(fn() -> Result<Option<Vec<Content>>, HookError>, Journal);

#[async_trait]
impl Finalizer for Last {
    async fn finalize(
        &self,
        call: &codemode_registry::pipeline::Call,
        _: &CallResult,
    ) -> Result<Option<Vec<Content>>, HookError> {
        self.1.note(call.call_id());
        (self.0)()
    }
}

#[tokio::test]
async fn the_finalizer_has_the_last_word_once_196() {
    let finalized: [(fn() -> _, &str); 4] = [
        (|| Ok(None), "{}"),
        (|| Ok(Some(vec![Content::text("final")])), "final"),
        (|| Err(HookError::new("cannot")), "Error: cannot"),
        (|| panic!("finalizer broke"), "Error: finalizer broke"),
    ];
    for (finalize, wanted) in finalized {
        let (mut fixture, calls) = (fixture().await, Journal::default());
        fixture.tools([echo("last").with_finalizer(Arc::new(Last(finalize, calls.clone())))]);
        assert_eq!(text(&fixture.call("last", "{}").await), wanted);
        assert_eq!(calls.lines(), ["call"]);
    }
}

#[tokio::test]
async fn every_stage_sees_one_token_and_one_value_202_204() {
    let mut fixture = fixture().await;
    let tokens = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (a, b, c) = (Arc::clone(&tokens), Arc::clone(&tokens), Arc::clone(&tokens));
    let note = |tokens: &std::sync::Mutex<Vec<_>>, call: &codemode_registry::pipeline::Call| {
        let arguments = call.arguments().expect("lossless").value() as *const _ as usize;
        tokens.lock().expect("not poisoned").push((call.token().clone(), arguments));
    };
    fixture.pre(move |call, current| {
        note(&a, call);
        Ok(current)
    });
    fixture.post(move |call, _, verdict| {
        note(&b, call);
        Ok(verdict)
    });
    fixture.observer(move |call, _| note(&c, call));
    fixture.call("echo", r#"{"a":1}"#).await;
    let tokens = tokens.lock().expect("not poisoned");
    assert_eq!(tokens.len(), 3);
    assert!(tokens.iter().all(|seen| seen == &tokens[0]));
}

#[tokio::test]
async fn arguments_are_checked_where_they_were_declared_217() {
    let mut fixture = fixture().await;
    let parameters = crate::support::schema(
        r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"],"minProperties":1}"#,
    );
    let mut declared = echo("declared");
    declared.parameters =
        crate::support::schema(r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#);
    let (mut beyond, mut raw) = (echo("beyond"), echo("raw").raw());
    beyond.parameters = parameters.clone();
    raw.parameters = parameters;
    fixture.tools([declared, beyond, raw]);
    let result = fixture.call("declared", r#"{"a":1,"c":2}"#).await;
    assert_eq!(
        (code(&result).as_str(), text(&result).as_str()),
        ("INVALID_ARGS", "Error: invalid arguments: \"a\" must be a string")
    );
    assert!(!fixture.call("declared", r#"{"a":"x","c":2}"#).await.is_error());
    let result = fixture.call("beyond", r#"{"a":1}"#).await;
    assert_eq!(code(&result), "INVALID_ARGS");
    assert!(text(&result).contains("\"a\"") && text(&result).contains("'b'"), "{}", text(&result));
    assert!(!fixture.call("raw", r#"{"a":1}"#).await.is_error());
}

#[tokio::test(start_paused = true)]
async fn a_timeout_tells_the_body_and_then_drops_it() {
    let mut fixture = fixture().await;
    let told = Journal::default();
    let seen = told.clone();
    fixture.tools([
        tool(
            "heeds",
            body_fn(move |_, context: CallContext| {
                let seen = seen.clone();
                async move {
                    seen.note(context.signal().aborted().await);
                    Ok(JsonText::null())
                }
            }),
        )
        .with_timeout(Duration::from_millis(5)),
        tool("hangs", body_fn(|_, _| std::future::pending())).with_timeout(Duration::from_millis(5)),
    ]);
    for name in ["heeds", "hangs"] {
        let result = fixture.call(name, "{}").await;
        assert_eq!(
            (code(&result), text(&result)),
            ("TOOL_TIMEOUT".to_owned(), format!("Error: tool \"{name}\" timed out after 5ms"))
        );
    }
    assert_eq!(told.lines(), ["tool \"heeds\" timed out after 5ms"]);
}

#[tokio::test]
async fn rules_decide_without_code_and_their_denials_are_final() {
    let policy: Policy = serde_json::from_str(
        r#"[{"effect":"deny","tools":["ech?"],"arguments":[{"pointer":"/path","matches":"/etc/*"}],"reason":"not there"},
            {"effect":"ask","tools":["fails"],"scope":"worker"}]"#,
    )
    .expect("a policy");
    let mut fixture = Fixture::with(Settings { policy, ..Settings::default() }).await;
    fixture.tools([safe(echo("echo")), failing("fails", "body ran")]);
    fixture.pre(|_, _| Ok(Decision::Allow));
    assert_eq!(text(&fixture.call("echo", r#"{"path":"/etc/passwd"}"#).await), "Error: not there");
    assert!(!fixture.call("echo", r#"{"path":"/tmp"}"#).await.is_error());
    assert_eq!(text(&fixture.call("fails", "{}").await), "Error: body ran");
}
