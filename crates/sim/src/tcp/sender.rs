//! The sending side: its state and its face to the event loop.
//!
//! What happens on an ACK is in `ack.rs`, what losses and echoes lead to in `recovery.rs`, what
//! leaves and when in `output.rs`.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c`, `tcp_output.c`, `tcp_timer.c`, `tcp_recovery.c`.
//!
//! Departures: ACK processing takes no time; no Nagle.

use super::accecn::{AceDecoder, OptionClock};
use super::cwnd_usage::CwndUsage;
use super::ecn::Mode;
use super::peer_window::PeerWindow;
use super::prr::Prr;
use super::rack::Rack;
use super::rate::Rate;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::small_queue::{Burst, SmallQueue};
use super::tlp::LossProbe;
use super::undo::Undo;
use super::write_queue::WriteQueue;
use crate::base::units::Time;
use crate::cc::sock::{Pacing, TcpSock};
use crate::cc::{CaEvent, Cc, CongestionControl};
use crate::packet::charge::Charges;
use crate::packet::{Ecn, Packet};

/// Which event the one retransmission timer stands for (`icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Retransmission timeout.
    Rto,
    /// Tail loss probe.
    LossProbe,
    /// RACK's reordering window.
    Reorder,
    /// Probe of a closed window.
    WindowProbe,
}

/// What a sender counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderCounters {
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Their frame bytes.
    pub sent_bytes: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Tail loss probes.
    pub tlps: u64,
    /// Reductions that proved spurious.
    pub undos: u64,
}

impl SenderCounters {
    /// Adds what another sender counted.
    pub fn add(&mut self, other: &SenderCounters) {
        self.sent_packets += other.sent_packets;
        self.sent_bytes += other.sent_bytes;
        self.retransmits += other.retransmits;
        self.rtos += other.rtos;
        self.tlps += other.tlps;
        self.undos += other.undos;
    }
}

/// Sysctls of the sending host (`net.ipv4.tcp_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sysctl {
    /// `tcp_tso_win_divisor`: a burst below window / divisor may wait; 0: it may not.
    pub tso_win_divisor: u64,
    /// `tcp_slow_start_after_idle`
    pub slow_start_after_idle: bool,
    /// `tcp_sack`
    pub sack: bool,
    /// `tcp_limit_output_bytes`
    pub limit_output_bytes: u64,
    /// `tcp_wmem`
    pub wmem: [u64; 3],
}

impl Default for Sysctl {
    fn default() -> Self {
        Sysctl {
            tso_win_divisor: 3,
            slow_start_after_idle: true,
            sack: true,
            limit_output_bytes: 4 << 20,
            wmem: [4096, 16 << 10, 4 << 20],
        }
    }
}

/// How a sender is set up.
#[derive(Clone, Debug)]
pub struct SenderSetup {
    /// What its packets have in common (addresses, DSCP, hash).
    pub template: Packet,
    /// Feedback negotiated.
    pub mode: Mode,
    /// When AccECN's option is sent; level 0 unless both ends do.
    pub option: OptionClock,
    /// `tcp_sce_pacing` of the SCE kernels.
    pub sce_pacing: bool,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// The host's timer frequency.
    pub hz: u64,
    /// `tcp_pacing_ss_ratio` in percent.
    pub ss_ratio: u64,
    /// `tcp_pacing_ca_ratio` in percent.
    pub ca_ratio: u64,
    /// `SO_MAX_PACING_RATE` in bytes per second.
    pub max_pacing_rate: Option<u64>,
    /// Whether the host's queue is `fq`.
    pub fq: bool,
    /// Whether several segments leave in one buffer (GSO).
    pub gso: bool,
    /// Whether TCP puts one segment into a buffer and no more, because `sk_gso_max_segs` is 1.
    pub single_segments: bool,
    /// Where the host's queues note what they give back; none where there are no queues that could hold anything.
    pub charges: Option<Charges>,
    /// RTT of the handshake.
    pub handshake_rtt: Time,
    /// What else the host says.
    pub sysctl: Sysctl,
}

/// What `TCP_INFO` would tell.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Payload bits per second; none before the first sample.
    pub delivery_rate_bps: Option<f64>,
    /// Seconds.
    pub srtt_s: f64,
    /// Packets.
    pub cwnd: u32,
    /// Packets; none while infinite.
    pub ssthresh: Option<u32>,
    /// Bits per second; none while unlimited.
    pub pacing_rate_bps: Option<f64>,
    /// Packets.
    pub in_flight: u32,
}

/// A sender.
pub struct Sender {
    /// What a congestion control may see and set: windows, counts of packets, RTTs (`tcp_sock`).
    pub(super) tp: TcpSock,
    /// The congestion control.
    pub(super) cc: Cc,
    /// Cached `cc.has_cong_control()`.
    pub(super) full_control: bool,
    /// How it was set up: host, path and handshake.
    pub(super) setup: SenderSetup,
    /// What is out: sent and not cumulatively acknowledged.
    pub(super) board: Scoreboard,
    /// Smoothed RTT, its variation and the RTO.
    pub(super) rtt: RttEstimator,
    /// Loss detection by time.
    pub(super) rack: Rack,
    /// What it takes to undo the reduction under way.
    pub(super) undo: Undo,
    /// Samples of the delivery rate.
    pub(super) rate: Rate,
    /// How AccECN's counter and option are read.
    pub(super) ace: AceDecoder,
    /// When AccECN's option is sent.
    pub(super) option: OptionClock,
    /// ECN field of the last ACK.
    pub(super) previous_ecn: Ecn,
    /// Payload bytes of a segment sent now: less than the MSS beside AccECN's option.
    pub(super) mss_now: u32,
    /// How the window comes down in a reduction.
    pub(super) prr: Prr,
    /// One past the last byte that the application has for us.
    pub(super) write_seq: u64,
    /// What the application wrote and we have not sent.
    pub(super) queue: WriteQueue,
    /// What the peer lets us send.
    pub(super) peer: PeerWindow,
    /// When pacing, or the host's queue, lets the next packet go; none: at once.
    pub(super) pacing_timer: Option<Time>,
    /// What leaves a host without a queue in one event.
    pub(super) burst: Burst,
    /// What waits in the host's queue, if it has one.
    pub(super) small_queue: Option<SmallQueue>,
    /// Where the newest buffer began that was sent for the first time.
    pub(super) last_buffer: u64,
    /// What the timer stands for, when it was set, and for how many microseconds: when it fires is worked out only when
    /// somebody asks ([`Sender::timer_at`]), for an ACK may set it three times.
    pub(super) timer: Option<(Timer, Time, u64)>,
    /// How much of the window is used.
    pub(super) cwnd_usage: CwndUsage,
    /// Packets with data sent so far, retransmissions included; the first ten are not paced.
    pub(super) data_segs_out: u64,
    /// The tail loss probe that is out, if one is.
    pub(super) probe: LossProbe,
    /// Whether the timeout may still prove spurious (F-RTO, RFC 5682).
    pub(super) frto: bool,
    /// Probes of a closed window since it closed.
    pub(super) window_probes: u32,
    /// Timeouts in a row without progress (`icsk_retransmits`).
    pub(super) retransmits: u32,
    /// When the newest ACK was sent, by its timestamp: what our segments echo.
    pub(super) last_ack_sent: Time,
    /// RFC 3168: CWR goes out on the next new data.
    pub(super) queue_cwr: bool,
    /// The previous ACK's SACK blocks: what lies inside needs no second look.
    pub(super) sack_cache: [(u64, u64); 3],
    /// End of the highest SACKed segment.
    pub(super) highest_sacked: u64,
    /// Newest RTT in microseconds that the last ACK gave, for histograms.
    pub last_rtt_us: Option<u64>,
    /// Counted so far.
    pub counters: SenderCounters,
}

impl Sender {
    /// A connection just established at `now`.
    pub fn new(setup: SenderSetup, mut cc: Cc, now: Time) -> Self {
        let mut tp = TcpSock::new(setup.mss, setup.hz);
        tp.now = now;
        tp.accecn = setup.mode == Mode::AccEcn;
        tp.ecn_ok = setup.mode != Mode::Off;
        tp.sce_pacing = setup.sce_pacing;
        // The SYN itself was delivered.
        tp.delivered = 1;
        if setup.fq {
            tp.pacing = Pacing::Fq;
        }
        if let Some(rate) = setup.max_pacing_rate {
            tp.max_pacing_rate = rate;
            tp.request_pacing();
        }
        let small_queue = setup
            .charges
            .clone()
            .map(|charges| SmallQueue::new(setup.template.flow, setup.sysctl.limit_output_bytes, charges));
        let mut rtt = RttEstimator::default();
        let sample = setup.handshake_rtt.as_us();
        rtt.sample(&mut tp, sample);
        rtt.minimum(&mut tp, sample);
        tp.last_sent = now;
        tp.delivered_mstamp = now;
        tp.update_pacing_rate(setup.ss_ratio, setup.ca_ratio);
        cc.init(&mut tp);
        let queue = WriteQueue::new(setup.sysctl.wmem, cc.sndbuf_windows());
        Sender {
            full_control: cc.has_cong_control(),
            tp,
            cc,
            board: Scoreboard::default(),
            rtt,
            rack: Rack::default(),
            undo: Undo::default(),
            rate: Rate::new(now),
            ace: AceDecoder::default(),
            option: setup.option,
            previous_ecn: Ecn::NotEct,
            mss_now: setup.mss,
            prr: Prr::default(),
            write_seq: 0,
            queue,
            peer: PeerWindow::default(),
            pacing_timer: None,
            burst: Burst::default(),
            small_queue,
            last_buffer: 0,
            timer: None,
            cwnd_usage: CwndUsage::new(now),
            data_segs_out: 0,
            probe: LossProbe::default(),
            frto: false,
            window_probes: 0,
            retransmits: 0,
            last_ack_sent: Time::ZERO,
            queue_cwr: false,
            sack_cache: [(0, 0); 3],
            highest_sacked: 0,
            last_rtt_us: None,
            counters: SenderCounters::default(),
            setup,
        }
    }

    /// The receiver's window as the handshake told it, in bytes.
    pub fn set_window(&mut self, bytes: u64) {
        self.peer.offer(self.tp.snd_una, bytes);
    }

    /// The SYN/ACK was sent at `stamp`, by its timestamp, which segments echo until an ACK comes.
    pub fn heard_from_peer(&mut self, stamp: Time) {
        self.last_ack_sent = stamp;
    }

    /// The SYN was repeated: `tcp_enter_loss` owes a CWR as at any timeout, if the SYN asked for RFC 3168.
    pub fn syn_timed_out(&mut self, requested: Mode) {
        self.queue_cwr = requested == Mode::Rfc3168 && self.setup.mode == Mode::Rfc3168;
    }

    /// The peer's window let the segments grow to `mss` (`tcp_sync_mss`).
    pub fn set_mss(&mut self, mss: u32) {
        self.tp.mss = mss;
        self.mss_now = mss;
    }

    /// The handshake's last ACK told that our SYN/ACK arrived with CE (`tcp_accecn_third_ack`).
    pub fn synack_was_marked(&mut self) {
        self.tp.delivered_ce = self.tp.delivered_ce.max(1);
    }

    /// When AccECN's option is sent.
    pub fn option_mut(&mut self) -> &mut OptionClock {
        &mut self.option
    }

    /// What AccECN tells of our packets.
    pub fn ace(&self) -> &AceDecoder {
        &self.ace
    }

    /// See [`Sender::ace`].
    pub fn ace_mut(&mut self) -> &mut AceDecoder {
        &mut self.ace
    }

    /// The application wrote up to byte `write_seq`; `u64::MAX` is a source without end.
    pub fn write(&mut self, write_seq: u64, now: Time, out: &mut Vec<Packet>) {
        self.turn(now);
        self.reconsider();
        self.write_seq = self.write_seq.max(write_seq);
        self.send_new(out);
    }

    /// One past the last byte that the application has written or, of a source without end, will write.
    pub fn write_seq(&self) -> u64 {
        self.write_seq
    }

    /// Whether all that was written is acknowledged.
    pub fn is_done(&self) -> bool {
        self.tp.snd_una >= self.write_seq
    }

    /// The application stops: what is not sent yet never will be.
    pub fn close(&mut self) {
        self.reconsider();
        self.write_seq = self.write_seq.min(self.tp.snd_nxt);
        self.queue.clear(self.tp.snd_nxt);
    }

    /// A buffer of so much memory leaves the host's device, from `begins`, now or later, to `ends` (`tcp_wfree`); true if
    /// we wait for that, and [`Sender::deadline`] may have moved.
    #[expect(clippy::inline_always, reason = "part of each packet's way")]
    #[inline(always)]
    pub fn leaves_host(&mut self, memory: u64, begins: Time, ends: Time) -> bool {
        self.small_queue.as_mut().is_some_and(|queue| queue.leaves(memory, begins, ends))
    }

    /// Before anything that may change what it wants to send, or may.
    #[inline]
    pub(super) fn reconsider(&mut self) {
        if let Some(queue) = &mut self.small_queue {
            queue.reconsider();
        }
    }

    /// The host's queue was replaced at `now`, with all that stood in it.
    pub fn host_queue_replaced(&mut self, now: Time) {
        self.turn(now);
        if let Some(queue) = &mut self.small_queue {
            queue.forget();
        }
    }

    /// Something happens at `now`: to be called first.
    #[inline]
    pub(super) fn turn(&mut self, now: Time) {
        self.tp.now = now;
        self.burst.begin();
        if let Some(queue) = &mut self.small_queue
            && let Some(at) = queue.settle(now)
        {
            self.pacing_timer = Some(self.pacing_timer.map_or(at, |timer| timer.min(at)));
        }
    }

    /// When the earliest timer expires, if one runs.
    pub fn deadline(&self) -> Option<Time> {
        let earlier = |a: Option<Time>, b: Option<Time>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let goes_on = self.small_queue.as_ref().and_then(SmallQueue::goes_on);
        earlier(earlier(self.timer_at(), self.pacing_timer), goes_on)
    }

    /// No timer expires before this time, which is told without the divisions that [`Sender::deadline`] takes: ticks of the
    /// host only make it later.
    #[expect(clippy::inline_always, reason = "once per ACK")]
    #[inline(always)]
    pub fn waits_until(&self) -> Time {
        let timer = self.timer.map_or(Time::NEVER, |(_, set, us)| set.plus(Time::from_us(us)));
        let goes_on = self.small_queue.as_ref().and_then(SmallQueue::goes_on);
        timer.min(self.pacing_timer.unwrap_or(Time::NEVER)).min(goes_on.unwrap_or(Time::NEVER))
    }

    /// Runs the timers that are due.
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        self.turn(now);
        if self.pacing_timer.is_some_and(|t| t <= now) {
            self.pacing_timer = None;
            if !self.small_queue.as_mut().is_some_and(SmallQueue::waits_on) {
                self.retransmit_lost(out);
                self.send_new(out);
            }
        }
        if let Some((timer, ..)) = self.timer
            && self.timer_at().is_some_and(|at| at <= now)
        {
            self.timer = None;
            self.reconsider();
            match timer {
                Timer::Rto => self.on_rto(out),
                Timer::LossProbe => self.send_loss_probe(out),
                Timer::Reorder => self.on_reorder_timeout(out),
                Timer::WindowProbe => self.send_window_probe(out),
            }
        }
    }

    /// `tcp_rate_check_app_limited`: the application writes; was it late?
    pub(super) fn check_app_limited(&mut self) {
        let tp = &mut self.tp;
        if self.queue.end.saturating_sub(tp.snd_nxt) < u64::from(tp.mss)
            && tp.packets_in_flight() < tp.snd_cwnd
            && tp.lost_out <= tp.retrans_out
        {
            tp.mark_app_limited();
        }
    }

    /// `tcp_slow_start_after_idle_check`: the window shrinks after an idle period of an RTO.
    pub(super) fn restart_after_idle(&mut self) {
        let tp = &mut self.tp;
        if tp.packets_out != 0 || self.full_control || !self.setup.sysctl.slow_start_after_idle {
            return;
        }
        let idle_us = (tp.now - tp.last_sent).as_us();
        let rto = self.rtt.rto_us();
        if idle_us <= rto || tp.keeps_idle {
            return;
        }
        self.cc.cwnd_event(&mut self.tp, CaEvent::CwndRestart);
        self.cwnd_usage.restart(&mut self.tp, idle_us, rto);
    }

    /// The connection's state.
    pub fn sock(&self) -> &TcpSock {
        &self.tp
    }

    /// The module, for traces.
    pub fn cc(&self) -> &Cc {
        &self.cc
    }

    /// What `TCP_INFO` would tell now.
    pub fn info(&self) -> Info {
        let tp = &self.tp;
        Info {
            delivery_rate_bps: self.rate.bits_per_s(tp.mss),
            srtt_s: (tp.srtt_us >> 3) as f64 / 1e6,
            cwnd: tp.snd_cwnd,
            ssthresh: (tp.snd_ssthresh < crate::cc::sock::INFINITE_SSTHRESH).then_some(tp.snd_ssthresh),
            pacing_rate_bps: (tp.pacing_rate != u64::MAX).then_some(tp.pacing_rate as f64 * 8.0),
            in_flight: tp.packets_in_flight(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::base::rng::Stream;
    use crate::cc::CcEnv;
    use crate::packet::{Flags, SackBlock};

    const MSS: u32 = 1000;

    /// A Reno sender with an RTT of 100 ms that wrote `segments` of 1000 bytes at 100 ms, and what it sent.
    pub fn open(segments: u64) -> (Sender, Vec<Packet>) {
        let setup = SenderSetup {
            template: Packet::default(),
            mode: Mode::Off,
            option: OptionClock::default(),
            sce_pacing: false,
            mss: MSS,
            hz: 1000,
            ss_ratio: 200,
            ca_ratio: 120,
            max_pacing_rate: None,
            fq: false,
            gso: false,
            single_segments: false,
            charges: None,
            handshake_rtt: Time::from_ms(100),
            sysctl: Sysctl { tso_win_divisor: 0, ..Sysctl::default() },
        };
        open_with(setup, segments)
    }

    /// The same, set up otherwise.
    pub fn open_with(setup: SenderSetup, segments: u64) -> (Sender, Vec<Packet>) {
        open_as("reno", setup, segments)
    }

    /// The same with another control.
    pub fn open_as(cc: &str, setup: SenderSetup, segments: u64) -> (Sender, Vec<Packet>) {
        let env = CcEnv { rng: Stream::new(1, "cc"), now: Time::ZERO };
        let Ok(cc) = Cc::build(cc, env) else { panic!("'{cc}' was refused") };
        let mut sender = Sender::new(setup, cc, Time::from_ms(100));
        sender.set_window(1 << 20);
        let mut out = Vec::new();
        sender.write(segments * u64::from(MSS), Time::from_ms(100), &mut out);
        (sender, out)
    }

    /// An ACK of everything below segment `n`.
    pub fn ack(n: u64) -> Packet {
        Packet { ack: n * u64::from(MSS), window: 1 << 20, flags: Flags::ACK, ..Packet::default() }
    }

    /// The same with SACK blocks of segments `start..end`.
    pub fn sacking(n: u64, blocks: &[(u64, u64)]) -> Packet {
        let mut packet = ack(n);
        let offset = |seg: u64| (seg as i32 - n as i32) * MSS as i32;
        for (i, &(start, end)) in blocks.iter().enumerate() {
            packet.sack[i] = SackBlock { start: offset(start), end: offset(end) };
            packet.n_sack += 1;
        }
        packet
    }

    /// The same whose first block is a D-SACK.
    pub fn dsacking(packet: &Packet) -> Packet {
        Packet { flags: packet.flags.with(Flags::DSACK), ..*packet }
    }
}
