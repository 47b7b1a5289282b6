//! The committed generated code is what the protos ask for.

#[path = "../examples/generate.rs"]
#[allow(dead_code, reason = "the tool's own main is not called here")]
mod generate;

#[test]
fn generated_code_is_current() {
    let stale = generate::stale().expect("the protos compile");
    assert!(stale.is_empty(), "not current: {stale:?}; run `make gen`");
}
