//! Nodes, links and what is on the way between them.

pub mod capturing;
pub mod graph;
pub mod interface;
pub mod lanes;
pub mod medium;
pub mod queue;
pub mod tunnel;
pub mod wire;
