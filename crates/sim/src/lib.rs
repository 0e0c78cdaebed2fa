//! A deterministic discrete-event simulator of Linux TCP, queue disciplines and links.
//!
//! A run is a pure function of its resolved document ([`run::Run`]): same document, same bytes out,
//! on any machine and any number of threads.

pub mod cc;
pub mod matching;
pub mod packet;
pub mod qdisc;
pub mod rng;
pub mod run;
pub mod tc;
pub mod tcp;
pub mod units;
