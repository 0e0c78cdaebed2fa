//! One direction of a cable: what a packet on it takes, and what is under way.

use crate::base::ring::Ring;
use crate::base::rng::{Stream, threshold};
use crate::base::units::{Rate, Time};
use crate::network::medium::Medium;
use crate::packet::Packet;
use bakeoff_document::run::Link;

/// No frame is shorter, in bytes: an Ethernet header and nothing in it.
const SHORTEST: u32 = 14;

/// One direction of a cable.
pub struct Wire {
    /// Serialisation rate; none is instantaneous.
    pub rate: Option<Rate>,
    /// How long the last packet took.
    pub serialisation: Serialisation,
    /// Propagation delay.
    pub delay: Time,
    /// Loss probability in units of 2^-32.
    pub loss: u64,
    /// Whether anything arrives at all.
    pub up: bool,
    /// When the transmitter is free again.
    pub busy_until: Time,
    /// When the last packet arrives, or arrived.
    pub last_arrival: Time,
    /// What is under way, in order of arrival.
    pub in_flight: Ring<(Time, Packet)>,
    /// Whether an event for the first of them is pending or being handled.
    pub watched: bool,
    /// For losses.
    pub rng: Stream,
    /// What decides when packets leave, if it is not rate and delay alone; it is asked whatever `busy_until` says.
    pub medium: Option<Box<Medium>>,
}

impl Wire {
    /// An idle wire of `link` for what its end number `end` sends; `name` is the direction's.
    pub fn new(link: &Link, end: usize, seed: u64, name: &str) -> Wire {
        Wire {
            rate: link.rate_bps.map(Rate),
            serialisation: Serialisation::default(),
            delay: Time::from_secs_f64(link.delay_s),
            loss: threshold(link.loss.of(&link.ends[end])),
            up: true,
            busy_until: Time::ZERO,
            last_arrival: Time::ZERO,
            in_flight: Ring::default(),
            watched: false,
            rng: Stream::new(seed, &format!("link/{name}")),
            medium: None,
        }
    }

    /// Begins to send `bytes`; when that is done.
    #[inline]
    pub fn serialise(&mut self, bytes: u32, now: Time) -> Time {
        let Some(rate) = self.rate else { return now };
        self.busy_until = now.plus(self.serialisation.of(bytes, rate));
        self.busy_until
    }

    /// When a packet is there that was sent by then. A delay that was shortened meanwhile does not reorder.
    #[inline]
    pub fn propagate(&mut self, sent: Time) -> Time {
        self.last_arrival = sent.plus(self.delay).max(self.last_arrival);
        self.last_arrival
    }

    /// Sends `bytes`, of which none get lost; when they arrive.
    #[inline]
    pub fn take_on(&mut self, bytes: u32, now: Time) -> Time {
        let sent = self.serialise(bytes, now);
        self.propagate(sent)
    }

    /// Whether rate and delay are all that happens to a packet.
    pub fn is_plain(&self) -> bool {
        self.medium.is_none() && self.loss == 0 && self.up
    }

    /// Whether even the shortest packet takes time.
    pub fn takes_time(&self) -> bool {
        self.delay > Time::ZERO || self.rate.is_some_and(|rate| rate.time_for(SHORTEST) > Time::ZERO)
    }

    /// Whether a packet just sent is lost.
    pub fn loses(&mut self) -> bool {
        !self.up || (self.loss > 0 && u64::from(self.rng.u32()) < self.loss)
    }
}

/// The last answer of [`Rate::time_for`]: most packets are as long as the one before, and the division
/// costs more than all else that a wire does.
#[derive(Clone, Copy, Debug)]
pub struct Serialisation {
    bytes: u32,
    rate: Rate,
    time: Time,
}

impl Default for Serialisation {
    fn default() -> Self {
        let (bytes, rate) = (0, Rate(1));
        Serialisation { bytes, rate, time: rate.time_for(bytes) }
    }
}

impl Serialisation {
    /// How long `bytes` take at `rate`.
    pub fn of(&mut self, bytes: u32, rate: Rate) -> Time {
        if self.bytes != bytes || self.rate != rate {
            *self = Serialisation { bytes, rate, time: rate.time_for(bytes) };
        }
        self.time
    }
}
