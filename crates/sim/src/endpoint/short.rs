//! Short flows: a connection of its own for each object, with its own handshake, congestion control and slow start.
//!
//! Source: the workloads `ccafct` and `fct` of the published suites, where each object is fetched over HTTP. An object's
//! completion time is counted from its SYN until its sender knows that the receiving application has all of it: two
//! round trips and the serialisation for one segment on an idle path, as a request and its answer take. The receiving
//! application answers the last segment at once (it closes), so that no delayed ACK is counted.
//!
//! When each object begins and how long it is stands in the resolved run, drawn by the expansion: every engine has the same.
//!
//! Departures: no FIN packets, no TIME-WAIT; a connection is forgotten when all is acknowledged. No TSQ: an object's
//! connection may fill its host's queue.
//!
//! Validation: `tests/sources.rs`.

use std::collections::VecDeque;

use crate::base::units::Time;
use crate::document::run::{Flow, Source};
use crate::endpoint::flow::{FlowState, Totals};
use crate::packet::Packet;
use crate::tcp::ecn::Mode;

/// No connection stops for a reason of its own: what began before the flow's end goes on.
const NEVER_S: f64 = 4e9;

/// What became of an object.
#[derive(Clone, Copy, Debug)]
struct Object {
    due: Time,
    bytes: u64,
    begun: bool,
    /// From its SYN to the last acknowledgement.
    took: Option<Time>,
}

/// The connections of a flow.
pub struct Short {
    objects: Vec<Object>,
    /// Those to come, in order; object `n` has the connection `n + 1`.
    waiting: VecDeque<FlowState>,
    /// Those under way, in order.
    live: Vec<FlowState>,
    /// What those that ended counted.
    ended: Totals,
    failure: Option<String>,
    /// Feedback in use, once known.
    pub mode: Option<Mode>,
    /// See [`FlowState::last_rtt_us`].
    pub last_rtt_us: Option<u64>,
}

impl Short {
    /// The connections of `spec`, one per object (seconds after the flow's start, bytes); `one` makes a flow.
    ///
    /// # Errors
    /// What `one` refuses, and objects that are out of order, empty or too many.
    pub fn new(
        spec: &Flow,
        objects: &[(f64, u64)],
        place: &str,
        one: impl Fn(&Flow) -> Result<FlowState, String>,
    ) -> Result<Short, String> {
        let place = format!("{place}.source.objects");
        if objects.len() >= usize::from(u16::MAX) {
            return Err(format!("{place}: {} are too many; at most 65534", objects.len()));
        }
        let mut short = Short {
            objects: Vec::with_capacity(objects.len()),
            waiting: VecDeque::with_capacity(objects.len()),
            live: Vec::new(),
            ended: Totals::default(),
            failure: None,
            mode: None,
            last_rtt_us: None,
        };
        let mut before = 0.0;
        for (n, &(after_s, bytes)) in objects.iter().enumerate() {
            if !(after_s >= before && after_s.is_finite()) {
                return Err(format!("{place}[{n}]: {after_s} s is not after the one before"));
            }
            if bytes == 0 {
                return Err(format!("{place}[{n}]: has no bytes"));
            }
            before = after_s;
            let part = Flow {
                name: format!("{}#{}", spec.name, n + 1),
                start_s: spec.start_s + after_s,
                stop_s: NEVER_S,
                source: Source::Bytes { bytes },
                ..spec.without_source()
            };
            let mut connection = one(&part)?;
            connection.conn = n as u16 + 1;
            short.waiting.push_back(connection);
            let due = Time::from_secs_f64(part.start_s);
            short.objects.push(Object { due, bytes, begun: false, took: None });
        }
        Ok(short)
    }

    /// Its connections that have not begun.
    pub fn parts(&mut self) -> impl Iterator<Item = &mut FlowState> {
        self.waiting.iter_mut()
    }

    /// Opens the connections that are due, but none from `stop` on; returns when the next one is.
    pub fn start_due(&mut self, now: Time, stop: Time, out: &mut Vec<Packet>) -> Option<Time> {
        loop {
            let number = usize::from(self.waiting.front()?.conn) - 1;
            let due = self.objects[number].due;
            if due >= stop {
                return None;
            }
            if due > now {
                return Some(due);
            }
            let mut connection = self.waiting.pop_front()?;
            connection.start(now, out);
            self.objects[number].begun = true;
            self.live.push(connection);
        }
    }

    /// A packet of one of the connections reached its destination.
    pub fn on_packet(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) {
        self.last_rtt_us = None;
        // One that has ended needs nothing more.
        let Ok(at) = self.live.binary_search_by_key(&packet.conn, |c| c.conn) else { return };
        let connection = &mut self.live[at];
        if connection.on_packet(packet, now, out) {
            connection.on_source(now, out);
            self.mode = self.mode.or(connection.mode);
        }
        if packet.dst != connection.nodes[0] {
            return;
        }
        self.last_rtt_us = connection.last_rtt_us();
        let object = &mut self.objects[usize::from(packet.conn) - 1];
        if connection.sender.as_ref().is_some_and(|s| s.sock().snd_una >= object.bytes) {
            object.took = Some(now - object.due);
            self.failure = self.failure.take().or(connection.failure());
            self.ended.add(&connection.totals().unwrap_or_default());
            self.live.remove(at);
        }
    }

    /// Runs the senders' timers that are due.
    pub fn on_sender_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        for connection in &mut self.live {
            if connection.sender_deadline().is_some_and(|d| d <= now) {
                connection.on_sender_timer(now, out);
            }
        }
    }

    /// When the earliest of the senders' timers expires.
    pub fn sender_deadline(&self) -> Option<Time> {
        self.live.iter().filter_map(FlowState::sender_deadline).min()
    }

    /// Runs the receivers' timers that are due.
    pub fn on_receiver_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        for connection in &mut self.live {
            connection.on_receiver_timer(now, out);
        }
    }

    /// When the earliest of the receivers' timers expires.
    pub fn receiver_deadline(&self) -> Option<Time> {
        self.live.iter().filter_map(FlowState::receiver_deadline).min()
    }

    /// Objects offered, begun and ended.
    pub fn count(&self) -> [usize; 3] {
        let begun = self.objects.iter().filter(|o| o.begun).count();
        [self.objects.len(), begun, self.objects.iter().filter(|o| o.took.is_some()).count()]
    }

    /// What all connections counted.
    pub fn totals(&self) -> Totals {
        let mut sum = self.ended;
        for connection in &self.live {
            sum.add(&connection.totals().unwrap_or_default());
        }
        sum
    }

    /// See [`FlowState::failure`].
    pub fn failure(&self) -> Option<String> {
        self.failure.clone().or_else(|| self.live.iter().find_map(FlowState::failure))
    }

    /// `size` of each object that began, at the time it began, and `fct` of each that ended.
    pub fn happenings(&self) -> Vec<(&'static str, Vec<(Time, f64)>)> {
        let begun = self.objects.iter().filter(|o| o.begun);
        let ended = self.objects.iter().filter_map(|o| Some((o.due, o.took?.as_secs_f64())));
        vec![("size", begun.map(|o| (o.due, o.bytes as f64)).collect()), ("fct", ended.collect())]
    }
}
