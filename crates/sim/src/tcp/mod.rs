//! Linux TCP: the sender, the receiver and what they share.

pub mod sock;
