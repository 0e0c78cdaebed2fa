//! The words of qdiscs that the simulator and the agent both read: those of the shapers that tc does not know.

pub mod cake;
pub mod cake_stats;
pub mod framing;
pub mod sce;
