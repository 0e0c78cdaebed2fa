//! The kinds of qdisc that bakeoff's own kernel modules add (`kernel/modules`), and that tc knows nothing of: their words and their numbers.

use super::kind::Kind;
use super::{cake, sce};

/// All of them.
pub const KINDS: &[Kind] =
    &[cake::CAKE_SCE, sce::CNQ_COBALT, sce::CNQ_CODEL_AF, sce::LFQ_COBALT, sce::TWIN_CODEL_AF];

/// The one of this name.
pub fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}
