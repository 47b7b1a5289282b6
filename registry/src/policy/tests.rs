//! Which rule decides.

use codemode_client::JsonText;

use super::*;

fn policy(rules: &str) -> Policy {
    serde_json::from_str(rules).expect("a policy")
}

fn decided(rules: &str, tool: &str, arguments: &str, labels: &[&str]) -> Option<Effect> {
    let arguments = Arguments::parse(JsonText::parse(arguments).expect("JSON")).expect("lossless");
    policy(rules).decide(tool, &arguments, labels).map(|rule| rule.effect)
}

#[test]
fn globs() {
    for (pattern, text, fits) in [
        ("*", "", true),
        ("github.get_*", "github.get_issue", true),
        ("github.get_*", "github.delete", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("*b*b", "abcb", true),
        ("*a*a*a*b", &"a".repeat(200), false),
        ("Read", "read", false),
    ] {
        assert_eq!(Glob::new(pattern).matches(text), fits, "{pattern} on {text}");
    }
}

#[test]
fn the_first_rule_that_fits_decides() {
    let rules = r#"[{"effect":"allow","tools":["github.get_*"]},{"effect":"deny","tools":["github.*"]}]"#;
    assert_eq!(decided(rules, "github.get_issue", "{}", &[]), Some(Effect::Allow));
    assert_eq!(decided(rules, "github.delete", "{}", &[]), Some(Effect::Deny));
    assert_eq!(decided(rules, "read", "{}", &[]), None);
}

#[test]
fn arguments_and_scopes_narrow_a_rule() {
    let rules = r#"[{"effect":"ask","tools":["write"],"arguments":[{"pointer":"/files/0/path","matches":"/etc/*"}],"scope":"worker-*"}]"#;
    let arguments = r#"{"files":[{"path":"/etc/passwd"}]}"#;
    assert_eq!(decided(rules, "write", arguments, &["main", "worker-1"]), Some(Effect::Ask));
    assert_eq!(decided(rules, "write", arguments, &["main"]), None);
    assert_eq!(decided(rules, "write", r#"{"files":[]}"#, &["worker-1"]), None);
    let numbers = r#"[{"effect":"deny","tools":["*"],"arguments":[{"pointer":"/n","matches":"[1,2]"}]}]"#;
    assert_eq!(decided(numbers, "x", r#"{"n":[1, 2]}"#, &[]), Some(Effect::Deny));
}
