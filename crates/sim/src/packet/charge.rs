//! What a packet occupies: of its socket's memory, until it leaves its own host's device (`sk_wmem_alloc`), and in any
//! queue (`skb->truesize`).
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

/// Memory of the buffer in which a socket sent a packet, in bytes.
pub fn memory(packet: &Packet) -> u64 {
    u64::from(packet.payload) + HEAD
}

/// What a socket buffer for a frame takes (`skb->truesize`): its structure of 256 bytes, and 64 bytes of room ahead, the data
/// and 320 of shared info in an allocation of a power of two, or in the small head of 640 bytes.
///
/// Several segments in one buffer lie in pages.
pub fn truesize(packet: &Packet) -> u64 {
    if packet.gso_size != 0 {
        return memory(packet);
    }
    let size = u64::from(packet.len) + 64 + 320;
    (if size <= 640 { 640 } else { size.next_power_of_two() }) + 256
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
