//! CAKE's statistics lines of `tc -s qdisc show`.
//!
//! Source: iproute2 7.0 `tc/q_cake.c`, by its output.

use std::fmt::Write;

use crate::tc::show;
use crate::units::Rate;

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
