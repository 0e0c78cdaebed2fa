//! The text that bakeoff reads: the resolved run ([`run`]), a qdisc in tc's words ([`tc`]), a congestion control's name
//! and parameters ([`cc`]).
//!
//! The simulator, the agent and the Python bindings share it. It simulates nothing.

pub mod bounds;
pub mod cc;
pub mod error;
pub mod qdisc;
pub mod run;
#[cfg(feature = "schema")]
pub mod schema;
pub mod stimulus;
pub mod tc;
pub mod units;
