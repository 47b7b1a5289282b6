//! Processes seen from outside, through `/proc`: descendants, zombies, open descriptors. Reads only.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a condition is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// One process as `/proc/PID/stat` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its parent's id.
    pub parent: i32,
    /// Its state: `R`, `S`, `Z`, ….
    pub state: char,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Clock ticks since boot when it started: with the id, what it is known by.
    pub started: u64,
}

impl Process {
    /// Whether it has ended and waits to be reaped.
    #[must_use]
    pub const fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

fn parse(pid: i32, stat: &str) -> Option<Process> {
    // The name is in parentheses and may hold any byte; the last parenthesis ends it.
    let (head, tail) = (stat.find('(')?, stat.rfind(')')?);
    let mut fields = stat.get(tail + 2..)?.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Process { pid, parent, state, name: stat.get(head + 1..tail)?.to_owned(), started })
}

/// The process, if there is one of that id.
#[must_use]
pub fn process(pid: i32) -> Option<Process> {
    parse(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Every process of the machine that can be seen.
#[must_use]
pub fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(process).collect()
}

/// All descendants of a process, itself not among them.
#[must_use]
pub fn descendants(root: i32) -> Vec<Process> {
    let mut by_parent: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all() {
        by_parent.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for child in by_parent.remove(&parent).unwrap_or_default() {
            open.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// Whether the very process is still there, zombies not counted.
#[must_use]
pub fn is_alive(known: &Process) -> bool {
    process(known.pid).is_some_and(|now| now.started == known.started && !now.is_zombie())
}

/// How many descriptors a process has open; `None` if that cannot be read.
#[must_use]
pub fn open_descriptors(pid: i32) -> Option<usize> {
    Some(std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).ok()?.count())
}

/// Resident memory of a process, bytes; `None` if that cannot be read.
#[must_use]
pub fn resident_bytes(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? * 1024)
}

/// Looks again and again until the condition holds; whether it did within the time.
pub async fn eventually(within: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + within;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_with_anything_in_them() {
        let stat = "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 2 3";
        let expected =
            Process { pid: 42, parent: 7, state: 'S', name: "a) b (c)".to_owned(), started: 12345 };
        assert_eq!(parse(42, stat), Some(expected));
        assert_eq!(parse(42, "42"), None);
    }

    #[test]
    fn sees_itself() {
        let own = i32::try_from(std::process::id()).expect("an id");
        let process = process(own).expect("this process");
        assert!(is_alive(&process) && descendants(process.parent).iter().any(|found| found.pid == own));
        assert!(open_descriptors(own).is_some_and(|count| count >= 3));
        assert!(resident_bytes(own).is_some_and(|bytes| bytes > 1 << 20));
        assert!(!is_alive(&Process { started: process.started + 1, ..process }));
    }
}
