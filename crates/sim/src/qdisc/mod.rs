//! Queue disciplines. The public [`Queue`] stamps, counts and records; the algorithm behind the
//! [`Qdisc`] trait decides.
//!
//! One file per algorithm, in tc's own grammar ([`crate::document::tc`]).

mod cake;
mod cnq_cobalt;
mod cnq_codel_af;
mod cobalt;
mod cobalt_fifo;
mod codel;
mod dualpi2;
mod fq;
mod fq_codel;
mod fq_pie;
mod framing;
mod htb;
mod lfq_cobalt;
mod netem;
mod pfifo;
mod pfifo_fast;
mod pie;
mod prio;
mod ratecfg;
mod red;
pub mod replay;
mod sce;
mod sfq;
mod sojourn;
mod sparse_bulk;
mod tally;
mod tbf;
mod tc_show;
mod timer;
mod twin_codel_af;

use std::sync::Arc;

use crate::base::units::Time;
use crate::document::run;
use crate::document::tc::{TcError, Words};
use crate::packet::Packet;
use crate::packet::charge::Charges;

pub use cake::Cake;
pub use cnq_cobalt::CnqCobalt;
pub use cnq_codel_af::CnqCodelAf;
pub use cobalt_fifo::CobaltFifo;
pub use codel::Codel;
pub use dualpi2::DualPi2;
pub use fq::Fq;
pub use fq_codel::FqCodel;
pub use fq_pie::FqPie;
pub use htb::Htb;
pub use lfq_cobalt::LfqCobalt;
pub use netem::Netem;
pub use pfifo::Fifo;
pub use pfifo_fast::PfifoFast;
pub use pie::Pie;
pub use prio::Prio;
pub use red::Red;
pub use sfq::Sfq;
pub use sojourn::{Interval, Sojourn};
pub use tally::{Cause, FlowTally, Tally};
pub use tbf::Tbf;
pub use twin_codel_af::TwinCodelAf;

/// An algorithm. Linux's names; time is an argument.
pub trait Qdisc {
    /// Takes a packet, or reports it (or others) to [`Tally::drop`]. `packet.enqueued` is `now`.
    fn enqueue(&mut self, packet: Packet, now: Time, tally: &mut Tally);

    /// The next packet to leave at `now`, or `None` when there is none or it may not leave yet.
    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet>;

    /// When a dequeue that gave `None` may succeed without another enqueue (a shaper's watchdog).
    /// Work-conserving queues keep the default. Periodic controllers need no event: they run the
    /// ticks that are due, each at its own time, before they handle an enqueue or a dequeue.
    fn next_event(&self) -> Option<Time> {
        None
    }

    /// Packets standing in the queue.
    fn qlen(&self) -> usize;

    /// Bytes standing in the queue.
    fn backlog(&self) -> u64;

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

    /// `tc qdisc change`: takes the words behind the kind; queue and state stay, but for packets
    /// above a lowered limit. Nothing changes if a word is refused.
    fn change(&mut self, words: &mut Words, _now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        Err(words.refuse("this qdisc cannot be changed in place"))
    }

    /// Whether a dequeue before [`Qdisc::next_event`] changes something although it gives nothing
    /// (netem draws a new slot).
    fn is_eager(&self) -> bool {
        false
    }

    /// Whether the time from enqueue to dequeue is queueing (true), or a delay that was asked for
    /// or something that a child measures (false).
    fn is_leaf_queue(&self) -> bool {
        true
    }

    /// Visits the queues directly below: class ids, or `child`.
    fn for_each_child<'a>(&'a self, _visit: &mut dyn FnMut(&str, &'a Queue)) {}

    /// The same, to change them; afterwards a qdisc forgets what it remembered of them.
    fn for_each_child_mut(&mut self, _visit: &mut dyn FnMut(&str, &mut Queue)) {}
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

/// The known algorithms. An enum, not a `dyn`: one indirect call per packet and hop is most of what
/// a simple queue costs; `User` is the door for others.
pub enum Kind {
    /// pfifo and bfifo
    Fifo(Fifo),
    /// codel
    Codel(Codel),
    /// fq
    Fq(Fq),
    /// fq_codel
    FqCodel(FqCodel),
    /// fq_pie
    FqPie(FqPie),
    /// htb
    Htb(Htb),
    /// netem
    Netem(Netem),
    /// pfifo_fast
    PfifoFast(PfifoFast),
    /// pie and pie@5.4
    Pie(Pie),
    /// prio
    Prio(Prio),
    /// red and red@5.4
    Red(Red),
    /// sfq
    Sfq(Sfq),
    /// tbf
    Tbf(Tbf),
    /// dualpi2, dualpi2@2020 and dualpi2@2019
    DualPi2(DualPi2),
    /// cnq_codel_af
    CnqCodelAf(CnqCodelAf),
    // Boxed: they have much to remember, and would make each of the others longer.
    /// cake and cake@sce
    Cake(Box<Cake>),
    /// cnq_cobalt
    CnqCobalt(Box<CnqCobalt>),
    /// cobalt
    Cobalt(Box<CobaltFifo>),
    /// lfq_cobalt
    LfqCobalt(Box<LfqCobalt>),
    /// twin_codel_af
    TwinCodelAf(Box<TwinCodelAf>),
    /// Somebody's own.
    User(Box<dyn Qdisc + Send>),
}

impl Kind {
    /// Whether this is known to give a packet whenever it has one: then it has no [`Qdisc::next_event`].
    fn is_work_conserving(&self) -> bool {
        use Kind::{Codel, DualPi2, Fifo, FqCodel, FqPie, PfifoFast, Pie, Red, Sfq};
        matches!(
            self,
            Fifo(_) | Codel(_) | DualPi2(_) | FqCodel(_) | FqPie(_) | PfifoFast(_) | Pie(_) | Red(_) | Sfq(_)
        )
    }
}

impl Kind {
    /// Whether a packet of several segments enters frame by frame.
    fn segments(&self, packet: &Packet) -> bool {
        match self {
            Kind::Cake(cake) => cake.segments(),
            Kind::CnqCobalt(_) => true,
            Kind::DualPi2(dualpi2) => dualpi2.segments(),
            Kind::Tbf(tbf) => tbf.segments(packet),
            _ => false,
        }
    }
}

macro_rules! dispatch {
    ($self:expr, $q:ident => $e:expr) => {
        match $self {
            Kind::Fifo($q) => $e,
            Kind::Codel($q) => $e,
            Kind::Fq($q) => $e,
            Kind::FqCodel($q) => $e,
            Kind::FqPie($q) => $e,
            Kind::Htb($q) => $e,
            Kind::Netem($q) => $e,
            Kind::PfifoFast($q) => $e,
            Kind::Pie($q) => $e,
            Kind::Prio($q) => $e,
            Kind::Red($q) => $e,
            Kind::Sfq($q) => $e,
            Kind::Tbf($q) => $e,
            Kind::DualPi2($q) => $e,
            Kind::CnqCodelAf($q) => $e,
            Kind::Cake($q) => $e,
            Kind::CnqCobalt($q) => $e,
            Kind::Cobalt($q) => $e,
            Kind::LfqCobalt($q) => $e,
            Kind::TwinCodelAf($q) => $e,
            Kind::User($q) => $e,
        }
    };
}

/// A queue discipline in place: counts every packet around the algorithm, and measures how long
/// packets stand in it.
pub struct Queue {
    kind: Kind,
    /// What [`Qdisc::is_eager`] said last; only a change of configuration changes it.
    eager: bool,
    /// What happened here so far, children not included.
    pub tally: Tally,
    /// How long packets stood here; only in a leaf that queues (not in htb and netem).
    pub sojourn: Option<Sojourn>,
}

impl Queue {
    /// Builds the tree that `spec` describes.
    ///
    /// # Errors
    /// [`TcError`] names the unknown word or the malformed value.
    pub fn build(spec: &run::Qdisc, env: &Env) -> Result<Queue, TcError> {
        let words = &mut Words::new(&spec.qdisc);
        let name = words.kind()?;
        if !spec.classes.is_empty() && !["htb", "prio"].contains(&name) {
            return Err(words.refuse(&format!("'{name}' has no classes")));
        }
        if spec.child.is_some() && !["netem", "tbf"].contains(&name) {
            return Err(words.refuse(&format!("'{name}' has no child")));
        }
        let kind = match name {
            "pfifo" => Kind::Fifo(Fifo::pfifo(words, env)?),
            "bfifo" => Kind::Fifo(Fifo::bfifo(words, env)?),
            "codel" => Kind::Codel(Codel::new(words, env)?),
            "fq_pie" => Kind::FqPie(FqPie::new(words, env)?),
            "fq" => Kind::Fq(Fq::new(words, env)?),
            "fq_codel" => Kind::FqCodel(FqCodel::new(words, env)?),
            "htb" => Kind::Htb(Htb::new(words, &spec.classes, env)?),
            "netem" => Kind::Netem(Netem::new(words, spec.child.as_deref(), env)?),
            "pfifo_fast" => Kind::PfifoFast(PfifoFast::new(words, env)?),
            "pie" => Kind::Pie(Pie::mainline(words, env)?),
            "pie@5.4" => Kind::Pie(Pie::v5_4(words, env)?),
            "prio" => Kind::Prio(Prio::new(words, &spec.classes, env)?),
            "red" => Kind::Red(Red::new(words, env)?),
            "red@5.4" => Kind::Red(Red::v5_4(words, env)?),
            "sfq" => Kind::Sfq(Sfq::new(words, env)?),
            "tbf" => Kind::Tbf(Tbf::new(words, spec.child.as_deref(), env)?),
            "dualpi2" => Kind::DualPi2(DualPi2::mainline(words, env)?),
            "dualpi2@2020" => Kind::DualPi2(DualPi2::v2020(words, env)?),
            "dualpi2@2019" => Kind::DualPi2(DualPi2::v2019(words, env)?),
            "cake" => Kind::Cake(Box::new(Cake::mainline(words, env)?)),
            "cake@sce" => Kind::Cake(Box::new(Cake::sce(words, env)?)),
            "cnq_cobalt" => Kind::CnqCobalt(Box::new(CnqCobalt::new(words, env)?)),
            "cnq_codel_af" => Kind::CnqCodelAf(CnqCodelAf::new(words, env)?),
            "cobalt" => Kind::Cobalt(Box::new(CobaltFifo::new(words, env)?)),
            "lfq_cobalt" => Kind::LfqCobalt(Box::new(LfqCobalt::new(words, env)?)),
            "twin_codel_af" => Kind::TwinCodelAf(Box::new(TwinCodelAf::new(words, env)?)),
            deltic if deltic.starts_with("deltic") => {
                return Err(words.refuse(&format!(
                    "'{deltic}' is not modelled: its algorithm is described nowhere but in the SCE tree's own kernel, \
                     which does run it (--engine kernel)"
                )));
            }
            other => return Err(words.unknown_kind(other, KINDS)),
        };
        Ok(Queue::new(kind, env))
    }

    /// A queue around a given algorithm.
    pub fn new(kind: Kind, env: &Env) -> Queue {
        let is_leaf = dispatch!(&kind, q => q.is_leaf_queue());
        Queue {
            eager: dispatch!(&kind, q => q.is_eager()),
            kind,
            tally: Tally {
                flows: vec![FlowTally::default(); env.flows],
                charges: env.charges.clone(),
                ..Tally::default()
            },
            sojourn: is_leaf.then(Sojourn::default),
        }
    }

    /// Offers a packet.
    pub fn enqueue(&mut self, mut packet: Packet, now: Time) {
        // In fq a packet waits from when it may leave.
        let departs = if matches!(self.kind, Kind::Fq(_)) { packet.enqueued } else { now };
        packet.enqueued = departs.max(now);
        self.tally.enqueued += 1;
        self.tally.enqueued_bytes += u64::from(packet.len);
        if packet.gso_size != 0 && self.kind.segments(&packet) {
            self.enqueue_segments(&packet, now);
            return;
        }
        let tally = &mut self.tally;
        dispatch!(&mut self.kind, q => q.enqueue(packet, now, tally));
    }

    #[cold]
    fn enqueue_segments(&mut self, packet: &Packet, now: Time) {
        let tally = &mut self.tally;
        tally.split(packet);
        for i in 0..packet.segs() {
            dispatch!(&mut self.kind, q => q.enqueue(packet.segment(i), now, tally));
        }
    }

    /// Lets `packet` through without a wait, and counts it, if this is an empty fifo with room for it.
    pub fn passes(&mut self, packet: &Packet, now: Time) -> bool {
        let free = matches!(&self.kind, Kind::Fifo(fifo) if fifo.qlen() == 0 && fifo.fits(packet));
        if free {
            let bytes = u64::from(packet.len);
            self.tally.enqueued += 1;
            self.tally.enqueued_bytes += bytes;
            self.tally.sent += 1;
            self.tally.sent_bytes += bytes;
            if packet.gso_size != 0 {
                self.tally.more_segs += u64::from(packet.segs() - 1);
            }
            self.tally.flow(packet).packets += 1;
            if let Some(sojourn) = &mut self.sojourn {
                sojourn.record(Time::ZERO, now);
            }
        }
        free
    }

    /// Takes the next packet that may leave at `now`.
    pub fn dequeue(&mut self, now: Time) -> Option<Packet> {
        let packet = self.take(now);
        // Looked at where it lies: taking it out of the option would move it twice.
        if let Some(packet) = &packet {
            self.left(packet, now);
        }
        packet
    }

    /// Half of [`Queue::dequeue`], whose result need not be moved: the caller owes [`Queue::left`].
    pub fn take(&mut self, now: Time) -> Option<Packet> {
        let tally = &mut self.tally;
        dispatch!(&mut self.kind, q => q.dequeue(now, tally))
    }

    /// Counts a packet that [`Queue::take`] gave.
    #[inline]
    pub fn left(&mut self, packet: &Packet, now: Time) {
        self.tally.sent += 1;
        self.tally.sent_bytes += u64::from(packet.len);
        if packet.gso_size != 0 {
            self.tally.more_segs += u64::from(packet.segs() - 1);
        }
        self.tally.flow(packet).packets += 1;
        if let Some(sojourn) = &mut self.sojourn {
            sojourn.record(now - packet.enqueued, now);
        }
    }

    /// See [`Qdisc::next_event`].
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        if self.kind.is_work_conserving() { None } else { self.next_event_of_kind() }
    }

    fn next_event_of_kind(&self) -> Option<Time> {
        dispatch!(&self.kind, q => q.next_event())
    }

    /// Whether a dequeue at `now` may give a packet or change something. Asking is cheaper than a
    /// dequeue in vain, and most packets find a shaper or a delay closed.
    #[inline]
    pub fn is_open(&self, now: Time) -> bool {
        self.next_event().is_none_or(|at| at <= now) || self.eager
    }

    /// Whether a host's TCP leaves its delays to this queue (`SK_PACING_FQ`).
    pub fn paces(&self) -> bool {
        matches!(&self.kind, Kind::Fq(fq) if fq.paces())
    }

    /// Whether this is a pfifo or bfifo, which has no state but its packets.
    pub fn is_fifo(&self) -> bool {
        matches!(self.kind, Kind::Fifo(_))
    }

    /// Whether this is one without packets.
    #[inline]
    pub fn is_empty_fifo(&self) -> bool {
        matches!(&self.kind, Kind::Fifo(fifo) if fifo.qlen() == 0)
    }

    /// The packet that a pfifo or bfifo gives next; none in others.
    pub fn fifo_head(&self) -> Option<&Packet> {
        match &self.kind {
            Kind::Fifo(fifo) => fifo.head(),
            _ => None,
        }
    }

    /// See [`Qdisc::is_eager`].
    pub fn is_eager(&self) -> bool {
        self.eager
    }

    fn note_eager(&mut self) {
        self.eager = dispatch!(&self.kind, q => q.is_eager());
    }

    /// Packets standing here and below.
    pub fn qlen(&self) -> usize {
        dispatch!(&self.kind, q => q.qlen())
    }

    /// Bytes standing here and below.
    pub fn backlog(&self) -> u64 {
        dispatch!(&self.kind, q => q.backlog())
    }

    /// The configuration in effect, as tc words it; classes by [`Queue::show_classes`].
    pub fn show(&self) -> String {
        dispatch!(&self.kind, q => q.show())
    }

    /// The algorithm's own statistics, as tc words them.
    pub fn show_stats(&self, now: Time) -> String {
        dispatch!(&self.kind, q => q.show_stats(now))
    }

    /// See [`Qdisc::overlimits`].
    pub fn overlimits(&self) -> u64 {
        dispatch!(&self.kind, q => q.overlimits())
    }

    /// See [`Qdisc::requeues`].
    pub fn requeues(&self) -> u64 {
        dispatch!(&self.kind, q => q.requeues())
    }

    /// The classes, as `tc -d class show` words them; none in a classless qdisc.
    pub fn show_classes(&self) -> Vec<String> {
        match &self.kind {
            Kind::Htb(htb) => htb.show_classes(),
            Kind::Prio(prio) => prio.show_classes(),
            _ => Vec::new(),
        }
    }

    /// `tc qdisc change` with the whole line, of the same kind as what is here.
    ///
    /// # Errors
    /// Another kind, an unknown word, a malformed value, or a qdisc that cannot change; nothing is
    /// changed then.
    pub fn change(&mut self, line: &str, now: Time) -> Result<(), TcError> {
        let words = &mut Words::new(line);
        let kind = words.kind()?;
        let shown = self.show();
        let here = shown.split(' ').next().unwrap_or_default();
        if kind != here {
            return Err(words.refuse(&format!("'{kind}' cannot change '{here}': replace it")));
        }
        let tally = &mut self.tally;
        dispatch!(&mut self.kind, q => q.change(words, now, tally))?;
        self.note_eager();
        Ok(())
    }

    /// `tc class change`: new words for the class `id`; its tokens and its queue stay.
    ///
    /// # Errors
    /// No such class, an unknown word or a malformed value; nothing is changed then.
    pub fn change_class(&mut self, id: &str, line: &str) -> Result<(), TcError> {
        let words = &mut Words::new(line);
        match &mut self.kind {
            Kind::Htb(htb) => htb.change_class(id, words),
            _ => Err(words.refuse(&format!("class {id}: this qdisc has no classes"))),
        }
    }

    /// Feeds the histograms of sojourn times in the whole tree with the packets that leave from
    /// `from` to `to`, both included.
    pub fn record_window(&mut self, from: Time, to: Time) {
        self.for_each_mut(&mut |_, queue| {
            if let Some(sojourn) = &mut queue.sojourn {
                sojourn.record_window(from, to);
            }
        });
    }

    /// Visits this queue and everything below it, parents first, with the handle of each: `""` is
    /// this queue, `"1"` what hangs below class 1, `"1/child"` what hangs below that.
    pub fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&str, &'a Queue)) {
        self.walk("", visit);
    }

    /// The same, to change them.
    pub fn for_each_mut(&mut self, visit: &mut dyn FnMut(&str, &mut Queue)) {
        self.walk_mut("", visit);
    }

    /// The queues without anything below them, with their handles.
    pub fn leaves(&self) -> Vec<(String, &Queue)> {
        let mut leaves = Vec::new();
        self.for_each(&mut |handle, queue| {
            if !queue.is_parent() {
                leaves.push((handle.to_owned(), queue));
            }
        });
        leaves
    }

    /// Calls `act` on the queue called `handle`; false if there is none.
    pub fn at(&mut self, handle: &str, act: &mut dyn FnMut(&mut Queue)) -> bool {
        if handle.is_empty() {
            act(self);
            return true;
        }
        let (first, rest) = handle.split_once('/').unwrap_or((handle, ""));
        let mut found = false;
        dispatch!(&mut self.kind, q => q.for_each_child_mut(&mut |name, child| {
            if name == first {
                found = child.at(rest, act);
            }
        }));
        self.note_eager();
        found
    }

    fn is_parent(&self) -> bool {
        let mut any = false;
        dispatch!(&self.kind, q => q.for_each_child(&mut |_, _| any = true));
        any
    }

    fn walk<'a>(&'a self, handle: &str, visit: &mut dyn FnMut(&str, &'a Queue)) {
        visit(handle, self);
        dispatch!(&self.kind, q => q.for_each_child(&mut |name, child| {
            child.walk(&below(handle, name), visit);
        }));
    }

    fn walk_mut(&mut self, handle: &str, visit: &mut dyn FnMut(&str, &mut Queue)) {
        visit(handle, self);
        dispatch!(&mut self.kind, q => q.for_each_child_mut(&mut |name, child| {
            child.walk_mut(&below(handle, name), visit);
        }));
        self.note_eager();
    }
}

/// The handle of `name` below `handle`.
fn below(handle: &str, name: &str) -> String {
    if handle.is_empty() { name.to_owned() } else { format!("{handle}/{name}") }
}

/// The names that [`Queue::build`] knows, for error messages and completion.
pub const KINDS: &[&str] = &[
    "pfifo",
    "bfifo",
    "codel",
    "fq",
    "fq_codel",
    "fq_pie",
    "htb",
    "netem",
    "pfifo_fast",
    "pie",
    "pie@5.4",
    "prio",
    "red",
    "red@5.4",
    "sfq",
    "tbf",
    "dualpi2",
    "dualpi2@2020",
    "dualpi2@2019",
    "cake",
    "cake@sce",
    "cnq_cobalt",
    "cnq_codel_af",
    "cobalt",
    "lfq_cobalt",
    "twin_codel_af",
];
