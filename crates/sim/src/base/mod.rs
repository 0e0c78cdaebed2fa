//! What knows nothing of networks: units, random streams, histograms, the event queue.

pub mod event;
pub mod histogram;
pub mod rng;
pub mod units;
