//! Qdiscs: what is known of each kind, and the words of those shapers that tc does not know.

pub mod cake;
pub mod cake_stats;
pub mod framing;
pub mod kinds;
pub mod sce;
