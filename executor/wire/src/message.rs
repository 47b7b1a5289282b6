//! What the executor and a run's process say to each other on the run's stream socket.
//!
//! Order: the process sends [`ChildFrame::Hello`] (or [`ChildFrame::Fault`]) first; only then does the executor
//! send [`HostFrame::Program`]; then logs, calls and replies in any number; at most one terminal frame
//! ([`ChildFrame::Completed`], [`ChildFrame::Failed`], [`ChildFrame::Stalled`], [`ChildFrame::HeapExhausted`])
//! ends it. The executor judges the order; here are only the bytes.
//!
//! Texts that a program made (values, arguments, log entries, failure messages) are JSON text: a half surrogate
//! travels as its escape and never as broken UTF-8.

use crate::codec::{Frame, FrameError, Reader, Writer};
use crate::layer::LayerSet;

/// Which failure a process may report of its own program. It cannot claim any other kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildFailureKind {
    /// The program threw.
    Exception,
    /// The engine refused the program's text.
    Syntax,
    /// The completion value is not lossless JSON.
    InvalidOutput,
    /// What the program wants to hand out does not fit its output budget.
    OutputLimit,
}

/// A message from a run's process. Everything in it is claimed by untrusted code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildFrame<'a> {
    /// The process is locked down and waits for its program.
    Hello {
        /// [`crate::limits::WIRE_VERSION`] of the runner.
        version: u16,
        /// The nonce of the fork request, echoed.
        nonce: [u8; 16],
        /// Layers in force for this process.
        layers: LayerSet,
    },
    /// A lockdown step failed; the process ends without a program.
    Fault {
        /// The step.
        step: &'a str,
        /// The error number.
        errno: i32,
    },
    /// One log entry, a JSON string.
    Log {
        /// JSON string literal.
        text: &'a [u8],
    },
    /// A binding call.
    Call {
        /// Counts from 1 without gaps.
        id: u64,
        /// Index into the program's namespaces.
        namespace: u16,
        /// Index into the namespace's functions.
        function: u32,
        /// The argument, JSON text.
        args: &'a [u8],
    },
    /// The program returned.
    Completed {
        /// The value, JSON text; `None` for undefined.
        value: Option<&'a [u8]>,
    },
    /// The program failed.
    Failed {
        /// How.
        kind: ChildFailureKind,
        /// JSON string literal.
        message: &'a [u8],
        /// Class name of what was thrown; empty if it has none.
        name: &'a str,
        /// Line in the program, from 1; 0 if unknown.
        line: u32,
        /// Column in UTF-16 units, from 1; 0 if unknown.
        column: u32,
    },
    /// Nothing can ever wake the program: no call pending, no timer armed.
    Stalled,
    /// The heap cap is reached; the process is about to exit.
    HeapExhausted {
        /// Bytes in use or asked for.
        used: u64,
        /// The cap.
        limit: u64,
    },
}

/// Kinds of child frames on the wire.
mod child_kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const FAULT: u8 = 2;
    pub(super) const LOG: u8 = 3;
    pub(super) const CALL: u8 = 4;
    pub(super) const COMPLETED: u8 = 5;
    pub(super) const FAILED: u8 = 6;
    pub(super) const STALLED: u8 = 7;
    pub(super) const HEAP_EXHAUSTED: u8 = 8;
}

impl<'a> ChildFrame<'a> {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { version, nonce, layers } => {
                let mut w = Writer::new(child_kind::HELLO, 32);
                w.u16(*version).raw(nonce).u32(layers.bits());
                w.finish()
            }
            Self::Fault { step, errno } => {
                let mut w = Writer::new(child_kind::FAULT, 64);
                w.str(step).i32(*errno);
                w.finish()
            }
            Self::Log { text } => {
                let mut w = Writer::new(child_kind::LOG, text.len() + 4);
                w.bytes(text);
                w.finish()
            }
            Self::Call { id, namespace, function, args } => {
                let mut w = Writer::new(child_kind::CALL, args.len() + 18);
                w.u64(*id).u16(*namespace).u32(*function).bytes(args);
                w.finish()
            }
            Self::Completed { value } => {
                let mut w = Writer::new(child_kind::COMPLETED, value.map_or(1, |v| v.len() + 5));
                w.flag(value.is_some());
                if let Some(value) = value {
                    w.bytes(value);
                }
                w.finish()
            }
            Self::Failed { kind, message, name, line, column } => {
                let mut w = Writer::new(child_kind::FAILED, message.len() + name.len() + 17);
                w.u8(match kind {
                    ChildFailureKind::Exception => 1,
                    ChildFailureKind::InvalidOutput => 2,
                    ChildFailureKind::OutputLimit => 3,
                    ChildFailureKind::Syntax => 4,
                });
                w.bytes(message).str(name).u32(*line).u32(*column);
                w.finish()
            }
            Self::Stalled => Writer::new(child_kind::STALLED, 0).finish(),
            Self::HeapExhausted { used, limit } => {
                let mut w = Writer::new(child_kind::HEAP_EXHAUSTED, 16);
                w.u64(*used).u64(*limit);
                w.finish()
            }
        }
    }

    /// The message in a frame, borrowed from it.
    ///
    /// # Errors
    /// Any [`FrameError`]; the stream cannot be trusted after one. JSON texts are not checked here.
    pub fn decode(frame: Frame<'a>) -> Result<Self, FrameError> {
        let mut r = Reader::new(frame.payload);
        let message = match frame.kind {
            child_kind::HELLO => Self::Hello {
                version: r.u16("version")?,
                nonce: r.array("nonce")?,
                layers: LayerSet::from_bits(r.u32("layers")?),
            },
            child_kind::FAULT => Self::Fault { step: r.str("step")?, errno: r.i32("errno")? },
            child_kind::LOG => Self::Log { text: r.bytes("text")? },
            child_kind::CALL => Self::Call {
                id: r.u64("id")?,
                namespace: r.u16("namespace")?,
                function: r.u32("function")?,
                args: r.bytes("args")?,
            },
            child_kind::COMPLETED => {
                Self::Completed { value: if r.flag("has_value")? { Some(r.bytes("value")?) } else { None } }
            }
            child_kind::FAILED => Self::Failed {
                kind: match r.u8("kind")? {
                    1 => ChildFailureKind::Exception,
                    2 => ChildFailureKind::InvalidOutput,
                    3 => ChildFailureKind::OutputLimit,
                    4 => ChildFailureKind::Syntax,
                    _ => return Err(FrameError::Invalid { field: "kind", reason: "no such failure kind" }),
                },
                message: r.bytes("message")?,
                name: r.str("name")?,
                line: r.u32("line")?,
                column: r.u32("column")?,
            },
            child_kind::STALLED => Self::Stalled,
            child_kind::HEAP_EXHAUSTED => {
                Self::HeapExhausted { used: r.u64("used")?, limit: r.u64("limit")? }
            }
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        r.end()?;
        Ok(message)
    }

    /// The message's name for logs and violations.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello",
            Self::Fault { .. } => "fault",
            Self::Log { .. } => "log",
            Self::Call { .. } => "call",
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
            Self::Stalled => "stalled",
            Self::HeapExhausted { .. } => "heap_exhausted",
        }
    }
}

/// How the stripped text is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The text is the body of an async function.
    Body,
    /// The text is one function expression; it is called with the namespaces and its result is the completion.
    Function,
    /// The text is the body of an async function that returns a function; that one is called as for
    /// [`Shape::Function`].
    Factory,
}

impl Shape {
    pub(crate) const fn to_wire(self) -> u8 {
        match self {
            Self::Body => 0,
            Self::Function => 1,
            Self::Factory => 2,
        }
    }

    pub(crate) fn from_wire(byte: u8) -> Result<Self, FrameError> {
        match byte {
            0 => Ok(Self::Body),
            1 => Ok(Self::Function),
            2 => Ok(Self::Factory),
            _ => Err(FrameError::Invalid { field: "shape", reason: "no such shape" }),
        }
    }
}

/// One namespace as the process sees it. Indexes into these lists name bindings on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceTable {
    /// Name of the global.
    pub global: String,
    /// Names of the functions.
    pub functions: Vec<String>,
    /// Class name and member property of its errors.
    pub error_class: Option<(String, String)>,
}

/// All that a process needs to run one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSpec {
    /// The stripped text: JavaScript, every line and column where it was in the program.
    pub source: String,
    /// How to run it.
    pub shape: Shape,
    /// What it can call.
    pub namespaces: Vec<NamespaceTable>,
    /// Output budget, bytes; the process checks early, the executor decides.
    pub output_bytes: u64,
    /// Engine heap cap, bytes.
    pub heap_bytes: u64,
    /// Largest argument, bytes of JSON text.
    pub argument_bytes_max: u32,
    /// Longest log entry, bytes; longer ones are cut and marked.
    pub log_entry_bytes_max: u32,
    /// Whether `undefined` in values and arguments is left out instead of refused.
    pub undefined_omit: bool,
    /// Seed for what the fork duplicated.
    pub seed: [u8; 16],
}

/// A message to a run's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostFrame<'a> {
    /// The program, once, after `Hello`.
    Program(ProgramSpec),
    /// A call's value.
    Reply {
        /// The call's id.
        id: u64,
        /// JSON text, already checked.
        value: &'a [u8],
    },
    /// A call's failure.
    ReplyError {
        /// The call's id.
        id: u64,
        /// What the program's error says.
        message: &'a str,
    },
}

/// Kinds of host frames on the wire.
mod host_kind {
    pub(super) const PROGRAM: u8 = 1;
    pub(super) const REPLY: u8 = 2;
    pub(super) const REPLY_ERROR: u8 = 3;
}

impl<'a> HostFrame<'a> {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Program(spec) => spec.encode(),
            Self::Reply { id, value } => {
                let mut w = Writer::new(host_kind::REPLY, value.len() + 12);
                w.u64(*id).bytes(value);
                w.finish()
            }
            Self::ReplyError { id, message } => {
                let mut w = Writer::new(host_kind::REPLY_ERROR, message.len() + 12);
                w.u64(*id).str(message);
                w.finish()
            }
        }
    }

    /// The message in a frame.
    ///
    /// # Errors
    /// Any [`FrameError`].
    pub fn decode(frame: Frame<'a>) -> Result<Self, FrameError> {
        let mut r = Reader::new(frame.payload);
        let message = match frame.kind {
            host_kind::PROGRAM => Self::Program(ProgramSpec::decode(&mut r)?),
            host_kind::REPLY => Self::Reply { id: r.u64("id")?, value: r.bytes("value")? },
            host_kind::REPLY_ERROR => Self::ReplyError { id: r.u64("id")?, message: r.str("message")? },
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        r.end()?;
        Ok(message)
    }
}

impl ProgramSpec {
    fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(host_kind::PROGRAM, self.source.len() + 1024);
        w.str(&self.source).u8(self.shape.to_wire());
        w.list(&self.namespaces, |w, namespace| {
            w.str(&namespace.global).list(&namespace.functions, |w, name| {
                w.str(name);
            });
            w.flag(namespace.error_class.is_some());
            if let Some((name, member)) = &namespace.error_class {
                w.str(name).str(member);
            }
        });
        w.u64(self.output_bytes).u64(self.heap_bytes);
        w.u32(self.argument_bytes_max).u32(self.log_entry_bytes_max);
        w.flag(self.undefined_omit).raw(&self.seed);
        w.finish()
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, FrameError> {
        Ok(Self {
            source: r.str("source")?.to_owned(),
            shape: Shape::from_wire(r.u8("shape")?)?,
            namespaces: r.list("namespaces", |r| {
                Ok(NamespaceTable {
                    global: r.str("global")?.to_owned(),
                    functions: r.list("functions", |r| Ok(r.str("function")?.to_owned()))?,
                    error_class: if r.flag("has_error_class")? {
                        Some((r.str("error_class")?.to_owned(), r.str("member")?.to_owned()))
                    } else {
                        None
                    },
                })
            })?,
            output_bytes: r.u64("output_bytes")?,
            heap_bytes: r.u64("heap_bytes")?,
            argument_bytes_max: r.u32("argument_bytes_max")?,
            log_entry_bytes_max: r.u32("log_entry_bytes_max")?,
            undefined_omit: r.flag("undefined_omit")?,
            seed: r.array("seed")?,
        })
    }
}
