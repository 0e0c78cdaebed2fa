//! `pfifo_fast`: three bands by the packet's priority, each first in, first out, the lower band first.
//!
//! Source: Linux 7.3 `net/sched/sch_generic.c`, `net/ipv4/route.c` (`ip_tos2prio`).
//!
//! Parameters: none; each band is a ring (`skb_array`) with the device's txqueuelen slots. A slot is free again when the
//! sixteenth packet since the last time, or the one in the ring's last slot, has left (`__ptr_ring_discard_one` with
//! cache lines of 64 bytes); one by one if the ring has fewer than 32.
//!
//! Departures: the priority comes from the DSCP alone ([`priority`]); a socket's own `SO_PRIORITY` does not exist here.
//!
//! Validation: order, limit by band, slots given back (tests below); the real one packet by packet (docs/qdisc-replay.md);
//! conservation (`tests/conservation.rs`).

use std::collections::VecDeque;

use super::{Cause, Env, Properties, Qdisc, Statistics, Tally};
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::tc::{TcError, Words};

/// The band of each priority.
pub const PRIOMAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// `skb->priority` of an IPv4 packet: what hosts and routers take from the four TOS bits of RFC 1349, of which the
/// upper two count: best effort 0, bulk 2, interactive 6, interactive bulk 4. A bridge does not look into the
/// packet: there it is 0.
pub fn priority(packet: &Packet, env_is_bridge: bool) -> usize {
    if env_is_bridge { 0 } else { [0, 2, 6, 4][usize::from(packet.dscp >> 1 & 3)] }
}

/// `bands 3 priomap 1 2 …`
pub fn show_bands(bands: usize, priomap: &[u8; 16]) -> String {
    let map: Vec<String> = priomap.iter().map(u8::to_string).collect();
    format!("bands {bands} priomap {}", map.join(" "))
}

/// Slots that are given back together: pointers in two cache lines.
const BATCH: usize = 16;

/// One band.
#[derive(Default)]
struct Ring {
    packets: VecDeque<Packet>,
    slots: usize,
    /// Whose packets have left, but which are not free yet.
    spent: usize,
    /// The slot of the first packet.
    head: usize,
}

impl Ring {
    fn has_room(&self) -> bool {
        self.packets.len() + self.spent < self.slots
    }

    fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.head += 1;
        self.spent += 1;
        let batch = if BATCH > self.slots / 2 { 1 } else { BATCH };
        if self.spent >= batch || self.head >= self.slots {
            self.spent = 0;
        }
        self.head %= self.slots;
        Some(packet)
    }
}

/// Three strict bands.
pub struct PfifoFast {
    bands: [Ring; 3],
    backlog: u64,
    bridge: bool,
}

impl PfifoFast {
    /// `pfifo_fast`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        if let Some(word) = words.next_word() {
            return Err(words.refuse(&format!("unknown word '{word}': pfifo_fast has no parameters")));
        }
        let bands = std::array::from_fn(|_| Ring { slots: env.tx_queue_len as usize, ..Ring::default() });
        Ok(PfifoFast { bands, backlog: 0, bridge: env.bridge })
    }
}

impl Qdisc for PfifoFast {
    const PROPERTIES: Properties = Properties { work_conserving: true, ..Properties::DEFAULT };

    fn enqueue(&mut self, packet: Packet, _now: Time, tally: &mut Tally) {
        let band = &mut self.bands[usize::from(PRIOMAP[priority(&packet, self.bridge)])];
        if !band.has_room() {
            tally.drop(&packet, Cause::Overlimit);
            return;
        }
        self.backlog += u64::from(packet.len);
        band.packets.push_back(packet);
    }

    fn dequeue(&mut self, _now: Time, _tally: &mut Tally) -> Option<Packet> {
        let packet = self.bands.iter_mut().find_map(Ring::pop)?;
        self.backlog -= u64::from(packet.len);
        Some(packet)
    }

    fn qlen(&self) -> usize {
        self.bands.iter().map(|band| band.packets.len()).sum()
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }
}

impl Statistics for PfifoFast {
    fn show(&self) -> String {
        format!("pfifo_fast {}", show_bands(3, &PRIOMAP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::Queue;
    use bakeoff_document::run;

    /// Codepoints whose TOS bits mean interactive (0x10), best effort (0x00), bulk (0x08).
    const BANDS: [u8; 3] = [0x10 >> 2, 0, 0x08 >> 2];

    fn queue(bridge: bool) -> Queue {
        let env = Env { tx_queue_len: 2, bridge, ..Env::default() };
        Queue::build(&run::Qdisc::leaf("pfifo_fast"), &env).unwrap()
    }

    fn order(q: &mut Queue) -> Vec<u8> {
        for dscp in [BANDS[2], BANDS[1], BANDS[0]].repeat(3) {
            q.enqueue(Packet { dscp, len: 100, ..Packet::default() }, Time::ZERO);
        }
        std::iter::from_fn(|| q.dequeue(Time::ZERO)).map(|p| p.dscp).collect()
    }

    #[test]
    fn lower_bands_go_first_and_each_has_its_own_limit() {
        let mut q = queue(false);
        let [high, middle, low] = BANDS;
        assert_eq!(order(&mut q), [high, high, middle, middle, low, low]);
        assert_eq!(q.tally.dropped(), 3);
    }

    #[test]
    fn a_bridge_has_one_band() {
        let mut q = queue(true);
        assert_eq!(order(&mut q), [BANDS[2], BANDS[1]]);
        assert_eq!(q.tally.dropped(), 7);
    }

    #[test]
    fn slots_are_given_back_by_sixteens_and_at_the_ring_s_end() {
        let env = Env { tx_queue_len: 40, ..Env::default() };
        let mut q = Queue::build(&run::Qdisc::leaf("pfifo_fast"), &env).unwrap();
        let mut fill = |leave: usize| {
            for _ in 0..leave {
                q.dequeue(Time::ZERO).unwrap();
            }
            let before = q.qlen();
            for _ in 0..40 {
                q.enqueue(Packet { len: 100, ..Packet::default() }, Time::ZERO);
            }
            q.qlen() - before
        };
        assert_eq!(fill(0), 40);
        // 15 slots are spent, and only the 16th frees them; 16 more, then the 8 up to the end of the ring.
        assert_eq!([15, 1, 16, 7, 1].map(fill), [0, 16, 16, 0, 8]);
    }

    #[test]
    fn priorities_are_those_of_the_kernel_s_table() {
        // ip_tos2prio by (TOS & 0x1e) >> 1, in fours: best effort, bulk, interactive, interactive bulk
        let of = |tos: u8| priority(&Packet { dscp: tos >> 2, ..Packet::default() }, false);
        assert_eq!([0x00, 0x04, 0x08, 0x0c, 0x10, 0x14, 0x18, 0x1c].map(of), [0, 0, 2, 2, 6, 6, 4, 4]);
        // EF is 0xb8: its lower bits read as interactive bulk
        assert_eq!(of(0xb8), 4);
    }
}
