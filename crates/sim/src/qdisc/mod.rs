//! Queue disciplines: what an algorithm is, and which are known. The algorithm behind the [`Qdisc`] trait decides; the
//! [`Queue`] around it stamps, counts and measures.
//!
//! One file per algorithm, in tc's own grammar ([`bakeoff_document::tc`]).

mod cobalt;
mod delays;
mod framing;
mod inverse_sqrt;
mod ratecfg;
pub mod replay;
mod sce;
mod slots;
mod sojourn;
mod sparse_bulk;
mod tally;
mod tc_show;
mod timer;

use std::sync::Arc;

use crate::base::table::table;
use crate::base::units::Time;
use crate::packet::Packet;
use crate::packet::charge::Charges;
use bakeoff_document::tc::{TcError, Words};

pub use delays::Delays;
pub use sojourn::{Interval, Sojourn};
pub use tally::{Cause, FlowTally, Tally};

/// An algorithm. Linux's names; time is an argument.
///
/// Required are the queue itself and [`Statistics`]. What few algorithms have is [`Qdisc::tree`] (classes and children) and
/// [`Qdisc::delaying`] (netem and htb).
pub trait Qdisc: Statistics {
    /// What holds whatever its words are.
    const PROPERTIES: Properties = Properties::DEFAULT;

    /// Takes a packet, or reports it (or others) to [`Tally::drop`]. `packet.enqueued` is `now`.
    fn enqueue(&mut self, packet: Packet, now: Time, tally: &mut Tally);

    /// The next packet to leave at `now`, or `None` when there is none or it may not leave yet.
    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet>;

    /// [`Qdisc::enqueue`] of a packet that lies elsewhere, and is not needed there: a queue on the way of most packets
    /// copies it once, to where it waits.
    fn enqueue_from(&mut self, packet: &mut Packet, now: Time, tally: &mut Tally) {
        self.enqueue(*packet, now, tally);
    }

    /// [`Qdisc::dequeue`] to where the packet shall lie; false if there is none. A queue on the way of most packets copies
    /// it once, from where it waited.
    fn dequeue_into(&mut self, into: &mut Packet, now: Time, tally: &mut Tally) -> bool {
        let packet = self.dequeue(now, tally);
        if let Some(packet) = &packet {
            *into = *packet;
        }
        packet.is_some()
    }

    /// The packet that a dequeue would give, of a fifo ([`Properties::fifo`]); none in others.
    fn peek(&self) -> Option<&Packet> {
        None
    }

    /// When a dequeue that gave `None` may succeed without another enqueue (a shaper's watchdog).
    /// Work-conserving queues keep the default. Periodic controllers need no event: they run the
    /// ticks that are due, each at its own time, before they handle an enqueue or a dequeue.
    fn next_event(&self) -> Option<Time> {
        None
    }

    /// Packets in the queue.
    fn qlen(&self) -> usize;

    /// Bytes in the queue.
    fn backlog(&self) -> u64;

    /// Whether this packet of several segments enters frame by frame.
    fn segments(&self, _packet: &Packet) -> bool {
        false
    }

    /// `tc qdisc change`: takes the words behind the kind; queue and state stay, but for packets
    /// above a lowered limit. Nothing changes if a word is refused.
    fn change(&mut self, words: &mut Words, _now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        Err(words.refuse("this qdisc cannot be changed in place"))
    }

    /// What follows from the words in effect; a [`Queue`] reads it again after each change.
    fn hints(&self) -> Hints {
        Hints::default()
    }

    /// Its classes and children, if it can have any.
    fn tree(&self) -> Option<&dyn Tree> {
        None
    }

    /// The same, to change them.
    fn tree_mut(&mut self) -> Option<&mut dyn Tree> {
        None
    }

    /// What it is to a delay line, if it can be one.
    fn delaying(&self) -> Option<&dyn Delaying> {
        None
    }

    /// The same, to count what passed the delay line.
    fn delaying_mut(&mut self) -> Option<&mut dyn Delaying> {
        None
    }

    /// [`Qdisc::PROPERTIES`]
    #[inline]
    fn properties(&self) -> Properties {
        Self::PROPERTIES
    }

    /// Brings what a [`Queue`] remembers of [`Qdisc::next_event`] up to date: never, while it need not be asked.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn note_next(&self, next: &mut Option<Time>) {
        if !Self::PROPERTIES.work_conserving {
            *next = self.next_event().or(Self::PROPERTIES.rests_when_empty.then_some(Time::NEVER));
        }
    }
}

/// What holds for every queue of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// The time from enqueue to dequeue is queueing. Otherwise it is a delay that was asked for, or a child measures it.
    pub measured: bool,
    /// It gives a packet whenever it has one, and so has no [`Qdisc::next_event`].
    pub work_conserving: bool,
    /// It need not be asked while [`Qdisc::next_event`] is none: it has no packets then, and a dequeue changes nothing.
    pub rests_when_empty: bool,
    /// It has no state but its packets, and gives them in the order in which they came.
    pub fifo: bool,
    /// A packet waits from the departure time that its sender gave it (`skb->tstamp`), if that is later than its arrival.
    pub keeps_departure: bool,
    /// Where `tc -s` prints the algorithm's own lines.
    pub layout: Layout,
}

impl Properties {
    /// Those of most algorithms.
    pub const DEFAULT: Properties = Properties {
        measured: true,
        work_conserving: false,
        rests_when_empty: false,
        fifo: false,
        keeps_departure: false,
        layout: Layout::LinesLast,
    };
}

/// Where `tc -s` prints the lines of an algorithm's own statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// After the counters.
    LinesLast,
    /// Before the counters, with the options.
    LinesFirst,
    /// After the counters, with an empty line behind them.
    EmptyLineLast,
}

/// What follows from the words of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    /// A dequeue before [`Qdisc::next_event`] changes something although it gives nothing (netem draws a new slot).
    pub eager: bool,
    /// It may set SCE.
    pub marks_sce: bool,
    /// A host's TCP leaves its delays to this queue (`SK_PACING_FQ`).
    pub paces: bool,
    /// The limit in packets of a fifo that drops nothing else.
    pub tail_drop: Option<u64>,
}

/// What `tc -s -d qdisc show` prints of an algorithm, and what the sampler takes from it.
pub trait Statistics {
    /// The configuration in effect, as `tc -d qdisc show` words it.
    fn show(&self) -> String;

    /// The algorithm's own statistics lines at `now`, as `tc -s` words them; may be empty.
    fn show_stats(&self, _now: Time) -> String {
        String::new()
    }

    /// What `tc -s` calls so: how often a shaper held packets back, RED took a measure, a limit was reached; in most
    /// queues nothing. `tbf` and `cake` count calls in vain, of which Linux makes more.
    fn overlimits(&self) -> u64 {
        0
    }

    /// What `tc -s` calls so: packets that netem put ahead of others.
    fn requeues(&self) -> u64 {
        0
    }

    /// The sojourn times of what left its parts since the last call, by the name of their series.
    fn take_parts(&mut self) -> Vec<(&'static str, Interval)> {
        Vec::new()
    }
}

/// What is below a qdisc: its classes (htb, prio), or its child (netem, tbf).
pub trait Tree {
    /// The classes, as `tc -d class show` words them; none in a classless qdisc.
    fn show_classes(&self) -> Vec<String> {
        Vec::new()
    }

    /// `tc class change`: new words for the class `id`; its tokens and its queue stay.
    fn change_class(&mut self, id: &str, words: &mut Words) -> Result<(), TcError> {
        Err(words.refuse(&format!("class {id}: this qdisc has no classes")))
    }

    /// Visits the queues directly below: class ids, or `child`.
    fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&str, &'a Queue));

    /// The same, to change them; afterwards a qdisc forgets what it remembered of them.
    fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&str, &mut Queue));
}

/// A qdisc whose packets a delay line may take ([`Delays`]).
pub trait Delaying {
    /// The delay line, if all that it does is to delay, so that nothing leaves at the time at which it enters; it has to be
    /// empty.
    fn delays(&self) -> Option<Delays>;

    /// So many packets passed the delay line.
    fn delayed(&mut self, _packets: u64) {}

    /// The class `id` came to its ceiling in the delay line so many times.
    fn reached_ceiling(&mut self, _id: &str, _times: u64) {}
}

/// What an algorithm may need to know about where it stands.
#[derive(Clone, Debug)]
pub struct Env {
    /// The run's seed.
    pub seed: u64,
    /// The queue's name in the run, for its random stream.
    pub name: String,
    /// Device MTU in bytes (without the Ethernet header).
    pub mtu: u32,
    /// The device's `txqueuelen` in packets.
    pub tx_queue_len: u32,
    /// The kernel's timer frequency.
    pub hz: u64,
    /// When in the run it takes another queue's place; none: it stands when the run begins.
    pub replaced: Option<Time>,
    /// Whether it stands on a bridge, which does not take a packet's priority from its DSCP.
    pub bridge: bool,
    /// Whether the packets of sockets leave here, not only others'.
    pub host: bool,
    /// Number of flows and probes, for tables by flow.
    pub flows: usize,
    /// Their names, in the order of [`Packet::flow`], for filters.
    pub flow_names: Arc<[String]>,
    /// The nodes at both ends of each flow and probe: its hosts.
    pub endpoints: Arc<[[u16; 2]]>,
    /// Whether [`Packet::hash`] is the bucket itself, as a class id in `skb->priority` names it to sfq.
    pub told_buckets: bool,
    /// See [`Tally::charges`].
    pub charges: Charges,
}

impl Env {
    /// The kernel's `psched_mtu`: MTU plus hard header.
    pub fn psched_mtu(&self) -> u32 {
        self.mtu + 14
    }

    /// The environment of a child called `name`.
    pub fn child(&self, name: &str) -> Env {
        Env { name: format!("{}/{name}", self.name), ..self.clone() }
    }
}

impl Default for Env {
    fn default() -> Self {
        Env {
            seed: 1,
            name: "queue".into(),
            mtu: 1500,
            tx_queue_len: 1000,
            hz: 250,
            replaced: None,
            bridge: false,
            host: false,
            flows: 0,
            flow_names: Arc::new([]),
            endpoints: Arc::new([]),
            told_buckets: false,
            charges: Charges::default(),
        }
    }
}

#[expect(
    clippy::extra_unused_type_parameters,
    reason = "the table gives the type too, which a name does not need"
)]
const fn name<Q: Qdisc>(name: &'static str) -> &'static str {
    name
}

table! { $
    /// The known algorithms. [`bakeoff_document::qdisc::kinds`] has what others have to know of each.
    enum Kind;
    dispatch dispatch;
    list NAMES: &'static str = name;
    make make(words: &mut Words, env: &Env) -> TcError;

    pfifo::Fifo { "pfifo" => Fifo::pfifo, "bfifo" => Fifo::bfifo }
    codel::Codel { "codel" => Codel::new }
    fq::Fq { "fq" => Fq::new }
    fq_codel::FqCodel { "fq_codel" => FqCodel::new }
    fq_pie::FqPie { "fq_pie" => FqPie::new }
    htb::Htb { "htb" => Htb::new }
    netem::Netem { "netem" => Netem::new }
    pfifo_fast::PfifoFast { "pfifo_fast" => PfifoFast::new }
    pie::Pie { "pie" => Pie::mainline, "pie@5.4" => Pie::v5_4 }
    prio::Prio { "prio" => Prio::new }
    red::Red { "red" => Red::new, "red@5.4" => Red::v5_4 }
    sfq::Sfq { "sfq" => Sfq::new }
    tbf::Tbf { "tbf" => Tbf::new }
    dualpi2::DualPi2 {
        "dualpi2" => DualPi2::mainline, "dualpi2@2020" => DualPi2::v2020, "dualpi2@2019" => DualPi2::v2019,
    }
    cake::Cake in Box { "cake" => Cake::mainline, "cake@sce" => Cake::sce }
    cnq_cobalt::CnqCobalt in Box { "cnq_cobalt" => CnqCobalt::new }
    cnq_codel_af::CnqCodelAf { "cnq_codel_af" => CnqCodelAf::new }
    cobalt_fifo::CobaltFifo in Box { "cobalt" => CobaltFifo::new }
    lfq_cobalt::LfqCobalt in Box { "lfq_cobalt" => LfqCobalt::new }
    twin_codel_af::TwinCodelAf in Box { "twin_codel_af" => TwinCodelAf::new }
}

// After the table, whose `dispatch` it uses.
mod queue;

pub use queue::Queue;

fn unknown(name: &str, words: &Words) -> TcError {
    if name.starts_with("deltic") {
        return words.refuse(&format!(
            "'{name}' is not modelled: its algorithm is described nowhere but in the SCE tree's own kernel, which does \
             run it (--engine kernel)"
        ));
    }
    words.unknown_kind(name, NAMES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_document::qdisc::kinds;

    #[test]
    fn each_algorithm_is_a_known_kind_which_says_what_it_is() {
        for name in NAMES {
            let kind = kinds::find(name).unwrap_or_else(|| panic!("{name} is missing in the table of kinds"));
            let line = format!("{name} {}", kind.least_words);
            let queue = Queue::build(&bakeoff_document::run::Qdisc::leaf(&line), &Env::default());
            // htb and prio need classes.
            let Ok(queue) = queue else {
                assert!(kind.classful, "{line}");
                continue;
            };
            assert_eq!(
                queue.tail_drop().is_some(),
                kind.name == "pfifo" && queue.sojourn.is_none(),
                "{line}"
            );
        }
    }
}
