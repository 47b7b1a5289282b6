//! The last resort against processes that nobody answers for: the executor is a subreaper, and from time to time looks
//! for children that no [`super::process::Process`] holds. There are none unless a zygote died between making a child
//! and saying so; each one found is ended, reaped, and logged as the fault it is.
//!
//! Only the executor's own binary may watch: in a process with other children this would reap them.

use std::collections::HashSet;
use std::os::fd::AsFd as _;
use std::time::Duration;

use super::{pidfd, process};

/// Between two looks. A child is an orphan only if two looks in a row find it unanswered for, so that one whose
/// number is still on its way to us is left alone.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Looks for orphans for ever.
pub async fn watch() {
    let mut suspects = HashSet::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let unknown: HashSet<i32> = children().into_iter().filter(|pid| !process::is_known(*pid)).collect();
        for pid in unknown.intersection(&suspects) {
            end(*pid);
        }
        suspects = unknown;
    }
}

/// Our children, of every thread.
fn children() -> Vec<i32> {
    let mut children = Vec::new();
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return children };
    for task in tasks.flatten() {
        let listed = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.extend(listed.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    children
}

/// Ends and reaps one. It is our own unreaped child, so its number cannot have passed to another process.
fn end(pid: i32) {
    let fd = match pidfd::open(pid) {
        Ok(fd) => fd,
        Err(error) => {
            tracing::error!(pid, %error, "cannot take hold of an orphan");
            return;
        }
    };
    let ended = pidfd::kill(fd.as_fd()).map(|()| {
        // Death takes a moment; the thread, and not the runtime, waits for it.
        std::thread::spawn(move || pidfd::reap(fd.as_fd()))
    });
    tracing::error!(pid, ended = ended.is_ok(), "an orphan was found and ended");
}
