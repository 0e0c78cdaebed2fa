//! Nodes, links and what is on the way between them.

pub mod capturing;
pub(crate) mod device;
pub mod graph;
pub mod instant;
pub mod interface;
pub mod machine;
pub mod medium;
pub mod queue;
pub mod tunnel;
pub mod wire;
