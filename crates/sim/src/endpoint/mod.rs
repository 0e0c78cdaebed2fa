//! What hosts do: flows, which are applications with their connections, and probes.

pub mod connection;
pub mod datagrams;
pub mod flow;
pub mod probe;
pub mod short;
