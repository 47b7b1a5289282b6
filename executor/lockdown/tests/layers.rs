//! How each layer stands, per user and surroundings, and that the children say the same.

#![expect(clippy::print_stdout, reason = "how the layers stand on this machine is worth reading")]

mod common;

use codemode_lockdown::Engine;
use common::{Zygote, matrix};

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
