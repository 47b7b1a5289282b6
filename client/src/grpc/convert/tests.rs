//! Conversion both ways, every field.

use super::*;

fn id() -> RunId {
    "0b0e3e5c-7a52-4c5e-8a83-3f5f3f0f8a11".parse().expect("a UUID")
}

#[test]
fn a_request_becomes_a_start_with_everything_in_it() {
    let tools = Namespace::new("tools")
        .function("b", |args, _| async move { Ok(args) })
        .function("", |args, _| async move { Ok(args) })
        .function("__proto__", |args, _| async move { Ok(args) })
        .with_error_class("ToolCallError", "toolName");
    let mut request =
        RunRequest::new("return 1").with_namespace(tools).with_run_id(id()).with_engine("quickjs");
    request.budgets = Budgets {
        compute_ms: Some(1),
        wall_ms: Some(2),
        output_bytes: Some(3),
        heap_bytes: Some(4),
        binding_calls: Some(5),
        pending_calls: Some(6),
        pending_argument_bytes: Some(7),
        log_entry_bytes: Some(8),
    };
    request.required_layers = vec!["seccomp".to_owned()];
    request.labels.insert("team".to_owned(), "blue".to_owned());

    let Some(pb::run_request::Message::Start(start)) = start(&request).message else { panic!("not a start") };
    assert_eq!(start.program, "return 1");
    assert_eq!(start.namespaces.len(), 1);
    assert_eq!(start.namespaces[0].global, "tools");
    assert_eq!(start.namespaces[0].functions, ["b", "", "__proto__"], "the caller's order");
    let class = start.namespaces[0].error_class.clone().expect("a class");
    assert_eq!((class.name.as_str(), class.member_name_property.as_str()), ("ToolCallError", "toolName"));
    assert_eq!(budgets_from(start.budgets.expect("budgets")), request.budgets);
    assert_eq!(start.run_id, id().to_string());
    assert_eq!(start.engine, "quickjs");
    assert_eq!(start.required_layers, ["seccomp"]);
    assert_eq!(start.labels.get("team").map(String::as_str), Some("blue"));
}

#[test]
fn what_a_request_leaves_out_stays_out() {
    let Some(pb::run_request::Message::Start(start)) = start(&RunRequest::new("")).message else {
        panic!("not a start")
    };
    assert_eq!(start, pb::StartRun::default());
}

#[test]
fn a_null_value_is_a_value_and_none_is_none() {
    let with = |value_json| {
        outcome(id(), pb::Outcome { value_json, ..Default::default() }).expect("within the contract")
    };
    assert_eq!(with(None).value, None);
    assert_eq!(with(Some("null".into())).value, Some(JsonText::null()));
    assert!(with(None).completed());
}

#[test]
fn an_outcome_keeps_everything() {
    let sent = pb::Outcome {
        value_json: None,
        logs: vec!["a".to_owned(), String::new()],
        failure: Some(pb::Failure {
            kind: pb::FailureKind::WorkerExit.into(),
            message: "m".to_owned(),
            detail: "heap_bytes".to_owned(),
            limit: Some(1),
            used: Some(2),
            signal: Some(9),
            position: Some(pb::Position { line: 3, column: 4, excerpt: "x".to_owned() }),
            error_name: "E".to_owned(),
        }),
        usage: Some(pb::Usage {
            cpu_us: 1,
            wall_us: 2,
            peak_memory_bytes: 3,
            binding_calls: 4,
            output_bytes: 5,
            layers: vec!["seccomp".to_owned()],
            phases: Some(pb::Phases {
                admission_us: 6,
                strip_us: 7,
                fork_us: 8,
                lockdown_us: 9,
                run_us: 10,
                settle_us: 11,
            }),
        }),
        hints: vec!["h".to_owned()],
    };
    let wanted = Outcome {
        run_id: id(),
        value: None,
        logs: vec!["a".to_owned(), String::new()],
        failure: Some(Failure {
            kind: FailureKind::WorkerExit,
            message: "m".to_owned(),
            cause: Some("heap_bytes".to_owned()),
            limit: Some(1),
            used: Some(2),
            signal: Some(9),
            position: Some(Position { line: 3, column: 4, excerpt: "x".to_owned() }),
            error_name: Some("E".to_owned()),
        }),
        usage: Usage {
            cpu_us: 1,
            wall_us: 2,
            peak_memory_bytes: 3,
            binding_calls: 4,
            output_bytes: 5,
            layers: vec!["seccomp".to_owned()],
            phases: Phases {
                admission_us: 6,
                strip_us: 7,
                fork_us: 8,
                lockdown_us: 9,
                run_us: 10,
                settle_us: 11,
            },
        },
        hints: vec!["h".to_owned()],
    };
    assert_eq!(outcome(id(), sent), Ok(wanted));
}

#[test]
fn every_kind_has_its_own() {
    let kinds: Vec<_> = (1..=6).map(|number| kind(number).expect("a kind").as_str()).collect();
    assert_eq!(kinds, ["exception", "timeout", "abort", "worker-exit", "invalid-output", "output-limit"]);
    assert_eq!(kind(0), Err(ContractFault::Kind(0)));
    assert_eq!(kind(7), Err(ContractFault::Kind(7)));
}

#[test]
fn what_breaks_the_contract_is_refused() {
    let value = |text: &'static [u8]| pb::Outcome { value_json: Some(text.into()), ..Default::default() };
    assert_eq!(outcome(id(), value(b"{")), Err(ContractFault::Json("the value")));
    assert_eq!(outcome(id(), value(b"\"\xff\"")), Err(ContractFault::Json("the value")));
    let failure = Some(pb::Failure { kind: 1, ..Default::default() });
    assert_eq!(outcome(id(), pb::Outcome { failure, ..value(b"1") }), Err(ContractFault::ValueAndFailure));
    assert_eq!(run_id("7"), Err(ContractFault::RunId("7".to_owned())));
}

#[test]
fn replies_carry_the_value_untouched_or_the_message() {
    let text = r#"{"a":"\ud800","b":1e999}"#;
    let sent = reply(7, Ok(JsonText::parse(text).expect("well-formed")));
    let wanted = pb::BindingReply { id: 7, result: Some(pb::binding_reply::Result::ValueJson(text.into())) };
    assert_eq!(sent.message, Some(pb::run_request::Message::Reply(wanted)));
    let sent = reply(8, Err(BindingError::new("no")));
    let error = pb::BindingError { message: "no".to_owned() };
    let wanted = pb::BindingReply { id: 8, result: Some(pb::binding_reply::Result::Error(error)) };
    assert_eq!(sent.message, Some(pb::run_request::Message::Reply(wanted)));
}

#[test]
fn minor_versions_are_taken_and_major_ones_are_not() {
    assert!(check_version("1.0").is_ok() && check_version("1.7").is_ok());
    for foreign in ["2.0", "", "10.0"] {
        assert!(matches!(check_version(foreign), Err(RuntimeError::Incompatible { .. })), "{foreign}");
    }
}
