//! What runners write to their stderr: kept for operators, bounded, and never trusted as text.

use std::os::fd::OwnedFd;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

/// Bytes that one runner process and its children can get logged. After that the pipe is closed, and who writes to it
/// meets an error: an endless writer must not cost the executor anything.
const STDERR_BYTES_MAX: usize = 256 * 1024;

/// Logs a runner's stderr at debug, line by line, in a task that ends with the pipe.
pub(crate) fn log(stderr: OwnedFd, role: &'static str, pid: i32) {
    let pipe = match pipe::Receiver::from_owned_fd(stderr) {
        Ok(pipe) => pipe,
        Err(error) => {
            tracing::warn!(%error, role, pid, "cannot read a runner's stderr");
            return;
        }
    };
    tokio::spawn(follow(pipe, role, pid));
}

async fn follow(mut pipe: pipe::Receiver, role: &'static str, pid: i32) {
    let mut left = STDERR_BYTES_MAX;
    let mut chunk = vec![0; 4096];
    while left > 0 {
        let Ok(read) = pipe.read(&mut chunk).await else { return };
        if read == 0 {
            return;
        }
        left = left.saturating_sub(read);
        for line in chunk[..read].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            // Escaped: a program must not be able to write terminal sequences or whole lines into our log.
            let text = String::from_utf8_lossy(line);
            tracing::debug!(role, pid, "runner stderr: {}", text.escape_debug());
        }
    }
    tracing::warn!(role, pid, "a runner wrote {STDERR_BYTES_MAX} bytes to stderr; the rest is not read");
}
