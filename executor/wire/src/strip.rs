//! What the executor and a stripping process say to each other, on a stream socket, in frames of [`crate::codec`].
//!
//! The executor's first frame is a [`BootRequest`](crate::control::BootRequest), the process's first a [`StripHello`].
//! After that each [`StripRequest`] is answered by one [`StripAnswer`], in order.

use crate::codec::{Frame, FrameError, Reader, Writer};
use crate::layer::LayerSet;
use crate::message::Shape;

/// Frame kind of a request.
const REQUEST: u8 = 1;
/// Frame kind of an answer that carries JavaScript.
const STRIPPED: u8 = 2;
/// Frame kind of an answer that refuses.
const REFUSED: u8 = 3;

/// Frame kind of a hello.
const HELLO: u8 = 4;
/// Frame kind of a lockdown that failed.
const FAULT: u8 = 5;

/// A stripping process's first word, before it has seen a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StripHello {
    /// It is locked down.
    Ready {
        /// [`crate::limits::WIRE_VERSION`] of the runner.
        version: u16,
        /// Layers in force.
        layers: LayerSet,
    },
    /// A step of its lockdown failed; it is about to exit.
    Fault {
        /// The step.
        step: String,
        /// The error number.
        errno: i32,
    },
}

impl StripHello {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ready { version, layers } => {
                let mut w = Writer::new(HELLO, 6);
                w.u16(*version).u32(layers.bits());
                w.finish()
            }
            Self::Fault { step, errno } => {
                let mut w = Writer::new(FAULT, 64);
                w.str(step).i32(*errno);
                w.finish()
            }
        }
    }

    /// The hello in a frame.
    ///
    /// # Errors
    /// Any [`FrameError`].
    pub fn decode(frame: Frame<'_>) -> Result<Self, FrameError> {
        let mut r = Reader::new(frame.payload);
        let hello = match frame.kind {
            HELLO => {
                Self::Ready { version: r.u16("version")?, layers: LayerSet::from_bits(r.u32("layers")?) }
            }
            FAULT => Self::Fault { step: r.str("step")?.to_owned(), errno: r.i32("errno")? },
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        r.end()?;
        Ok(hello)
    }
}

/// One program to strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripRequest<'a> {
    /// Echoed in the answer.
    pub id: u64,
    /// The program as it was sent.
    pub program: &'a str,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StripAnswer {
    /// JavaScript that means what the TypeScript meant.
    Stripped {
        /// The request's id.
        id: u64,
        /// How to run the text.
        shape: Shape,
        /// The text, every line and column where it was in the program.
        source: String,
        /// Advice for the author, e.g. `function "main" is defined and never called`.
        hints: Vec<String>,
    },
    /// Not a program that can run.
    Refused {
        /// The request's id.
        id: u64,
        /// What is wrong and what to write instead.
        message: String,
        /// Line in the program, from 1; 0 if unknown.
        line: u32,
        /// Column in UTF-16 units, from 1; 0 if unknown.
        column: u32,
    },
}

impl<'a> StripRequest<'a> {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(REQUEST, self.program.len() + 12);
        w.u64(self.id).str(self.program);
        w.finish()
    }

    /// The request in a frame.
    ///
    /// # Errors
    /// Any [`FrameError`].
    pub fn decode(frame: Frame<'a>) -> Result<Self, FrameError> {
        if frame.kind != REQUEST {
            return Err(FrameError::UnknownKind(frame.kind));
        }
        let mut r = Reader::new(frame.payload);
        let request = Self { id: r.u64("id")?, program: r.str("program")? };
        r.end()?;
        Ok(request)
    }
}

impl StripAnswer {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Stripped { id, shape, source, hints } => {
                let mut w = Writer::new(STRIPPED, source.len() + 256);
                w.u64(*id).u8(shape.to_wire()).str(source).list(hints, |w, hint| {
                    w.str(hint);
                });
                w.finish()
            }
            Self::Refused { id, message, line, column } => {
                let mut w = Writer::new(REFUSED, message.len() + 24);
                w.u64(*id).str(message).u32(*line).u32(*column);
                w.finish()
            }
        }
    }

    /// The answer in a frame.
    ///
    /// # Errors
    /// Any [`FrameError`].
    pub fn decode(frame: Frame<'_>) -> Result<Self, FrameError> {
        let mut r = Reader::new(frame.payload);
        let answer = match frame.kind {
            STRIPPED => Self::Stripped {
                id: r.u64("id")?,
                shape: Shape::from_wire(r.u8("shape")?)?,
                source: r.str("source")?.to_owned(),
                hints: r.list("hints", |r| Ok(r.str("hint")?.to_owned()))?,
            },
            REFUSED => Self::Refused {
                id: r.u64("id")?,
                message: r.str("message")?.to_owned(),
                line: r.u32("line")?,
                column: r.u32("column")?,
            },
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        r.end()?;
        Ok(answer)
    }
}
