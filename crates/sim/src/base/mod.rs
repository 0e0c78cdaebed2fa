//! What knows nothing of networks: units, random streams, histograms, counts, rings, the event queue, errors.

pub mod budget;
pub mod count;
pub mod error;
pub mod event;
pub mod histogram;
pub mod ring;
pub mod rng;
pub(crate) mod table;

pub use bakeoff_document::units;
