//! What hosts do: flows and probes.

pub mod flow;
pub mod probe;
pub mod short;
