//! A deterministic discrete-event simulator of Linux TCP, queue disciplines and links.
//!
//! A run is a pure function of its resolved document ([`run::Run`]): same document, same bytes out,
//! on any machine and any number of threads.

pub mod build;
pub mod capture;
pub mod cc;
pub mod charge;
pub mod event;
pub mod flow;
pub mod histogram;
pub mod link;
pub mod matching;
pub mod net;
pub mod outcome;
pub mod packet;
pub mod probe;
pub mod qdisc;
pub mod record;
pub mod rng;
pub mod run;
pub mod short;
pub mod sim;
pub mod tc;
pub mod tcp;
pub mod trace;
pub mod tunnel;
pub mod units;

pub use cc::Registry;
pub use outcome::{Outcome, SimError, check, check_with, simulate, simulate_with};
