//! Linux TCP: the sender, the receiver and what they share.

mod ack;
pub mod ecn;
mod output;
pub mod receiver;
mod recovery;
pub mod rtt;
mod scoreboard;
pub mod sender;
mod small_queue;
pub mod sock;
