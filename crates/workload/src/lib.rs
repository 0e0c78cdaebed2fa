//! What applications offer, and those that decide as they go. The simulator and the agent both ask here, so that the
//! same network makes the same decisions on every engine. Times are nanoseconds of the caller's clock.

mod source;
pub mod video;

pub use source::Source;
pub use video::{Next, Player, Segment};
