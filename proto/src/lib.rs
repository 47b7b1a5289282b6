//! The contract of codemode as Rust types: generated messages, clients and servers, and the words that go with them.
//!
//! The contract itself is `codemode/executor/v1/executor.proto` beside this crate; what breaks it and how its version
//! grows stands in `README.md`. The code under `src/generated` is made from it by the example `generate` and is never
//! edited. Nothing here does I/O.
#![forbid(unsafe_code)]

pub mod detail;

/// Packages by their protobuf names.
pub mod codemode {
    /// The executor's packages.
    pub mod executor {
        /// Version 1 of the executor's contract.
        #[allow(
            missing_docs,
            clippy::all,
            clippy::allow_attributes_without_reason,
            reason = "generated; its documentation is the proto's comments, and oneof modules have none"
        )]
        pub mod v1 {
            include!("generated/codemode.executor.v1.rs");
        }
    }
}

pub use codemode::executor::v1 as executor_v1;

/// Version of the executor's contract, as `Describe` answers it.
pub const EXECUTOR_CONTRACT_VERSION: &str = "1.0";

/// Full name of the executor's service, as health checks name it.
pub const EXECUTOR_SERVICE_NAME: &str = "codemode.executor.v1.Executor";

/// Encoded `FileDescriptorSet` of the contract, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptor.bin");

/// Metadata key of the advice that comes with `RESOURCE_EXHAUSTED`: milliseconds to wait, decimal.
pub const RETRY_AFTER_MS: &str = "retry-after-ms";
