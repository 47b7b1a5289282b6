//! `run_code` from the outside: behaviours 146 to 180.

use std::sync::Arc;

use crate::support::{Fixture, Journal, Latch, Odd, code, completed, echo, failing, json, text, tool};
use codemode_client::fake::Script;
use codemode_client::{AbortSignal, Failure, FailureKind, JsonText, RuntimeError};
use codemode_events::Event;
use codemode_registry::pipeline::{Decision, DispatchLogHook, PostDecision, PostVerdict};
use codemode_registry::tool::{CallContext, Content, ContextMessage, Image, OutputContract, body_fn};
use codemode_registry::{HookError, Mode, ScopeId};

async fn fixture() -> Fixture {
    let mut fixture = Fixture::new(Mode::Code).await;
    fixture.tools([echo("echo")]);
    fixture
}

fn call(name: &str, arguments: &str) -> Script {
    Script::new().call("tools", name, json(arguments))
}

fn image() -> Content {
    let attachment = Image {
        attachment_id: "a1".to_owned(),
        media_type: "image/png".to_owned(),
        bytes: 10,
        width: 1,
        height: 1,
    };
    Content::Image { attachment }
}

#[tokio::test]
async fn a_program_calls_prints_and_returns_146() {
    let mut fixture = fixture().await;
    let script = call("echo", r#"{"n":1}"#)
        .log("printed")
        .call("tools", "echo", json(r#"{"n":2}"#))
        .completes(json("\"back\""));
    fixture.scripts([script]);
    let result = fixture.run_code().await;
    assert_eq!(text(&result), "printed\nback");
    assert_eq!(
        result.value().map(ToString::to_string).as_deref(),
        Some(r#"{"logs":["printed"],"result":"back"}"#)
    );
    assert_eq!(result.meta, None);
    let ends = fixture.events().await.into_iter().filter_map(|event| match event {
        Event::CodeDispatch(end) => {
            Some((end.sub_call_id, end.arguments.get().to_owned(), end.content[0].as_text()))
        }
        _ => None,
    });
    let wanted =
        |n: u32| (format!("call:code:{n}"), format!("{{\"n\":{n}}}"), Some(format!("{{\n  \"n\": {n}\n}}")));
    assert_eq!(ends.collect::<Vec<_>>(), [wanted(1), wanted(2)]);
}

#[tokio::test]
async fn a_nested_conclusion_concludes_the_outer_call_148() {
    for blocked in [false, true] {
        let mut fixture = fixture().await;
        fixture.tools([tool("end", crate::support::body_with(CallContext::conclude_turn))]);
        fixture.post(move |call, _, verdict| {
            if blocked && call.parent().is_some() {
                return Ok(PostVerdict {
                    decision: PostDecision::Block { feedback: vec![] },
                    contexts: vec![],
                });
            }
            Ok(verdict)
        });
        fixture.scripts([call("end", "{}")]);
        assert_eq!(fixture.run_code().await.concludes_turn(), !blocked);
    }
}

#[tokio::test]
async fn a_failure_reaches_the_program_as_its_message_alone_149_151_152() {
    let mut fixture = fixture().await;
    fixture.tools([failing("fails", "no such file"), echo("denied"), echo("thrown")]);
    let reviewed = Journal::default();
    let seen = reviewed.clone();
    fixture.post(move |call, _, verdict| {
        seen.note(&**call.name());
        Ok(verdict)
    });
    fixture.pre(|call, current| match &**call.name() {
        "denied" => Ok(Decision::deny("not today")),
        "thrown" => Err(HookError::new("policy broke")),
        _ => Ok(current),
    });
    let fake = fixture.scripts([
        Script::new().calls(["fails", "denied", "thrown"].map(|name| ("tools", name, json("{}"))))
    ]);
    fixture.run_code().await;
    let messages: Vec<String> = fake.runs()[0]
        .replies
        .iter()
        .map(|reply| reply.as_ref().expect_err("a failure").message.clone())
        .collect();
    assert_eq!(messages, ["no such file", "not today", "policy broke"]);
    assert_eq!(reviewed.lines(), ["fails", "denied", "run_code"], "a policy that throws is not reviewed");
    let lines = fixture.event_lines().await;
    assert_eq!(lines.iter().filter(|line| line.starts_with("error")).count(), 3);
}

struct LogHook(bool);

#[async_trait::async_trait]
impl DispatchLogHook for LogHook {
    async fn content(
        &self,
        _: &codemode_registry::pipeline::Call,
        _: &[Content],
    ) -> Result<Option<Vec<Content>>, HookError> {
        if self.0 {
            panic!("on purpose")
        }
        Ok(Some(vec![Content::text("preview")]))
    }
}

#[tokio::test]
async fn the_log_hook_changes_the_log_alone_150() {
    for fails in [true, false] {
        let mut fixture = fixture().await;
        fixture
            .keep(fixture.registry.add_dispatch_log(ScopeId::ROOT, Arc::new(LogHook(fails))).expect("root"));
        fixture.scripts([call("echo", "{}").returns_last_reply()]);
        assert_eq!(text(&fixture.run_code().await), "{}");
        let events = fixture.events().await;
        let Some(Event::CodeDispatch(end)) = events.last() else { panic!("no end: {events:?}") };
        assert_eq!(end.content[0].as_text().as_deref(), Some(if fails { "{}" } else { "preview" }));
    }
}

#[tokio::test]
async fn lossy_arguments_are_refused_before_anything_153_155() {
    for arguments in ["-0", r#"{"a":1e999}"#, r#"{"a":9007199254740993}"#, r#"{"a":1,"a":2}"#] {
        let mut fixture = fixture().await;
        let script = Script::new().calls([("tools", "echo", json(arguments)), ("tools", "echo", json("{}"))]);
        let fake = fixture.scripts([script]);
        fixture.run_code().await;
        let replies = fake.runs()[0].replies.clone();
        let message = replies[0].clone().expect_err("refused").message;
        assert!(message.contains("tool arguments must be lossless JSON"), "{message}");
        assert!(replies[1].is_ok());
        assert_eq!(
            fixture.event_lines().await,
            ["start call:code:1", "settle call:code:1"],
            "no id was used up"
        );
    }
}

#[tokio::test]
async fn odd_arguments_cross_whole_154_156_157_158_177() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let long = format!("\"{}\"", "x".repeat(100_000));
    for arguments in ["{}", r#"{"__proto__":{"x":"\ud800"}}"#, &deep, &long] {
        let mut fixture = fixture().await;
        let mut definition = echo("__proto__");
        definition.parameters = crate::support::schema("{}");
        fixture.tools([definition]);
        let fake = fixture.scripts([call("__proto__", arguments)]);
        fixture.run_code().await;
        assert_eq!(fake.runs()[0].replies[0].clone().expect("a value").as_str(), arguments);
        let events = fixture.events().await;
        let Event::CodeDispatchStart(start) = &events[0] else { panic!("no start") };
        assert_eq!(start.arguments.get(), arguments);
    }
}

#[tokio::test]
async fn contexts_of_sub_calls_survive_the_programs_failure_159() {
    let mut fixture = fixture().await;
    fixture.post(|call, _, mut verdict| {
        if call.parent().is_some() {
            verdict.contexts.push(ContextMessage::from_plugin("p", vec![Content::text(call.call_id())]));
        }
        Ok(verdict)
    });
    let failure = Failure::new(FailureKind::Exception, "boom");
    fixture.scripts([call("echo", "{}").call("tools", "echo", json("{}")).fails(failure)]);
    let result = fixture.run_code().await;
    assert!(result.is_error());
    let contexts: Vec<&str> =
        result.contexts.iter().filter_map(|context| context.content[0].as_text()).collect();
    assert_eq!(contexts, ["call:code:1", "call:code:2"]);
}

#[tokio::test]
async fn an_image_is_deferred_unless_it_was_blocked_or_replaced_160_161() {
    for (decision, deferred) in [
        (PostDecision::ACCEPT, true),
        (PostDecision::Block { feedback: vec![] }, false),
        (PostDecision::Accept { content: Some(vec![Content::text("seen")]), value: None }, false),
    ] {
        let mut fixture = fixture().await;
        let mut picture = echo("picture");
        picture.output = OutputContract::new(crate::support::schema("{}"))
            .rendered_by(|_, _| Ok(vec![Content::text("here"), image()]));
        fixture.tools([picture]);
        fixture.post(move |call, _, verdict| {
            if call.parent().is_some() {
                let contexts = vec![ContextMessage::from_plugin("own", vec![])];
                return Ok(PostVerdict { decision: decision.clone(), contexts });
            }
            Ok(verdict)
        });
        fixture.scripts([call("picture", "{}")]);
        let contexts = fixture.run_code().await.contexts;
        let own = ContextMessage::from_plugin("own", vec![]);
        let image = ContextMessage::from_plugin("tools-code-mode", vec![Content::text("here"), image()]);
        assert_eq!(contexts, if deferred { vec![image, own] } else { vec![own] });
    }
}

#[tokio::test]
async fn failures_say_kind_message_and_log_162_163() {
    let mut fixture = fixture().await;
    let failing =
        |kind, message: &str| Script::new().log("one").log("two").fails(Failure::new(kind, message));
    fixture.scripts([
        failing(FailureKind::Timeout, "compute budget exhausted"),
        failing(FailureKind::OutputLimit, "outer output exceeded 9 bytes"),
        Script::new().fails(Failure::new(FailureKind::WorkerExit, "gone")),
    ]);
    let result = fixture.run_code().await;
    assert_eq!(code(&result), "CODE_RUN_FAILED");
    assert_eq!(result.error_info().map(|info| info.name.as_str()), Some("CodeRunFailedError"));
    assert_eq!(
        text(&result),
        "Error: code run failed (timeout): compute budget exhausted\nCaptured output:\none\ntwo"
    );
    assert_eq!(
        text(&fixture.run_code().await),
        "Error: code run failed (output-limit): outer output exceeded 9 bytes\nCaptured output:\none\ntwo"
    );
    assert_eq!(text(&fixture.run_code().await), "Error: code run failed (worker-exit): gone");
}

fn hanging(begun: &Latch, ended: &Journal) -> codemode_registry::ToolDefinition {
    let (begun, ended) = (begun.clone(), ended.clone());
    tool(
        "hang",
        body_fn(move |_, context: CallContext| {
            let (begun, ended) = (begun.clone(), ended.clone());
            async move {
                begun.open();
                ended.note(context.signal().aborted().await);
                Ok(JsonText::null())
            }
        }),
    )
}

#[tokio::test]
async fn an_abort_reaches_what_runs_and_keeps_the_rest_from_starting_164() {
    let (begun, ended) = (Latch::default(), Journal::default());
    let mut fixture = fixture().await;
    fixture.tools([hanging(&begun, &ended)]);
    fixture.scripts([Script::new().calls(["hang", "echo"].map(|name| ("tools", name, json("{}"))))]);
    let abort = AbortSignal::new();
    let request = fixture.request("run_code", crate::support::RUN_CODE_ARGUMENTS).with_signal(abort.clone());
    let (result, ()) = tokio::join!(fixture.registry.execute(request), async {
        begun.wait().await;
        abort.abort("user pressed stop");
    });
    assert_eq!(text(&result), "Error: code run failed (abort): user pressed stop");
    assert_eq!(ended.lines(), ["user pressed stop"]);
    assert_eq!(fixture.event_lines().await, ["start call:code:1", "error call:code:1"]);
}

#[tokio::test]
async fn a_runtime_that_rejects_leaves_nothing_behind_165() {
    let (begun, ended) = (Latch::default(), Journal::default());
    let mut fixture = fixture().await;
    fixture.tools([hanging(&begun, &ended)]);
    fixture.runtime(Odd::ending([call("hang", "{}")], &begun, || Err(RuntimeError::Disposed)));
    let result = fixture.run_code().await;
    assert!(text(&result).contains("run after disposal"), "{}", text(&result));
    assert_eq!(ended.lines(), ["run_code settled"]);
    assert_eq!(fixture.event_lines().await, ["start call:code:1", "error call:code:1"]);
}

#[tokio::test]
async fn a_runtime_that_panics_is_survived_165() {
    let (begun, ended) = (Latch::default(), Journal::default());
    let mut fixture = fixture().await;
    fixture.tools([hanging(&begun, &ended)]);
    fixture.runtime(Odd::ending([call("hang", "{}")], &begun, || panic!("substrate broke")));
    let result = fixture.run_code().await;
    assert!(text(&result).contains("substrate broke"), "{}", text(&result));
    assert_eq!(fixture.event_lines().await, ["start call:code:1", "error call:code:1"]);
}

#[tokio::test]
async fn without_an_agent_calls_run_and_nothing_is_logged_166() {
    let mut fixture = fixture().await;
    fixture.scripts([call("echo", "{\"a\":1}").returns_last_reply()]);
    let mut request = fixture.request("run_code", crate::support::RUN_CODE_ARGUMENTS);
    request.agent = None;
    assert_eq!(text(&fixture.registry.execute(request).await), "{\n  \"a\": 1\n}");
    assert!(fixture.events().await.is_empty());
}

#[tokio::test]
async fn without_a_runtime_the_result_says_so_167() {
    let result = fixture().await.run_code().await;
    assert!(text(&result).contains("requires a code runtime"), "{}", text(&result));
}

#[tokio::test]
async fn the_description_is_the_title_and_must_say_something_168() {
    let mut fixture = fixture().await;
    fixture.scripts([]);
    for description in ["", "  \\n"] {
        let result =
            fixture.call("run_code", &format!("{{\"code\":\"x\",\"description\":\"{description}\"}}")).await;
        assert!(text(&result).contains("invalid description"), "{}", text(&result));
    }
    let missing = fixture.call("run_code", r#"{"code":"x"}"#).await;
    assert_eq!(text(&missing), "Error: invalid arguments: missing required property \"description\"");
    let extra = fixture.call("run_code", r#"{"code":"x","description":"Does it","more":1}"#).await;
    assert!(!extra.is_error());
    let card = fixture
        .registry
        .card("run_code", ScopeId::ROOT, &json(crate::support::RUN_CODE_ARGUMENTS))
        .expect("a card");
    assert_eq!(
        (card.kind.as_str(), card.title.as_str(), card.raw_input.as_str()),
        ("execute", "Does something", "the program")
    );
}

#[tokio::test]
async fn logs_and_values_are_shown_169_172_173() {
    let deep = "[".repeat(5_000) + &"]".repeat(5_000);
    let returned = |value: &str| Script::new().completes(json(value));
    let shown = [
        (Script::new().log("printed"), "printed"),
        (returned("\"returned\""), "returned"),
        (Script::new().log("printed").completes(json("\"returned\"")), "printed\nreturned"),
        (Script::new(), "(run_code completed with no output)"),
        (Script::new().log(""), "(run_code completed with no output)"),
        (returned(r#"{"a":1}"#), "{\n  \"a\": 1\n}"),
        (returned("{}"), "{}"),
        (returned(r#"{"a":{"b":[1,2]}}"#), "{\n  \"a\": {\n    \"b\": [\n      1,\n      2\n    ]\n  }\n}"),
        (returned("[1]"), "[\n  1\n]"),
        (returned("[]"), "[]"),
        (returned("null"), "null"),
        (returned("\"two\\nlines\""), "two\nlines"),
        (
            returned(r#"[[[[[[1,{"a":[]}]]]]]]"#),
            "[\n  [\n    [\n      [\n        [\n          [1,{\"a\":[]}]\n        ]\n      ]\n    ]\n  ]\n]",
        ),
    ];
    let mut fixture = fixture().await;
    let (scripts, wanted): (Vec<_>, Vec<_>) = shown.into_iter().unzip();
    fixture.scripts(scripts.into_iter().chain([returned(&deep)]));
    for wanted in wanted {
        assert_eq!(text(&fixture.run_code().await), wanted);
    }
    let shown = text(&fixture.run_code().await);
    assert!(shown.len() < 11_000 && shown.starts_with("[\n  [\n    ["), "{}", shown.len());
}

#[tokio::test]
async fn a_spill_preview_is_the_content_and_logged_content_is_whole_170_171() {
    let mut fixture = fixture().await;
    let long = "x".repeat(300);
    let blocks = vec![Content::text(&long), Content::Reasoning { text: "because".to_owned() }];
    let shown = blocks.clone();
    let mut long = echo("long");
    long.output =
        OutputContract::new(crate::support::schema("{}")).rendered_by(move |_, _| Ok(shown.clone()));
    fixture.tools([long]);
    fixture.post(|call, _, verdict| {
        if call.parent().is_none() {
            let decision =
                PostDecision::Accept { content: Some(vec![Content::text("preview")]), value: None };
            return Ok(PostVerdict { decision, ..verdict });
        }
        Ok(verdict)
    });
    fixture.scripts([call("long", "{}").returns_last_reply()]);
    assert_eq!(text(&fixture.run_code().await), "preview");
    let events = fixture.events().await;
    let Some(Event::CodeDispatch(end)) = events.last() else { panic!("no end") };
    let logged: Vec<Content> =
        end.content.iter().map(|block| serde_json::from_str(block.json().get()).expect("a block")).collect();
    assert_eq!(logged, blocks);
}

#[tokio::test]
async fn an_abort_beforehand_never_reaches_the_runtime_174() {
    let mut fixture = fixture().await;
    let fake = fixture.scripts([]);
    let abort = AbortSignal::new();
    abort.abort("early");
    let request = fixture.request("run_code", crate::support::RUN_CODE_ARGUMENTS).with_signal(abort);
    let result = fixture.registry.execute(request).await;
    assert_eq!(code(&result), "ABORTED_BEFORE_DISPATCH");
    assert_eq!(text(&result), "Error: tool call aborted before dispatch");
    assert!(fake.runs().is_empty());
}

#[tokio::test]
async fn a_call_after_the_abort_is_not_dispatched_175() {
    let abort = AbortSignal::new();
    let mut fixture = fixture().await;
    let fired = abort.clone();
    fixture.tools([tool("stop", crate::support::body_with(move |_| fired.abort("stopped")))]);
    let script = call("stop", "{}").call("tools", "echo", json("{}")).completes(json("1"));
    let never = Latch::default();
    fixture.runtime(Odd::ending([script], &never, || Ok(completed("null"))));
    let request = fixture.request("run_code", crate::support::RUN_CODE_ARGUMENTS).with_signal(abort);
    let result = fixture.registry.execute(request).await;
    assert_eq!(code(&result), "ABORTED");
    assert_eq!(fixture.event_lines().await, ["start call:code:1", "error call:code:1"]);
}

/// Nobody waits for the result any more: what had started is still committed and logged.
#[tokio::test]
async fn a_dropped_call_drains_all_the_same() {
    let (begun, ended) = (Latch::default(), Journal::default());
    let mut fixture = fixture().await;
    fixture.tools([hanging(&begun, &ended)]);
    fixture.scripts([call("hang", "{}")]);
    tokio::select! {
        _ = fixture.run_code() => panic!("it hangs"),
        () = begun.wait() => {}
    }
    for _ in 0..1_000 {
        if fixture.event_lines().await.len() == 2 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(ended.lines(), ["run_code call was dropped"]);
    assert_eq!(fixture.event_lines().await, ["start call:code:1", "error call:code:1"]);
}

/// A log that takes nothing keeps calls from being made: outside a turn, no sub-call may be.
#[tokio::test]
async fn what_cannot_be_logged_is_not_done_206() {
    let mut fixture = fixture().await;
    let ran = Journal::default();
    let seen = ran.clone();
    fixture.tools([tool("act", crate::support::body_with(move |_| seen.note("ran")))]);
    let end = codemode_events::TurnEnd {
        turn_id: "turn".to_owned(),
        outcome: codemode_events::TurnOutcome::Completed,
        message: None,
    };
    drop(fixture.log.append(end).await.expect("appended"));
    fixture.scripts([call("act", "{}").returns_last_reply()]);
    let result = fixture.run_code().await;
    assert!(text(&result).contains("outside a turn"), "{}", text(&result));
    assert!(ran.lines().is_empty());
}
