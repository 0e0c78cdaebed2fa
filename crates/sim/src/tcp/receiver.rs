//! The receiving side: reassembly, delayed ACKs, SACK.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_data_queue`, `__tcp_ack_snd_check`,
//! `tcp_event_data_recv`), `tcp_output.c` (`tcp_send_delayed_ack`); RFC 2018, RFC 2883. ECN is in `feedback.rs`, the
//! advertised window in `receive_window.rs`.
//!
//! Departures: the application reads at once.

use super::feedback::Feedback;
use super::receive_window::{Buffer, ReceiveWindow};
use crate::base::units::Time;
use crate::packet::{Flags, Packet, Proto, SackBlock};

const ATO_MIN: Time = Time::from_ms(40);
const DELACK_MAX: Time = Time::from_ms(200);
const MAX_QUICKACKS: u32 = 16;
/// Out-of-order segments acknowledged one by one before SACK compression starts.
const DUPACKS_AT_ONCE: u32 = 3;
/// `tcp_comp_sack_nr`
const COMPRESSED_MAX: u32 = 44;
/// `tcp_comp_sack_delay_ns`
const COMPRESS_DELAY: Time = Time::from_ms(1);
/// `TCP_MSS_DEFAULT`: what a segment is taken to be before one was seen.
const MSS_DEFAULT: u32 = 536;
/// Bytes of a frame before the payload: Ethernet 14, IPv4 20, TCP 20, timestamps 12.
pub const HEADERS: u32 = 66;

/// What a receiver counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiverCounters {
    /// In-order payload bytes that reached the application.
    pub received: u64,
    /// ACKs sent.
    pub acks: u64,
    /// Segments that arrived although their data had arrived before.
    pub duplicates: u64,
}

impl ReceiverCounters {
    /// Adds what another receiver counted.
    pub fn add(&mut self, other: &ReceiverCounters) {
        self.received += other.received;
        self.acks += other.acks;
        self.duplicates += other.duplicates;
    }
}

/// A receiver.
pub struct Receiver {
    template: Packet,
    feedback: Feedback,
    hz: u64,
    mss: u32,
    sack: bool,
    /// The largest segment seen (`icsk_ack.rcv_mss`).
    rcv_mss: u32,
    rcv_nxt: u64,
    /// What the last ACK acknowledged.
    rcv_wup: u64,
    /// Out-of-order ranges, ascending and disjoint.
    out_of_order: Vec<(u64, u64)>,
    /// Ranges to report, the most recently changed first.
    sacks: Vec<(u64, u64)>,
    dsack: Option<(u64, u64)>,
    /// Where the last D-SACK that was sent began.
    dsacked_from: Option<u64>,
    quick: u32,
    /// The application is about to send: ACKs wait for its data (`inet_csk_in_pingpong_mode`).
    pingpong: bool,
    /// The next segment has no data but the peer's FIN.
    bare_fin: bool,
    ato: Time,
    last_data: Option<Time>,
    delack: Option<Time>,
    /// What waits for the delayed ACK had PSH (`ICSK_ACK_PUSHED`).
    pushed: bool,
    compress_until: Option<Time>,
    compressed: u32,
    dup_acks: u32,
    dup_acks_at: u64,
    ack_now: bool,
    echo: Time,
    window: ReceiveWindow,
    /// Counted so far.
    pub counters: ReceiverCounters,
}

impl Receiver {
    /// A receiver whose ACKs look like `template` (addresses, DSCP, ECN field, hash).
    pub fn new(template: Packet, feedback: Feedback, mss: u32, hz: u64, buffer: Buffer) -> Self {
        Receiver {
            template,
            feedback,
            hz,
            mss,
            sack: true,
            rcv_mss: MSS_DEFAULT.min(mss),
            rcv_nxt: 0,
            rcv_wup: 0,
            out_of_order: Vec::new(),
            sacks: Vec::new(),
            dsack: None,
            dsacked_from: None,
            quick: 0,
            pingpong: false,
            bare_fin: false,
            ato: Time::ZERO,
            last_data: None,
            delack: None,
            pushed: false,
            compress_until: None,
            compressed: 0,
            dup_acks: 0,
            dup_acks_at: 0,
            ack_now: false,
            echo: Time::ZERO,
            window: ReceiveWindow::new(buffer, mss),
            counters: ReceiverCounters::default(),
        }
    }

    /// The peer does not do SACK: no blocks, and every segment out of order is acknowledged at once.
    pub fn without_sack(mut self) -> Self {
        self.sack = false;
        self
    }

    /// The window that it would advertise now, in bytes.
    pub fn window(&self) -> u32 {
        self.window.bytes().min(u64::from(u32::MAX)) as u32
    }

    /// The next byte expected.
    pub fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// The acknowledgement that was sent last (`rcv_wup`).
    pub fn last_acknowledged(&self) -> u64 {
        self.rcv_wup
    }

    /// What it tells the sender about ECN.
    pub fn feedback(&self) -> &Feedback {
        &self.feedback
    }

    /// See [`Receiver::feedback`].
    pub fn feedback_mut(&mut self) -> &mut Feedback {
        &mut self.feedback
    }

    /// The segment that is next closes the peer's direction while ours is open: its ACK may wait for our data
    /// (`tcp_fin`). `bare`: it has no other data.
    pub fn peer_closes(&mut self, bare: bool) {
        self.pingpong = true;
        self.bare_fin = bare;
    }

    /// A segment without payload arrived: AccECN counts it, and an ACK that it asks for comes with the next data.
    pub fn on_pure_ack(&mut self, packet: &Packet) {
        self.ack_now |= self.feedback.on_packet(packet);
    }

    /// When a timer expires, if one runs.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        match (self.delack, self.compress_until) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Runs the timers that are due.
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        if self.compress_until.is_some_and(|t| t <= now) {
            self.send_ack(now, out);
        }
        if self.delack.is_some_and(|t| t <= now) {
            // Not interactive: the next delayed ACK may wait longer.
            self.ato = (self.ato + self.ato).min(DELACK_MAX);
            self.send_ack(now, out);
        }
    }

    /// A segment with payload arrived.
    pub fn on_data(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) {
        let (start, end) = (packet.seq, packet.seq + u64::from(packet.payload));
        self.ack_now |= self.feedback.on_packet(packet);
        // RFC 7323: echo the stamp of the segment that spans the last acknowledged byte.
        if start <= self.rcv_wup {
            self.echo = packet.sent;
        }
        if packet.payload >= self.rcv_mss {
            self.window.measure_rtt(packet, now);
        }

        if end <= self.rcv_nxt {
            self.counters.duplicates += 1;
            if self.dsacked_from == Some(start) {
                self.feedback.dsack_unheard();
            }
            self.dsack = Some((start, end));
            self.enter_quickack(MAX_QUICKACKS);
            self.send_ack(now, out);
            return;
        }
        if start <= self.rcv_nxt {
            if start < self.rcv_nxt {
                self.dsack = Some((start, self.rcv_nxt));
            }
            self.pushed |= packet.flags.has(Flags::PSH);
            let filled = self.advance(end);
            if !std::mem::take(&mut self.bare_fin) {
                self.event_data_received(packet, now, out);
            }
            // Filling a hole is news for the sender.
            self.ack_now |= filled;
            self.ack_if_due(now, out);
            self.window.adjust(self.counters.received, now);
        } else {
            self.event_data_received(packet, now, out);
            if self.insert(start, end) {
                self.out_of_order_ack(now, out);
            } else {
                self.counters.duplicates += 1;
                self.dsack = Some((start, end));
                self.send_ack(now, out);
            }
        }
    }

    /// Source: Linux 7.3 `tcp_data_queue`, `tcp_ofo_queue`.
    fn advance(&mut self, end: u64) -> bool {
        let before = self.rcv_nxt;
        self.rcv_nxt = end;
        let had_holes = !self.out_of_order.is_empty();
        if had_holes {
            while let Some(&(s, e)) = self.out_of_order.first() {
                if s > self.rcv_nxt {
                    break;
                }
                if s < end {
                    self.report_duplicate(s, e.min(end));
                }
                self.rcv_nxt = self.rcv_nxt.max(e);
                self.out_of_order.remove(0);
            }
            let next = self.rcv_nxt;
            self.sacks.retain(|&(s, _)| s > next);
        }
        self.counters.received += self.rcv_nxt - before;
        had_holes
    }

    /// `tcp_dsack_extend`: one range fits into an ACK; another is added only where it touches that one.
    fn report_duplicate(&mut self, start: u64, end: u64) {
        match &mut self.dsack {
            None => self.dsack = Some((start, end)),
            Some((s, e)) if start <= *e && end >= *s => (*s, *e) = ((*s).min(start), (*e).max(end)),
            Some(_) => {}
        }
    }

    /// Adds an out-of-order range; false if it was there already.
    /// The block that changed last is told first (RFC 2018, section 4). Source: Linux 7.3 `tcp_data_queue_ofo`,
    /// `tcp_sack_new_ofo_skb`.
    fn insert(&mut self, start: u64, end: u64) -> bool {
        let at = self.out_of_order.partition_point(|&(_, e)| e < start);
        let mut merged = (start, end);
        let mut until = at;
        while let Some(&(s, e)) = self.out_of_order.get(until) {
            if s > end {
                break;
            }
            if s <= start && e >= end {
                return false;
            }
            if s.max(start) < e.min(end) {
                self.report_duplicate(s.max(start), e.min(end));
            }
            merged = (merged.0.min(s), merged.1.max(e));
            until += 1;
        }
        self.out_of_order.splice(at..until, [merged]);
        self.sacks.retain(|&(s, e)| e < merged.0 || s > merged.1);
        self.sacks.insert(0, merged);
        self.sacks.truncate(4);
        true
    }

    /// `tcp_event_data_recv`: delayed-ACK timeout, quick ACKs, ECN, window.
    fn event_data_received(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) {
        let segment = if packet.gso_size == 0 { packet.payload } else { packet.gso_size.into() };
        if segment > self.rcv_mss {
            self.window.measure_buffer(packet);
        }
        self.rcv_mss = self.rcv_mss.max(segment.min(self.mss));
        match self.last_data {
            None => {
                self.increase_quickack(MAX_QUICKACKS);
                self.ato = ATO_MIN;
            }
            Some(last) => {
                let gap = now - last;
                if gap <= Time(ATO_MIN.0 / 2) {
                    self.ato = Time(self.ato.0 / 2 + ATO_MIN.0 / 2);
                } else if gap < self.ato {
                    self.ato = Time(self.ato.0 / 2 + gap.0).min(DELACK_MAX);
                } else if gap > Time::from_ms(200) {
                    self.increase_quickack(MAX_QUICKACKS);
                }
            }
        }
        self.last_data = Some(now);
        if self.delack.is_some()
            && let Some(upto) = self.feedback.changes(packet.ecn)
        {
            self.emit(upto, now, out);
        }
        let reaction = self.feedback.on_data(packet.ecn, self.rcv_nxt);
        self.ack_now |= reaction.ack_now;
        if reaction.quick > 0 {
            self.enter_quickack(reaction.quick);
        }
        // What opens the window is acknowledged at once.
        self.quick |= u32::from(self.window.open(packet.payload));
    }

    /// Source: Linux 7.3 `tcp_incr_quickack`.
    fn increase_quickack(&mut self, limit: u32) {
        let segments = (self.window.bytes() / (2 * u64::from(self.rcv_mss))).max(2) as u32;
        self.quick = self.quick.max(segments.min(limit));
    }

    /// Source: Linux 7.3 `tcp_enter_quickack_mode`.
    fn enter_quickack(&mut self, limit: u32) {
        self.increase_quickack(limit);
        self.pingpong = false;
        self.ato = ATO_MIN;
    }

    /// `__tcp_ack_snd_check` for in-order data.
    /// Every second full segment is acknowledged at once, and what fills a hole (RFC 5681, section 4.2).
    fn ack_if_due(&mut self, now: Time, out: &mut Vec<Packet>) {
        let quick = self.quick > 0 && !self.pingpong;
        // The application has read it all, and thinks that no more is coming soon (`tcp_cleanup_rbuf`).
        let read = self.pushed && !self.pingpong && self.out_of_order.is_empty();
        if self.rcv_nxt - self.rcv_wup > u64::from(self.rcv_mss) || quick || read || self.ack_now {
            self.send_ack(now, out);
        } else if self.out_of_order.is_empty() {
            self.delay_ack(now, out);
        } else {
            self.out_of_order_ack(now, out);
        }
    }

    /// Source: Linux 7.3 `tcp_send_delayed_ack`; RFC 5681, section 4.2 (at most 500 ms, here 200).
    fn delay_ack(&mut self, now: Time, out: &mut Vec<Packet>) {
        let ato = self.ato.min(DELACK_MAX);
        match self.delack {
            Some(at) if at <= now + Time(ato.0 / 4) => self.send_ack(now, out),
            Some(at) => self.delack = Some(at.min(self.jiffy_after(now + ato))),
            None => self.delack = Some(self.jiffy_after(now + ato)),
        }
    }

    /// Timers of this kind fire on the tick that follows.
    fn jiffy_after(&self, at: Time) -> Time {
        let jiffy = 1_000_000_000 / self.hz;
        Time(at.0.div_ceil(jiffy) * jiffy)
    }

    /// RFC 5681, section 4.2, wants each at once; after the first ones Linux waits (SACK compression). Source: Linux
    /// 7.3 `__tcp_ack_snd_check`.
    fn out_of_order_ack(&mut self, now: Time, out: &mut Vec<Packet>) {
        if !self.sack {
            self.send_ack(now, out);
            return;
        }
        if self.dup_acks_at != self.rcv_nxt {
            self.dup_acks_at = self.rcv_nxt;
            self.dup_acks = 0;
        }
        if self.dup_acks < DUPACKS_AT_ONCE {
            self.dup_acks += 1;
            self.send_ack(now, out);
            return;
        }
        self.compressed += 1;
        if self.compressed > COMPRESSED_MAX || self.ack_now {
            self.send_ack(now, out);
        } else if self.compress_until.is_none() {
            let third = self.window.rtt().map_or(COMPRESS_DELAY, |rtt| Time(rtt.0 * 33 / 100));
            self.compress_until = Some(now + third.min(COMPRESS_DELAY));
        }
    }

    /// An ACK of everything received.
    fn send_ack(&mut self, now: Time, out: &mut Vec<Packet>) {
        self.emit(self.rcv_nxt, now, out);
        self.all_acknowledged();
    }

    /// Writes the acknowledgement into a segment that leaves this host, data of its own sender
    /// included, and notes it as sent (`tcp_event_ack_sent`). AccECN's option is filled in if there is room for it.
    pub fn acknowledge(&mut self, packet: &mut Packet, now: Time) {
        self.write(self.rcv_nxt, packet);
        self.feedback.fill_option(packet, now);
        self.all_acknowledged();
    }

    fn all_acknowledged(&mut self) {
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ATO_MIN;
            }
        }
        self.ack_now = false;
        self.delack = None;
        self.pushed = false;
    }

    /// The acknowledgement up to `upto`; what waited for SACK compression leaves with it.
    fn write(&mut self, upto: u64, packet: &mut Packet) {
        packet.ack = upto;
        packet.echo = self.echo;
        packet.window = self.window();
        self.feedback.tell(packet);
        self.rcv_wup = self.rcv_nxt;
        self.compress_until = None;
        self.compressed = 0;
    }

    /// Puts an ACK up to `upto` on the wire.
    fn emit(&mut self, upto: u64, now: Time, out: &mut Vec<Packet>) {
        let ack = self.template.append_to(out);
        ack.sent = now;
        ack.flags = Flags::ACK;
        ack.proto = Proto::Tcp;
        self.write(upto, ack);
        let dsack = self.dsack.take().filter(|_| self.sack);
        let sacks = if self.sack { &self.sacks[..] } else { &[] };
        let wanted = (sacks.len() + usize::from(dsack.is_some())).min(3);
        let srtt_us = self.window.rtt().map_or(0, Time::as_us);
        let (allowed, option) = self.feedback.add_option(ack, wanted, dsack.is_some(), now, srtt_us);
        let mut blocks = 0;
        if let Some((s, e)) = dsack {
            self.dsacked_from = Some(s);
            ack.sack[0] = block(upto, s, e);
            ack.flags = ack.flags.with(Flags::DSACK);
            blocks = 1;
        }
        for &(s, e) in sacks.iter().take(allowed - blocks) {
            ack.sack[blocks] = block(upto, s, e);
            blocks += 1;
        }
        ack.n_sack = blocks as u8;
        // 4 bytes of kind, length and padding, 8 per block.
        ack.len = HEADERS + option + if blocks > 0 { 4 + 8 * blocks as u32 } else { 0 };
        self.counters.acks += 1;
    }
}

/// A SACK block of an ACK up to `upto`.
fn block(upto: u64, start: u64, end: u64) -> SackBlock {
    let offset = |seq: u64| (seq as i64 - upto as i64) as i32;
    SackBlock { start: offset(start), end: offset(end) }
}

#[cfg(test)]
mod tests {
    use super::super::ecn::{Mode, Sysctls};
    use super::*;
    use crate::packet::Ecn::{self, Ce, Ect0};

    const MSS: u32 = 1448;

    fn receiver(mode: Mode) -> Receiver {
        receiver_of(Feedback::new(mode, &Sysctls::default(), false, true))
    }

    fn receiver_of(feedback: Feedback) -> Receiver {
        let mut r = Receiver::new(Packet::default(), feedback, MSS, 250, Buffer::default());
        // Past the quick ACKs of the start.
        let mut out = Vec::new();
        for i in 0..32 {
            r.on_data(&segment(i, Ecn::Ect0), Time::from_us(i * 100), &mut out);
        }
        r
    }

    fn segment(i: u64, ecn: Ecn) -> Packet {
        Packet { seq: i * u64::from(MSS), payload: MSS, ecn, sent: Time::from_us(i), ..Packet::default() }
    }

    fn feed(r: &mut Receiver, segments: &[(u64, Ecn)]) -> Vec<Packet> {
        let mut out = Vec::new();
        for (n, &(i, ecn)) in segments.iter().enumerate() {
            r.on_data(&segment(i, ecn), Time::from_us(10_000 + n as u64), &mut out);
        }
        out
    }

    #[test]
    fn every_second_segment_is_acknowledged() {
        let mut r = receiver(Mode::Off);
        let acks = feed(&mut r, &[32, 33, 34, 35].map(|i| (i, Ecn::NotEct)));
        assert_eq!(acks.iter().map(|a| a.ack / u64::from(MSS)).collect::<Vec<_>>(), [34, 36]);
    }

    #[test]
    fn several_segments_in_one_buffer_are_acknowledged_at_once_and_once() {
        let mut r = receiver(Mode::AccEcn);
        let before = feed(&mut r, &[(32, Ect0), (33, Ect0)])[0].ace;
        let whole = Packet { payload: 3 * MSS, gso_size: MSS as u16, len: 3 * 1514, ..segment(34, Ce) };
        let mut out = Vec::new();
        r.on_data(&whole, Time::from_ms(11), &mut out);
        // One mark, three segments.
        let told: Vec<_> = out.iter().map(|a| (a.ack / u64::from(MSS), a.ace)).collect();
        assert_eq!(told, [(37, (before + 3) & 7)]);
        assert_eq!(r.rcv_mss, MSS, "the segment's length, not the buffer's");
        out.clear();
        r.on_data(&Packet { seq: 40 * u64::from(MSS), ..whole }, Time::from_ms(12), &mut out);
        let mss = MSS as i32;
        assert_eq!((out.len(), out[0].sack[0]), (1, SackBlock { start: 3 * mss, end: 6 * mss }));
    }

    #[test]
    fn the_first_sixteen_acks_are_immediate_and_those_that_open_the_window() {
        // window 65536 / (2 * 1448) = 22, capped at 16; and 80896 - 65536 = 5.3 * 2 * 1448 until the window is open
        let off = Feedback::new(Mode::Off, &Sysctls::default(), false, false);
        let mut r = Receiver::new(Packet::default(), off, MSS, 250, Buffer::default());
        let mut out = Vec::new();
        for i in 0..26 {
            r.on_data(&segment(i, Ecn::NotEct), Time::from_us(i), &mut out);
        }
        assert_eq!(out.len(), 6 + 16 + 2);
    }

    #[test]
    fn what_opens_the_window_is_acknowledged_at_once() {
        // 30 segments of 5.3 have opened it from 65536 to 131072 * 158 / 256; then every second one is acknowledged.
        let r = receiver(Mode::Off);
        assert_eq!(r.window(), 80_896);
        // A larger buffer with room for many more.
        let off = Feedback::new(Mode::Off, &Sysctls::default(), false, false);
        let mut r =
            Receiver::new(Packet::default(), off, MSS, 250, Buffer { default: 1 << 20, ..Buffer::default() });
        let acks = feed(&mut r, &(0..40).map(|i| (i, Ecn::NotEct)).collect::<Vec<_>>());
        assert_eq!(acks.len(), 40);
        assert_eq!(acks[39].window, 65_536 + 40 * 2 * MSS);
    }

    #[test]
    fn who_is_about_to_send_acknowledges_with_its_data() {
        let off = Feedback::new(Mode::Off, &Sysctls::default(), false, false);
        let mut r = Receiver::new(Packet::default(), off, MSS, 250, Buffer::default());
        let mut out = Vec::new();
        r.on_data(&segment(0, Ecn::NotEct), Time::ZERO, &mut out);
        r.peer_closes(true);
        // Quick ACKs are left, but 40 ms pass.
        r.on_data(&Packet { seq: MSS.into(), payload: 1, ..Packet::default() }, Time::ZERO, &mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(r.deadline(), Some(Time::from_ms(40)));
    }

    #[test]
    fn a_fin_that_comes_before_any_data_is_acknowledged_at_once() {
        let off = Feedback::new(Mode::Off, &Sysctls::default(), false, false);
        let mut r = Receiver::new(Packet::default(), off, MSS, 250, Buffer::default());
        r.peer_closes(true);
        r.on_data(&Packet { payload: 1, ..Packet::default() }, Time::ZERO, &mut Vec::new());
        // No data has set a timeout.
        assert_eq!(r.deadline(), Some(Time::ZERO));
    }

    #[test]
    fn an_unheard_dsack_with_the_option_stops_the_option() {
        let mut r = receiver(Mode::AccEcn);
        let acks = feed(&mut r, &[(3, Ect0), (4, Ect0), (3, Ect0), (3, Ect0)]);
        // Segment 4 after 3 is another matter, 3 after 4 too; 3 after 3 is not.
        assert_eq!(acks.iter().map(|a| a.n_accecn).collect::<Vec<_>>(), [3, 3, 3, 0]);
        assert!(r.feedback().option_failed());
    }

    #[test]
    fn a_lone_segment_waits_for_the_delayed_ack_timer() {
        let mut r = receiver(Mode::Off);
        assert!(feed(&mut r, &[(32, Ecn::NotEct)]).is_empty());
        // 40 ms after 10 ms, on the next 4 ms tick
        assert_eq!(r.deadline(), Some(Time::from_ms(52)));
        let mut out = Vec::new();
        r.on_timer(Time::from_ms(52), &mut out);
        assert_eq!(out[0].ack, 33 * u64::from(MSS));
    }

    #[test]
    fn a_lone_segment_with_push_is_acknowledged_when_it_is_read() {
        let mut r = receiver(Mode::Off);
        let acks = |r: &mut Receiver, i: u64, flags: Flags| {
            let mut out = Vec::new();
            r.on_data(&Packet { flags, ..segment(i, Ecn::NotEct) }, Time::from_ms(10), &mut out);
            out.iter().map(|a| a.ack / u64::from(MSS)).collect::<Vec<_>>()
        };
        // One by itself and a pair: the second of the pair does not wait for a fourth.
        assert!(acks(&mut r, 32, Flags::ACK).is_empty());
        assert_eq!(acks(&mut r, 33, Flags::ACK), [34]);
        assert_eq!(acks(&mut r, 34, Flags::ACK.with(Flags::PSH)), [35]);
        assert_eq!(r.deadline(), None);
        // Whoever is about to answer sends the ACK with that.
        r.peer_closes(false);
        assert!(acks(&mut r, 35, Flags::ACK.with(Flags::PSH)).is_empty());
    }

    #[test]
    fn a_hole_gives_duplicate_acks_with_the_newest_block_first() {
        let mut r = receiver(Mode::Off);
        let acks = feed(&mut r, &[(33, Ecn::NotEct), (35, Ecn::NotEct)]);
        let mss = MSS as i32;
        assert_eq!(acks.len(), 2);
        assert_eq!(acks[1].ack, 32 * u64::from(MSS));
        assert_eq!(acks[1].n_sack, 2);
        assert_eq!(acks[1].sack[0], SackBlock { start: 3 * mss, end: 4 * mss });
        assert_eq!(acks[1].sack[1], SackBlock { start: mss, end: 2 * mss });
        let filled = feed(&mut r, &[(32, Ecn::NotEct)]);
        assert_eq!((filled[0].ack, filled[0].n_sack), (34 * u64::from(MSS), 1));
    }

    #[test]
    fn a_duplicate_is_reported_by_dsack() {
        let mut r = receiver(Mode::Off);
        let acks = feed(&mut r, &[(31, Ecn::NotEct)]);
        assert!(acks[0].flags.has(Flags::DSACK));
        assert_eq!(acks[0].sack[0], SackBlock { start: -(MSS as i32), end: 0 });
    }

    #[test]
    fn a_segment_that_fills_a_hole_and_repeats_what_came_early_is_reported() {
        let mut r = receiver(Mode::Off);
        feed(&mut r, &[(33, Ecn::NotEct), (35, Ecn::NotEct)]);
        let mss = u64::from(MSS);
        let wide = Packet { payload: 5 * MSS, ..segment(32, Ecn::NotEct) };
        let mut out = Vec::new();
        r.on_data(&wide, Time::from_ms(11), &mut out);
        // One range is reported, the first that came twice: segment 33, of 32 to 36.
        assert_eq!((out[0].ack, out[0].n_sack), (37 * mss, 1));
        let mss = MSS as i32;
        assert!(out[0].flags.has(Flags::DSACK));
        assert_eq!(out[0].sack[0], SackBlock { start: -4 * mss, end: -3 * mss });
    }

    #[test]
    fn an_early_segment_that_overlaps_an_early_one_is_reported() {
        let mut r = receiver(Mode::Off);
        feed(&mut r, &[(34, Ecn::NotEct)]);
        let wide = Packet { payload: 2 * MSS, ..segment(33, Ecn::NotEct) };
        let mut out = Vec::new();
        r.on_data(&wide, Time::from_ms(11), &mut out);
        let mss = MSS as i32;
        assert!(out[0].flags.has(Flags::DSACK));
        assert_eq!(
            out[0].sack[..2],
            [(2, 3), (1, 3)].map(|(s, e)| SackBlock { start: s * mss, end: e * mss })
        );
    }

    #[test]
    fn rfc3168_latches_the_echo_until_cwr() {
        let mut r = receiver(Mode::Rfc3168);
        let acks = feed(&mut r, &[(32, Ecn::Ce), (33, Ecn::Ect0), (34, Ecn::Ect0), (35, Ecn::Ect0)]);
        assert!(acks.iter().all(|a| a.flags.has(Flags::ECE)));
        assert_eq!(acks[0].ack, 33 * u64::from(MSS), "CE is acknowledged at once");
        let mut out = Vec::new();
        let mut cwr = segment(36, Ecn::Ect0);
        cwr.flags = Flags::CWR;
        r.on_data(&cwr, Time::from_ms(11), &mut out);
        assert!(!out[0].flags.has(Flags::ECE));
    }

    #[test]
    fn accecn_counts_and_acknowledges_each_change_of_the_field() {
        let mut r = receiver(Mode::AccEcn);
        let before = feed(&mut r, &[(32, Ecn::Ect0), (33, Ecn::Ect0)])[0].ace;
        let acks = feed(&mut r, &[(34, Ecn::Ce), (35, Ecn::Ect0), (36, Ecn::Ect0)]);
        assert_eq!(acks.len(), 2, "one ACK per edge");
        assert_eq!(acks[0].ace, (before + 1) & 7);
    }

    /// What each ACK acknowledges, in segments, and whether it carries ECE.
    fn told(acks: &[Packet]) -> Vec<(u64, bool)> {
        acks.iter().map(|a| (a.ack / u64::from(MSS), a.flags.has(Flags::ECE))).collect()
    }

    #[test]
    fn dctcp_acknowledges_every_change_of_state_with_the_state_before_and_after() {
        let mut r = receiver_of(Feedback::new(Mode::Rfc3168, &Sysctls::default(), true, false));
        // 32 waits for its delayed ACK; 33 flushes it and is acknowledged itself; 34 and 35 share an ACK; 36 is
        // acknowledged as another change; 37 and 38 share one
        let fields = [Ect0, Ce, Ce, Ce, Ect0, Ect0, Ect0];
        let segments: Vec<_> = fields.iter().enumerate().map(|(i, &ecn)| (32 + i as u64, ecn)).collect();
        let acks = feed(&mut r, &segments);
        assert_eq!(told(&acks), [(33, false), (34, true), (36, true), (37, false), (39, false)]);
    }

    #[test]
    fn dctcp_flushes_a_marked_segment_that_waits_as_marked() {
        let mut r = receiver_of(Feedback::new(Mode::Rfc3168, &Sysctls::default(), true, false));
        let acks = feed(&mut r, &[(32, Ce), (33, Ce), (34, Ect0), (35, Ce)]);
        // 32 is a change by itself; 33 waits; 34 flushes it; 35 is a change
        assert_eq!(told(&acks), [(33, true), (34, true), (35, false), (36, true)]);
    }

    #[test]
    fn the_accecn_option_adds_twelve_bytes_to_an_ack() {
        let mut r = receiver(Mode::AccEcn);
        let acks = feed(&mut r, &[(32, Ecn::Ect0), (33, Ecn::Ect0), (35, Ecn::Ect0)]);
        assert_eq!(acks.iter().map(|a| a.len).collect::<Vec<_>>(), [66 + 12, 66 + 12 + 12]);
        assert_eq!(acks[0].accecn[2], crate::packet::accecn::write(34 * MSS));
    }
}
