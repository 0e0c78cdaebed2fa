//! A queue discipline in place: it stamps, counts and measures what passes the algorithm, and is a part of a tree.

use super::sojourn::{Interval, Sojourn};
use super::tally::{Cause, FlowTally, Tally};
use super::{Delays, Env, Hints, Kind, Layout, Qdisc, Statistics, Tree, make, unknown};
use crate::base::count::Count;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::run;
use bakeoff_document::tc::{TcError, Words};

/// A queue discipline in place: counts every packet around the algorithm, and measures how long
/// packets stand in it.
pub struct Queue {
    pub(super) kind: Kind,
    /// As of the last change of configuration.
    hints: Hints,
    /// What [`Qdisc::next_event`] said last: asked once after each change, not several times per packet. Never, while it
    /// need not be asked.
    next: Option<Time>,
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
        let words = &mut Words::of(spec);
        let name = words.kind()?;
        let kind = make(name, words, env).unwrap_or_else(|| Err(unknown(name, words)))?;
        words.nothing_below(name)?;
        Ok(Queue::new(kind, env))
    }

    /// A queue around a given algorithm.
    pub fn new(kind: Kind, env: &Env) -> Queue {
        let measured = dispatch!(&kind, q => q.properties().measured);
        Queue {
            hints: dispatch!(&kind, q => q.hints()),
            next: dispatch!(&kind, q => q.next_event()),
            kind,
            tally: Tally {
                flows: vec![FlowTally::default(); env.flows],
                charges: env.charges.clone(),
                ..Tally::default()
            },
            sojourn: measured.then(Sojourn::default),
        }
    }

    /// Offers a packet.
    pub fn enqueue(&mut self, mut packet: Packet, now: Time) {
        self.enqueue_from(&mut packet, now);
    }

    /// Offers a packet that lies elsewhere, and is not needed there.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub fn enqueue_from(&mut self, packet: &mut Packet, now: Time) {
        let (tally, next) = (&mut self.tally, &mut self.next);
        tally.enqueued += 1;
        tally.enqueued_bytes += u64::from(packet.len);
        let whole = dispatch!(&mut self.kind, q => {
            packet.enqueued = if q.properties().keeps_departure { packet.enqueued.max(now) } else { now };
            let whole = packet.gso_size == 0 || !q.segments(packet);
            if whole {
                q.enqueue_from(packet, now, tally);
                q.note_next(next);
            }
            whole
        });
        if !whole {
            self.enqueue_segments(packet, now);
        }
    }

    #[cold]
    fn enqueue_segments(&mut self, packet: &Packet, now: Time) {
        let tally = &mut self.tally;
        tally.split(packet);
        for i in 0..packet.segs() {
            dispatch!(&mut self.kind, q => q.enqueue(packet.segment(i), now, tally));
        }
        self.note_next();
    }

    fn note_next(&mut self) {
        let next = &mut self.next;
        dispatch!(&self.kind, q => q.note_next(next));
    }

    /// Counts packets of flow number `flow` that were let through without being put in.
    pub fn let_through(&mut self, flow: usize, count: Count) {
        self.tally.enqueued += count.packets;
        self.tally.enqueued_bytes += count.bytes;
        self.tally.sent += count.packets;
        self.tally.sent_bytes += count.bytes;
        self.tally.flow(flow).packets += count.packets;
    }

    /// The same of one packet, which may be several segments.
    pub fn let_through_whole(&mut self, packet: &Packet) {
        self.let_through(usize::from(packet.flow), Count { packets: 1, bytes: u64::from(packet.len) });
        self.tally.more_segs += u64::from(packet.segs() - 1);
    }

    /// Counts a packet as offered, here and not below.
    pub(super) fn offer(&mut self, packet: &Packet) {
        self.tally.enqueued += 1;
        self.tally.enqueued_bytes += u64::from(packet.len);
    }

    /// Counts a packet that found no room, without its being offered.
    #[cold]
    pub fn turn_away(&mut self, packet: &Packet) {
        self.offer(packet);
        self.tally.drop(packet, Cause::Overlimit);
    }

    /// Takes the next packet that may leave at `now`.
    #[inline]
    pub fn dequeue(&mut self, now: Time) -> Option<Packet> {
        let mut packet = Packet::default();
        self.dequeue_into(&mut packet, now).then_some(packet)
    }

    /// The same to where it shall lie; false if there is none.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub fn dequeue_into(&mut self, into: &mut Packet, now: Time) -> bool {
        let (tally, next) = (&mut self.tally, &mut self.next);
        let gave = dispatch!(&mut self.kind, q => {
            let gave = q.dequeue_into(into, now, tally);
            q.note_next(next);
            gave
        });
        if gave {
            count_left(&mut self.tally, &mut self.sojourn, into, now);
        }
        gave
    }

    /// See [`Qdisc::next_event`].
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        self.next.filter(|at| *at < Time::NEVER)
    }

    /// Whether a dequeue at `now` may give a packet or change something. Asking is cheaper than a
    /// dequeue in vain, and most packets find a shaper or a delay closed.
    #[inline]
    pub fn is_open(&self, now: Time) -> bool {
        self.next.is_none_or(|at| at <= now) || self.hints.eager
    }

    /// When a queue that is not [`Queue::is_open`] may be.
    #[inline]
    pub fn closed_until(&self, now: Time) -> Option<Time> {
        if self.hints.eager { None } else { self.next.filter(|at| *at > now) }
    }

    /// See [`super::Delaying::delays`].
    pub fn delays(&self) -> Option<Delays> {
        dispatch!(&self.kind, q => q.delaying())?.delays()
    }

    pub(super) fn delayed(&mut self, packets: u64) {
        if let Some(delaying) = dispatch!(&mut self.kind, q => q.delaying_mut()) {
            delaying.delayed(packets);
        }
    }

    pub(super) fn reached_ceiling(&mut self, id: &str, times: u64) {
        if let Some(delaying) = dispatch!(&mut self.kind, q => q.delaying_mut()) {
            delaying.reached_ceiling(id, times);
        }
    }

    /// See [`Hints::paces`].
    pub fn paces(&self) -> bool {
        self.hints.paces
    }

    /// See [`Hints::marks_sce`].
    pub fn marks_sce(&self) -> bool {
        self.hints.marks_sce
    }

    /// See [`Statistics::take_parts`].
    pub fn take_parts(&mut self) -> Vec<(&'static str, Interval)> {
        dispatch!(&mut self.kind, q => q.take_parts())
    }

    /// See [`super::Properties::fifo`].
    pub fn is_fifo(&self) -> bool {
        dispatch!(&self.kind, q => q.properties().fifo)
    }

    /// See [`Hints::tail_drop`]; none if the queue is measured.
    pub fn tail_drop(&self) -> Option<u64> {
        if self.sojourn.is_some() { None } else { self.hints.tail_drop }
    }

    /// Whether this is a fifo without packets.
    #[inline]
    pub fn is_empty_fifo(&self) -> bool {
        dispatch!(&self.kind, q => q.properties().fifo && q.qlen() == 0)
    }

    /// See [`Qdisc::peek`].
    #[inline]
    pub fn peek(&self) -> Option<&Packet> {
        dispatch!(&self.kind, q => q.peek())
    }

    /// See [`Hints::eager`].
    pub fn is_eager(&self) -> bool {
        self.hints.eager
    }

    /// After a change of configuration, here or below.
    fn note(&mut self) {
        self.hints = dispatch!(&self.kind, q => q.hints());
        self.note_next();
    }

    /// Packets standing here and below.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
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

    /// See [`Statistics::overlimits`].
    pub fn overlimits(&self) -> u64 {
        dispatch!(&self.kind, q => q.overlimits())
    }

    /// See [`Statistics::requeues`].
    pub fn requeues(&self) -> u64 {
        dispatch!(&self.kind, q => q.requeues())
    }

    /// See [`Tree::show_classes`].
    pub fn show_classes(&self) -> Vec<String> {
        dispatch!(&self.kind, q => q.tree()).map_or_else(Vec::new, Tree::show_classes)
    }

    pub(super) fn layout(&self) -> Layout {
        dispatch!(&self.kind, q => q.properties().layout)
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
        self.note();
        Ok(())
    }

    /// `tc class change`: new words for the class `id`; its tokens and its queue stay.
    ///
    /// # Errors
    /// No such class, an unknown word or a malformed value; nothing is changed then.
    pub fn change_class(&mut self, id: &str, line: &str) -> Result<(), TcError> {
        let words = &mut Words::new(line);
        match dispatch!(&mut self.kind, q => q.tree_mut()) {
            Some(tree) => tree.change_class(id, words)?,
            None => return Err(words.refuse(&format!("class {id}: this qdisc has no classes"))),
        }
        self.note();
        Ok(())
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

    /// The names of this queue and of everything below it, in the order of [`Queue::for_each`]: `interface` for the
    /// only one, or the only one in which packets wait; the others have their handles appended, and `/root` is this one.
    pub fn names(&self, interface: &str) -> Vec<String> {
        let (mut measured, mut all) = (0, 0);
        self.for_each(&mut |_, queue| {
            measured += usize::from(queue.sojourn.is_some());
            all += 1;
        });
        let mut names = Vec::new();
        self.for_each(&mut |handle, queue| {
            let own = all == 1 || (queue.sojourn.is_some() && measured == 1);
            names.push(match handle {
                _ if own => interface.to_owned(),
                "" => format!("{interface}/root"),
                _ => format!("{interface}/{handle}"),
            });
        });
        names
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
        if let Some(tree) = dispatch!(&mut self.kind, q => q.tree_mut()) {
            tree.for_each_child_mut(&mut |name, child| {
                if name == first {
                    found = child.at(rest, act);
                }
            });
        }
        self.note();
        found
    }

    fn is_parent(&self) -> bool {
        let mut any = false;
        if let Some(tree) = dispatch!(&self.kind, q => q.tree()) {
            tree.for_each_child(&mut |_, _| any = true);
        }
        any
    }

    fn walk<'a>(&'a self, handle: &str, visit: &mut dyn FnMut(&str, &'a Queue)) {
        visit(handle, self);
        if let Some(tree) = dispatch!(&self.kind, q => q.tree()) {
            tree.for_each_child(&mut |name, child| child.walk(&below(handle, name), visit));
        }
    }

    fn walk_mut(&mut self, handle: &str, visit: &mut dyn FnMut(&str, &mut Queue)) {
        visit(handle, self);
        if let Some(tree) = dispatch!(&mut self.kind, q => q.tree_mut()) {
            tree.for_each_child_mut(&mut |name, child| child.walk_mut(&below(handle, name), visit));
        }
        self.note();
    }
}

#[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
#[inline(always)]
fn count_left(tally: &mut Tally, sojourn: &mut Option<Sojourn>, packet: &Packet, now: Time) {
    tally.sent += 1;
    tally.sent_bytes += u64::from(packet.len);
    if packet.gso_size != 0 {
        tally.more_segs += u64::from(packet.segs() - 1);
    }
    tally.flow_of(packet).packets += 1;
    if let Some(sojourn) = sojourn {
        sojourn.record(now - packet.enqueued, now);
    }
}

/// The handle of `name` below `handle`.
fn below(handle: &str, name: &str) -> String {
    if handle.is_empty() { name.to_owned() } else { format!("{handle}/{name}") }
}
