//! Frames that wait until a process takes them. Owns the bytes between the executor and a peer that may never read.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use tokio::net::UnixStream;

/// Frames handed to one system call.
const BATCH: usize = 32;

/// A queue of encoded frames in front of a stream. The caller bounds it by [`Outgoing::bytes`].
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    frames: VecDeque<Vec<u8>>,
    /// Bytes of the first frame that are written already.
    written: usize,
    bytes: usize,
}

impl Outgoing {
    /// Appends a frame.
    pub(crate) fn push(&mut self, frame: Vec<u8>) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    /// Bytes that wait.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Writes until everything is written or the stream takes no more.
    pub(crate) fn flush(&mut self, stream: &UnixStream) -> io::Result<()> {
        while !self.frames.is_empty() {
            let slices: Vec<IoSlice<'_>> = self
                .frames
                .iter()
                .take(BATCH)
                .enumerate()
                .map(|(index, frame)| IoSlice::new(if index == 0 { &frame[self.written..] } else { frame }))
                .collect();
            match stream.try_write_vectored(&slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn advance(&mut self, written: usize) {
        self.bytes -= written;
        let mut left = self.written + written;
        while let Some(first) = self.frames.front() {
            if left < first.len() {
                break;
            }
            left -= first.len();
            self.frames.pop_front();
        }
        self.written = left;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn frames_arrive_whole_and_in_order_through_a_full_stream() {
        let (ours, mut theirs) = UnixStream::pair().expect("pair");
        let mut outgoing = Outgoing::default();
        let frames: Vec<Vec<u8>> = (0_u8..100).map(|n| vec![n; 1 + usize::from(n) * 700]).collect();
        for frame in &frames {
            outgoing.push(frame.clone());
        }
        let expected: Vec<u8> = frames.concat();
        assert_eq!(outgoing.bytes(), expected.len());
        let reader = tokio::spawn(async move {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).await.map(|_| all)
        });
        while !outgoing.is_empty() {
            ours.writable().await.expect("writable");
            outgoing.flush(&ours).expect("flush");
        }
        assert_eq!(outgoing.bytes(), 0);
        drop(ours);
        assert_eq!(reader.await.expect("join").expect("read"), expected);
    }
}
