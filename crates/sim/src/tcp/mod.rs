//! Linux TCP: the sender, the receiver and what they share.

pub mod accecn;
mod ack;
mod cwnd_usage;
mod delayed_ack;
pub mod ecn;
pub mod feedback;
pub mod handshake;
mod out_of_order;
mod output;
mod peer_window;
mod prr;
mod rack;
mod rate;
pub mod receive_window;
pub mod receiver;
mod recovery;
mod reno_sack;
pub mod rtt;
mod scoreboard;
mod send_buffer;
pub mod sender;
mod small_queue;
mod timer;
mod tlp;
mod undo;
