//! How each layer stands, per user and surroundings, and that the children say the same.

#![expect(clippy::print_stdout, reason = "how the layers stand on this machine is worth reading")]

mod common;

use codemode_lockdown::Engine;
use codemode_wire::Layer;
use common::{Setup, Zygote, is_root, matrix, skip};

#[test]
fn children_report_what_the_zygote_promised() {
    for engine in Engine::ALL {
        for setup in matrix(engine) {
            let zygote = Zygote::start(setup);
            println!("{setup:?}");
            for report in &zygote.layers {
                println!("   {:20} {:?} {}", report.layer.name(), report.state, report.reason);
            }
            let run = zygote.run();
            for report in &zygote.layers {
                assert_eq!(
                    zygote.in_force(report.layer),
                    run.layers.contains(report.layer),
                    "{}",
                    report.layer
                );
                assert_eq!(zygote.in_force(report.layer), report.reason.is_empty(), "{}", report.layer);
            }
        }
    }
}

/// Root needs no user namespace for the others: it enters them with its own rights, and drops those after.
#[test]
fn root_sets_itself_apart_without_a_user_namespace() {
    if !is_root() {
        skip("needs root");
        return;
    }
    let zygote = Zygote::start(Setup::new(Engine::V8).without(&[Layer::UserNamespace]));
    for layer in [
        Layer::EmptyRoot,
        Layer::NetworkNamespace,
        Layer::MiscNamespaces,
        Layer::UidDrop,
        Layer::Capabilities,
    ] {
        assert!(zygote.in_force(layer), "{layer}: {}", zygote.report(layer).reason);
    }
    let run = zygote.run();
    let entries = std::fs::read_dir(format!("/proc/{}/root/", run.pid)).map_or(0, Iterator::count);
    assert_eq!(entries, 0, "the root is not empty");
}
