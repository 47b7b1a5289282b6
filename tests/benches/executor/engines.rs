//! The engines beside each other and beside Node, each program in a process or a worker thread that is fresh.

use bytes::Bytes;
use codemode_proto::executor_v1 as v1;
use codemode_tests::executor::{Client, Executor};
use serde_json::json;

use crate::Setting;
use crate::report::Report;
use crate::samples::Samples;
use crate::timed;

const TIMES: u32 = 5;

/// `(name, program)`; `tools.echo` answers its argument.
const PROGRAMS: &[(&str, &str)] = &[
    ("fib(28), recursive", "const fib = (n) => n < 2 ? n : fib(n - 1) + fib(n - 2); return fib(28);"),
    ("3e6 additions", "let s = 0; for (let i = 0; i < 3e6; i++) s = (s + i) | 0; return s;"),
    (
        "JSON, group, sort",
        "const rows = Array.from({ length: 20000 }, (_, i) => ({ id: i, tag: 't' + i % 97, price: (i * 7919) % 1000 / 10 }));\
         const copy = JSON.parse(JSON.stringify(rows));\
         const sums = new Map();\
         for (const row of copy) sums.set(row.tag, (sums.get(row.tag) ?? 0) + row.price);\
         return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([tag, sum]) => ({ tag, sum: Math.round(sum) }));",
    ),
    (
        "text, regular expressions",
        "const text = Array.from({ length: 5000 }, (_, i) => `user${i}@example.com,${i % 31},note ${i}`).join('\\n');\
         let n = 0; for (const m of text.matchAll(/(\\w+)@([\\w.]+),(\\d+)/g)) n += Number(m[3]);\
         return n + text.split('\\n').map((line) => line.split(',')).filter((row) => row[1] === '7').length;",
    ),
    (
        "sort 1e5 numbers",
        "let x = 1; const a = Array.from({ length: 1e5 }, () => x = (x * 48271) % 2147483647); a.sort((a, b) => a - b); return a[500];",
    ),
    ("1e5 awaits", "let s = 0; for (let i = 0; i < 1e5; i++) s += await i; return s;"),
    (
        "ten 10 MiB strings, there and back",
        "const text = 'x'.repeat(10 << 20); let n = 0; for (let i = 0; i < 10; i++) n += (await tools.echo(text)).length; return n;",
    ),
];

pub(crate) async fn measure(setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    report.section("engines", "The program alone, best of a few, milliseconds");
    let executor = Executor::start(&toml::Table::new()).await?;
    let mut client = executor.client().await?;
    let mut head = format!("  {:<36}", "");
    for engine in &setting.engines {
        head += &format!("{engine:>10}");
    }
    report.line(format!("{head}{:>10}", "node"));
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for (name, program) in PROGRAMS {
        let mut row = format!("  {name:<36}");
        let mut figures = json!({"program": name});
        for engine in &setting.engines {
            match ours(&mut client, engine, program, setting.options.times(TIMES)).await? {
                Ok(ms) => {
                    row += &format!("{ms:>10.2}");
                    figures[engine] = ms.into();
                }
                Err(failure) => {
                    row += &format!("{:>10}", "fails");
                    failures.push(format!("{engine}, {name}: {}", failure.message));
                }
            }
        }
        let node = setting.peers.workers(program, setting.options.times(TIMES))?;
        if let Some(best) = node.iter().flatten().map(|run| run.run_ms).min_by(f64::total_cmp) {
            row += &format!("{best:>10.2}");
            figures["node"] = best.into();
        }
        report.line(row);
        rows.push(figures);
    }
    report.note("programs", rows);
    for failure in failures {
        report.fails(failure);
    }
    Ok(())
}

/// The best of so many runs, milliseconds; or how the program fails on this engine.
async fn ours(
    client: &mut Client,
    engine: &str,
    program: &str,
    times: u32,
) -> anyhow::Result<Result<f64, v1::Failure>> {
    let mut samples = Samples::default();
    for _ in 0..times {
        let start = timed::start(engine, program, &["echo"]);
        let timed = timed::run(client, start, |call| Bytes::clone(&call.args_json)).await?;
        if let Some(failure) = timed.outcome.failure {
            return Ok(Err(failure));
        }
        samples.push_ms(timed.phases().run_us as f64 / 1e3);
    }
    Ok(Ok(samples.quantile(0.0)))
}
