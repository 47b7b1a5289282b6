//! What the executor and its zygote say to each other on the control socket.
//!
//! The socket is `SOCK_SEQPACKET`: one message is one frame (see [`crate::codec`]), at most
//! [`crate::limits::CONTROL_BYTES_MAX`] bytes. The zygote sends [`ZygoteFrame::Ready`] once; then each
//! [`ForkRequest`], which carries exactly one descriptor (the run's socket), is answered by one
//! [`ZygoteFrame::Forked`] or [`ZygoteFrame::ForkFailed`], in order. Program bytes never travel here.
//! End of stream tells the zygote to exit; its children live on, they are the executor's.

use crate::codec::{Decoder, Frame, FrameError, Reader, Writer};
use crate::layer::{Layer, LayerReport, LayerSet, LayerState};
use crate::limits::CONTROL_BYTES_MAX;

/// First packet to a runner of any role: what its configuration says. On the stripping process's stream it is the
/// first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootRequest {
    /// Layers that the configuration turned off, with all that follows from that.
    pub layers_off: LayerSet,
    /// Run V8 without its compiler, so that memory need never be executable. Means nothing to quickjs.
    pub jitless: bool,
    /// Largest frame, bytes.
    pub frame_bytes_max: u32,
    /// User and group id to drop to where the runner starts as root.
    pub uid: u32,
}

/// Asks for one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkRequest {
    /// Random; the child echoes it in its hello.
    pub nonce: [u8; 16],
    /// `RLIMIT_CPU`, seconds: soft limit; the hard one is a second more.
    pub cpu_seconds: u32,
    /// `RLIMIT_DATA` above what the zygote itself uses, bytes.
    pub data_bytes: u64,
    /// No run waits for it: it may warm up.
    pub ahead: bool,
}

/// What a zygote answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZygoteFrame {
    /// Booted and confined as far as its children can share.
    Ready {
        /// [`crate::limits::WIRE_VERSION`] of the runner.
        version: u16,
        /// `v8` or `quickjs`.
        engine: String,
        /// The engine's own version.
        engine_version: String,
        /// Whether the engine compiles to machine code.
        jit: bool,
        /// How each layer will stand in a child.
        layers: Vec<LayerReport>,
        /// Names of the globals a program will find, sorted.
        globals: Vec<String>,
    },
    /// The process exists. It is a child of the executor (`CLONE_PARENT`), which alone can reap it.
    Forked {
        /// Its process id.
        pid: i32,
    },
    /// There is no process.
    ForkFailed {
        /// The step that failed.
        step: String,
        /// The error number.
        errno: i32,
    },
    /// The zygote cannot serve and is about to exit: a step of its own lockdown or boot failed.
    Fault {
        /// The step.
        step: String,
        /// The error number, or 0.
        errno: i32,
    },
}

mod kind {
    pub(super) const FORK: u8 = 1;
    pub(super) const READY: u8 = 2;
    pub(super) const FORKED: u8 = 3;
    pub(super) const FORK_FAILED: u8 = 4;
    pub(super) const FAULT: u8 = 5;
    pub(super) const BOOT: u8 = 6;
}

/// One whole packet as one frame.
fn with_packet<T>(
    packet: &[u8],
    read: impl FnOnce(Frame<'_>) -> Result<T, FrameError>,
) -> Result<T, FrameError> {
    let mut decoder = Decoder::new(u32::try_from(CONTROL_BYTES_MAX).unwrap_or(u32::MAX));
    decoder.buffer().extend_from_slice(packet);
    let message = match decoder.next_frame()? {
        Some(frame) => read(frame)?,
        None => return Err(FrameError::EndedInside),
    };
    match decoder.pending_bytes() {
        0 => Ok(message),
        left => Err(FrameError::LeftOver(left)),
    }
}

impl BootRequest {
    /// The packet's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(kind::BOOT, 16);
        w.u32(self.layers_off.bits()).flag(self.jitless).u32(self.frame_bytes_max).u32(self.uid);
        w.finish()
    }

    /// The request in a packet.
    ///
    /// # Errors
    /// Any [`FrameError`].
    pub fn decode(packet: &[u8]) -> Result<Self, FrameError> {
        with_packet(packet, Self::from_frame)
    }

    /// The request in a frame.
    ///
    /// # Errors
    /// Any [`FrameError`].
    pub fn from_frame(frame: Frame<'_>) -> Result<Self, FrameError> {
        if frame.kind != kind::BOOT {
            return Err(FrameError::UnknownKind(frame.kind));
        }
        let mut r = Reader::new(frame.payload);
        let request = Self {
            layers_off: LayerSet::from_bits(r.u32("layers_off")?),
            jitless: r.flag("jitless")?,
            frame_bytes_max: r.u32("frame_bytes_max")?,
            uid: r.u32("uid")?,
        };
        r.end()?;
        Ok(request)
    }
}

impl ForkRequest {
    /// The packet's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(kind::FORK, 29);
        w.raw(&self.nonce).u32(self.cpu_seconds).u64(self.data_bytes).flag(self.ahead);
        w.finish()
    }

    /// The request in a packet.
    ///
    /// # Errors
    /// Any [`FrameError`].
    pub fn decode(packet: &[u8]) -> Result<Self, FrameError> {
        with_packet(packet, |frame| {
            if frame.kind != kind::FORK {
                return Err(FrameError::UnknownKind(frame.kind));
            }
            let mut r = Reader::new(frame.payload);
            let request = Self {
                nonce: r.array("nonce")?,
                cpu_seconds: r.u32("cpu_seconds")?,
                data_bytes: r.u64("data_bytes")?,
                ahead: r.flag("ahead")?,
            };
            r.end()?;
            Ok(request)
        })
    }
}

impl ZygoteFrame {
    /// The packet's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ready { version, engine, engine_version, jit, layers, globals } => {
                let mut w = Writer::new(kind::READY, 4096);
                w.u16(*version).str(engine).str(engine_version).flag(*jit);
                w.list(layers, |w, report| {
                    w.u8(report.layer as u8).u8(match report.state {
                        LayerState::InForce => 0,
                        LayerState::Unavailable => 1,
                        LayerState::Off => 2,
                    });
                    w.str(&report.reason);
                });
                w.list(globals, |w, name| {
                    w.str(name);
                });
                w.finish()
            }
            Self::Forked { pid } => {
                let mut w = Writer::new(kind::FORKED, 4);
                w.i32(*pid);
                w.finish()
            }
            Self::ForkFailed { step, errno } => {
                let mut w = Writer::new(kind::FORK_FAILED, 64);
                w.str(step).i32(*errno);
                w.finish()
            }
            Self::Fault { step, errno } => {
                let mut w = Writer::new(kind::FAULT, 64);
                w.str(step).i32(*errno);
                w.finish()
            }
        }
    }

    /// The message in a packet.
    ///
    /// # Errors
    /// Any [`FrameError`].
    pub fn decode(packet: &[u8]) -> Result<Self, FrameError> {
        with_packet(packet, |frame| {
            let mut r = Reader::new(frame.payload);
            let message = match frame.kind {
                kind::READY => Self::Ready {
                    version: r.u16("version")?,
                    engine: r.str("engine")?.to_owned(),
                    engine_version: r.str("engine_version")?.to_owned(),
                    jit: r.flag("jit")?,
                    layers: r.list("layers", read_report)?,
                    globals: r.list("globals", |r| Ok(r.str("global")?.to_owned()))?,
                },
                kind::FORKED => Self::Forked { pid: r.i32("pid")? },
                kind::FORK_FAILED => {
                    Self::ForkFailed { step: r.str("step")?.to_owned(), errno: r.i32("errno")? }
                }
                kind::FAULT => Self::Fault { step: r.str("step")?.to_owned(), errno: r.i32("errno")? },
                other => return Err(FrameError::UnknownKind(other)),
            };
            r.end()?;
            Ok(message)
        })
    }
}

fn read_report(r: &mut Reader<'_>) -> Result<LayerReport, FrameError> {
    let index = usize::from(r.u8("layer")?);
    let layer =
        *Layer::ALL.get(index).ok_or(FrameError::Invalid { field: "layer", reason: "no such layer" })?;
    let state = match r.u8("state")? {
        0 => LayerState::InForce,
        1 => LayerState::Unavailable,
        2 => LayerState::Off,
        _ => return Err(FrameError::Invalid { field: "state", reason: "no such state" }),
    };
    Ok(LayerReport { layer, state, reason: r.str("reason")?.to_owned() })
}
