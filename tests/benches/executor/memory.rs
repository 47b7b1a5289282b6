//! What a live run's process has of its own, as the kernel counts it.

use anyhow::{Context as _, bail};
use codemode_tests::executor::{Client, Executor};
use codemode_tests::live::LiveRun;
use codemode_tests::process;

use crate::Setting;
use crate::report::{Report, Target};
use crate::samples::Samples;
use crate::timed;

const RUNS: u32 = 20;

/// A process's memory, KiB.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Shared pages counted in parts.
    pss: f64,
    /// Written by it since the fork: what one run more costs.
    private_dirty: f64,
    private_clean: f64,
    /// The kernel's tables for it.
    page_tables: f64,
}

fn fields(path: &str) -> std::io::Result<impl Fn(&str) -> f64 + use<>> {
    let text = std::fs::read_to_string(path)?;
    Ok(move |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
    })
}

impl Memory {
    fn of(pid: i32) -> std::io::Result<Self> {
        let rollup = fields(&format!("/proc/{pid}/smaps_rollup"))?;
        let status = fields(&format!("/proc/{pid}/status"))?;
        Ok(Self {
            pss: rollup("Pss:"),
            private_dirty: rollup("Private_Dirty:"),
            private_clean: rollup("Private_Clean:"),
            page_tables: status("VmPTE:"),
        })
    }
}

pub(crate) async fn measure(setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    report.section("memory", "Memory of a run's own while it waits for a binding");
    if !nix::unistd::geteuid().is_root() {
        report.line("  left out: a run's process is not dumpable, so only root may look");
        return Ok(());
    }
    let executor = Executor::start(&toml::Table::new()).await?;
    let mut client = executor.client().await?;
    for engine in &setting.engines {
        // The first runs find a zygote that has never forked.
        for _ in 0..RUNS {
            timed::plain(&mut client, engine, "return 1+1").await?;
        }
        let [mut pss, mut dirty, mut clean, mut tables] = [(); 4].map(|()| Samples::default());
        for _ in 0..setting.options.times(RUNS) {
            setting.settled(&executor).await;
            let memory = of_a_run(&executor, &mut client, engine).await?;
            // The samples' unit is what it is put in: KiB here.
            pss.push_ms(memory.pss);
            dirty.push_ms(memory.private_dirty);
            clean.push_ms(memory.private_clean);
            tables.push_ms(memory.page_tables);
        }
        report.figure(&format!("{engine}, proportional (PSS)"), pss.p50() / 1024.0, "MiB");
        report.figure(&format!("{engine}, private clean"), clean.p50() / 1024.0, "MiB");
        report.figure(&format!("{engine}, page tables"), tables.p50() / 1024.0, "MiB");
        let dirty = dirty.p50() / 1024.0;
        report.target(&format!("{engine}, private dirty"), dirty, "MiB", Target::Below(2.0));
    }
    Ok(())
}

async fn of_a_run(executor: &Executor, client: &mut Client, engine: &str) -> anyhow::Result<Memory> {
    let before = process::descendants(executor.pid());
    let start = timed::start(engine, "return await tools.wait({})", &["wait"]);
    let mut run = LiveRun::start(client, start).await?;
    let call = run.wait_for_call().await?;
    let memories: Vec<_> = before.iter().map(|child| (child, Memory::of(child.pid))).collect();
    run.reply(call, "1");
    run.outcome().await?;
    // It was made ahead of its run, and went with it. No zygote is due for rotation so early.
    let mut gone = memories.into_iter().filter(|(child, _)| !process::is_alive(child));
    match (gone.next(), gone.next()) {
        (Some((_, memory)), None) => memory.context("read the memory of a run"),
        (first, second) => bail!("one run, one process: {first:?} {second:?}"),
    }
}
