//! The run's socket as blocking frame I/O: one thread, one descriptor, no reactor.
//!
//! Owns the bytes between this process and the executor. A broken socket means that the executor is gone or has
//! settled the run: the process has nobody to live for and exits at once.

use std::os::fd::BorrowedFd;

use codemode_lockdown::exit_now;
use codemode_wire::message::{ChildFrame, HostFrame};
use codemode_wire::{Decoder, Frame, exit};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{read, write};

/// Bytes read at once, at first: each fresh page costs a run a fault.
const READ_CHUNK_BYTES: usize = 4 * 1024;
/// Bytes read at once, at most.
const READ_CHUNK_BYTES_MAX: usize = 1 << 20;

/// Both directions of the run's socket.
#[derive(Debug)]
pub(crate) struct Channel {
    /// `None` in a rehearsal: what is sent goes nowhere, and a settled run does not end the process.
    socket: Option<BorrowedFd<'static>>,
    decoder: Decoder,
    chunk_bytes: usize,
}

impl Channel {
    /// The channel on a socket; frames over `frame_bytes_max` are refused.
    pub(crate) fn new(socket: BorrowedFd<'static>, frame_bytes_max: u32) -> Self {
        Self { socket: Some(socket), decoder: Decoder::new(frame_bytes_max), chunk_bytes: READ_CHUNK_BYTES }
    }

    /// A channel to nowhere, for the zygote's rehearsal.
    pub(crate) fn rehearsal() -> Self {
        Self { socket: None, decoder: Decoder::new(0), chunk_bytes: 0 }
    }

    /// Sends the frame that settles the run, and ends the process.
    pub(crate) fn settle(&mut self, frame: &ChildFrame<'_>) {
        self.send(frame);
        if self.socket.is_some() {
            exit_now(exit::DONE);
        }
    }

    /// Changes the largest frame that is accepted; what is buffered stays.
    pub(crate) fn set_frame_bytes_max(&mut self, frame_bytes_max: u32) {
        let mut decoder = Decoder::new(frame_bytes_max);
        std::mem::swap(decoder.buffer(), self.decoder.buffer());
        self.decoder = decoder;
    }

    /// Sends one frame; blocks while the socket is full.
    pub(crate) fn send(&mut self, frame: &ChildFrame<'_>) {
        self.send_bytes(&frame.encode());
    }

    /// Sends bytes that are whole frames.
    pub(crate) fn send_bytes(&mut self, mut bytes: &[u8]) {
        let Some(socket) = self.socket else { return };
        while !bytes.is_empty() {
            match write(socket, bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::EINTR) => {}
                Err(_) => exit_now(exit::EXECUTOR_GONE),
            }
        }
    }

    /// Hands each message that is wholly there to `handle`.
    pub(crate) fn drain(&mut self, mut handle: impl FnMut(HostFrame<'_>)) {
        while let Some(frame) = self.next_frame() {
            match HostFrame::decode(frame) {
                Ok(message) => handle(message),
                Err(_) => exit_now(exit::BROKEN_HOST_FRAME),
            }
        }
    }

    /// The next frame that is wholly there.
    pub(crate) fn next_frame(&mut self) -> Option<Frame<'_>> {
        match self.decoder.next_frame() {
            Ok(frame) => frame,
            Err(_) => exit_now(exit::BROKEN_HOST_FRAME),
        }
    }

    /// Whether bytes arrive within that many milliseconds. Reads none.
    pub(crate) fn has_input_within(&self, timeout_ms: u16) -> bool {
        let Some(socket) = self.socket else { return false };
        // An error shows again in the wait for the program.
        poll(&mut [PollFd::new(socket, PollFlags::POLLIN)], timeout_ms).is_ok_and(|ready| ready > 0)
    }

    /// Waits until bytes arrive or `timeout_ms` is over (negative: for ever) and reads what is there.
    pub(crate) fn wait(&mut self, timeout_ms: f64) {
        let timeout = if timeout_ms < 0.0 { PollTimeout::NONE } else { poll_timeout(timeout_ms) };
        let Some(socket) = self.socket else { return };
        let mut fds = [PollFd::new(socket, PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => self.read_some(),
            Err(_) => exit_now(exit::EXECUTOR_GONE),
        }
    }

    /// Reads what is there, at least a byte; blocks until then.
    pub(crate) fn read_some(&mut self) {
        let Some(socket) = self.socket else { return };
        let chunk_bytes = self.chunk_bytes;
        let buffer = self.decoder.buffer();
        let filled = buffer.len();
        buffer.resize(filled + chunk_bytes, 0);
        let count = match read(socket, &mut buffer[filled..]) {
            Ok(0) => exit_now(exit::EXECUTOR_GONE),
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(_) => exit_now(exit::EXECUTOR_GONE),
        };
        buffer.truncate(filled + count);
        // A full chunk announces more: large payloads are worth large reads, small ones fresh pages are not.
        if count == chunk_bytes {
            self.chunk_bytes = (chunk_bytes * 4).min(READ_CHUNK_BYTES_MAX);
        }
    }
}

/// Whole milliseconds, rounded up so that a timer is due when the wait ends; at least 1.
fn poll_timeout(timeout_ms: f64) -> PollTimeout {
    #[expect(clippy::cast_possible_truncation, reason = "clamped to the range of i32 before")]
    let whole = timeout_ms.ceil().clamp(0.0, f64::from(i32::MAX)) as i32;
    PollTimeout::try_from(whole).unwrap_or(PollTimeout::MAX)
}
