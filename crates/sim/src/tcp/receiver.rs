//! The receiving side: what arrives, and which ACKs that asks for.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_data_queue`, `__tcp_ack_snd_check`, `tcp_event_data_recv`). Data ahead
//! of a hole is in `out_of_order.rs`, how long an ACK waits in `delayed_ack.rs` and `sack_compression.rs`, ECN in `feedback.rs`, the advertised
//! window in `receive_window.rs`.
//!
//! Departures: the application reads at once.

use super::accecn::OPTION_LEN;
use super::delayed_ack::DelayedAck;
use super::feedback::Feedback;
use super::out_of_order::{OutOfOrder, Range};
use super::receive_window::{Buffer, ReceiveWindow};
use super::sack_compression::{CompSack, SackCompression};
use crate::base::units::Time;
use crate::packet::{Flags, Packet, Proto, SackBlock};

/// `TCP_MAX_QUICKACKS`
const MAX_QUICKACKS: u32 = 16;
/// `TCP_MSS_DEFAULT`: what a segment is taken to be before one was seen.
const MSS_DEFAULT: u32 = 536;
/// `TCP_MIN_MSS`
const MSS_MIN: u32 = 88;
/// Bytes of the timestamps, which Linux counts there as if they were payload.
const TIMESTAMPS: u32 = 12;
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
    /// Segments of data that arrived, in order or not and again or not, by ECN field (`Ecn as usize`).
    pub ecn: [u64; 4],
}

impl ReceiverCounters {
    /// Adds what another receiver counted.
    pub fn add(&mut self, other: &ReceiverCounters) {
        self.received += other.received;
        self.acks += other.acks;
        self.duplicates += other.duplicates;
        for (sum, more) in self.ecn.iter_mut().zip(other.ecn) {
            *sum += more;
        }
    }
}

/// A receiver.
pub struct Receiver {
    template: Packet,
    feedback: Feedback,
    mss: u32,
    /// What a full segment is taken to be (`icsk_ack.rcv_mss`).
    rcv_mss: u32,
    /// Length of the segment before, if it was shorter than that, else 0 (`icsk_ack.last_seg_size`).
    last_short: u32,
    rcv_nxt: u64,
    /// What the last ACK acknowledged.
    rcv_wup: u64,
    /// What came ahead of a hole.
    early: OutOfOrder,
    /// How long ACKs wait.
    delayed: DelayedAck,
    /// The next segment has no data but the peer's FIN.
    bare_fin: bool,
    /// Which of the ACKs that a hole asks for are held back.
    compression: SackCompression,
    /// The next ACK must not wait (`ICSK_ACK_NOW`).
    ack_now: bool,
    /// The stamp that ACKs echo (`ts_recent`).
    echo: Time,
    window: ReceiveWindow,
    /// RTT of the handshake: the only one of this end's own, as it sends no data.
    handshake_rtt: Option<Time>,
    /// Counted so far.
    pub counters: ReceiverCounters,
}

impl Receiver {
    /// A receiver whose ACKs look like `template` (addresses, DSCP, ECN field, hash).
    pub fn new(template: Packet, feedback: Feedback, mss: u32, hz: u64, buffer: Buffer) -> Self {
        Receiver {
            template,
            feedback,
            mss,
            rcv_mss: MSS_DEFAULT.min(mss),
            last_short: 0,
            rcv_nxt: 0,
            rcv_wup: 0,
            early: OutOfOrder::new(true),
            delayed: DelayedAck::new(hz),
            bare_fin: false,
            compression: SackCompression::new(CompSack::default()),
            ack_now: false,
            echo: Time::ZERO,
            window: ReceiveWindow::new(buffer, mss),
            handshake_rtt: None,
            counters: ReceiverCounters::default(),
        }
    }

    /// The peer does not do SACK: no blocks, and every segment out of order is acknowledged at once.
    pub fn without_sack(mut self) -> Self {
        self.early = OutOfOrder::new(false);
        self
    }

    /// How its host compresses SACK.
    pub fn with_compression(mut self, sysctl: CompSack) -> Self {
        self.compression = SackCompression::new(sysctl);
        self
    }

    /// The handshake took `rtt`.
    pub fn handshake_took(&mut self, rtt: Time) {
        self.handshake_rtt = Some(rtt);
        self.delayed.handshake_took(rtt);
    }

    /// The ACK of the SYN/ACK arrived (`tcp_init_buffer_space`).
    pub fn established(&mut self, now: Time) {
        self.window.begin(now);
    }

    /// The window that it advertised last, in bytes.
    pub fn window(&self) -> u32 {
        self.window.advertised().min(u64::from(u32::MAX)) as u32
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
        self.delayed.wait_for_data();
        self.bare_fin = bare;
    }

    /// A segment without payload arrived: AccECN counts it, and an ACK that it asks for comes with the next data.
    pub fn on_pure_ack(&mut self, packet: &Packet) {
        self.ack_now |= self.feedback.on_packet(packet);
    }

    /// When a timer expires, if one runs.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        match (self.delayed.due(), self.compression.due()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Runs the timers that are due.
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        if self.compression.due().is_some_and(|due| due <= now) {
            self.send_ack(now, out);
        }
        if self.delayed.expires(now) {
            self.send_ack(now, out);
        }
    }

    /// A segment with payload arrived.
    pub fn on_data(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) {
        let (start, end) = (packet.seq, packet.seq + u64::from(packet.payload));
        self.counters.ecn[packet.ecn as usize] += u64::from(packet.segs());
        self.ack_now |= self.feedback.on_packet(packet);
        self.window.turn(now);
        // RFC 7323: echo the stamp of the segment that spans the last acknowledged byte.
        if start <= self.rcv_wup {
            self.echo = packet.sent;
        }
        if packet.payload >= self.rcv_mss {
            self.window.measure_rtt(packet, now);
        }

        self.early.forget_duplicate();
        if end <= self.rcv_nxt {
            self.counters.duplicates += 1;
            if self.early.reported(start) {
                self.feedback.dsack_unheard();
            }
            self.early.note_duplicate(start, end);
            self.enter_quickack(MAX_QUICKACKS);
            self.send_ack(now, out);
            return;
        }
        if start <= self.rcv_nxt {
            if start < self.rcv_nxt {
                self.early.note_duplicate(start, self.rcv_nxt);
            }
            let (segment_read, filled) = self.advance(end);
            self.window.arrived(packet, segment_read, self.counters.received, now);
            if !std::mem::take(&mut self.bare_fin) {
                self.event_data_received(packet, now, out);
            }
            // Filling the last hole is news for the sender.
            self.ack_now |= filled;
            self.ack_if_due(now, out);
        } else {
            self.out_of_order(packet, now, out);
        }
    }

    /// Data ahead of a hole. Source: Linux 7.3 `tcp_data_queue_ofo`, `tcp_sack_new_ofo_skb`.
    #[inline(never)]
    fn out_of_order(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) {
        let (start, end) = (packet.seq, packet.seq + u64::from(packet.payload));
        self.check_ecn(packet, now, out);
        self.measure_mss(packet);
        if !self.early.insert(start, end) {
            self.counters.duplicates += 1;
            self.early.note_duplicate(start, end);
        }
        if !self.early.sack() {
            self.send_ack(now, out);
            return;
        }
        // The ACK that leaves here tells the blocks without this segment, which asks for no other.
        let told = self.compression.holds() && self.early.crowds(start, end);
        if told {
            self.send_ack(now, out);
        }
        self.early.add_block(start, end);
        self.window.holds(self.early.bytes().saturating_sub(u64::from(packet.payload)));
        self.open_window(packet);
        if !told {
            self.ack_if_due(now, out);
        }
    }

    /// Data in order came, up to `end`. How many bytes had come by then, and whether it filled the last hole. Source: Linux 7.3
    /// `tcp_data_queue`.
    fn advance(&mut self, end: u64) -> (u64, bool) {
        let read = self.counters.received + (end - self.rcv_nxt);
        (self.counters.received, self.rcv_nxt) = (read, end);
        if self.early.is_empty() {
            return (read, false);
        }
        self.rcv_nxt = self.early.fill(end);
        self.counters.received += self.rcv_nxt - end;
        (read, self.early.is_empty())
    }

    /// `tcp_event_data_recv`: delayed-ACK timeout, quick ACKs, ECN, window.
    fn event_data_received(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) {
        self.measure_mss(packet);
        if self.delayed.data_came(now) {
            self.delayed.quicken(self.quick_acks(MAX_QUICKACKS));
        }
        self.check_ecn(packet, now, out);
        self.open_window(packet);
    }

    /// `tcp_measure_rcv_mss`
    fn measure_mss(&mut self, packet: &Packet) {
        let segment = if packet.gso_size == 0 { packet.payload } else { packet.gso_size.into() };
        if segment < self.rcv_mss {
            self.short_segment(packet, segment);
            return;
        }
        self.last_short = 0;
        if segment != self.rcv_mss {
            self.window.measure_buffer(packet);
            self.rcv_mss = segment.min(self.mss);
        }
        self.delayed.full(packet.flags.has(Flags::PSH));
    }

    /// A segment shorter than those before: the end of a write, or, with two of one length, the segments are shorter now.
    /// AccECN's option takes its bytes from the payload and counts with it.
    #[cold]
    fn short_segment(&mut self, packet: &Packet, payload: u32) {
        let before = std::mem::take(&mut self.last_short);
        let segment = payload + if packet.n_accecn > 0 { OPTION_LEN } else { 0 };
        if segment + TIMESTAMPS >= MSS_DEFAULT
            || (segment + TIMESTAMPS >= MSS_MIN && !packet.flags.has(Flags::PSH))
        {
            self.last_short = segment;
            if segment == before {
                self.rcv_mss = segment;
                return;
            }
        }
        self.delayed.short();
    }

    /// `tcp_data_ecn_check`
    #[expect(clippy::inline_always, reason = "part of each segment's way")]
    #[inline(always)]
    fn check_ecn(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) {
        if self.delayed.due().is_some()
            && let Some(upto) = self.feedback.changes(packet.ecn)
        {
            self.emit(upto, now, out);
        }
        let reaction = self.feedback.on_data(packet.ecn, self.rcv_nxt);
        self.ack_now |= reaction.ack_now;
        if reaction.quick > 0 {
            self.enter_quickack(reaction.quick);
        }
    }

    /// `tcp_grow_window`: what opens the window is acknowledged at once.
    fn open_window(&mut self, packet: &Packet) {
        if self.window.open(packet.payload) {
            self.delayed.quicken_one();
        }
    }

    /// How many ACKs may go out at once: one for each segment of half a window, at most `limit`. Source: Linux 7.3
    /// `tcp_incr_quickack`.
    fn quick_acks(&self, limit: u32) -> u32 {
        let segments = self.window.advertised() / (2 * u64::from(self.rcv_mss));
        if segments == 0 { 2 } else { segments.min(limit.into()) as u32 }
    }

    fn enter_quickack(&mut self, limit: u32) {
        self.delayed.enter_quick(self.quick_acks(limit));
    }

    /// `__tcp_ack_snd_check`: every second full segment is acknowledged at once, and what fills the last hole (RFC 5681,
    /// section 4.2).
    #[expect(clippy::inline_always, reason = "part of each segment's way")]
    #[inline(always)]
    fn ack_if_due(&mut self, now: Time, out: &mut Vec<Packet>) {
        let whole = self.early.is_empty();
        let second = self.rcv_nxt - self.rcv_wup > u64::from(self.rcv_mss);
        let sends = if second || self.ack_now || self.delayed.is_quick(whole) {
            true
        } else if whole {
            !self.delayed.wait(now)
        } else {
            let rtt = self.window.rtt().unwrap_or_default();
            let rtt = self.handshake_rtt.map_or(rtt, |handshake| handshake.min(rtt));
            !self.early.sack() || self.compression.sends(self.rcv_nxt, rtt, now)
        };
        if sends {
            self.send_ack(now, out);
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
        self.ack_now = false;
        self.delayed.sent();
    }

    /// The acknowledgement up to `upto`; what waited for SACK compression leaves with it.
    fn write(&mut self, upto: u64, packet: &mut Packet) {
        packet.ack = upto;
        packet.echo = self.echo;
        packet.window = self.window.select(self.rcv_nxt - self.rcv_wup).min(u64::from(u32::MAX)) as u32;
        self.feedback.tell(packet);
        self.rcv_wup = self.rcv_nxt;
        self.compression.sent();
    }

    /// Puts an ACK up to `upto` on the wire.
    fn emit(&mut self, upto: u64, now: Time, out: &mut Vec<Packet>) {
        let ack = self.template.append_to(out);
        ack.sent = now;
        ack.flags = Flags::ACK;
        ack.proto = Proto::Tcp;
        self.write(upto, ack);
        let (dsack, sacks) = self.early.report();
        let wanted = (sacks.len() + usize::from(dsack.is_some())).min(3);
        let srtt_us = self.window.rtt().map_or(0, Time::as_us);
        let (allowed, option) = self.feedback.add_option(ack, wanted, dsack.is_some(), now, srtt_us);
        let mut blocks = 0;
        if let Some(range) = dsack {
            ack.sack[0] = block(upto, range);
            ack.flags = ack.flags.with(Flags::DSACK);
            blocks = 1;
        }
        for &range in sacks.iter().take(allowed - blocks) {
            ack.sack[blocks] = block(upto, range);
            blocks += 1;
        }
        ack.n_sack = blocks as u8;
        // 4 bytes of kind, length and padding, 8 per block.
        ack.len = HEADERS + option + if blocks > 0 { 4 + 8 * blocks as u32 } else { 0 };
        self.counters.acks += 1;
    }
}

/// A SACK block of an ACK up to `upto`.
fn block(upto: u64, (start, end): Range) -> SackBlock {
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
        let len = MSS + HEADERS;
        Packet {
            seq: i * u64::from(MSS),
            payload: MSS,
            len,
            ecn,
            sent: Time::from_us(i),
            ..Packet::default()
        }
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
        // window 65160 / (2 * 1448) = 22, capped at 16; and 80480 - 64088 = 5.7 * 2 * 1448 until the window is open
        let off = Feedback::new(Mode::Off, &Sysctls::default(), false, false);
        let mut r = Receiver::new(Packet::default(), off, MSS, 250, Buffer::default());
        let mut out = Vec::new();
        for i in 0..26 {
            r.on_data(&segment(i, Ecn::NotEct), Time::from_us(i), &mut out);
        }
        assert_eq!(out.len(), 6 + 16 + 2);
    }

    #[test]
    fn two_short_segments_of_one_length_are_full_ones_from_then_on() {
        let mut r = receiver(Mode::Off);
        let mut next = 32 * u64::from(MSS);
        let mut acks = |payload: u32, flags: Flags| {
            let mut out = Vec::new();
            let len = payload + HEADERS;
            r.on_data(
                &Packet { seq: next, payload, len, flags, ..Packet::default() },
                Time::from_ms(10),
                &mut out,
            );
            next += u64::from(payload);
            (r.rcv_mss, out.len())
        };
        // The first ends a write and is acknowledged when it is read, as 536 is. The third is no write's end.
        assert_eq!(
            [acks(1000, Flags::ACK), acks(900, Flags::ACK), acks(900, Flags::ACK)],
            [(1448, 1), (1448, 1), (900, 0)]
        );
        // Of a write's end below 536 bytes nothing is learnt; a longer segment counts at once.
        let push = Flags::ACK.with(Flags::PSH);
        assert_eq!([acks(500, push), acks(500, push), acks(1448, Flags::ACK)].map(|a| a.0), [900, 900, 1448]);
    }

    #[test]
    fn what_opens_the_window_is_acknowledged_at_once() {
        // Segments have opened it to what 131072 - 2304 bytes hold, 80480, in units of 128; then every second one is
        // acknowledged.
        let r = receiver(Mode::Off);
        assert_eq!(r.window(), 629 * 128);
        // A larger buffer with room for many more.
        let off = Feedback::new(Mode::Off, &Sysctls::default(), false, false);
        let mut r =
            Receiver::new(Packet::default(), off, MSS, 250, Buffer { default: 1 << 20, ..Buffer::default() });
        let acks = feed(&mut r, &(0..40).map(|i| (i, Ecn::NotEct)).collect::<Vec<_>>());
        assert_eq!(acks.len(), 40);
        // 65160 + 40 * 2896 = 181000, in units of 128
        assert_eq!(acks[39].window, 1415 * 128);
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
    fn what_is_held_back_leaves_before_a_third_block_would_push_others_out() {
        let mut r = receiver(Mode::Off);
        // The first opens the window, and three ACKs more leave at once; 37 and 39 are held back, as 39 begins the second
        // block.
        assert_eq!(feed(&mut r, &[33, 34, 35, 36].map(|i| (i, Ecn::NotEct))).len(), 4);
        assert!(feed(&mut r, &[37, 39].map(|i| (i, Ecn::NotEct))).is_empty());
        let mss = MSS as i32;
        let blocks =
            |ack: &Packet| ack.sack.map(|b| (b.start / mss, b.end / mss))[..usize::from(ack.n_sack)].to_vec();
        // 41 begins the third: the ACK that it lets go does not tell it, and it asks for none itself.
        let acks = feed(&mut r, &[(41, Ecn::NotEct)]);
        assert_eq!(acks.iter().map(blocks).collect::<Vec<_>>(), [[(7, 8), (1, 6)]]);
        assert_eq!(r.deadline(), None);
        // 43 is held back, since nothing is that it could push out; 45 lets it go.
        assert!(feed(&mut r, &[(43, Ecn::NotEct)]).is_empty());
        assert_eq!(r.deadline(), Some(Time::from_us(10_000 + 10)), "no RTT is known, so the slack alone");
        let acks = feed(&mut r, &[(45, Ecn::NotEct)]);
        assert_eq!(acks.iter().map(blocks).collect::<Vec<_>>(), [[(11, 12), (9, 10), (7, 8)]]);
    }

    #[test]
    fn an_ack_that_must_not_wait_is_not_held_back_by_a_hole() {
        let mut r = receiver(Mode::AccEcn);
        feed(&mut r, &[33, 34, 35, 36, 37].map(|i| (i, Ecn::Ect0)));
        assert!(r.deadline().is_some(), "37 is held back");
        assert_eq!(feed(&mut r, &[(38, Ecn::Ce)]).len(), 1, "a mark");
        assert_eq!(r.deadline(), None);
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
