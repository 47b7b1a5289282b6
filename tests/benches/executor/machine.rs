//! The machine that the figures are of, through `/proc`.

use crate::report::Report;

/// Load above which figures are worth little.
const QUIET_LOAD: f64 = 0.7;

fn first_line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn field(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_once(':').map_or("unknown", |(_, value)| value.trim()).to_owned()
}

/// Load of the last minute.
fn load() -> f64 {
    first_line("/proc/loadavg").split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// Says what machine this is.
pub(crate) fn describe(report: &mut Report) {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field("/proc/cpuinfo", "model name");
    let kernel = first_line("/proc/sys/kernel/osrelease");
    let memory = field("/proc/meminfo", "MemTotal");
    let load = load();
    report.line(format!("{cores} cores, {model}; Linux {kernel}; {memory} memory; load {load:.2}"));
    report.note("cores", cores);
    report.note("model", model);
    report.note("kernel", kernel);
    report.note("memory", memory);
    report.note("load_at_the_beginning", load);
    report.note("root", nix::unistd::geteuid().is_root());
    if load > QUIET_LOAD {
        report.line("the machine is busy with other things: times are worse than they could be, ratios hold");
    }
}

/// Says what load there was in the end; the benchmarks themselves are most of it.
pub(crate) fn load_at_the_end(report: &mut Report) {
    report.section("end", "");
    report.note("load_at_the_end", load());
}
