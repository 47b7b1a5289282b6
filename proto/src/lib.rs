//! The contract of codemode as Rust types: generated messages, clients and servers, and the words that go with them.
//!
//! The contracts themselves are the protos under `codemode/` beside this crate; what breaks them and how their versions
//! grow stands in `README.md`. The code under `src/generated` is made from them by the example `generate` and is never
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

    /// The registry's packages.
    pub mod registry {
        /// Version 1 of the registry's contract.
        #[allow(
            missing_docs,
            clippy::all,
            clippy::allow_attributes_without_reason,
            reason = "generated; its documentation is the proto's comments, and oneof modules have none"
        )]
        pub mod v1 {
            include!("generated/codemode.registry.v1.rs");
        }
    }
}

pub use codemode::executor::v1 as executor_v1;
pub use codemode::registry::v1 as registry_v1;

/// Version of the executor's contract, as `Describe` answers it.
pub const EXECUTOR_CONTRACT_VERSION: &str = "1.0";

/// Full name of the executor's service, as health checks name it.
pub const EXECUTOR_SERVICE_NAME: &str = "codemode.executor.v1.Executor";

/// Version of the registry's contract, as `Describe` answers it.
pub const REGISTRY_CONTRACT_VERSION: &str = "1.0";

/// Full name of the registry's service, as health checks name it.
pub const REGISTRY_SERVICE_NAME: &str = "codemode.registry.v1.Registry";

/// Encoded `FileDescriptorSet` of the executor's contract, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptor.bin");

/// Encoded `FileDescriptorSet` of the registry's contract, for reflection.
pub const REGISTRY_FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/registry_descriptor.bin");

/// Metadata key of the advice that comes with `RESOURCE_EXHAUSTED`: milliseconds to wait, decimal.
pub const RETRY_AFTER_MS: &str = "retry-after-ms";
