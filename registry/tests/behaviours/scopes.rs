//! Scopes, restrictions and guards: behaviours 197 to 201.

use std::sync::Arc;

use codemode_registry::tool::body_fn;
use codemode_registry::{Agent, CallRequest, Mode, Restriction, ScopeId, Settings};

use crate::support::{Fixture, GuardFn, echo, failing, json, text, tool};

async fn fixture() -> Fixture {
    let mut fixture = Fixture::new(Mode::Native).await;
    fixture.tools([echo("echo"), failing("fails", "no")]);
    fixture
}

#[tokio::test]
async fn scopes_shadow_hide_and_filter_197_198() {
    let fixture = fixture().await;
    let registry = &fixture.registry;
    let open = |parent| registry.open_scope(parent, None).expect("a scope");
    let (parent, other) = (open(ScopeId::ROOT), open(ScopeId::ROOT));
    let child = open(parent.id());
    let fixed =
        |name: &str, value: &'static str| tool(name, body_fn(move |_, _| async move { Ok(json(value)) }));
    let call = async |scope: ScopeId, name: &str| {
        let request = CallRequest::new("c", name, json("{}")).by(Agent::new("a", scope));
        text(&registry.execute(request).await)
    };
    let _own = registry.register(parent.id(), fixed("own", "1")).expect("registered");
    let shadow = registry.register(parent.id(), fixed("echo", "2")).expect("shadows");
    assert_eq!(call(child.id(), "own").await, "1");
    assert_eq!(call(other.id(), "own").await, "Error: unknown tool \"own\"");
    assert_eq!(
        (call(child.id(), "echo").await.as_str(), call(other.id(), "echo").await.as_str()),
        ("2", "{}")
    );
    let _late = registry.register(ScopeId::ROOT, fixed("own", "3")).expect("the other order");
    assert_eq!((call(child.id(), "own").await.as_str(), call(other.id(), "own").await.as_str()), ("1", "3"));

    let names = |scope| registry.surface(scope).names().map(ToString::to_string).collect::<Vec<_>>();
    shadow.dispose();
    let allow = registry.restrict(parent.id(), Restriction::allow(["echo"])).expect("filtered");
    assert_eq!(names(parent.id()), ["echo", "own"], "a scope's own tools are exempt");
    assert_eq!(names(child.id()), ["echo", "own"], "an ancestor's filter reaches descendants");
    let _later = registry.register(ScopeId::ROOT, echo("later")).expect("registered");
    assert_eq!(names(child.id()), ["echo", "own"]);
    let deny = registry.restrict(child.id(), Restriction::deny(["echo"])).expect("filtered");
    assert_eq!(names(child.id()), ["own"], "filters intersect");
    allow.dispose();
    assert_eq!(names(child.id()), ["fails", "later", "own"], "each lifts by itself");
    deny.dispose();
    assert_eq!(names(child.id()), ["echo", "fails", "later", "own"]);
    let gone = child.id();
    drop(parent);
    let unknown = "Error: unknown tool \"echo\"";
    assert_eq!(
        call(gone, "echo").await,
        unknown,
        "what was hidden from a scope stays hidden when it is gone"
    );
    assert!(registry.register(gone, echo("x")).is_err());
}

#[tokio::test]
async fn filters_are_checked_199() {
    let fixture = fixture().await;
    let registry = &fixture.registry;
    let scope = registry.open_scope(ScopeId::ROOT, None).expect("a scope");
    let refused =
        |scope, restriction| registry.restrict(scope, restriction).expect_err("refused").to_string();
    assert!(refused(ScopeId::ROOT, Restriction::deny(["echo"])).contains("requires a scoped context"));
    assert!(refused(scope.id(), Restriction::default()).contains("needs `allow` or `deny`"));
    let unknown = refused(scope.id(), Restriction::deny(["echo", "x", "y"]));
    assert_eq!(unknown, "restriction names unknown tool(s) x, y; known tools: echo, fails");
    let _own = registry.register(scope.id(), echo("own")).expect("registered");
    assert!(refused(scope.id(), Restriction::deny(["own"])).contains("unknown tool(s) own"));
    let empty = codemode_registry::Registry::new(Settings::default()).expect("settings");
    let scope = empty.open_scope(ScopeId::ROOT, None).expect("a scope");
    let error = empty.restrict(scope.id(), Restriction::allow(["x"])).expect_err("refused").to_string();
    assert!(error.ends_with("known tools: (none)"), "{error}");
}

#[tokio::test]
async fn guards_deny_whatever_was_allowed_200_201() {
    let fixture = fixture().await;
    let registry = fixture.registry.clone();
    let scope = registry.open_scope(ScopeId::ROOT, None).expect("a scope");
    let call = async |scope| {
        text(&registry.execute(CallRequest::new("c", "echo", json("{}")).by(Agent::new("a", scope))).await)
    };
    let guard = |scope, reason: Option<&'static str>| {
        registry.add_guard(scope, Arc::new(GuardFn(move |_: &_| reason.map(str::to_owned)))).expect("a scope")
    };
    let _abstains = guard(ScopeId::ROOT, None);
    let (first, second) = (guard(scope.id(), Some("first")), guard(scope.id(), Some("second")));
    assert_eq!((call(scope.id()).await.as_str(), call(ScopeId::ROOT).await.as_str()), ("Error: first", "{}"));
    first.dispose();
    assert_eq!(call(scope.id()).await, "Error: second");
    second.dispose();
    assert_eq!(call(scope.id()).await, "{}");

    let (handle, added) = (registry.clone(), std::sync::Mutex::new(Vec::new()));
    let adds = GuardFn(move |_: &codemode_registry::pipeline::Call| {
        let late = GuardFn(|_: &codemode_registry::pipeline::Call| Some("added".to_owned()));
        added
            .lock()
            .expect("not poisoned")
            .push(handle.add_guard(ScopeId::ROOT, Arc::new(late)).expect("root"));
        None
    });
    let _adds = registry.add_guard(ScopeId::ROOT, Arc::new(adds)).expect("root");
    assert_eq!(call(ScopeId::ROOT).await, "Error: added", "in the same pass");
}

#[tokio::test]
async fn a_guard_that_replaces_the_last_one_waits_for_the_next_call_201() {
    let fixture = fixture().await;
    let registry = fixture.registry.clone();
    let scope = registry.open_scope(ScopeId::ROOT, None).expect("a scope");
    let slot = Arc::new(std::sync::Mutex::new(None));
    let (handle, own, id) = (registry.clone(), Arc::clone(&slot), scope.id());
    let replaces = GuardFn(move |_: &codemode_registry::pipeline::Call| {
        let mut own = own.lock().expect("not poisoned");
        drop(own.take());
        let next = GuardFn(|_: &codemode_registry::pipeline::Call| Some("replaced".to_owned()));
        *own = Some(handle.add_guard(id, Arc::new(next)).expect("a scope"));
        None
    });
    *slot.lock().expect("not poisoned") =
        Some(registry.add_guard(scope.id(), Arc::new(replaces)).expect("a scope"));
    let call = async || {
        text(
            &registry
                .execute(CallRequest::new("c", "echo", json("{}")).by(Agent::new("a", scope.id())))
                .await,
        )
    };
    assert_eq!(call().await, "{}");
    assert_eq!(call().await, "Error: replaced");
}
