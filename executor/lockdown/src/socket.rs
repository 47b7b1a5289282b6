//! Packets on the control socket, which may carry one descriptor.
//!
//! Blocking, and by the calls that the zygote's filter allows: `recvmsg` and `write`.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, recvmsg};

use crate::sys;

/// Why there is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketError {
    /// The call failed.
    #[error("the control socket failed: {0}")]
    Errno(Errno),
    /// The packet was longer than the buffer, or carried more than one descriptor.
    #[error("a packet was cut short")]
    Truncated,
    /// The packet was written in part, which a packet socket never does.
    #[error("a packet was written in part")]
    Partial,
}

/// A packet that was received.
#[derive(Debug)]
pub struct Packet {
    /// Its length, bytes; 0 at the end of the stream.
    pub len: usize,
    /// The descriptor it carried.
    pub fd: Option<OwnedFd>,
}

/// Waits for one packet, at most as long as `buffer`, with at most one descriptor, which gets the lowest free number and is
/// close-on-exec. Interruptions are waited out.
///
/// # Errors
/// [`SocketError`]. After [`SocketError::Truncated`] descriptors may have stayed open: the zygote must exit.
pub fn recv_packet(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Packet, SocketError> {
    // Room for exactly one: the kernel closes what does not fit and says so.
    let mut control = nix::cmsg_space!([std::os::fd::RawFd; 1]);
    loop {
        let mut parts = [IoSliceMut::new(buffer)];
        let message = match recvmsg::<UnixAddr>(
            socket.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::MSG_CMSG_CLOEXEC,
        ) {
            Ok(message) => message,
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(SocketError::Errno(errno)),
        };
        let len = message.bytes;
        if message.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC) {
            return Err(SocketError::Truncated);
        }
        let mut fds: Vec<OwnedFd> = Vec::new();
        for part in message.cmsgs().map_err(SocketError::Errno)? {
            if let ControlMessageOwned::ScmRights(numbers) = part {
                fds.extend(numbers.into_iter().map(sys::own));
            }
        }
        // The control buffer is padded, so that a second descriptor may fit.
        if fds.len() > 1 {
            return Err(SocketError::Truncated);
        }
        return Ok(Packet { len, fd: fds.pop() });
    }
}

/// Sends one packet. Interruptions are waited out.
///
/// # Errors
/// [`SocketError`]; `EPIPE` if the executor is gone.
pub fn send_packet(socket: BorrowedFd<'_>, packet: &[u8]) -> Result<(), SocketError> {
    loop {
        match nix::unistd::write(socket, packet) {
            Ok(len) if len == packet.len() => return Ok(()),
            Ok(_) => return Err(SocketError::Partial),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(SocketError::Errno(errno)),
        }
    }
}
