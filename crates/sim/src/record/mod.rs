//! What is written down while a run goes on.

pub mod series;
pub mod trace;
