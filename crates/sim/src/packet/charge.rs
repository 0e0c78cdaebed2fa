//! What a socket's data occupies in the queues of its own host (`sk_wmem_alloc`), until it leaves the device.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_output.c` (`tcp_wfree`), `net/core/sock.c` (`skb_orphan_partial`).
//!
//! The sender charges each buffer when it hands it down, and marks its packets with [`Flags::CHARGED`]. The event loop
//! tells the sender what left the device; what a queue drops, or netem lets go of, is noted here.
//!
//! Validation: the tests of `tcp/small_queue.rs`, `tests/offloads.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::packet::{Flags, Packet};

/// Memory of a buffer besides its payload, in bytes: `sk_buff` 256, and a head of 320 with 320 of shared information.
pub const HEAD: u64 = 896;

/// Memory of a packet's buffer, in bytes (`truesize`).
pub fn memory(packet: &Packet) -> u64 {
    u64::from(packet.payload) + HEAD
}

/// By flow: memory given back by the queues of its host otherwise than by sending. Shared with those queues; a run has
/// one thread, so that plain loads and stores suffice.
#[derive(Clone, Debug, Default)]
pub struct Charges(Arc<[AtomicU64]>);

impl Charges {
    /// For so many flows.
    pub fn new(flows: usize) -> Self {
        Charges((0..flows).map(|_| AtomicU64::new(0)).collect())
    }

    fn add(&self, packet: &Packet, memory: u64) {
        if packet.flags.has(Flags::CHARGED)
            && let Some(back) = self.0.get(usize::from(packet.flow))
        {
            back.store(back.load(Relaxed).wrapping_add(memory), Relaxed);
        }
    }

    /// The packet's buffer is gone, or no longer its socket's.
    pub fn give_back(&self, packet: &Packet) {
        self.add(packet, memory(packet));
    }

    /// The packet became one buffer per segment: so many heads more.
    pub fn split(&self, packet: &Packet) {
        let heads = u64::from(packet.segs() - 1) * HEAD;
        self.add(packet, heads.wrapping_neg());
    }

    /// What came back for `flow` since the last call; more was charged instead if negative.
    pub fn take(&self, flow: u16) -> i64 {
        self.0.get(usize::from(flow)).map_or(0, |back| {
            let memory = back.load(Relaxed);
            back.store(0, Relaxed);
            memory.cast_signed()
        })
    }
}
