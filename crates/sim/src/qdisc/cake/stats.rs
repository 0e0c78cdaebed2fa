//! What CAKE counts for the statistics lines of `tc -s qdisc show` ([`bakeoff_document::qdisc::cake_stats`]).

use bakeoff_document::qdisc::cake_stats::Statistics;

use super::Cake;
use super::tin::Tin;
use super::tins;

/// Lengths in bytes that packets had on the network layer and on the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    min_network: u32,
    max_network: u32,
    min_adjusted: u32,
    max_adjusted: u32,
    /// Moving average of the Ethernet header's length in 2^-16 bytes.
    header: u64,
}

impl Lengths {
    pub(super) const NONE: Lengths =
        Lengths { min_network: 65_535, max_network: 0, min_adjusted: 65_535, max_adjusted: 0, header: 0 };

    pub(super) fn note(&mut self, network: u32, adjusted: u32) {
        self.min_network = self.min_network.min(network);
        self.max_network = self.max_network.max(network);
        self.min_adjusted = self.min_adjusted.min(adjusted);
        self.max_adjusted = self.max_adjusted.max(adjusted);
        self.header = super::tin::moving_average(self.header, 14 << 16, 8);
    }

    /// Forgets the lengths: the overhead changed.
    pub(super) fn forget(&mut self) {
        *self = Lengths { header: self.header, ..Lengths::NONE };
    }
}

/// What `tc -s` shows.
pub(super) fn statistics(cake: &Cake) -> Statistics {
    let lengths = &cake.lengths;
    let us = |ns: u64| ns / 1000;
    let numbers = |t: &Tin| {
        [
            t.rate,
            us(t.params.target),
            us(t.params.interval),
            us(t.stats.peak_delay),
            us(t.stats.average_delay),
            us(t.stats.base_delay),
            t.backlog,
            t.stats.packets,
            t.stats.bytes,
            u64::from(t.stats.way_hits),
            u64::from(t.stats.way_misses),
            u64::from(t.stats.way_collisions),
            t.stats.drops,
            t.stats.marks,
            t.stats.ack_drops,
            u64::from(t.sparse_flows + t.decaying_flows),
            u64::from(t.bulk_flows),
            u64::from(t.stats.unresponsive_flows),
            u64::from(t.stats.max_len),
            t.flow_quantum,
        ]
    };
    Statistics {
        memory_max: cake.memory_max,
        memory_limit: cake.memory_limit,
        capacity: cake.autorate.peak,
        network: [lengths.min_network, lengths.max_network],
        adjusted: [lengths.min_adjusted, lengths.max_adjusted],
        header: ((lengths.header + 0x8000) >> 16) as u32,
        tins: tins::shown(cake.config.diffserv).map(|tin| numbers(&cake.tins[tin])).collect(),
        sce_marks: (cake.config.sce_thresh > 0).then_some(cake.sce_marks),
    }
}

#[cfg(test)]
mod tests {
    use crate::base::units::Time;
    use crate::qdisc::{Env, Queue};
    use bakeoff_document::run;

    /// What tc 7.0 prints for `cake bandwidth 50mbit` on Linux 7.3.
    const IDLE: &str = " memory used: 0b of 4Mb
 capacity estimate: 50Mbit
 min/max network layer size:        65535 /       0
 min/max overhead-adjusted size:    65535 /       0
 active queues:                         0
 average network hdr offset:            0

                   Bulk  Best Effort        Voice
  thresh       3125Kbit       50Mbit    12500Kbit
  target         5.81ms          5ms          5ms
  interval        101ms        100ms        100ms
  pk_delay          0us          0us          0us
  av_delay          0us          0us          0us
  sp_delay          0us          0us          0us
  backlog            0b           0b           0b
  pkts                0            0            0
  bytes               0            0            0
  way_inds            0            0            0
  way_miss            0            0            0
  way_cols            0            0            0
  drops               0            0            0
  marks               0            0            0
  ack_drop            0            0            0
  sp_flows            0            0            0
  bk_flows            0            0            0
  un_flows            0            0            0
  max_len             0            0            0
  quantum           300         1514          381";

    #[test]
    fn statistics_are_worded_as_tc_s() {
        let queue = Queue::build(&run::Qdisc::leaf("cake bandwidth 50mbit"), &Env::default()).unwrap();
        assert_eq!(queue.show_stats(Time::ZERO), IDLE);
    }
}
