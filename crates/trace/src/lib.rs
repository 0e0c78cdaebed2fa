//! Packet captures in, per-flow congestion statistics out.
//!
//! A capture is read once from front to back and never held: memory grows with the number of flows, up to a bound, and
//! not with the number of packets.

pub mod datagram;
pub mod error;
pub mod histogram;
pub mod options;
pub mod report;
