//! Where options come from, what is refused and with which words, and that the generated pages are current.

use std::path::Path;

use clap::Parser as _;

use super::options::NUMBERS;
use super::*;
use crate::present::Mode;

fn validate(toml: &str) -> Result<Config, Vec<String>> {
    let options: Options = toml::from_str(toml).expect("well-formed options");
    Config::validate(&options).map_err(|faults| faults.0)
}

#[track_caller]
fn faults(toml: &str) -> Vec<String> {
    validate(toml).expect_err("faults")
}

#[test]
fn nothing_given_is_a_whole_configuration_and_the_defaults_say_the_same() {
    let config = validate("").expect("defaults hold");
    assert_eq!(config.listen.to_string(), "127.0.0.1:50052");
    assert_eq!((config.settings.mode, config.settings.max_parallel_sub_calls), (Mode::Native, 10));
    assert!(matches!(config.programs, ProgramsChoice::Private(..)));
    let spelt = Config::validate(&Options::defaults()).expect("defaults hold");
    assert_eq!(
        (spelt.limits, spelt.store, spelt.drain_grace),
        (config.limits, config.store, config.drain_grace)
    );
}

#[test]
fn both_ends_of_every_number() {
    for number in NUMBERS {
        let check = |value: u64| {
            let toml = format!("{} = {value}", number.name);
            validate(&toml).is_ok()
        };
        assert!(check(number.min) && check(number.max), "{}", number.name);
        assert!(number.default.is_none_or(check), "{}", number.name);
        assert!(!check(number.max + 1), "{}", number.name);
        assert!(number.min == 0 || !check(number.min - 1), "{}", number.name);
        assert!(!number.why.is_empty());
    }
}

#[test]
fn each_fault_has_its_words() {
    for (toml, fault) in [
        ("mode = \"x\"", "`mode` is `x`; it must be one of `native`, `code`, `both`"),
        ("max_parallel_sub_calls = 0", "`max_parallel_sub_calls` is 0; it must be from 1 to 1024 calls"),
        ("tool_order = [\"a\"]", "`tool_order`: toolOrder must contain the rest entry `<unlisted-tools>`"),
        (
            "tool_order = [\"a\", \"a\", \"<unlisted-tools>\"]",
            "`tool_order`: toolOrder lists `a` more than once",
        ),
        ("store = \"redis:x\"", "`store` is `redis:x`; it must be `memory` or `sqlite:PATH`"),
        ("store = \"sqlite:\"", "`store` is `sqlite:`; it must be `memory` or `sqlite:PATH`"),
        ("listen = \"here\"", "`listen` is `here`; it must be `unix:PATH` or `IP:PORT`"),
        ("listen = \"unix:\"", "`listen` is `unix:` without a path"),
        ("tls_cert = \"/x\"", "`tls_cert` and `tls_key` go together"),
        ("programs = \"none\"\nexecutors = [\"unix:/x\"]", "`executors` are named, and `programs` is `none`"),
        (
            "listen = \"[::]:1\"",
            "`listen` is `[::]:1`, which other machines can reach: set `tls_cert`, `tls_key` and `auth_token_file`, or \
             say `allow_unauthenticated_network = true`",
        ),
        (
            "[[policy]]\neffect = \"deny\"\ntools = [\"x\"]\narguments = [{ pointer = \"a\", matches = \"*\" }]",
            "rule 1 of `policy`: the pointer `a` must be empty or begin with `/`",
        ),
    ] {
        assert_eq!(faults(toml), [fault], "{toml}");
    }
    assert_eq!(faults("mode = \"x\"\nstore = \"y\"\nconnect_ms = 0").len(), 3, "all at once");
    assert!(validate("listen = \"0.0.0.0:1\"\nallow_unauthenticated_network = true").is_ok());
}

#[test]
fn arguments_win_over_the_file() {
    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }
    let given = Command::parse_from(["x", "--mode", "code", "--tool-order", "b,<unlisted-tools>"]).options;
    let file: Options = toml::from_str("mode = \"both\"\nsessions_max = 3").expect("options");
    let options = given.over(file);
    assert_eq!((options.mode.as_deref(), options.sessions_max), (Some("code"), Some(3)));
    assert_eq!(options.tool_order.expect("an order"), ["b", "<unlisted-tools>"]);
}

#[test]
fn secrets_are_not_printed() {
    let shown = format!("{:?}", Token::new("0123456789abcdef"));
    assert!(!shown.contains("0123"), "{shown}");
}

#[test]
fn the_generated_pages_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_default();
    assert!(read("docs/registry-configuration.md") == reference::markdown(), "run `make gen`");
    assert!(read("deploy/config/registry.example.toml") == reference::example_toml(), "run `make gen`");
}

#[test]
fn the_example_file_uncommented_is_a_file_of_options() {
    let commented = reference::example_toml();
    let options: String = commented
        .lines()
        .filter_map(|line| {
            line.strip_prefix("# ").filter(|line| line.contains(" = ") && !line.contains(". "))
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let before_policy = options.split("effect = ").next().unwrap_or_default();
    let parsed: Result<Options, _> = toml::from_str(before_policy);
    assert!(parsed.is_ok(), "{parsed:?}\n{before_policy}");
}
