//! Packets with and without descriptors, and the ones that are refused.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use codemode_lockdown::socket::{SocketError, recv_packet, send_packet};
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair};

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
}

fn send_with(socket: &OwnedFd, bytes: &[u8], count: usize) {
    let null = std::fs::File::open("/dev/null").unwrap();
    let fds = vec![null.as_raw_fd(); count];
    let rights = [ControlMessage::ScmRights(&fds)];
    let control = if count == 0 { &[][..] } else { &rights[..] };
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::empty(), None).unwrap();
}

#[test]
fn a_packet_is_received_whole_with_its_descriptor() {
    let (mine, theirs) = pair();
    let mut buffer = [0_u8; 64];
    send_with(&theirs, b"first", 1);
    send_with(&theirs, b"second", 0);
    let first = recv_packet(mine.as_fd(), &mut buffer).unwrap();
    assert_eq!(&buffer[..first.len], b"first");
    let fd = first.fd.expect("a descriptor");
    let flags = nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_GETFD).unwrap();
    assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    let second = recv_packet(mine.as_fd(), &mut buffer).unwrap();
    assert_eq!((&buffer[..second.len], second.fd.is_none()), (&b"second"[..], true));
    send_packet(mine.as_fd(), b"answer").unwrap();
    assert_eq!(recv_packet(theirs.as_fd(), &mut buffer).unwrap().len, 6);
}

#[test]
fn packets_that_do_not_fit_are_refused() {
    let (mine, theirs) = pair();
    let mut buffer = [0_u8; 8];
    for (bytes, fds) in [(&b"longer than the buffer"[..], 0), (b"two", 2), (b"three", 3), (b"many", 64)] {
        send_with(&theirs, bytes, fds);
        let refusal = recv_packet(mine.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(refusal, SocketError::Truncated, "{fds} descriptors");
    }
    send_with(&theirs, b"fits", 1);
    assert_eq!(recv_packet(mine.as_fd(), &mut buffer).unwrap().len, 4);
}

#[test]
fn the_end_of_the_stream_is_an_empty_packet_and_then_an_error() {
    let (mine, theirs) = pair();
    drop(theirs);
    let mut buffer = [0_u8; 8];
    assert_eq!(recv_packet(mine.as_fd(), &mut buffer).unwrap().len, 0);
    let error = send_packet(mine.as_fd(), b"anyone").unwrap_err();
    assert_eq!(error, SocketError::Errno(nix::errno::Errno::EPIPE));
}
