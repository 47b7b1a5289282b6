//! The conformance cases as data, and what runs them against real processes.
//!
//! [`case`] is the format of the cases under `tests/conformance` (its README is the reference for other languages),
//! [`tools`] the scripted bindings, [`executor`] the process under test, [`run`] one run seen from the outside,
//! [`judge`] what is compared, [`suite`] all of it together. [`live`] holds a run open by hand, [`process`] looks at
//! processes from outside.
//!
//! Speaks the generated messages directly and not through the client crate, so that the protocol itself is asserted.

pub mod case;
pub mod executor;
pub mod judge;
pub mod live;
pub mod process;
pub mod run;
pub mod suite;
pub mod tools;
