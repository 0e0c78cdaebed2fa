//! What leaves, and when: window, TSO sizing and deferral, pacing, retransmissions.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_output.c` (`tcp_write_xmit`, `tcp_tso_should_defer`,
//! `tcp_update_skb_after_send`, `tcp_xmit_retransmit_queue`).

use super::accecn::{ACE_INIT, OPTION_LEN};
use super::ecn::Mode;
use super::receiver::HEADERS;
use super::rtt::RTO_MAX_US;
use super::scoreboard::{Seg, SegFlags};
use super::sender::{Sender, SenderSetup, Timer};
use crate::base::units::Time;
use crate::cc::sock::{CaState, Pacing};
use crate::cc::{CaEvent, CongestionControl};
use crate::packet::charge::HEAD;
use crate::packet::{Ecn, Flags, Packet};

/// Segments of the largest GSO skb: (65536 - headers) / 1448.
const MAX_GSO_SEGS: u32 = 45;
const GSO_MAX_SIZE: u64 = 65_536;
/// `sk_pacing_shift`: about a millisecond of data per burst.
const PACING_SHIFT: u32 = 10;
/// `tcp_tso_rtt_log`
const TSO_RTT_LOG: u32 = 9;
/// Payload that a GSO buffer takes: what an IPv4 packet and its headers leave of 64 KiB.
const MAX_GSO_PAYLOAD: u64 = 65_279;
/// Data segments sent before pacing starts.
const UNPACED_SEGS: u64 = 10;

/// Segments that leave together.
#[derive(Clone, Copy)]
struct Buffer {
    /// First byte.
    first: u64,
    bytes: u64,
    /// Bytes of each segment but the last.
    mss: u64,
    /// Segments.
    n: u32,
    /// PSH on the last.
    push: bool,
}

/// `sk_gso_max_segs`, as far as the largest skb can hold it.
#[inline]
pub(super) fn most_segs(setup: &SenderSetup) -> u32 {
    if setup.single_segments { 1 } else { MAX_GSO_SEGS }
}

impl Sender {
    /// Sends what window and pacing allow, and has the application write what there is memory for (`tcp_data_snd_check`).
    pub(super) fn send_new(&mut self, out: &mut Vec<Packet>) {
        let mut tries = !self.queue.is_empty();
        loop {
            if !(tries && self.xmit(false, out)) {
                self.check_space();
            }
            if !std::mem::take(&mut self.burst.throttled) {
                break;
            }
            self.burst.memory = 0;
            if self.tp.lost_out > self.tp.retrans_out {
                self.retransmit_lost(out);
            }
            tries = true;
        }
        if !self.queue.full && self.queue.end < self.write_seq {
            self.run_application(out);
        }
        self.tp.write_queue = !self.queue.is_empty();
        if self.tp.write_queue && self.tp.packets_out == 0 && self.timer.is_none() {
            self.start_window_probe();
        }
    }

    /// Sends what window and pacing allow, or if `one` no more than a buffer (`tcp_write_xmit`).
    #[inline(never)]
    pub(super) fn write_xmit(&mut self, one: bool, out: &mut Vec<Packet>) {
        self.xmit(one, out);
    }

    /// The same; whether anything was sent.
    #[expect(clippy::inline_always, reason = "part of sending what an ACK allows")]
    #[inline(always)]
    fn xmit(&mut self, one: bool, out: &mut Vec<Packet>) -> bool {
        let mss = self.current_mss();
        let mut sent = 0;
        // New data sets the timer of a timeout if none runs, or in the place of a tail loss probe's.
        let sets_timer = self.tp.packets_out == 0 || matches!(self.timer, Some((Timer::LossProbe, ..)));
        let mut cwnd_limited = false;
        let max_segs = self.max_segs(mss);
        let mut only_memory = self.tp.retrans_out >= self.tp.lost_out;
        while !self.queue.is_empty() {
            if self.paced_out() {
                break;
            }
            let in_flight = self.tp.packets_in_flight();
            let cwnd = self.tp.snd_cwnd;
            if in_flight >= cwnd {
                cwnd_limited = true;
                break;
            }
            let quota = (cwnd / 2).max(1).min(cwnd - in_flight).min(max_segs);
            self.queue.grow(u64::from(quota) * mss);
            let skb = self.queue.head();
            let window = self.peer.room(self.tp.snd_nxt);
            if window < mss.min(skb) {
                break;
            }
            // Of an skb with one segment there is nothing to wait for.
            if skb > mss
                && !one
                && let Some(by_cwnd) = self.should_defer(max_segs, cwnd - in_flight, window)
            {
                // This one changes with time alone.
                if self.is_soon() {
                    cwnd_limited |= by_cwnd;
                    break;
                }
                only_memory = false;
            }
            let mut n = quota;
            let mut bytes = u64::from(n) * mss;
            // Mostly there are so many, and the peer has room for them.
            if window < bytes {
                n = (window / mss).max(1) as u32;
                bytes = u64::from(n) * mss;
            }
            if skb < bytes {
                n = skb.div_ceil(mss) as u32;
                bytes = skb;
            }
            if self.throttled(u64::from(n) * mss, n, 0, only_memory) {
                break;
            }
            let push = self.queue.take(bytes);
            self.transmit_new(n, bytes, push, out);
            sent += n;
            self.check_space();
            if one {
                break;
            }
        }
        if sent > 0 {
            if matches!(self.tp.ca_state, CaState::Cwr | CaState::Recovery) {
                self.prr.sent(sent);
            }
            if !self.schedule_loss_probe(false) && sets_timer {
                self.rearm_rto();
            }
        }
        cwnd_limited |= self.tp.packets_in_flight() >= self.tp.snd_cwnd;
        if sent > 0 || cwnd_limited {
            let unused = self.cwnd_usage.is_unused(&mut self.tp, cwnd_limited, self.rtt.rto_us());
            if unused
                && self.setup.sysctl.slow_start_after_idle
                && !self.full_control
                && !self.tp.keeps_unused
            {
                self.cwnd_usage.shrink(&mut self.tp, self.queue.is_empty() && self.queue.full);
            }
        }
        sent > 0
    }

    /// One new segment beyond the window's count, for a tail loss probe.
    pub(super) fn send_probe_segment(&mut self, out: &mut Vec<Packet>) -> bool {
        let room = self.peer.room(self.tp.snd_nxt);
        let mss = self.current_mss();
        let bytes = self.queue.head().min(mss);
        if bytes == 0 || room < bytes || self.paced_out() {
            return false;
        }
        let push = self.queue.take(bytes);
        self.transmit_new(1, bytes, push, out);
        if matches!(self.tp.ca_state, CaState::Cwr | CaState::Recovery) {
            self.prr.sent(1);
        }
        true
    }

    /// `tcp_check_space`: whether an application that waits for memory may go on.
    #[inline]
    fn check_space(&mut self) {
        if self.queue.full {
            if self.tp.packets_in_flight() < self.tp.snd_cwnd {
                self.queue.expand(self.tp.snd_cwnd.max(self.tp.reordering + 1));
            }
            let memory = self.queue.memory(self.tp.snd_una, self.board.buffers());
            self.queue.wake(memory);
        }
    }

    /// The application writes what it has until it has to wait for memory (`tcp_sendmsg_locked`).
    #[inline(never)]
    fn run_application(&mut self, out: &mut Vec<Packet>) {
        self.burst.leaves_at_once = true;
        while self.queue.end < self.write_seq {
            if self.queue.begin_write(self.write_seq) {
                self.check_app_limited();
            }
            let goal = u64::from(self.size_goal()) * self.current_mss();
            let new = !self.queue.has_room(goal);
            if new {
                let memory = self.queue.memory(self.tp.snd_una, self.board.buffers());
                if self.queue.is_used_up(memory) {
                    self.queue.block();
                    self.write_xmit(false, out);
                    return;
                }
                self.restart_after_idle();
            }
            let full = self.queue.fill(new, goal);
            if self.queue.is_written() {
                if self.queue.end < self.write_seq {
                    self.queue.push_passed();
                    continue;
                }
                self.queue.push_last();
                self.write_xmit(false, out);
            } else if full && self.queue.is_push_forced(self.peer.widest) {
                self.queue.push_last();
                self.write_xmit(false, out);
            } else if full && self.queue.is_single() {
                self.write_xmit(true, out);
            }
        }
    }

    /// Segments that the application writes into one skb: as many as GSO takes, but no more than half of the widest window that
    /// the peer ever gave (`tcp_xmit_size_goal`, `tcp_bound_to_half_wnd`).
    pub(super) fn size_goal(&self) -> u32 {
        (self.peer.widest / 2 / u64::from(self.tp.mss)).clamp(1, most_segs(&self.setup).into()) as u32
    }

    /// `tcp_current_mss`: AccECN's option takes its bytes from the payload.
    fn current_mss(&mut self) -> u64 {
        let option = if self.option_due() { OPTION_LEN } else { 0 };
        self.mss_now = self.tp.mss - option;
        self.mss_now.into()
    }

    fn option_due(&self) -> bool {
        self.option.due(self.tp.now, self.tp.srtt_us >> 3)
    }

    fn window_is_closed(&self) -> bool {
        self.peer.end < self.tp.snd_nxt + self.queue.head().min(u64::from(self.tp.mss))
    }

    /// `tcp_probe0_when`: the RTO, doubled with every probe.
    fn start_window_probe(&mut self) {
        if self.window_is_closed() {
            let wait = (self.rtt.rto_us() << self.window_probes.min(20)).min(RTO_MAX_US);
            self.set_timer(Timer::WindowProbe, wait);
        }
    }

    /// `tcp_ack_probe`: an ACK while nothing is out either opens the window or says that it is still closed.
    pub(super) fn restart_window_probe(&mut self) {
        if !matches!(self.timer, Some((Timer::WindowProbe, ..))) {
            return;
        }
        self.timer = None;
        if self.window_is_closed() {
            self.start_window_probe();
        } else {
            self.window_probes = 0;
        }
    }

    /// `tcp_send_probe0`: a segment without data, below the window, which the receiver has to answer.
    pub(super) fn send_window_probe(&mut self, out: &mut Vec<Packet>) {
        if self.tp.packets_out == 0 && !self.queue.is_empty() {
            self.window_probes += 1;
            self.emit(self.tp.snd_una.wrapping_sub(1), 0, 0, self.tp.now, Flags::ACK, Ecn::NotEct, out);
            self.start_window_probe();
        }
    }

    /// `tcp_tso_autosize`, or the module's own goal.
    #[expect(clippy::inline_always, reason = "once per ACK")]
    #[inline(always)]
    fn tso_segs(&self) -> u32 {
        if self.setup.single_segments {
            return 1;
        }
        if let Some(goal) = self.cc.tso_segs(&self.tp) {
            return goal.clamp(1, most_segs(&self.setup));
        }
        let mut bytes = self.tp.pacing_rate >> PACING_SHIFT;
        let shift = (self.tp.min_rtt_us >> TSO_RTT_LOG).min(63) as u32;
        bytes = bytes.saturating_add(GSO_MAX_SIZE >> shift).min(GSO_MAX_SIZE);
        ((bytes / u64::from(self.mss_now)) as u32)
            .max(self.cc.min_tso_segs(&self.tp))
            .min(most_segs(&self.setup))
    }

    /// Segments of a buffer that is sent now.
    #[expect(clippy::inline_always, reason = "once per ACK")]
    #[inline(always)]
    fn max_segs(&self, mss: u64) -> u32 {
        let segs = self.tso_segs();
        if self.setup.gso { segs.min((MAX_GSO_PAYLOAD / mss).max(1) as u32) } else { segs }
    }

    /// Whether the pacing clock forbids sending now; then its timer is set. Source: Linux 7.3 `tcp_pacing_check`.
    fn paced_out(&mut self) -> bool {
        if self.tp.pacing != Pacing::Needed || self.tp.wstamp <= self.tp.now {
            return false;
        }
        self.pacing_timer = Some(self.tp.wstamp);
        true
    }

    /// Buffers that so many segments leave in.
    fn buffers(&self, segs: u32) -> u64 {
        if self.setup.gso { 1 } else { segs.into() }
    }

    /// `tcp_small_queue_check`, where packets wait in the host: then it goes on when the next has left.
    /// `only_memory`: see [`super::small_queue::SmallQueue::throttle`].
    fn throttled(&mut self, bytes: u64, segs: u32, factor: u32, only_memory: bool) -> bool {
        let buffers = self.buffers(segs);
        let Some(queue) = &mut self.small_queue else {
            let per_ms = self.tp.pacing_rate >> PACING_SHIFT;
            // Of the buffer itself: it is not segmented yet.
            let limit = (2 * (bytes + HEAD)).max(per_ms);
            return self.board.buffers() > 1 && self.burst.is_full(limit.saturating_mul(1 << factor));
        };
        if !queue.is_full(bytes, buffers, self.tp.pacing_rate >> PACING_SHIFT, factor) {
            return false;
        }
        // A lone buffer is never waited for: its ACK may come first.
        if self.board.front().is_none_or(|head| head.seq >= self.last_buffer) {
            return false;
        }
        queue.throttle(only_memory);
        true
    }

    /// `tcp_tso_should_defer`: wait for more window before a small burst? `Some(true)` if the
    /// congestion window is why.
    fn should_defer(&self, max_segs: u32, room: u32, window: u64) -> Option<bool> {
        let tp = &self.tp;
        if tp.ca_state >= CaState::Recovery || tp.own_pacing_rate {
            return None;
        }
        let mss = u64::from(tp.mss);
        let cong_win = u64::from(room) * mss;
        let limit = window.min(cong_win);
        if limit >= u64::from(max_segs) * mss {
            return None;
        }
        let skb = self.queue.head();
        if !self.queue.is_single() && limit >= skb {
            return None;
        }
        let chunk =
            self.peer.bytes.min(u64::from(tp.snd_cwnd) * mss).checked_div(self.setup.sysctl.tso_win_divisor);
        if chunk.is_none_or(|chunk| limit >= chunk) {
            return None;
        }
        if cong_win < window { (cong_win <= skb).then_some(true) } else { (window <= skb).then_some(false) }
    }

    /// Whether the next ACK is worth waiting for: the last write was less than a millisecond ago, and so is the ACK ahead.
    fn is_soon(&self) -> bool {
        let tp = &self.tp;
        let Some(head) = self.board.front() else { return false };
        let srtt = Time(tp.srtt_us * 1000 / 8);
        let threshold = Time(srtt.0 / 2).min(Time::from_ms(1));
        tp.now <= tp.wstamp + Time::from_ms(1) && head.sent + srtt <= tp.now + threshold
    }

    #[expect(clippy::inline_always, reason = "part of sending what an ACK allows")]
    #[inline(always)]
    fn transmit_new(&mut self, n: u32, bytes: u64, push: bool, out: &mut Vec<Packet>) {
        let was_idle = self.tp.packets_out == 0;
        if was_idle {
            self.cc.cwnd_event(&mut self.tp, CaEvent::TxStart);
        }
        let mss = u64::from(self.mss_now);
        let first = self.tp.snd_nxt;
        let sent_at = self.stamp(bytes, n);
        if was_idle {
            self.rate.restart(&mut self.tp, sent_at);
        }
        let ecn = self.data_ecn();
        self.last_buffer = first;
        let mut tcp_flags = Flags::ACK;
        if self.queue_cwr {
            self.queue_cwr = false;
            tcp_flags = tcp_flags.with(Flags::CWR);
        }
        let mut seg = Seg::default();
        self.rate.stamp(&mut seg, &self.tp, sent_at);
        seg.flags.set(SegFlags::HEAD);
        for i in 0..n {
            let seq = first + u64::from(i) * mss;
            let end = (seq + mss).min(first + bytes);
            (seg.seq, seg.end) = (seq, end);
            seg.in_flight += 1;
            self.board.push(&seg);
            seg.flags.clear(SegFlags::HEAD);
        }
        if push {
            self.board.push_last();
        }
        let buffer = Buffer { first, bytes, mss, n, push };
        self.emit_buffer(buffer, sent_at, tcp_flags, ecn, out);
        self.tp.snd_nxt = first + bytes;
        self.tp.packets_out += n;
        self.tp.last_sent = self.tp.now;
        self.cc.sent(&mut self.tp);
    }

    /// `tcp_update_skb_after_send`: the departure time of an skb, and of the one after it.
    fn stamp(&mut self, bytes: u64, segs: u32) -> Time {
        let prior = self.tp.wstamp;
        self.tp.wstamp = self.tp.wstamp.max(self.tp.now);
        let sent_at = self.tp.wstamp;
        let rate = self.tp.pacing_rate;
        if self.tp.pacing != Pacing::None
            && rate != u64::MAX
            && rate > 0
            && self.data_segs_out >= UNPACED_SEGS
        {
            let gap = bytes * 1_000_000_000 / rate;
            // A late timer is repaid at no more than twice the rate.
            let credit = (self.tp.wstamp - prior).0;
            self.tp.wstamp += Time(gap - credit.min(gap / 2));
        }
        self.data_segs_out += u64::from(segs);
        let buffers = self.buffers(segs);
        match &mut self.small_queue {
            Some(queue) => queue.charge(bytes, buffers),
            None => self.burst.memory += bytes + buffers * HEAD,
        }
        sent_at
    }

    /// Source: RFC 3168, section 6.1.2; RFC 9331, section 4.1 (ECT(1) of a scalable control).
    fn data_ecn(&self) -> Ecn {
        match self.setup.mode {
            Mode::Off => Ecn::NotEct,
            _ if self.cc.ect1() => Ecn::Ect1,
            _ => Ecn::Ect0,
        }
    }

    /// Puts a buffer on its way, segment by segment if the device does no GSO.
    #[expect(clippy::inline_always, reason = "part of sending what an ACK allows")]
    #[inline(always)]
    fn emit_buffer(
        &mut self,
        buffer: Buffer,
        departs: Time,
        mut flags: Flags,
        ecn: Ecn,
        out: &mut Vec<Packet>,
    ) {
        let Buffer { first, bytes, mss, n, push } = buffer;
        let gso = self.setup.gso && n > 1;
        let (packets, size, gso_size) = if gso { (1, bytes, mss as u16) } else { (n, mss, 0) };
        for i in 0..packets {
            let sent = u64::from(i) * size;
            // An skb of several segments has PSH, for the receiver's sake, whatever was written.
            if i + 1 == packets && (n > 1 || push) {
                flags = flags.with(Flags::PSH);
            }
            let payload = size.min(bytes - sent) as u32;
            self.emit(first + sent, payload, gso_size, departs, flags, ecn, out);
            flags = Flags::ACK;
        }
    }

    /// Puts a segment, or several of `gso_size`, on its way.
    #[expect(clippy::too_many_arguments, reason = "the fields of one packet")]
    #[expect(clippy::inline_always, reason = "once per packet, with many arguments")]
    #[inline(always)]
    fn emit(
        &mut self,
        seq: u64,
        payload: u32,
        gso_size: u16,
        departs: Time,
        flags: Flags,
        ecn: Ecn,
        out: &mut Vec<Packet>,
    ) {
        let packet = self.setup.template.append_to(out);
        packet.seq = seq;
        packet.payload = payload;
        packet.gso_size = gso_size;
        let segs = packet.segs();
        let segment = if gso_size == 0 { payload } else { gso_size.into() };
        packet.len = segs * HEADERS + payload;
        if self.setup.mode == Mode::AccEcn {
            packet.ace = ACE_INIT as u8;
        }
        if segment + OPTION_LEN <= self.tp.mss && self.option_due() {
            packet.len += segs * OPTION_LEN;
            // ACKs have no payload to count.
            packet.n_accecn = 3;
            self.option.on_sent(self.tp.now);
        }
        let charged = payload > 0 && self.small_queue.is_some();
        packet.flags = if charged { flags.with(Flags::CHARGED) } else { flags };
        packet.ecn = ecn;
        packet.sent = if self.tp.pacing == Pacing::Fq { departs } else { self.tp.now };
        packet.enqueued = packet.sent;
        packet.echo = self.last_ack_sent;
        self.counters.sent_packets += u64::from(segs);
        self.counters.sent_bytes += u64::from(packet.len);
    }

    /// `tcp_xmit_retransmit_queue`
    pub(super) fn retransmit_lost(&mut self, out: &mut Vec<Packet>) {
        let mut sent = 0;
        while self.tp.retrans_out < self.tp.lost_out {
            if self.tp.packets_in_flight() >= self.tp.snd_cwnd || self.paced_out() {
                break;
            }
            let Some(index) = self.board.next_lost() else { break };
            let room = self.tp.snd_cwnd - self.tp.packets_in_flight();
            let most = room.min(self.max_segs(u64::from(self.tp.mss)));
            let n = self.board.take_buffer(index, most as usize) as u32;
            if self.throttled(u64::from(n) * u64::from(self.tp.mss), n, 1, false) {
                break;
            }
            self.retransmit(index, n, out);
            sent += n;
            if index == 0 && !matches!(self.timer, Some((Timer::Reorder, ..))) {
                self.rearm_rto();
            }
        }
        if matches!(self.tp.ca_state, CaState::Cwr | CaState::Recovery) {
            self.prr.sent(sent);
        }
    }

    /// One segment, whatever buffer it was in.
    pub(super) fn retransmit_one(&mut self, index: usize, out: &mut Vec<Packet>) {
        self.board.take_buffer(index, 1);
        self.retransmit(index, 1, out);
    }

    /// `tcp_retransmit_skb`: one segment, or as one buffer the `n` that [`super::scoreboard::Scoreboard::take_buffer`] gave.
    pub(super) fn retransmit(&mut self, index: usize, n: u32, out: &mut Vec<Packet>) {
        let Some(&Seg { seq: first, end: first_end, .. }) = self.board.get(index) else { return };
        let Some(&Seg { end, flags, .. }) = self.board.get(index + n as usize - 1) else { return };
        let sent_at = self.stamp(end - first, n);
        let tp = &mut self.tp;
        for index in index..index + n as usize {
            let Some(seg) = self.board.get_mut(index) else { break };
            if !seg.flags.any(SegFlags::RETRANS) {
                tp.retrans_out += 1;
            }
            seg.flags.set(SegFlags::RETRANS);
            seg.flags.set(SegFlags::EVER_RETRANS);
            self.rate.stamp(seg, tp, sent_at);
        }
        for index in index..index + n as usize {
            self.board.note_retransmitted(index, sent_at);
        }
        self.undo.retransmitted(n, self.tp.now);
        self.counters.retransmits += u64::from(n);
        self.tp.last_sent = self.tp.now;
        // RFC 3168 forbids ECT on retransmissions; AccECN and DCTCP do not.
        let marked = self.setup.mode == Mode::AccEcn || self.cc.needs_ecn();
        let ecn = if marked { self.data_ecn() } else { Ecn::NotEct };
        let push = flags.any(SegFlags::PUSH);
        let buffer = Buffer { first, bytes: end - first, mss: first_end - first, n, push };
        self.emit_buffer(buffer, sent_at, Flags::ACK, ecn, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sender::tests::{ack, open, open_as, open_with};
    use super::*;

    #[test]
    fn what_is_sent_again_in_one_buffer_has_push_on_its_last_segment_and_keeps_that_of_a_write() {
        let (mut s, mut out) = open(6);
        let mut again = |index, n| {
            out.clear();
            s.retransmit(index, n, &mut out);
            out.iter().map(|p| (p.seq, p.flags.has(Flags::PSH))).collect::<Vec<_>>()
        };
        assert_eq!(again(0, 2), [(0, false), (1000, true)]);
        assert_eq!(again(2, 1), [(2000, false)]);
        assert_eq!(again(5, 1), [(5000, true)], "the end of the write");
    }

    #[test]
    fn a_closed_window_is_probed_after_the_rto_and_twice_as_late_each_time() {
        let (mut s, mut out) = open(20);
        s.on_ack(&Packet { window: 0, ..ack(10) }, Time::from_ms(200), &mut out);
        out.clear();
        let mut now = Time::from_ms(200);
        let mut waits = Vec::new();
        for _ in 0..3 {
            let due = s.deadline().unwrap();
            waits.push((due - now).as_ms());
            now = due;
            s.on_timer(now, &mut out);
        }
        // RTT 100 ms, variance at its floor of 200 ms.
        assert_eq!(waits, [300, 600, 1200]);
        assert!(out.iter().all(|p| (p.seq, p.payload) == (9_999, 0)), "{out:?}");
        out.clear();
        s.on_ack(&ack(10), now, &mut out);
        assert_eq!(out.iter().map(|p| p.payload).sum::<u32>(), 10_000);
        assert_eq!(s.window_probes, 0);
    }

    #[test]
    fn single_segments_are_paced_one_by_one() {
        let (s, _) = open(0);
        let (mut several, mut single) = (s.setup.clone(), s.setup);
        // a millisecond of 4 MB/s holds 4 segments of 1000 bytes
        (several.max_pacing_rate, single.max_pacing_rate) = (Some(4_096_000), Some(4_096_000));
        single.single_segments = true;
        for (setup, burst) in [(several, 4), (single, 1)] {
            let (mut s, mut out) = open_with(setup, 1000);
            s.tp.snd_cwnd = 100;
            s.tp.min_rtt_us = 100_000;
            s.tp.pacing = Pacing::Needed;
            s.tp.pacing_rate = 4_096_000;
            assert_eq!(s.max_segs(1000), burst);
            out.clear();
            s.send_new(&mut out);
            assert_eq!(out.len() as u32, burst, "then the pacing clock forbids the next");
            assert_eq!(s.size_goal(), if burst == 1 { 1 } else { MAX_GSO_SEGS });
        }
    }

    #[test]
    fn an_skb_holds_no_more_than_half_of_the_widest_window() {
        let (mut s, mut out) = open(10);
        // half of 1 MiB is more than GSO takes
        assert_eq!(s.size_goal(), MAX_GSO_SEGS);
        s.peer.widest = 0;
        s.set_window(64_240);
        // 32120 bytes of 1000
        assert_eq!(s.size_goal(), 32);
        s.on_ack(&Packet { window: 80_000, ..ack(5) }, Time::from_ms(200), &mut out);
        s.on_ack(&Packet { window: 60_000, ..ack(10) }, Time::from_ms(201), &mut out);
        assert_eq!(s.size_goal(), 40);
    }

    #[test]
    fn after_an_idle_rto_the_window_restarts_unless_the_host_says_otherwise() {
        for (restarts, cwnd) in [(true, 10), (false, 20)] {
            let (mut s, mut out) = open(10);
            s.setup.sysctl.slow_start_after_idle = restarts;
            s.on_ack(&ack(10), Time::from_ms(200), &mut out);
            s.write(11_000, Time::from_ms(2000), &mut out);
            assert_eq!(s.sock().snd_cwnd, cwnd);
        }
    }

    #[test]
    fn a_rule_of_validation_keeps_what_linux_takes_off() {
        // 20 of which 2 were used for a timeout, 300 ms: (20 + 10) / 2; after an idle timeout 10
        for (cc, unused, idle) in
            [("reno", 15, 10), ("reno validation maxfs", 20, 10), ("reno validation rfc7661", 20, 20)]
        {
            let setup = open(0).0.setup;
            let (mut s, mut out) = open_as(cc, setup.clone(), 10);
            s.on_ack(&ack(10), Time::from_ms(200), &mut out);
            assert_eq!(s.sock().snd_cwnd, 20);
            s.write(11_000, Time::from_ms(250), &mut out);
            s.write(12_000, Time::from_ms(600), &mut out);
            assert_eq!(s.sock().snd_cwnd, unused, "{cc}");
            let (mut s, mut out) = open_as(cc, setup, 10);
            s.on_ack(&ack(10), Time::from_ms(200), &mut out);
            s.write(11_000, Time::from_ms(2000), &mut out);
            assert_eq!(s.sock().snd_cwnd, idle, "{cc}");
        }
    }
}
