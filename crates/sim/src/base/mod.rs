//! What knows nothing of networks: units, random streams, histograms, counts, the event queue, errors.

pub mod count;
pub mod error;
pub mod event;
pub mod histogram;
pub mod rng;
pub(crate) mod table;
pub mod units;
