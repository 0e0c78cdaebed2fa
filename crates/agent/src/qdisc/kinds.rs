//! The kinds of qdisc that bakeoff's own kernel modules add (`kernel/modules`), and that tc knows nothing of: their words and their numbers.

use bakeoff_document::tc::{TcError, Words};

use super::netlink::Attributes;
use super::{cake, sce};

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

/// All of them.
pub const KINDS: &[Kind] =
    &[cake::CAKE_SCE, sce::CNQ_COBALT, sce::CNQ_CODEL_AF, sce::LFQ_COBALT, sce::TWIN_CODEL_AF];

/// The one of this name.
pub fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}
