//! The statistics lines of `tc -s qdisc show`.
//!
//! Source: iproute2 7.0 `tc/q_cake.c`, by its output.

use std::fmt::Write;

use super::Cake;
use super::tin::Tin;
use super::tins;
use crate::base::units::Rate;
use crate::document::tc::show;

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

/// A row's name, and its value for a tin.
type Row<'a> = (&'a str, &'a dyn Fn(&Tin) -> String);

/// All lines.
pub(super) fn show(cake: &Cake) -> String {
    let lengths = &cake.lengths;
    let mut text = format!(
        " memory used: {} of {}\n capacity estimate: {}\n \
         min/max network layer size: {:>12} /{:>8}\n min/max overhead-adjusted size: {:>8} /{:>8}\n \
         active queues: {:>25}\n average network hdr offset: {:>12}\n\n{:10}",
        show::size(cake.memory_max),
        show::size(cake.memory_limit),
        show::rate(Rate(cake.autorate.peak * 8)),
        lengths.min_network,
        lengths.max_network,
        lengths.min_adjusted,
        lengths.max_adjusted,
        0,
        (lengths.header + 0x8000) >> 16,
        "",
    );
    let columns = tins::shown(cake.config.diffserv);
    for (_, name) in &columns {
        let _ = write!(text, " {name:>12}");
    }
    let us = |ns: u64| show::time(ns / 1000);
    let rows: [Row; 20] = [
        ("thresh", &|t| show::rate(Rate(t.rate * 8))),
        ("target", &|t| us(t.params.target)),
        ("interval", &|t| us(t.params.interval)),
        ("pk_delay", &|t| us(t.stats.peak_delay)),
        ("av_delay", &|t| us(t.stats.average_delay)),
        ("sp_delay", &|t| us(t.stats.base_delay)),
        ("backlog", &|t| show::size(t.backlog)),
        ("pkts", &|t| t.stats.packets.to_string()),
        ("bytes", &|t| t.stats.bytes.to_string()),
        ("way_inds", &|t| t.stats.way_hits.to_string()),
        ("way_miss", &|t| t.stats.way_misses.to_string()),
        ("way_cols", &|t| t.stats.way_collisions.to_string()),
        ("drops", &|t| t.stats.drops.to_string()),
        ("marks", &|t| t.stats.marks.to_string()),
        ("ack_drop", &|t| t.stats.ack_drops.to_string()),
        ("sp_flows", &|t| (t.sparse_flows + t.decaying_flows).to_string()),
        ("bk_flows", &|t| t.bulk_flows.to_string()),
        ("un_flows", &|t| t.stats.unresponsive_flows.to_string()),
        ("max_len", &|t| t.stats.max_len.to_string()),
        ("quantum", &|t| t.flow_quantum.to_string()),
    ];
    for (name, value) in rows {
        let _ = write!(text, "\n  {name:8}");
        for (tin, _) in &columns {
            let _ = write!(text, " {:>12}", value(&cake.tins[*tin]));
        }
    }
    if cake.config.sce_thresh > 0 {
        let _ = write!(text, "\n  sce_marks {}", cake.sce_marks);
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::base::units::Time;
    use crate::document::run;
    use crate::qdisc::{Env, Queue};

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
