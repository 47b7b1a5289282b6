//! The start-up probe: it says what a zygote says, and leaves the process that asks as it was.

mod common;

use std::fs;

use codemode_lockdown::Engine;
use codemode_wire::{Layer, LayerState};
use common::{Setup, Zygote};
use nix::sys::wait::{WaitStatus, waitpid};

/// The probe wants a process with one thread, which the harness has not: it runs in a forked child of it.
#[test]
fn the_probe_agrees_with_a_zygote_and_changes_nothing() {
    for engine in Engine::ALL {
        let setup = Setup::new(engine);
        let zygote = Zygote::start(setup);
        let (mine, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let pid = common::fork_in_test(move || {
            let before = fs::read_to_string("/proc/self/status").unwrap_or_default();
            let reports = codemode_lockdown::probe(&common::boot_request(setup), engine);
            let after = fs::read_to_string("/proc/self/status").unwrap_or_default();
            let kept = |text: &str| {
                let fields = ["Uid", "Gid", "Cap", "NoNewPrivs", "Seccomp", "Threads"];
                text.lines()
                    .filter(|line| fields.iter().any(|field| line.starts_with(field)))
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            let Ok(reports) = reports else { return 2 };
            if kept(&before) != kept(&after) {
                return 3;
            }
            let in_force = reports
                .iter()
                .filter(|report| report.state == LayerState::InForce)
                .map(|report| report.layer.name())
                .collect::<Vec<_>>()
                .join(",");
            use std::io::Write as _;
            i32::from((&theirs).write_all(in_force.as_bytes()).is_err())
        });
        let mut text = String::new();
        std::io::Read::read_to_string(&mut &mine, &mut text).expect("the child's words");
        let status = waitpid(nix::unistd::Pid::from_raw(pid), None).expect("reaped");
        assert!(matches!(status, WaitStatus::Exited(_, 0)), "{engine}: {status:?}");
        for layer in Layer::ALL {
            // The harness has an environment; the zygote was started without one.
            if layer != Layer::Environment {
                let named = text.split(',').any(|name| name == layer.name());
                assert_eq!(named, zygote.in_force(layer), "{engine}: {layer}");
            }
        }
    }
}
