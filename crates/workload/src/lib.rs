//! What applications offer, and those that decide as they go. The simulator and the agent both ask here, so that the
//! same network makes the same decisions on every engine. Times are nanoseconds of the caller's clock.

pub mod video;

pub use video::{Next, Player, Segment};
