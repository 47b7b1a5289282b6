//! Numbers that both ends of the wire rely on. What an operator may change is configuration and not here.

/// Version of the wire. Both ends are built from one tree; a mismatch means a mixed installation.
pub const WIRE_VERSION: u16 = 2;

/// Bytes of a frame's header: `u32` little-endian length of the payload, then one byte of kind.
pub const FRAME_HEADER_BYTES: usize = 5;

/// Largest frame that any configuration may allow, bytes. Lengths are `u32` on the wire; half of it is room enough.
pub const FRAME_BYTES_CEILING: u32 = 1 << 30;

/// Levels of nesting a JSON value may have. The contract asks for at least 5 000 everywhere; the bound keeps the
/// path stack of the checker (a few bytes a level) far below the size of the text itself.
pub const JSON_DEPTH_MAX: u32 = 100_000;

/// Bytes of one control message between executor and zygote; they are small and of fixed shape.
pub const CONTROL_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a failure's error name (`TypeError`) that are kept.
pub const ERROR_NAME_BYTES_MAX: usize = 256;

/// Largest integer up to which every integer is a double (2^53).
pub const EXACT_INTEGER_MAX: u64 = 1 << 53;
