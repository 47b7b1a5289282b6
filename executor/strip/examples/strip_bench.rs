//! Prints how long stripping takes, in microseconds: median and 99th percentile of many runs of a few programs, and of
//! each file named on the command line.

use std::hint::black_box;
use std::time::{Duration, Instant};

use codemode_strip::strip;

/// Measured for each program, at the most.
const RUNS_MAX: usize = 2_000;
/// Spent on each program, about.
const SPENT: Duration = Duration::from_secs(2);

fn huge() -> String {
    let mut program = String::new();
    for index in 0..12_000 {
        program.push_str(&format!("const v{index}: number = {index} as number;\n"));
    }
    program + "return v11999;\n"
}

fn measure(program: &str) -> (f64, f64) {
    let started = Instant::now();
    let mut times = Vec::new();
    while times.len() < RUNS_MAX && (times.len() < 5 || started.elapsed() < SPENT) {
        let before = Instant::now();
        black_box(strip(black_box(program)));
        times.push(before.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

#[expect(clippy::print_stdout, reason = "its purpose")]
fn main() -> std::io::Result<()> {
    codemode_strip::warm_up();
    let tools = "const r: { n: number } = await tools[\"echo\"]({ n: 5 }) as any;\nreturn r.n!;\n";
    let mut programs = vec![
        ("return 1 + 1".to_owned(), "return 1 + 1;".to_owned()),
        ("one tool call".to_owned(), tools.to_owned()),
        ("100 tool calls in blocks".to_owned(), format!("{{ {tools} }}\n").repeat(100)),
        ("12 000 constants".to_owned(), huge()),
    ];
    for path in std::env::args().skip(1) {
        programs.push((path.clone(), std::fs::read_to_string(path)?));
    }
    println!("{:>12} {:>12} {:>10}  program", "p50 us", "p99 us", "bytes");
    for (name, program) in programs {
        let (median, tail) = measure(&program);
        println!("{median:>12.1} {tail:>12.1} {:>10}  {name}", program.len());
    }
    Ok(())
}
