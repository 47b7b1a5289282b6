//! What the registry does, by the numbers of the contract's behaviours: each test's name ends in the numbers it shows.
//! Data cases are under `tests/cases`, where another implementation can run them.

mod agent;
mod bridge;
mod modes;
mod pipeline;
mod scheduler;
mod schema_cases;
mod scopes;
mod support;
