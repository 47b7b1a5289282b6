//! The gate between a fresh process and its program: only a process that has confirmed its lockdown can be given one.
//!
//! [`Unconfirmed`] holds the program's frame and gives it to nobody. [`Unconfirmed::confirm`] consumes it and is the only
//! way to a [`Confirmed`], which hands the frame out. Nothing else builds a program frame.

use codemode_wire::limits::WIRE_VERSION;
use codemode_wire::message::{HostFrame, NamespaceTable, ProgramSpec};
use codemode_wire::{Layer, LayerSet};

/// A process that has not confirmed its lockdown, and the program that waits for it.
#[derive(Debug)]
pub struct Unconfirmed {
    frame: Vec<u8>,
    namespaces: Vec<NamespaceTable>,
    nonce: [u8; 16],
    expected: LayerSet,
}

/// A process that has confirmed its lockdown.
#[derive(Debug)]
pub struct Confirmed {
    /// The program, encoded.
    pub frame: Vec<u8>,
    /// What it can call.
    pub namespaces: Vec<NamespaceTable>,
    /// Layers in force.
    pub layers: LayerSet,
}

/// Why a hello is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloFault {
    /// Another build.
    #[error("wire version {0} instead of {WIRE_VERSION}")]
    Version(u16),
    /// Not the answer to our request.
    #[error("the nonce is not the one it was given")]
    Nonce,
    /// A layer that its zygote promised is missing.
    #[error("layer `{0}` is not in force")]
    Layer(Layer),
}

impl Unconfirmed {
    /// Encodes the program and keeps it. `expected` are the layers that the zygote promised.
    #[must_use]
    pub fn new(spec: ProgramSpec, nonce: [u8; 16], expected: LayerSet) -> Self {
        let frame = HostFrame::Program(spec);
        let bytes = frame.encode();
        let namespaces = match frame {
            HostFrame::Program(spec) => spec.namespaces,
            HostFrame::Reply { .. } | HostFrame::ReplyError { .. } => Vec::new(),
        };
        Self { frame: bytes, namespaces, nonce, expected }
    }

    /// Judges the process's hello.
    ///
    /// # Errors
    /// Why it is not believed. The program is gone with `self`.
    pub fn confirm(self, version: u16, nonce: &[u8; 16], layers: LayerSet) -> Result<Confirmed, HelloFault> {
        if version != WIRE_VERSION {
            return Err(HelloFault::Version(version));
        }
        if *nonce != self.nonce {
            return Err(HelloFault::Nonce);
        }
        match self.expected.minus(layers).iter().next() {
            Some(layer) => Err(HelloFault::Layer(layer)),
            None => Ok(Confirmed { frame: self.frame, namespaces: self.namespaces, layers }),
        }
    }
}

#[cfg(test)]
mod tests {
    use codemode_wire::message::Shape;

    use super::*;

    const EXPECTED: LayerSet = LayerSet::EMPTY.with(Layer::Seccomp).with(Layer::Rlimits);

    fn confirm(version: u16, nonce: u8, layers: LayerSet) -> Result<(), HelloFault> {
        let spec = ProgramSpec {
            source: "return 1".to_owned(),
            shape: Shape::Body,
            namespaces: Vec::new(),
            output_bytes: 4,
            heap_bytes: 1,
            argument_bytes_max: 1,
            log_entry_bytes_max: 1,
            undefined_omit: false,
            seed: [0; 16],
        };
        Unconfirmed::new(spec, [7; 16], EXPECTED).confirm(version, &[nonce; 16], layers).map(drop)
    }

    #[test]
    fn only_a_true_hello_opens_the_gate() {
        assert_eq!(confirm(WIRE_VERSION, 7, EXPECTED), Ok(()));
        assert_eq!(confirm(WIRE_VERSION, 7, EXPECTED.with(Layer::Landlock)), Ok(()));
        assert_eq!(confirm(WIRE_VERSION + 1, 7, EXPECTED), Err(HelloFault::Version(WIRE_VERSION + 1)));
        assert_eq!(confirm(WIRE_VERSION, 8, EXPECTED), Err(HelloFault::Nonce));
        let without = EXPECTED.without(Layer::Seccomp);
        assert_eq!(confirm(WIRE_VERSION, 7, without), Err(HelloFault::Layer(Layer::Seccomp)));
    }
}
