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

/// What the statistics of one CAKE say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The most bytes of memory that were in use.
    pub memory_max: u64,
    /// How many may be.
    pub memory_limit: u64,
    /// Bytes per second.
    pub capacity: u64,
    /// The least and the greatest length on the network layer in bytes.
    pub network: [u32; 2],
    /// The same on the link.
    pub adjusted: [u32; 2],
    /// Mean length of the header that the link has, in bytes.
    pub header: u32,
    /// In the order in which they are shown: their numbers in the order of [`ROWS`].
    pub tins: Vec<[u64; ROWS.len()]>,
    /// Packets that became ECT(1), if they were counted.
    pub sce_marks: Option<u64>,
}

type Row = (&'static str, fn(u64) -> String);

const fn row(name: &'static str, worded: fn(u64) -> String) -> Row {
    (name, worded)
}

fn rate(bytes_per_s: u64) -> String {
    show::rate(Rate(bytes_per_s.saturating_mul(8)))
}

fn count(number: u64) -> String {
    number.to_string()
}

/// A number's name, and how it is worded. Units: bytes per second, microseconds, bytes.
pub const ROWS: [Row; 20] = [
    row("thresh", rate),
    row("target", show::time),
    row("interval", show::time),
    row("pk_delay", show::time),
    row("av_delay", show::time),
    row("sp_delay", show::time),
    row("backlog", show::size),
    row("pkts", count),
    row("bytes", count),
    row("way_inds", count),
    row("way_miss", count),
    row("way_cols", count),
    row("drops", count),
    row("marks", count),
    row("ack_drop", count),
    row("sp_flows", count),
    row("bk_flows", count),
    row("un_flows", count),
    row("max_len", count),
    row("quantum", count),
];

/// The tins' names, which tc knows by how many there are.
fn names(count: usize) -> Vec<String> {
    let named: &[&str] = match count {
        3 => &["Bulk", "Best Effort", "Voice"],
        4 => &["Bulk", "Best Effort", "Video", "Voice"],
        _ => return (0..count).map(|tin| format!("Tin {tin}")).collect(),
    };
    named.iter().map(|name| (*name).to_owned()).collect()
}

impl Statistics {
    pub(super) fn of(cake: &Cake) -> Self {
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

    /// All lines.
    pub fn show(&self) -> String {
        let mut text = format!(
            " memory used: {} of {}\n capacity estimate: {}\n \
             min/max network layer size: {:>12} /{:>8}\n min/max overhead-adjusted size: {:>8} /{:>8}\n \
             active queues: {:>25}\n average network hdr offset: {:>12}\n\n{:10}",
            show::size(self.memory_max),
            show::size(self.memory_limit),
            rate(self.capacity),
            self.network[0],
            self.network[1],
            self.adjusted[0],
            self.adjusted[1],
            0,
            self.header,
            "",
        );
        for name in names(self.tins.len()) {
            let _ = write!(text, " {name:>12}");
        }
        for (at, (name, worded)) in ROWS.iter().enumerate() {
            let _ = write!(text, "\n  {name:8}");
            for tin in &self.tins {
                let _ = write!(text, " {:>12}", worded(tin[at]));
            }
        }
        if let Some(marks) = self.sce_marks {
            let _ = write!(text, "\n  sce_marks {marks}");
        }
        text
    }
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
