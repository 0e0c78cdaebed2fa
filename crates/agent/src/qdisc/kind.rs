//! What the agent has to be told of a kind of qdisc that tc does not know.

use bakeoff_document::tc::{TcError, Words};

use super::netlink::Attributes;

/// One kind. A file of its own has the functions of those that have the same options.
#[derive(Debug)]
pub struct Kind {
    /// `cnq_codel_af`
    pub name: &'static str,
    /// What `TCA_OPTIONS` has to hold for the words behind the name.
    pub options: fn(&mut Words) -> Result<Attributes, TcError>,
    /// Name and words in effect, from `TCA_OPTIONS`: `cnq_codel_af unlimited rtt 100ms no-sce`.
    pub show: fn(name: &str, options: &[u8]) -> String,
    /// The lines of its own that `tc -s` would show, from `TCA_STATS_APP`.
    pub show_stats: fn(own: &[u8]) -> String,
    /// Drops for want of room, from there too.
    pub overlimit_drops: fn(own: &[u8]) -> Option<u64>,
    /// CE marks.
    pub marks: fn(own: &[u8]) -> Option<u64>,
    /// ECT(0) turned into ECT(1).
    pub sce_marks: fn(own: &[u8]) -> Option<u64>,
    /// Metric and microseconds of each delay that it tells.
    pub delays: fn(own: &[u8]) -> Vec<(&'static str, u32)>,
}
