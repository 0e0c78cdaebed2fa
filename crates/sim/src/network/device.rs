//! A device: a fifo before a wire that has a rate and a delay and nothing else.
//!
//! When a packet leaves follows from when it comes and from the packets before it: its transmission begins at once, or
//! when the one before has ended. So a device needs neither a queue of packets nor an event for a departure.

use crate::base::count::Count;
use crate::base::ring::Ring;
use crate::base::units::{Rate, Time};
use crate::packet::Packet;

/// A fifo before a plain wire, of which nothing is measured but counts.
#[derive(Debug)]
pub(crate) struct Device {
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
    /// An idle device before a wire of this rate and delay, where at most `limit` packets wait.
    pub(crate) fn new(limit: usize, rate: Option<Rate>, delay: Time) -> Device {
        Device {
            limit,
            begins: Ring::default(),
            free: Time::ZERO,
            rate,
            delay,
            last: (0, Time::ZERO),
            sent: Vec::new(),
        }
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
        // The sums fit 64 bits: it begins before the end of the run (10^18 ns), a frame of 65,549 bytes takes 5.3·10^14 ns at
        // 1 bit/s, and a cable delays by at most 10^12 ns; `document/bounds.rs` refuses more.
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
