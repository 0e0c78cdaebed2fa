//! Lanes: interfaces in a row that a packet passes in one step of the event loop.
//!
//! A [`Device`] is a fifo before a wire with a rate and a delay and nothing else. When its packets leave follows from
//! when they come, in their order: each begins when the one before has ended, or at once. If all that comes is sent by
//! one interface before it, then what leaves there can be taken through the device ahead of time, in the same order as
//! later. So it is with the device behind that, and on to where the row ends: at a host, at a queue that decides
//! something, or where the packets of several interfaces meet. docs/performance.md shows that this changes nothing.

use crate::base::count::Count;
use crate::base::ring::Ring;
use crate::base::units::{Rate, Time};
use crate::network::graph::{Graph, Hop};
use crate::network::interface::Interface;
use crate::packet::Packet;
use crate::qdisc::Queue;

/// No frame is shorter, in bytes: an Ethernet header and nothing in it.
const SHORTEST: u32 = 14;

/// A fifo before a plain wire, of which nothing is measured but counts.
#[derive(Debug)]
pub struct Device {
    /// The most packets that may wait.
    limit: usize,
    /// When the transmission of each packet begins that waits, or waited.
    begins: Ring<Time>,
    /// When the last packet is sent whole.
    free: Time,
    rate: Option<Rate>,
    delay: Time,
    /// The length of the last frame, and what it took: most are as long as the one before.
    last: (u32, Time),
    /// What was sent, by flow.
    sent: Vec<Count>,
}

/// The way of a packet through a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// When its transmission begins.
    pub(crate) begins: Time,
    /// When that ends.
    pub(crate) ends: Time,
    /// When it is at the far end of the wire.
    pub(crate) arrives: Time,
}

/// Why a packet does not pass a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// There is no room for it.
    Full,
    /// The run is over before it is its turn.
    Late,
}

impl Device {
    /// What `interface` is, unless it is more than that: it holds packets back, drops them by other rules, measures
    /// them, writes them down, changes one day, or lets them pass in no time.
    pub fn of(interface: &Interface) -> Option<Device> {
        let wire = &interface.wire;
        if !interface.plain || interface.changes || !takes_time(interface) {
            return None;
        }
        let limit = interface.egress.as_ref().map_or(Some(u64::MAX), Queue::tail_drop)?;
        (limit > 0).then(|| Device {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            begins: Ring::default(),
            free: Time::ZERO,
            rate: wire.rate,
            delay: wire.delay,
            last: (0, Time::ZERO),
            sent: Vec::new(),
        })
    }

    /// Takes a packet that comes at `at`, now or later, if there is room for it and its turn comes before `end`.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(crate) fn pass(&mut self, packet: &Packet, at: Time, end: Time) -> Result<Passage, Stop> {
        let begins = self.admit(at, end)?;
        match self.sent.get_mut(usize::from(packet.flow)) {
            Some(sent) => sent.add(packet.len),
            None => self.count_first(packet),
        }
        // It begins before the end of the run; docs/performance.md says why these sums fit.
        let ends = begins.plus(self.lasts(packet.len));
        self.free = ends;
        Ok(Passage { begins, ends, arrives: ends.plus(self.delay) })
    }

    #[cold]
    #[inline(never)]
    fn count_first(&mut self, packet: &Packet) {
        let flow = usize::from(packet.flow);
        self.sent.resize(flow + 1, Count::default());
        self.sent[flow].add(packet.len);
    }

    /// When the turn comes of a packet that comes at `at`.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(crate) fn admit(&mut self, at: Time, end: Time) -> Result<Time, Stop> {
        if self.free <= at {
            return Ok(at);
        }
        while self.begins.front().is_some_and(|begins| *begins <= at) {
            self.begins.drop_front();
        }
        if self.begins.len() >= self.limit {
            return Err(Stop::Full);
        }
        self.begins.push(self.free);
        if self.free > end { Err(Stop::Late) } else { Ok(self.free) }
    }

    /// The same for each frame of a buffer with several segments, whose turn comes at `begins`.
    pub(crate) fn send(&mut self, frame: &Packet, begins: Time) -> Time {
        self.free = self.free.max(begins) + self.lasts(frame.len);
        self.free + self.delay
    }

    /// How long the transmission of a frame takes.
    #[inline]
    fn lasts(&mut self, bytes: u32) -> Time {
        if self.last.0 != bytes {
            self.work_out(bytes);
        }
        self.last.1
    }

    /// Kept out of line, it needs no registers of who sends frames of one length.
    #[cold]
    #[inline(never)]
    fn work_out(&mut self, bytes: u32) {
        self.last = (bytes, self.rate.map_or(Time::ZERO, |rate| rate.time_for(bytes)));
    }

    /// When the last packet is sent whole.
    pub(crate) fn free(&self) -> Time {
        self.free
    }

    /// What was sent since this was last asked, by flow.
    pub(crate) fn take_sent(&mut self) -> Vec<Count> {
        std::mem::take(&mut self.sent)
    }
}

fn takes_time(interface: &Interface) -> bool {
    let wire = &interface.wire;
    wire.delay > Time::ZERO || wire.rate.is_some_and(|rate| rate.time_for(SHORTEST) > Time::ZERO)
}

/// Where a packet is taken on ahead of time.
#[derive(Default)]
pub struct Lanes {
    /// By interface and destination: the devices behind its wire that have their packets from nowhere else.
    behind: Vec<Box<[u16]>>,
    /// By interface and destination: the last of the wires, from its own on, that a packet passes in no time. Empty where
    /// none passes more than its own.
    at_once: Vec<u16>,
    nodes: usize,
}

impl Lanes {
    /// The lanes of a network whose packets go from the first to the second of each of these nodes, and back.
    pub fn new(graph: &Graph, interfaces: &[Interface], traffic: &[[u16; 2]]) -> Lanes {
        let nodes = graph.names.len();
        let there_and_back = traffic.iter().flat_map(|&[a, b]| [[a, b], [b, a]]);
        let ways: Vec<(u16, Vec<u16>)> = there_and_back.map(|[a, b]| (b, way(graph, a, b))).collect();
        // What an interface has its packets from: another one, or none for its own node.
        let mut feeders: Vec<Vec<Option<u16>>> = vec![Vec::new(); interfaces.len()];
        for (_, way) in &ways {
            let before = std::iter::once(None).chain(way.iter().copied().map(Some));
            for (i, feeder) in way.iter().zip(before) {
                let feeders = &mut feeders[usize::from(*i)];
                if !feeders.contains(&feeder) {
                    feeders.push(feeder);
                }
            }
        }
        let leads = |i: u16, next: u16| {
            let [from, arrival, to] = [i, i ^ 1, next].map(|i| &interfaces[usize::from(i)]);
            // Whole buffers of several segments are not taken on.
            let frames = !from.offloads || from.wire.rate.is_some();
            let plain = from.plain && !from.changes && frames && takes_time(from);
            plain
                && !arrival.inspects
                && !arrival.changes
                && to.device.is_some()
                && feeders[usize::from(next)] == [Some(i)]
        };
        let mut behind = vec![Box::default(); interfaces.len() * nodes];
        for (dst, way) in &ways {
            for (n, i) in way.iter().enumerate() {
                let row = way[n..].windows(2).take_while(|pair| leads(pair[0], pair[1]));
                behind[usize::from(*i) * nodes + usize::from(*dst)] = row.map(|pair| pair[1]).collect();
            }
        }
        let pairs = (0..interfaces.len()).flat_map(|i| (0..nodes).map(move |dst| (i as u16, dst as u16)));
        let mut at_once: Vec<u16> =
            pairs.clone().map(|(i, dst)| last_at_once(graph, interfaces, i, dst)).collect();
        if pairs.zip(&at_once).all(|((i, _), last)| i == *last) {
            at_once.clear();
        }
        Lanes { behind, at_once, nodes }
    }

    /// Whether no lane goes on behind the wire of interface `i`.
    pub(crate) fn end_behind(&self, i: u16) -> bool {
        let row = usize::from(i) * self.nodes;
        self.behind[row..row + self.nodes].iter().all(|devices| devices.is_empty())
    }

    /// The devices that a packet for `dst` comes to behind the wire of interface `i`, one after the other.
    #[inline]
    pub(crate) fn behind(&self, i: u16, dst: u16) -> &[u16] {
        &self.behind[usize::from(i) * self.nodes + usize::from(dst)]
    }

    /// The wire at whose far end a packet for `dst` is that is at the far end of wire `i` in no time: that of the last of
    /// the routers in a row that only hand it on, or `i`.
    #[inline]
    pub(crate) fn at_once(&self, i: u16, dst: u16) -> u16 {
        if self.at_once.is_empty() { i } else { self.at_once[usize::from(i) * self.nodes + usize::from(dst)] }
    }
}

/// See [`Lanes::at_once`]. Captures end no row, or a run with captures would have another order.
fn last_at_once(graph: &Graph, interfaces: &[Interface], mut i: u16, dst: u16) -> u16 {
    let at = |i: u16| &interfaces[usize::from(i)];
    let passes = |i: u16| at(i).wire.is_plain() && !at(i).changes && !takes_time(at(i));
    while passes(i)
        && let arrival = at(i ^ 1)
        && arrival.ingress.is_none()
        && arrival.rules.is_empty()
        && !arrival.changes
        && let Hop::Out(next) = graph.hop(i ^ 1, dst)
        && passes(next)
        && at(next).egress.is_none()
        // Whole buffers of several segments stay whole.
        && (at(next).offloads || !at(i).offloads)
    {
        i = next;
    }
    i
}

/// The interfaces by which a packet leaves one node after the other.
fn way(graph: &Graph, from: u16, to: u16) -> Vec<u16> {
    let mut way = Vec::new();
    let mut out = graph.route(from, to);
    while let Some(i) = out {
        way.push(i);
        out = match graph.hop(i ^ 1, to) {
            Hop::Out(next) => Some(next),
            Hop::Here | Hop::Nowhere => None,
        };
    }
    way
}
