//! What others have to know of each kind of qdisc: of Linux's, and of those that bakeoff's own kernel modules add.
//!
//! The simulator, the agent and Python read this one table. A kind that only a kernel has is here, too.
//!
//! Source: the manual pages of iproute2 7.2 and the structures of `include/uapi/linux/pkt_sched.h` (Linux 7.3).

/// A kind of qdisc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// As the kernel has it, without a version.
    pub name: &'static str,
    /// The fewest words that tc accepts behind the name.
    pub least_words: &'static str,
    /// The word before the rate by which it limits what leaves, if it has no classes: `bandwidth` of those that need no
    /// shaper above them, `rate` of those that limit only if told to.
    pub rate_word: Option<&'static str>,
    /// Whether it has classes.
    pub classful: bool,
    /// Whether nothing is put above it, because its classes shape or because it is a delay.
    pub alone: bool,
    /// Whether its `limit` is in bytes, not packets.
    pub limit_in_bytes: bool,
    /// What its drops are.
    pub drops: Drops,
    /// bakeoff's own module that has it (`kernel/modules`).
    pub module: Option<&'static str>,
    /// What the simulator, and so a scenario, calls the kind of a module, if not by its own name.
    pub simulated_as: Option<&'static str>,
    /// Whether `bakeoff kernel check` tries to make one: not of a kind that only the simulator has, or that needs a device
    /// with several queues.
    pub tried: bool,
    /// Its place in tables, as in l4s-tests (`steady_state.go`); others follow by name.
    pub order: Option<usize>,
}

/// What the drops of a qdisc are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drops {
    /// For want of room, all of them.
    Full,
    /// Random loss if that was asked for, otherwise for want of room (netem).
    LossIfAsked,
    /// Its algorithm's, but for those that it counts as for want of room.
    Algorithm,
}

impl Kind {
    const fn new(name: &'static str) -> Kind {
        Kind {
            name,
            least_words: "",
            rate_word: None,
            classful: false,
            alone: false,
            limit_in_bytes: false,
            drops: Drops::Algorithm,
            module: None,
            simulated_as: None,
            tried: true,
            order: None,
        }
    }

    const fn classful(name: &'static str) -> Kind {
        Kind { classful: true, ..Kind::new(name) }
    }

    const fn shaper(name: &'static str) -> Kind {
        Kind { rate_word: Some("bandwidth"), ..Kind::new(name) }
    }

    /// Whether it shapes by a `bandwidth` of its own, and needs no shaper above it. `red` has a `bandwidth` too, but does
    /// not shape.
    pub fn shapes(&self) -> bool {
        self.rate_word == Some("bandwidth")
    }
}

/// All kinds, by name.
pub const KINDS: &[Kind] = &[
    Kind { least_words: "limit 100000", limit_in_bytes: true, drops: Drops::Full, ..Kind::new("bfifo") },
    Kind { least_words: "bandwidth 50mbit", limit_in_bytes: true, ..Kind::shaper("cake") },
    Kind {
        module: Some("sch_cake_sce"),
        simulated_as: Some("cake@sce"),
        limit_in_bytes: true,
        ..Kind::shaper("cake_sce")
    },
    Kind { least_words: "limit 1000 avpkt 1000 bandwidth 50mbit", ..Kind::new("choke") },
    Kind { module: Some("sch_cnq_cobalt"), ..Kind::shaper("cnq_cobalt") },
    Kind { module: Some("sch_cnq_codel_af"), order: Some(2), ..Kind::shaper("cnq_codel_af") },
    Kind { tried: false, ..Kind::shaper("cobalt") },
    Kind::new("codel"),
    Kind::new("deltic"),
    Kind::shaper("deltic_boroshne"),
    Kind::new("deltic_polya"),
    Kind::classful("drr"),
    Kind { least_words: "target 15ms", order: Some(0), ..Kind::new("dualpi2") },
    Kind { least_words: "bands 3", ..Kind::classful("ets") },
    Kind::new("fq"),
    Kind { order: Some(3), ..Kind::new("fq_codel") },
    Kind::new("fq_pie"),
    Kind { least_words: "setup DPs 2 default 0", limit_in_bytes: true, ..Kind::new("gred") },
    Kind { least_words: "default 1", ..Kind::classful("hfsc") },
    Kind::new("hhf"),
    Kind { least_words: "default 1", alone: true, drops: Drops::Full, ..Kind::classful("htb") },
    Kind { module: Some("sch_lfq_cobalt"), ..Kind::shaper("lfq_cobalt") },
    Kind { tried: false, ..Kind::classful("mq") },
    Kind { tried: false, ..Kind::classful("mqprio") },
    Kind { tried: false, ..Kind::classful("multiq") },
    Kind {
        least_words: "delay 10ms",
        rate_word: Some("rate"),
        alone: true,
        drops: Drops::LossIfAsked,
        ..Kind::new("netem")
    },
    Kind { least_words: "limit 1000", drops: Drops::Full, order: Some(1), ..Kind::new("pfifo") },
    Kind { drops: Drops::Full, ..Kind::new("pfifo_fast") },
    Kind::new("pie"),
    Kind::classful("prio"),
    Kind::classful("qfq"),
    Kind {
        least_words: "limit 150000 avpkt 1000 bandwidth 50mbit",
        limit_in_bytes: true,
        ..Kind::new("red")
    },
    Kind::new("sfb"),
    Kind::new("sfq"),
    Kind {
        least_words: "rate 50mbit burst 5000 limit 150000",
        rate_word: Some("rate"),
        limit_in_bytes: true,
        drops: Drops::Full,
        ..Kind::new("tbf")
    },
    Kind { module: Some("sch_twin_codel_af"), ..Kind::shaper("twin_codel_af") },
];

/// The kind of this name; a version behind an `@` is the simulator's, and left out.
pub fn find(name: &str) -> Option<&'static Kind> {
    let name = name.split_once('@').map_or(name, |(kernel, _)| kernel);
    KINDS.iter().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_order() {
        assert!(KINDS.is_sorted_by(|a, b| a.name < b.name));
        let mut order: Vec<usize> = KINDS.iter().filter_map(|kind| kind.order).collect();
        order.sort_unstable();
        assert_eq!(order, (0..order.len()).collect::<Vec<_>>());
    }

    #[test]
    fn a_version_is_of_its_kind() {
        assert_eq!(find("cake@sce").map(|kind| kind.name), Some("cake"));
        assert!(find("cake").is_some_and(Kind::shapes) && !find("red").is_some_and(Kind::shapes));
        assert_eq!(find("nothing"), None);
    }
}
