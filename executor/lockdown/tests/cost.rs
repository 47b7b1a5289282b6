//! What the lockdown costs each run, step by step. Prints the table that `README.md` shows; fails only if it is far off.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "the table is the point")]

mod common;

use std::collections::BTreeMap;
use std::time::Instant;

use codemode_lockdown::Engine;
use common::{Setup, Zygote};

const RUNS: usize = 400;

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn a_childs_lockdown_is_cheap() {
    for engine in [Engine::V8, Engine::Quickjs] {
        let zygote = Zygote::start(Setup::new(engine));
        let mut steps: BTreeMap<(usize, String), Vec<u64>> = BTreeMap::new();
        let (mut sums, mut hellos) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let started = Instant::now();
            let mut run = zygote.run();
            hellos.push(u64::try_from(started.elapsed().as_nanos()).unwrap());
            let times = run.ask("times").unwrap();
            let mut sum = 0;
            for (at, word) in times.split(' ').enumerate() {
                let (step, time) = word.split_once('=').unwrap();
                let time: u64 = time.parse().unwrap();
                sum += time;
                steps.entry((at, step.replace('_', " "))).or_default().push(time);
            }
            sums.push(sum);
        }
        println!("{engine}, {RUNS} runs, medians in microseconds");
        for ((_, step), mut times) in steps {
            println!("   {step:22} {:>7.1}", median(&mut times) as f64 / 1000.0);
        }
        let sum = median(&mut sums);
        println!("   {:22} {:>7.1}", "all steps", sum as f64 / 1000.0);
        println!("   {:22} {:>7.1}", "request to hello", median(&mut hellos) as f64 / 1000.0);
        assert!(sum < 5_000_000, "{engine}: {sum} ns");
    }
}
