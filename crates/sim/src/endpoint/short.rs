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
use crate::cc::Registry;
use crate::endpoint::connection::{Connection, Exit, Place, Totals};
use crate::packet::Packet;
use crate::tcp::ecn::Mode;
use bakeoff_document::run::Flow;

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
    waiting: VecDeque<Connection>,
    /// Those under way, in order.
    live: Vec<Connection>,
    /// What those that ended counted.
    ended: Totals,
    failure: Option<String>,
    /// Feedback in use, once known.
    pub mode: Option<Mode>,
    /// See [`Connection::last_rtt_us`].
    pub last_rtt_us: Option<u64>,
}

impl Short {
    /// The connections of `spec`, one per object (seconds after the flow's start, bytes).
    ///
    /// # Errors
    /// What a connection refuses, and objects that are out of order or too many.
    pub fn new(
        spec: &Flow,
        objects: &[(f64, u64)],
        place: &Place,
        modules: &Registry,
    ) -> Result<Short, String> {
        let (flow, at) = (place.id, format!("flows[{}].source.objects", place.id));
        // They share a flow's number, by which memory is given back.
        let place = &Place { exit: Exit { charges: None, ..place.exit.clone() }, ..place.clone() };
        if objects.len() >= usize::from(u16::MAX) {
            return Err(format!("{at}: {} are too many; at most 65534", objects.len()));
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
                return Err(format!("{at}[{n}]: {after_s} s is not after the one before"));
            }
            before = after_s;
            let name = format!("{}#{}", spec.name, n + 1);
            let connection = Connection::new(spec, &name, n as u16 + 1, place, modules)
                .map_err(|e| format!("flows[{flow}].cc: {e}"))?;
            short.waiting.push_back(connection);
            let due = Time::from_secs_f64(spec.start_s + after_s);
            short.objects.push(Object { due, bytes, begun: false, took: None });
        }
        Ok(short)
    }

    /// Opens the connections that are due, but none from `stop` on; returns when the next one is.
    pub fn start_due(&mut self, now: Time, stop: Time, out: &mut Vec<Packet>) -> Option<Time> {
        loop {
            let number = usize::from(self.waiting.front()?.number()) - 1;
            let due = self.objects[number].due;
            if due >= stop {
                return None;
            }
            if due > now {
                return Some(due);
            }
            let mut connection = self.waiting.pop_front()?;
            connection.connect(now, out);
            self.objects[number].begun = true;
            self.live.push(connection);
        }
    }

    /// A packet of one of the connections reached its destination.
    pub fn on_packet(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) {
        self.last_rtt_us = None;
        // One that has ended needs nothing more.
        let Ok(at) = self.live.binary_search_by_key(&packet.conn, Connection::number) else { return };
        let connection = &mut self.live[at];
        if connection.on_packet(packet, now, out) {
            let object = &self.objects[usize::from(packet.conn) - 1];
            if let Some(sender) = &mut connection.sender {
                sender.write(object.bytes, now, out);
            }
            self.mode = self.mode.or(connection.mode);
        }
        if !connection.is_sender_at(packet.dst) {
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
        self.live.iter().filter_map(Connection::sender_deadline).min()
    }

    /// Runs the receivers' timers that are due.
    pub fn on_receiver_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        for connection in &mut self.live {
            connection.on_receiver_timer(now, out);
        }
    }

    /// When the earliest of the receivers' timers expires.
    pub fn receiver_deadline(&self) -> Option<Time> {
        self.live.iter().filter_map(Connection::receiver_deadline).min()
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

    /// See [`Connection::failure`].
    pub fn failure(&self) -> Option<String> {
        self.failure.clone().or_else(|| self.live.iter().find_map(Connection::failure))
    }

    /// `size` of each object that began, at the time it began, and `fct` of each that ended.
    pub fn happenings(&self) -> Vec<(&'static str, Vec<(Time, f64)>)> {
        let begun = self.objects.iter().filter(|o| o.begun);
        let ended = self.objects.iter().filter_map(|o| Some((o.due, o.took?.as_secs_f64())));
        vec![("size", begun.map(|o| (o.due, o.bytes as f64)).collect()), ("fct", ended.collect())]
    }
}
