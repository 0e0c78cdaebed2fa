//! A deterministic discrete-event simulator of Linux TCP, queue disciplines and links.
//!
//! A run is a pure function of its resolved document ([`bakeoff_document::run::Run`]): same document, same bytes out,
//! on any machine and any number of threads.

pub mod base;
pub mod build;
pub mod cc;
pub mod endpoint;
pub mod network;
pub mod packet;
pub mod qdisc;
pub mod record;
pub mod sim;
pub mod tcp;

pub use base::budget::Budget;
pub use base::error::{Refused, SimError};
pub use build::outcome::{
    Outcome, check, check_with, simulate, simulate_until, simulate_with, simulate_within,
};
pub use cc::Registry;
