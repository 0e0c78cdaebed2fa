//! What a queue is that only delays: a `netem` whose delay is the same for all packets, or an `htb` with such a netem in
//! each of its classes, which all stand at the root.
//!
//! When a packet leaves such a queue follows from when it comes and from what its class sent before it. So it is worked
//! out when the packet comes, which then waits in one place for that time. In the queue itself it would pass two or three
//! counters, two clocks and the question whose turn it is, on its way in and on its way out. `sim/fast_path` proves that
//! this changes no result.
//!
//! Source: that of [`super::htb`] and [`super::netem`], which give the same packets at the same times.

use super::Queue;
use super::htb::{Buckets, PRIORITIES, Params};
use crate::base::count::Count;
use crate::base::ring::Ring;
use crate::base::units::Time;
use crate::packet::matching::{CompiledMatch, first_match};
use crate::packet::{Flags, Packet};

/// The lines of such a queue: one for each class.
#[derive(Debug)]
pub struct Delays {
    lines: Vec<Line>,
    /// Of each line.
    heads: Vec<Head>,
    filters: Vec<(CompiledMatch, usize)>,
    default: usize,
    /// Bit p: a line has this priority.
    prios: u8,
    /// Whose turn it is among the lines whose class may send, by priority: the first from this number on, or else of all.
    turns: [usize; PRIORITIES],
    /// When the first packet leaves.
    due: Time,
}

/// Packets of one class, which leave in the order in which they came.
#[derive(Debug)]
pub struct Line {
    /// Of the netem: the class's name, or nothing if there is no htb.
    handle: String,
    latency: Time,
    /// The most packets that may wait.
    limit: usize,
    class: Option<ShapedBy>,
    waiting: Ring<Delayed>,
    /// What left, by flow.
    sent: Vec<Count>,
    /// Segments that left beyond one per packet.
    more_segs: u64,
}

/// The class of an `htb` that a line belongs to.
#[derive(Debug)]
struct ShapedBy {
    params: Params,
    /// As they are when all that waits has left.
    buckets: Buckets,
    /// How often the class comes to its ceiling.
    overlimits: u64,
    /// What it has left of its quantum.
    deficit: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Delayed {
    /// When the class may send it.
    wake: Time,
    /// When it leaves: its class may send it, and its delay is over.
    leaves: Time,
    packet: Packet,
}

/// The times of the first packet of a line; never, if there is none.
#[derive(Clone, Copy, Debug)]
struct Head {
    wake: Time,
    leaves: Time,
    /// The line's.
    prio: usize,
}

/// There is no room for a packet in the line of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full(usize);

impl Delays {
    /// A netem without an htb.
    pub fn netem(latency: Time, limit: usize) -> Delays {
        let line = Line {
            handle: String::new(),
            latency,
            limit,
            class: None,
            waiting: Ring::default(),
            sent: Vec::new(),
            more_segs: 0,
        };
        Delays::new(vec![line], Vec::new(), 0)
    }

    /// The lines of an htb; packets that no filter is about belong to the line number `default`.
    pub fn new(lines: Vec<Line>, filters: Vec<(CompiledMatch, usize)>, default: usize) -> Delays {
        let head = |line: &Line| Head { wake: Time::NEVER, leaves: Time::NEVER, prio: line.prio() };
        let heads: Vec<Head> = lines.iter().map(head).collect();
        let prios = heads.iter().fold(0, |prios, head| prios | 1 << head.prio);
        Delays { lines, heads, filters, default, prios, turns: [0; PRIORITIES], due: Time::NEVER }
    }

    /// The only line; none if there are several.
    pub fn into_line(self) -> Option<Line> {
        let [line] = <[Line; 1]>::try_from(self.lines).ok()?;
        Some(line)
    }

    /// When the first packet leaves; never, if none waits.
    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }

    /// How many packets wait.
    pub fn len(&self) -> usize {
        self.lines.iter().map(|line| line.waiting.len()).sum()
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.due == Time::NEVER
    }

    /// Takes a packet that comes at `now`, in a run that ends at `end`.
    ///
    /// # Errors
    /// There is no room for it; see [`Delays::turn_away`].
    #[inline]
    pub fn take(&mut self, packet: &Packet, now: Time, end: Time) -> Result<(), Full> {
        let at = first_match(&self.filters, packet).unwrap_or(self.default);
        let (line, head) = (&mut self.lines[at], &mut self.heads[at]);
        if line.waiting.len() >= line.limit {
            return Err(Full(at));
        }
        let (wake, leaves) = line.pass(packet.len, now, end);
        if line.waiting.is_empty() {
            (head.wake, head.leaves) = (wake, leaves);
            self.due = self.due.min(leaves);
        }
        let slot = line.waiting.push_slot();
        (slot.wake, slot.leaves, slot.packet) = (wake, leaves, *packet);
        slot.packet.enqueued = now;
        // What waits here has left its socket.
        slot.packet.flags = packet.flags.without(Flags::CHARGED);
        Ok(())
    }

    /// Counts a packet that found no room, in `queue`, which these lines are of.
    #[cold]
    pub fn turn_away(&self, full: Full, packet: &Packet, queue: &mut Queue) {
        let handle = &self.lines[full.0].handle;
        if handle.is_empty() {
            queue.turn_away(packet);
        } else {
            queue.offer(packet);
            queue.at(handle, &mut |netem| netem.turn_away(packet));
        }
    }

    /// The number of the line whose packet leaves at `now`, if one does.
    #[inline]
    pub fn turn(&mut self, now: Time) -> Option<usize> {
        if self.due > now {
            return None;
        }
        if self.prios.is_power_of_two() { self.turn_among_alike(now) } else { self.turn_by_prio(now) }
    }

    /// The same if all lines have one priority. A packet does not leave before its class may send it, so that nothing but
    /// the times at which packets leave has to be asked.
    #[inline]
    fn turn_among_alike(&mut self, now: Time) -> Option<usize> {
        let heads = &self.heads[..];
        let turn = self.turns.get_mut(self.prios.trailing_zeros() as usize)?;
        let line = (*turn..heads.len()).chain(0..*turn).find(|line| heads[*line].leaves <= now)?;
        *turn = line;
        Some(line)
    }

    #[inline(never)]
    fn turn_by_prio(&mut self, now: Time) -> Option<usize> {
        let mut prios = self.prios;
        while prios != 0 {
            let prio = prios.trailing_zeros() as usize;
            prios &= prios - 1;
            let line = self.turn_among(prio, now);
            if line.is_some() {
                return line;
            }
        }
        None
    }

    /// The same among the lines of one priority (`htb_dequeue_tree`).
    #[inline]
    fn turn_among(&mut self, prio: usize, now: Time) -> Option<usize> {
        for _ in 0..=self.heads.len() {
            let turn = self.next_in_turn(prio, self.turns[prio], now);
            let line = turn.or_else(|| self.next_in_turn(prio, 0, now))?;
            if self.heads[line].leaves <= now {
                self.turns[prio] = line;
                return Some(line);
            }
            self.pass_on(prio, line + 1, now);
        }
        None
    }

    /// The first line from `from` on whose class may send.
    #[inline]
    fn next_in_turn(&self, prio: usize, from: usize, now: Time) -> Option<usize> {
        let behind = self.heads.iter().enumerate().skip(from);
        behind.filter(|(_, head)| head.wake <= now && head.prio == prio).map(|(line, _)| line).next()
    }

    /// The first packet of a line.
    #[inline]
    pub fn first(&self, line: usize) -> Option<&Packet> {
        self.lines[line].waiting.front().map(|delayed| &delayed.packet)
    }

    /// The first packet of a line whose turn it is leaves at `now`: `take` is given it where it lies.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub fn let_go(&mut self, at: usize, now: Time, take: impl FnOnce(&mut Packet)) {
        let (line, head) = (&mut self.lines[at], &mut self.heads[at]);
        let Some(Delayed { packet, .. }) = line.waiting.front_mut() else { return };
        let (len, flow) = (packet.len, usize::from(packet.flow));
        if packet.gso_size != 0 {
            line.more_segs += u64::from(packet.segs() - 1);
        }
        take(packet);
        line.waiting.drop_front();
        let over = line.count(len, flow);
        let next = line.waiting.front();
        (head.wake, head.leaves) = next.map_or((Time::NEVER, Time::NEVER), |next| (next.wake, next.leaves));
        // The line keeps the turn until its class has had its quantum, or may not send the next packet yet.
        let passes_on = over || head.wake > now;
        let prio = head.prio;
        self.due = match &self.heads[..] {
            // One for each of two flows, mostly: the loop is made for many.
            [one] => one.leaves,
            [one, other] => one.leaves.min(other.leaves),
            heads => heads.iter().fold(Time::NEVER, |first, head| first.min(head.leaves)),
        };
        if passes_on {
            self.pass_on(prio, at + usize::from(over), now);
        }
    }

    /// The turn goes on to the first line from `from` on whose class may send, or to the first of all.
    #[inline(never)]
    fn pass_on(&mut self, prio: usize, from: usize, now: Time) {
        self.turns[prio] = self.next_in_turn(prio, from, now).unwrap_or(0);
    }

    /// The run is over: gives back to `queue`, which these lines are of, what still waits, and what passed.
    pub fn settle(self, queue: &mut Queue) {
        for line in self.lines {
            if !line.handle.is_empty() {
                line.sent.iter().enumerate().for_each(|(flow, count)| queue.let_through(flow, *count));
                queue.tally.more_segs += line.more_segs;
            }
            queue.at(&line.handle, &mut |netem| {
                line.sent.iter().enumerate().for_each(|(flow, count)| netem.let_through(flow, *count));
                netem.tally.more_segs += line.more_segs;
                netem.delayed(line.sent.iter().map(|count| count.packets).sum());
            });
            if let Some(class) = &line.class {
                queue.reached_ceiling(&line.handle, class.overlimits);
            }
            line.waiting.iter().for_each(|delayed| queue.enqueue(delayed.packet, delayed.packet.enqueued));
        }
    }
}

impl Line {
    /// The same line in a class of an `htb`.
    pub fn in_class(self, id: &str, params: &Params, buckets: &Buckets) -> Line {
        let class = ShapedBy { params: params.clone(), buckets: buckets.clone(), overlimits: 0, deficit: 0 };
        Line { handle: id.to_owned(), class: Some(class), ..self }
    }

    fn prio(&self) -> usize {
        self.class.as_ref().map_or(0, |class| class.params.prio)
    }

    /// When the class may send a packet that comes at `now`, and when it leaves. What does not leave in this run is not
    /// paid for; nor does anything behind it leave.
    #[inline]
    fn pass(&mut self, len: u32, now: Time, end: Time) -> (Time, Time) {
        let ready = now + self.latency;
        let Some(class) = &mut self.class else { return (Time::ZERO, ready) };
        let wake = class.buckets.wake();
        let leaves = ready.max(wake);
        if leaves <= end {
            class.overlimits += u64::from(class.buckets.charge(&class.params, len, leaves, false));
        }
        (wake, leaves)
    }

    /// Counts a packet that left; whether its class has had its quantum.
    #[inline]
    fn count(&mut self, len: u32, flow: usize) -> bool {
        if flow >= self.sent.len() {
            self.sent.resize(flow + 1, Count::default());
        }
        self.sent[flow].add(len);
        let Some(class) = &mut self.class else { return false };
        class.deficit -= i64::from(len);
        let over = class.deficit < 0;
        if over {
            class.deficit += class.params.quantum;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::Env;
    use crate::qdisc::htb::tests::{by_dscp, class, frame, with_child};
    use bakeoff_document::run;
    use proptest::prelude::*;

    const RATES: [&str; 4] =
        ["rate 9mbit", "rate 5mbit ceil 20mbit", "rate 1gbps ceil 2gbps", "rate 30mbit burst 9k"];
    const NETEMS: [&str; 3] = ["netem delay 300us", "netem delay 1ms limit 4", "netem delay 2ms"];

    /// A queue with a class of each rate, netem, priority and quantum; without classes, of the first netem alone.
    fn queue(classes: &[(usize, usize, u8, u32)]) -> Queue {
        let built = classes.iter().zip(1_u8..).map(|(&(rate, netem, prio, quantum), i)| {
            let words = format!("{} prio {prio} quantum {quantum}", RATES[rate]);
            by_dscp(i, with_child(NETEMS[netem], class(&i.to_string(), &words)))
        });
        let spec = match classes {
            [] => run::Qdisc::leaf(NETEMS[1]),
            _ => run::Qdisc { qdisc: "htb default 1".into(), classes: built.collect(), child: None },
        };
        Queue::build(&spec, &Env { flows: 2, ..Env::default() }).unwrap()
    }

    /// What leaves next at `now`.
    fn give(delays: &mut Delays, now: Time) -> Option<Packet> {
        let line = delays.turn(now)?;
        let mut gave = None;
        delays.let_go(line, now, |packet| gave = Some(*packet));
        gave
    }

    /// All that a run tells of a queue in the end.
    fn told(queue: &Queue) -> Vec<String> {
        let mut told = Vec::new();
        queue.for_each(&mut |_, q| {
            let flows = q.tally.flows.iter().map(|flow| (flow.packets, flow.drops)).collect::<Vec<_>>();
            let counts = [q.tally.enqueued, q.tally.sent, q.tally.enqueued_bytes, q.tally.sent_bytes];
            let waits = (q.qlen(), q.backlog(), q.overlimits());
            told.push(format!(
                "{counts:?} {waits:?} {flows:?} {:?} {}",
                q.tally.drops,
                q.show_stats(Time::ZERO)
            ));
        });
        told
    }

    proptest! {
        /// Rates and delays are round, so that packets of several classes are due at the same time, and the run ends while
        /// some wait.
        #[test]
        fn it_gives_what_the_queue_gives(
            classes in prop::collection::vec((0..RATES.len(), 0..NETEMS.len(), 0..3_u8, 1000..4000_u32), 0..5),
            steps in prop::collection::vec((0..5_u8, prop::sample::select(vec![60_u32, 1514]), 0..4_u64), 1..200),
        ) {
            let (mut queue, mut other) = (queue(&classes), queue(&classes));
            let mut delays = queue.delays().expect("all that it does is to delay");
            let end = Time::from_us(steps.iter().map(|(_, _, gap)| 100 * gap).sum());
            let mut now = Time::ZERO;
            for (dscp, len, gap) in steps {
                let packet = Packet { len, flow: u16::from(dscp % 2), ..frame(dscp) };
                other.enqueue(packet, now);
                if let Err(full) = delays.take(&packet, now, end) {
                    delays.turn_away(full, &packet, &mut queue);
                }
                now += Time::from_us(100 * gap);
                // As the loop of events: at the time at which something is due, until nothing is.
                while delays.due() <= now {
                    let at = delays.due();
                    prop_assert_eq!(Some(at), other.next_event());
                    while delays.due() <= at {
                        let (one, two) = (give(&mut delays, at), other.dequeue(at));
                        prop_assert_eq!(one.map(|p| (p.dscp, p.len)), two.map(|p| (p.dscp, p.len)));
                        prop_assert!(one.is_some());
                    }
                }
                prop_assert_eq!((delays.len(), delays.is_empty()), (other.qlen(), other.qlen() == 0));
            }
            delays.settle(&mut queue);
            prop_assert_eq!(told(&queue), told(&other));
        }
    }

    #[test]
    fn a_queue_that_does_more_is_none() {
        let htb = |child: &str, other: &str| {
            let classes = vec![
                with_child(child, class("1", "rate 1gbit")),
                with_child(other, class("2", "rate 1gbit")),
            ];
            let spec = run::Qdisc { qdisc: "htb default 1".into(), classes, child: None };
            Queue::build(&spec, &Env::default()).unwrap()
        };
        assert!(htb("netem delay 1ms", "netem delay 2ms").delays().is_some());
        for other in ["netem delay 1ms 1ms", "netem delay 1ms loss 1%", "netem", "pfifo", "fq_codel"] {
            assert!(htb("netem delay 1ms", other).delays().is_none(), "{other}");
        }
        let mut queue = htb("netem delay 1ms", "netem delay 2ms");
        queue.enqueue(frame(0), Time::ZERO);
        assert!(queue.delays().is_none(), "it holds a packet");
    }
}
