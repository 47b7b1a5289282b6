//! libFuzzer's way to the `packet` target of `tests/hostile_bytes`.
#![no_main]
#![allow(dead_code, reason = "each of the programs calls one of the targets")]

#[path = "../../tests/hostile_bytes/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::packet(data));
