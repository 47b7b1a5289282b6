//! The binary as an operator meets it: configuration, signals, a private executor, a killed process.

mod configuration;
mod lifecycle;
mod support;
