//! Each step of the lockdown made to fail, one system call at a time: either a layer is reported as missing with a reason, or
//! there is no process that could be given a program. Never a process that claims what it lacks.

mod common;

use codemode_lockdown::Engine;
use codemode_wire::{Layer, LayerState};
use common::{Answer, NOBODY, SIGSYS, Setup, Zygote, is_root, skip};

/// What may come of a refused system call.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// The zygote says which step failed and exits.
    NoZygote(&'static str),
    /// The zygote serves, its children fail at this step and get no program.
    NoRun(&'static str),
    /// These layers are reported as unavailable, with reasons; all else works.
    Missing(&'static [Layer]),
}

fn check_early(setup: Setup, name: &str, number: i64, errno: i32, expected: Outcome) {
    check(setup, name, &format!("{number}={errno}"), errno, expected);
}

fn check(setup: Setup, name: &str, outer: &str, errno: i32, expected: Outcome) {
    let setup = setup.outer(Box::leak(outer.to_owned().into_boxed_str()));
    match (Zygote::try_start(setup), expected) {
        (Err(fault), Outcome::NoZygote(step)) => {
            assert_eq!((fault.step.as_str(), fault.errno), (step, errno), "{name}");
        }
        (Ok(zygote), Outcome::NoRun(step)) => match zygote.try_run(60, 256 << 20) {
            Ok(_) => panic!("{name}: a run came to be"),
            Err(fault) => assert_eq!((fault.step.as_str(), fault.errno), (step, errno), "{name}"),
        },
        (Ok(zygote), Outcome::Missing(layers)) => {
            for layer in layers {
                let report = zygote.report(*layer);
                assert_eq!(report.state, LayerState::Unavailable, "{name}: {layer}");
                assert!(report.reason.len() > 10, "{name}: {layer}: `{}`", report.reason);
            }
            let mut run = zygote.run();
            assert!(layers.iter().all(|layer| !run.layers.contains(*layer)), "{name}");
            assert_eq!(run.attack("syscall 57 0 0 0 0 0 0"), SIGSYS, "{name}: the rest holds");
        }
        (Ok(_), Outcome::NoZygote(step)) => panic!("{name}: started, though `{step}` should have failed"),
        (Err(fault), expected) => panic!("{name}: {fault:?}, expected {expected:?}"),
    }
}

const NAMESPACES: &[Layer] =
    &[Layer::UserNamespace, Layer::EmptyRoot, Layer::NetworkNamespace, Layer::MiscNamespaces];

#[test]
fn a_step_that_fails_leaves_no_process_for_a_program() {
    let setup = Setup::new(Engine::Quickjs);
    let refuse = |name, number, errno, expected| check_early(setup, name, number, errno, expected);
    // Before the engine boots.
    refuse("setsid", libc::SYS_setsid, libc::EPERM, Outcome::NoZygote("new session"));
    refuse("chdir", libc::SYS_chdir, libc::EACCES, Outcome::NoZygote("change directory"));
    refuse("sigprocmask", libc::SYS_rt_sigprocmask, libc::EINVAL, Outcome::NoZygote("reset signals"));
    refuse("capset", libc::SYS_capset, libc::EPERM, Outcome::NoZygote("drop capabilities"));
    refuse("prlimit", libc::SYS_prlimit64, libc::EPERM, Outcome::NoZygote("common resource limits"));
    // Between boot and service.
    refuse("seccomp", libc::SYS_seccomp, libc::EINVAL, Outcome::NoZygote("install filter"));
    refuse(
        "landlock in the zygote",
        libc::SYS_landlock_restrict_self,
        libc::E2BIG,
        Outcome::NoZygote("landlock"),
    );
    refuse("clone", libc::SYS_clone, libc::EAGAIN, Outcome::NoZygote("try namespaces"));
}

#[test]
fn what_the_kernel_lacks_is_reported_as_missing() {
    let nobody =
        if is_root() { Setup::new(Engine::Quickjs).uid(NOBODY) } else { Setup::new(Engine::Quickjs) };
    check_early(nobody, "unshare", libc::SYS_unshare, libc::EPERM, Outcome::Missing(NAMESPACES));
    check_early(nobody, "unshare, exhausted", libc::SYS_unshare, libc::ENOSPC, Outcome::Missing(NAMESPACES));
    check_early(nobody, "mount", libc::SYS_mount, libc::EPERM, Outcome::Missing(&[Layer::EmptyRoot]));
    check_early(
        nobody,
        "pivot_root",
        libc::SYS_pivot_root,
        libc::EPERM,
        Outcome::Missing(&[Layer::EmptyRoot]),
    );
    check_early(
        nobody,
        "no landlock",
        libc::SYS_landlock_create_ruleset,
        libc::ENOSYS,
        Outcome::Missing(&[Layer::Landlock]),
    );
    check_early(
        nobody,
        "landlock not enabled",
        libc::SYS_landlock_create_ruleset,
        libc::EOPNOTSUPP,
        Outcome::Missing(&[Layer::Landlock]),
    );
    if is_root() {
        let root = Setup::new(Engine::Quickjs);
        let without_mounts = &[Layer::UserNamespace, Layer::NetworkNamespace, Layer::MiscNamespaces];
        check_early(
            root,
            "unshare as root",
            libc::SYS_unshare,
            libc::EPERM,
            Outcome::Missing(without_mounts),
        );
        check_early(root, "setresuid", libc::SYS_setresuid, libc::EPERM, Outcome::NoZygote("drop user id"));
        check_early(root, "setresgid", libc::SYS_setresgid, libc::EPERM, Outcome::NoZygote("drop user id"));
        check_early(root, "setgroups", libc::SYS_setgroups, libc::EPERM, Outcome::NoZygote("drop user id"));
    } else {
        skip("the rows that start as root");
    }
}

/// Steps that only a run's process takes: the refusal begins when the zygote is sealed.
#[test]
fn a_step_that_fails_in_the_child_leaves_no_run() {
    for engine in Engine::ALL {
        let setup = Setup::new(engine);
        let refuse = |name, number: i64, errno: i32, step| {
            check(setup, name, &format!("late:{number}={errno}"), errno, Outcome::NoRun(step));
        };
        refuse("clone", libc::SYS_clone, libc::EAGAIN, "fork");
        refuse("landlock", libc::SYS_landlock_restrict_self, libc::E2BIG, "own landlock domain");
        refuse("close_range", libc::SYS_close_range, libc::EINVAL, "close descriptors");
        refuse("prctl", libc::SYS_prctl, libc::EINVAL, "parent death signal");
        // The parent is another one than when the zygote began: it has died in between.
        check(
            setup,
            "getppid",
            &format!("late:{}=1", libc::SYS_getppid),
            libc::ESRCH,
            Outcome::NoRun("parent death signal"),
        );
        refuse("prlimit", libc::SYS_prlimit64, libc::EPERM, "limit cpu");
        refuse("seccomp", libc::SYS_seccomp, libc::EINVAL, "install own filter");
        let setup = setup.without(&[Layer::ParentDeathSignal]);
        let late = format!("late:{}={}", libc::SYS_prctl, libc::EINVAL);
        check(setup, "dumpable", &late, libc::EINVAL, Outcome::NoRun("check undumpable"));
    }
}

#[test]
fn limits_that_cannot_be_raised_are_kept() {
    let zygote = Zygote::start(Setup::new(Engine::Quickjs));
    // More than the hard limits of this process allow, if it has any: clamped, never refused.
    let mut run = zygote.run_with(u32::MAX, u64::MAX);
    assert_eq!(run.attack("environ"), Answer::Returned(0, 0));
    // And less than anyone could live on is refused by the kernel in the middle of things, not before.
    let mut small = zygote.run_with(0, 0);
    assert!(matches!(small.attack("allocate 64"), Answer::Returned(0..=2, libc::ENOMEM)));
}

#[test]
fn layers_that_are_turned_off_are_reported_off() {
    let mut off = Setup::new(Engine::Quickjs);
    for layer in Layer::ALL {
        off = off.without(&[layer]);
    }
    let zygote = Zygote::start(off);
    for report in &zygote.layers {
        assert_eq!(report.state, LayerState::Off, "{}", report.layer);
        assert!(!report.reason.is_empty(), "{}", report.layer);
    }
    let mut run = zygote.run();
    assert!(run.layers.is_empty());
    let getuid = run.attack(&format!("syscall {} 0 0 0 0 0 0", libc::SYS_getppid));
    assert!(matches!(getuid, Answer::Returned(1.., 0)), "{getuid:?}");
}

#[test]
fn each_layer_can_be_turned_off_alone() {
    for engine in [Engine::V8, Engine::Quickjs] {
        let all = Zygote::start(Setup::new(engine));
        for layer in Layer::ALL {
            // Without `no_new_privs` only root may install a filter, and the runner never is; it must not start then.
            if layer == Layer::NoNewPrivileges {
                let fault =
                    Zygote::try_start(Setup::new(engine).without(&[layer])).err().expect("fails closed");
                assert!(["landlock", "install filter"].contains(&fault.step.as_str()), "{fault:?}");
                continue;
            }
            let zygote = Zygote::start(Setup::new(engine).without(&[layer]));
            assert_eq!(zygote.report(layer).state, LayerState::Off, "{engine} {layer}");
            let run = zygote.run();
            for other in Layer::ALL.into_iter().filter(|other| *other != layer) {
                // Without a user of its own a process of root stays root; without a user namespace one of another
                // user has no right to the rest.
                let depends = layer == Layer::UserNamespace || layer == Layer::UidDrop;
                assert!(
                    depends || run.layers.contains(other) == all.in_force(other),
                    "{engine}: without {layer}, {other} changed: {:?}",
                    zygote.report(other)
                );
            }
        }
    }
}
