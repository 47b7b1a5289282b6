//! The crate's tests from outside: every store under one suite, the log's behaviours by number, shapes, properties,
//! and a writer that is killed.

mod crash;
mod derived;
mod events;
mod following;
mod invariants;
mod log;
mod property;
mod shapes;
mod sqlite;
mod stores;
mod writing;
