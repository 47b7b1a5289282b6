//! Framing: `u32` little-endian payload length, one byte of kind, the payload. Fields inside a payload are
//! fixed-width little-endian numbers and `u32`-prefixed byte strings, in a fixed order, with nothing left over.
//!
//! [`Decoder`] takes bytes as they arrive and yields whole frames; it refuses a length before it buffers for it.
//! [`Reader`] takes a payload apart; [`Writer`] builds a frame.

use crate::limits::{FRAME_BYTES_CEILING, FRAME_HEADER_BYTES};

/// Why bytes are not a frame, or a payload not a message. Each is a protocol violation of the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The header announces more than the limit.
    #[error("frame of {length} bytes exceeds the limit of {limit}")]
    TooLong {
        /// Announced length of the payload, bytes.
        length: u32,
        /// The limit, bytes.
        limit: u32,
    },
    /// No message has this kind.
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
    /// The payload ends inside a field.
    #[error("frame ends inside `{0}`")]
    Truncated(&'static str),
    /// The payload goes on after its last field.
    #[error("{0} bytes left over after the last field")]
    LeftOver(usize),
    /// A field holds what it may not.
    #[error("field `{field}` is invalid: {reason}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The stream ended inside a frame.
    #[error("stream ended inside a frame")]
    EndedInside,
}

/// One whole frame, borrowed from the decoder's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What kind of message the payload is.
    pub kind: u8,
    /// The message's fields.
    pub payload: &'a [u8],
}

/// Turns a stream of bytes into frames. Bytes are appended by the caller ([`Decoder::buffer`]), frames taken out
/// ([`Decoder::next_frame`]); what the announced length asks for is never reserved before the bytes are there.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    payload_bytes_max: u32,
}

impl Decoder {
    /// A decoder that refuses payloads over `payload_bytes_max` bytes (itself at most [`FRAME_BYTES_CEILING`]).
    #[must_use]
    pub fn new(payload_bytes_max: u32) -> Self {
        Self { buffer: Vec::new(), start: 0, payload_bytes_max: payload_bytes_max.min(FRAME_BYTES_CEILING) }
    }

    /// Where the caller appends what it read. Frames taken before are dropped from it first.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        &mut self.buffer
    }

    /// The next whole frame, or `None` if its bytes are not all there yet.
    ///
    /// # Errors
    /// [`FrameError::TooLong`], as soon as the header is there. The stream cannot be trusted after it.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let Some((header, rest)) = self.buffer[self.start..].split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        if length > self.payload_bytes_max {
            return Err(FrameError::TooLong { length, limit: self.payload_bytes_max });
        }
        let Ok(length) = usize::try_from(length) else {
            return Err(FrameError::TooLong { length, limit: self.payload_bytes_max });
        };
        if rest.len() < length {
            return Ok(None);
        }
        let from = self.start + FRAME_HEADER_BYTES;
        self.start = from + length;
        let kind = self.buffer[from - 1];
        Ok(Some(Frame { kind, payload: &self.buffer[from..from + length] }))
    }

    /// How many bytes are buffered and not yet taken as frames.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// To be asked at the end of the stream.
    ///
    /// # Errors
    /// [`FrameError::EndedInside`] if part of a frame is left.
    pub fn finish(&self) -> Result<(), FrameError> {
        if self.pending_bytes() == 0 { Ok(()) } else { Err(FrameError::EndedInside) }
    }
}

/// Takes a payload apart field by field; [`Reader::end`] insists that nothing is left.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of the payload.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], FrameError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(FrameError::Truncated(field))?;
        self.rest = rest;
        Ok(*head)
    }

    /// One byte.
    ///
    /// # Errors
    /// [`FrameError::Truncated`].
    pub fn u8(&mut self, field: &'static str) -> Result<u8, FrameError> {
        Ok(self.take::<1>(field)?[0])
    }

    /// A byte that must be 0 or 1.
    ///
    /// # Errors
    /// [`FrameError::Truncated`], [`FrameError::Invalid`].
    pub fn flag(&mut self, field: &'static str) -> Result<bool, FrameError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FrameError::Invalid { field, reason: "neither 0 nor 1" }),
        }
    }

    /// A `u16`.
    ///
    /// # Errors
    /// [`FrameError::Truncated`].
    pub fn u16(&mut self, field: &'static str) -> Result<u16, FrameError> {
        Ok(u16::from_le_bytes(self.take(field)?))
    }

    /// A `u32`.
    ///
    /// # Errors
    /// [`FrameError::Truncated`].
    pub fn u32(&mut self, field: &'static str) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.take(field)?))
    }

    /// An `i32`.
    ///
    /// # Errors
    /// [`FrameError::Truncated`].
    pub fn i32(&mut self, field: &'static str) -> Result<i32, FrameError> {
        Ok(i32::from_le_bytes(self.take(field)?))
    }

    /// A `u64`.
    ///
    /// # Errors
    /// [`FrameError::Truncated`].
    pub fn u64(&mut self, field: &'static str) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(self.take(field)?))
    }

    /// Exactly `N` bytes.
    ///
    /// # Errors
    /// [`FrameError::Truncated`].
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], FrameError> {
        self.take(field)
    }

    /// A length-prefixed byte string, borrowed.
    ///
    /// # Errors
    /// [`FrameError::Truncated`].
    pub fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], FrameError> {
        let length = usize::try_from(self.u32(field)?).map_err(|_| FrameError::Truncated(field))?;
        let (head, rest) = self.rest.split_at_checked(length).ok_or(FrameError::Truncated(field))?;
        self.rest = rest;
        Ok(head)
    }

    /// A length-prefixed UTF-8 string, borrowed.
    ///
    /// # Errors
    /// [`FrameError::Truncated`], [`FrameError::Invalid`].
    pub fn str(&mut self, field: &'static str) -> Result<&'a str, FrameError> {
        std::str::from_utf8(self.bytes(field)?)
            .map_err(|_| FrameError::Invalid { field, reason: "not UTF-8" })
    }

    /// A list: a `u32` count, then each item by `item`. Nothing is reserved on the count's word.
    ///
    /// # Errors
    /// Whatever `item` returns; [`FrameError::Truncated`].
    pub fn list<T>(
        &mut self,
        field: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, FrameError>,
    ) -> Result<Vec<T>, FrameError> {
        let count = self.u32(field)?;
        let mut items = Vec::new();
        for _ in 0..count {
            if self.rest.is_empty() {
                return Err(FrameError::Truncated(field));
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// The end of the payload.
    ///
    /// # Errors
    /// [`FrameError::LeftOver`].
    pub fn end(self) -> Result<(), FrameError> {
        if self.rest.is_empty() { Ok(()) } else { Err(FrameError::LeftOver(self.rest.len())) }
    }
}

/// Builds one frame. The length is filled in by [`Writer::finish`].
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// A frame of that kind without fields yet, with room for a payload of `payload_bytes`.
    #[must_use]
    pub fn new(kind: u8, payload_bytes: usize) -> Self {
        let mut bytes = Vec::with_capacity(FRAME_HEADER_BYTES + payload_bytes);
        bytes.extend_from_slice(&[0, 0, 0, 0, kind]);
        Self { bytes }
    }

    /// Appends raw bytes without a length.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    /// Appends a flag.
    pub fn flag(&mut self, value: bool) -> &mut Self {
        self.u8(u8::from(value))
    }

    /// Appends a `u16`.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends a `u32`.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends an `i32`.
    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends a `u64`.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends a length-prefixed byte string.
    ///
    /// # Panics
    /// If it is longer than [`FRAME_BYTES_CEILING`]; callers check values against the frame limit first.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.u32(wire_length(value.len()));
        self.raw(value)
    }

    /// Appends a length-prefixed string. Panics as [`Writer::bytes`].
    pub fn str(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// Appends a list: its count, then each item by `item`.
    pub fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) -> &mut Self {
        self.u32(wire_length(items.len()));
        for each in items {
            item(self, each);
        }
        self
    }

    /// The whole frame, header filled in.
    ///
    /// # Panics
    /// If the payload is longer than [`FRAME_BYTES_CEILING`].
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let length = wire_length(self.bytes.len() - FRAME_HEADER_BYTES);
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes
    }
}

/// A length as it travels.
fn wire_length(length: usize) -> u32 {
    match u32::try_from(length) {
        Ok(length) if length <= FRAME_BYTES_CEILING => length,
        _ => panic!("{length} bytes exceed the frame ceiling; the caller must check values first"),
    }
}
