//! Starts runner processes, all from one thread that never ends.
//!
//! `PR_SET_PDEATHSIG` fires when the parent *thread* dies, so a worker thread of the runtime must not be a runner's
//! parent. The thread belongs to the operating system process and serves every supervisor in it. There is no
//! `pre_exec`: without one std spawns with `posix_spawn`, which costs the same however large the executor is.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;

use std::os::unix::process::CommandExt as _;
use tokio::sync::oneshot;

use super::process::Process;

/// First argument of every runner, whatever its file is called: what it sees of itself is constant.
const ARGV0: &str = "codemode-runner";

/// A runner to start.
struct Order {
    program: PathBuf,
    role: &'static str,
    control: OwnedFd,
    answer: oneshot::Sender<io::Result<Started>>,
}

/// What came of it: its number, and the reading end of its stderr.
type Started = (i32, OwnedFd);

/// Starts `program` in `role` with `control` as its descriptor 0, an empty environment and `/` as its directory.
/// Answers the process and the reading end of its stderr.
pub(crate) async fn spawn(
    program: &Path,
    role: &'static str,
    control: OwnedFd,
) -> io::Result<(Process, OwnedFd)> {
    let (answer, answered) = oneshot::channel();
    let order = Order { program: program.to_owned(), role, control, answer };
    spawner()?.send(order).map_err(|_| io::Error::other("the spawner thread is gone"))?;
    let (pid, stderr) = answered.await.map_err(|_| io::Error::other("the spawner thread is gone"))??;
    Ok((Process::adopt(pid)?, stderr))
}

fn spawner() -> io::Result<&'static mpsc::Sender<Order>> {
    static SPAWNER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    if let Some(spawner) = SPAWNER.get() {
        return Ok(spawner);
    }
    let (orders, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("codemode-spawner".to_owned());
    thread.spawn(move || serve(&receiver))?;
    // Should two threads race here, the loser's channel closes and its thread ends without having spawned anything.
    Ok(SPAWNER.get_or_init(|| orders))
}

fn serve(orders: &mpsc::Receiver<Order>) {
    while let Ok(order) = orders.recv() {
        let started = start(&order.program, order.role, order.control);
        // If nobody waits any more, the runner meets the end of its control channel and exits by itself; the orphan
        // watch reaps it.
        let _ = order.answer.send(started);
    }
}

fn start(program: &Path, role: &'static str, control: OwnedFd) -> io::Result<Started> {
    let mut child = Command::new(program)
        .arg0(ARGV0)
        .arg(role)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let pid = i32::try_from(child.id()).map_err(|_| io::ErrorKind::InvalidData)?;
    let stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    // `Child` does not wait when it is dropped: the process is reaped through its pidfd.
    Ok((pid, stderr.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_there_is_an_error_and_the_thread_survives_it() {
        for _ in 0..2 {
            let (ours, _theirs) = std::os::unix::net::UnixStream::pair().expect("socket pair");
            let error = spawn(Path::new("/nonexistent/runner"), "zygote", ours.into()).await;
            assert_eq!(error.expect_err("not there").kind(), io::ErrorKind::NotFound);
        }
    }

    #[tokio::test]
    async fn a_spawned_process_is_reaped_with_its_exit() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("socket pair");
        let (process, _stderr) = spawn(Path::new("/bin/cat"), "/dev/null", theirs.into()).await.expect("cat");
        let ended = process.reap().await.expect("reaped");
        assert_eq!(ended.exit, crate::run::attribution::Exit::Code(0));
        drop(ours);
    }

    #[tokio::test]
    async fn a_dropped_process_is_killed_and_reaped() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("socket pair");
        let (process, _stderr) = spawn(Path::new("/bin/sleep"), "1000", theirs.into()).await.expect("sleep");
        let pid = process.pid();
        drop(process);
        for _ in 0..200 {
            if !super::super::process::is_known(pid) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        drop(ours);
    }
}
