//! The policy file is valid and says what it is meant to say; broken files are refused with their fault.

use super::{Action, Phase, Policy, Verdict, names};
use crate::engine::Engine;

fn decide(engine: Engine, phase: Phase, name: &str, args: [u64; 6]) -> Action {
    let policy = Policy::load().expect("the policy is valid");
    let number = names::syscall(name).expect("a known system call");
    policy.verdicts(engine, phase).get(&number).unwrap_or(&Verdict::KILL).decide(&args, Some(100))
}

#[test]
fn every_rule_has_a_reason_and_every_engine_a_policy() {
    let policy = Policy::load().expect("the policy is valid");
    assert!(policy.rules().iter().all(|rule| rule.reason.len() > 3));
    for engine in Engine::ALL {
        let run = policy.verdicts(engine, Phase::Run);
        let allowed = run.values().filter(|verdict| !verdict.clauses().is_empty()).count();
        assert!(allowed <= 32, "{engine} allows {allowed} system calls");
    }
}

#[test]
fn the_points_that_matter() {
    let check = |engine, phase, name, args: [u64; 6], expected| {
        assert_eq!(decide(engine, phase, name, args), expected, "{engine} {name} {args:x?}");
    };
    let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    let no_file = u64::MAX;
    for engine in Engine::ALL {
        check(engine, Phase::Run, "read", [3, 0, 0, 0, 0, 0], Action::Allow);
        check(engine, Phase::Run, "read", [0, 0, 0, 0, 0, 0], Action::Kill);
        check(engine, Phase::Run, "read", [5, 0, 0, 0, 0, 0], Action::Kill);
        check(engine, Phase::Run, "write", [4, 0, 0, 0, 0, 0], Action::Kill);
        check(engine, Phase::Run, "recvmsg", [4, 0, 0, 0, 0, 0], Action::Kill);
        check(engine, Phase::Zygote, "recvmsg", [4, 0, 0, 0, 0, 0], Action::Allow);
        check(engine, Phase::Run, "clone", [0x8011, 0, 0, 0, 0, 0], Action::Kill);
        check(engine, Phase::Zygote, "clone", [0x8011, 0, 0, 0, 0, 0], Action::Allow);
        check(engine, Phase::Zygote, "clone", [0x11, 0, 0, 0, 0, 0], Action::Kill);
        check(engine, Phase::Run, "mmap", [0, 1, 3, anonymous, no_file, 0], Action::Allow);
        check(engine, Phase::Run, "mmap", [0, 1, 3, anonymous, 3, 0], Action::Kill);
        check(engine, Phase::Run, "mmap", [0, 1, 3, 0x21, no_file, 0], Action::Kill);
        let executable = if engine.compiles() { Action::Allow } else { Action::Kill };
        check(engine, Phase::Run, "mmap", [0, 1, 7, anonymous, no_file, 0], executable);
        check(engine, Phase::Run, "mprotect", [0, 1, 5, 0, 0, 0], executable);
        check(engine, Phase::Run, "tgkill", [100, 100, 6, 0, 0, 0], Action::Allow);
        check(engine, Phase::Run, "tgkill", [101, 101, 6, 0, 0, 0], Action::Kill);
        check(engine, Phase::Run, "tgkill", [100, 100, 9, 0, 0, 0], Action::Kill);
        check(engine, Phase::Run, "openat", [0; 6], Action::Errno(libc::EACCES));
        check(engine, Phase::Run, "prctl", [1, 9, 0, 0, 0, 0], Action::Errno(libc::EINVAL));
        check(engine, Phase::Zygote, "prctl", [1, 9, 0, 0, 0, 0], Action::Allow);
        check(engine, Phase::Run, "seccomp", [1, 0, 0, 0, 0, 0], Action::Kill);
    }
}

#[test]
fn broken_files_are_refused() {
    let check = |source: &str, expected: &str| {
        let error = Policy::parse(source).expect_err(source);
        let text = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ");
        assert!(text.contains(expected), "{text}");
    };
    let rule = |body: &str| format!("[[rule]]\nsyscalls = [\"read\"]\nreason = \"r\"\n{body}");
    check(
        "[[rule]]\nsyscalls = [\"raed\"]\naction = \"allow\"\nreason = \"r\"",
        "unknown system call `raed`",
    );
    check("[[rule]]\nsyscalls = []\naction = \"allow\"\nreason = \"r\"", "names no system call");
    check("[[rule]]\nsyscalls = [\"read\"]\naction = \"allow\"\nreason = \"\"", "gives no reason");
    check(&rule("action = \"log\""), "unknown variant `log`");
    check(&rule("action = { errno = \"EWHAT\" }"), "unknown error number `EWHAT`");
    check(&rule("action = \"allow\"\nengines = [\"spidermonkey\"]"), "unknown engine `spidermonkey`");
    check(&rule("action = \"allow\"\ntypo = 1"), "unknown field `typo`");
    check(&rule("action = \"allow\"\nwhen = [{ arg = 6, in = [1] }]"), "arguments 0 to 5");
    check(&rule("action = \"allow\"\nwhen = [{ arg = 0, in = [] }]"), "one of `in`, `within` and `has`");
    check(
        &rule("action = \"allow\"\nwhen = [{ arg = 0, in = [1], has = 1 }]"),
        "one of `in`, `within` and `has`",
    );
    check(&rule("action = \"allow\"\nwhen = [{ arg = 0, bits = 16, in = [1] }]"), "32 or 64 bits");
    check(
        &rule("action = \"allow\"\nwhen = [{ arg = 0, bits = 64, in = [1, -1] }]"),
        "share their upper half",
    );
    check(&rule("action = \"allow\"\nwhen = [{ arg = 0, bits = 64, within = -1 }]"), "a mask has 32 bits");
    check(&rule("action = { errno = \"EPERM\" }\nwhen = [{ arg = 0, in = [1] }]"), "for all arguments");
    check(
        &rule("action = \"allow\"\nwhen = [{ arg = 0, in = [\"PROT_REED\"] }]"),
        "unknown constant `PROT_REED`",
    );
}
