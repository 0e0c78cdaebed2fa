//! Queue disciplines. The public [`Queue`] stamps, counts and records; the algorithm behind the
//! [`Qdisc`] trait decides.
//!
//! One file per algorithm, in tc's own grammar ([`crate::tc`]).

mod cnq_codel_af;
mod cobalt;
#[cfg(test)]
mod conservation;
mod dualpi2;
mod pfifo;
mod pie;
mod red;
mod timer;

use crate::packet::Packet;
use crate::run;
use crate::tc::{TcError, Words};
use crate::units::Time;

pub use cnq_codel_af::CnqCodelAf;
pub use dualpi2::DualPi2;
pub use pfifo::Fifo;
pub use pie::Pie;
pub use red::Red;

/// Why a queue threw a packet away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// No room: the queue was at its limit.
    Overlimit,
    /// The AQM's decision.
    Aqm,
    /// The AQM gave up marking because of overload.
    Overload,
    /// Random loss that was asked for (netem).
    Loss,
}

/// What one flow met in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTally {
    /// Packets that left.
    pub packets: u64,
    /// Packets that got CE here.
    pub marks: u64,
    /// Packets dropped here.
    pub drops: u64,
}

/// Counts of one queue; the algorithm reports marks and drops through it.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Packets and bytes offered.
    pub enqueued: u64,
    /// Bytes offered.
    pub enqueued_bytes: u64,
    /// Packets that left.
    pub sent: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets that got CE here.
    pub marks: u64,
    /// Packets dropped, by [`Cause`] in its order of declaration.
    pub drops: [u64; 4],
    /// Bytes dropped.
    pub dropped_bytes: u64,
    /// By flow, indexed by [`Packet::flow`].
    pub flows: Vec<FlowTally>,
}

impl Tally {
    /// Counts a dropped packet. Every packet that an algorithm does not keep or return goes here.
    pub fn drop(&mut self, packet: &Packet, cause: Cause) {
        self.drops[cause as usize] += 1;
        self.dropped_bytes += u64::from(packet.len);
        self.flow(packet).drops += 1;
    }

    /// Sets CE and counts it; false (and nothing counted) if the packet is not ECN-capable.
    /// A packet that already carried CE counts as marked, as in Linux.
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        let marked = packet.set_ce();
        if marked {
            self.marks += 1;
            self.flow(packet).marks += 1;
        }
        marked
    }

    /// All drops.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }

    fn flow(&mut self, packet: &Packet) -> &mut FlowTally {
        let i = usize::from(packet.flow);
        if i >= self.flows.len() {
            self.flows.resize(i + 1, FlowTally::default());
        }
        &mut self.flows[i]
    }
}

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

    /// The algorithm's own statistics lines, as `tc -s` words them; may be empty.
    fn show_stats(&self) -> String {
        String::new()
    }
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
    /// Number of flows and probes, for tables by flow.
    pub flows: usize,
}

impl Env {
    /// The kernel's `psched_mtu`: MTU plus hard header.
    pub fn psched_mtu(&self) -> u32 {
        self.mtu + 14
    }

    /// The environment of a child called `name`.
    pub fn child(&self, name: &str) -> Env {
        Env {
            name: format!("{}/{name}", self.name),
            ..self.clone()
        }
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
            flows: 0,
        }
    }
}

/// The known algorithms. An enum, not a `dyn`: one indirect call per packet and hop is most of what
/// a simple queue costs; `User` is the door for others.
pub enum Kind {
    /// pfifo and bfifo
    Fifo(Fifo),
    /// pie and pie@5.4
    Pie(Pie),
    /// red
    Red(Red),
    /// dualpi2, dualpi2@2020 and dualpi2@2019
    DualPi2(DualPi2),
    /// cnq_codel_af
    CnqCodelAf(CnqCodelAf),
    /// Somebody's own.
    User(Box<dyn Qdisc + Send>),
}

macro_rules! dispatch {
    ($self:expr, $q:ident => $e:expr) => {
        match $self {
            Kind::Fifo($q) => $e,
            Kind::Pie($q) => $e,
            Kind::Red($q) => $e,
            Kind::DualPi2($q) => $e,
            Kind::CnqCodelAf($q) => $e,
            Kind::User($q) => $e,
        }
    };
}

/// A queue discipline in place: counts every packet around the algorithm.
pub struct Queue {
    kind: Kind,
    /// What happened here so far.
    pub tally: Tally,
}

impl Queue {
    /// Builds the tree that `spec` describes.
    ///
    /// # Errors
    /// [`TcError`] names the unknown word or the malformed value.
    pub fn build(spec: &run::Qdisc, env: &Env) -> Result<Queue, TcError> {
        let mut words = Words::new(&spec.qdisc);
        let kind = match words.kind()? {
            "pfifo" => Kind::Fifo(Fifo::pfifo(&mut words, env)?),
            "bfifo" => Kind::Fifo(Fifo::bfifo(&mut words, env)?),
            "pie" => Kind::Pie(Pie::mainline(&mut words, env)?),
            "pie@5.4" => Kind::Pie(Pie::v5_4(&mut words, env)?),
            "red" => Kind::Red(Red::new(&mut words, env)?),
            "dualpi2" => Kind::DualPi2(DualPi2::mainline(&mut words, env)?),
            "dualpi2@2020" => Kind::DualPi2(DualPi2::v2020(&mut words, env)?),
            "dualpi2@2019" => Kind::DualPi2(DualPi2::v2019(&mut words, env)?),
            "cnq_codel_af" => Kind::CnqCodelAf(CnqCodelAf::new(&mut words, env)?),
            other => return Err(words.unknown_kind(other, KINDS)),
        };
        Ok(Queue::new(kind, env))
    }

    /// A queue around a given algorithm.
    pub fn new(kind: Kind, env: &Env) -> Queue {
        Queue {
            kind,
            tally: Tally {
                flows: vec![FlowTally::default(); env.flows],
                ..Tally::default()
            },
        }
    }

    /// Offers a packet.
    pub fn enqueue(&mut self, mut packet: Packet, now: Time) {
        packet.enqueued = now;
        self.tally.enqueued += 1;
        self.tally.enqueued_bytes += u64::from(packet.len);
        let tally = &mut self.tally;
        dispatch!(&mut self.kind, q => q.enqueue(packet, now, tally));
    }

    /// Takes the next packet that may leave at `now`.
    pub fn dequeue(&mut self, now: Time) -> Option<Packet> {
        let tally = &mut self.tally;
        let packet = dispatch!(&mut self.kind, q => q.dequeue(now, tally))?;
        self.tally.sent += 1;
        self.tally.sent_bytes += u64::from(packet.len);
        self.tally.flow(&packet).packets += 1;
        Some(packet)
    }

    /// See [`Qdisc::next_event`].
    pub fn next_event(&self) -> Option<Time> {
        dispatch!(&self.kind, q => q.next_event())
    }

    /// Packets standing here.
    pub fn qlen(&self) -> usize {
        dispatch!(&self.kind, q => q.qlen())
    }

    /// Bytes standing here.
    pub fn backlog(&self) -> u64 {
        dispatch!(&self.kind, q => q.backlog())
    }

    /// The configuration in effect, as tc words it.
    pub fn show(&self) -> String {
        dispatch!(&self.kind, q => q.show())
    }

    /// The algorithm's own statistics, as tc words them.
    pub fn show_stats(&self) -> String {
        dispatch!(&self.kind, q => q.show_stats())
    }
}

/// The names that [`Queue::build`] knows, for error messages and completion.
pub const KINDS: &[&str] = &[
    "pfifo",
    "bfifo",
    "pie",
    "pie@5.4",
    "red",
    "dualpi2",
    "dualpi2@2020",
    "dualpi2@2019",
    "cnq_codel_af",
];
