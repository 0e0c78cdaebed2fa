//! The part of the kernel's `tcp_sock` that congestion controls read and write.
//!
//! Source: Linux 7.3 `include/linux/tcp.h`, `include/net/tcp.h`, `net/ipv4/tcp_cong.c`.

use crate::base::units::Time;

/// `ssthresh` before the first reduction.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// `inet_csk_ca_state`, ordered as in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    /// Nothing dubious.
    #[default]
    Open,
    /// SACKs or duplicate ACKs were seen.
    Disorder,
    /// A reduction after a congestion notification is under way.
    Cwr,
    /// Fast retransmit is under way.
    Recovery,
    /// After an RTO.
    Loss,
}

/// Whether and by whom packets are paced (`sk_pacing_status`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// A rate is computed, nothing is delayed.
    #[default]
    None,
    /// TCP's internal timer delays.
    Needed,
    /// The host's queue delays ([`crate::qdisc::Fq`]).
    Fq,
}

/// The sender's state, in the kernel's names and units: windows in packets, sequence numbers in
/// bytes (64 bits, never wrapping), round-trip times in microseconds.
#[derive(Clone, Debug)]
pub struct TcpSock {
    /// The time of the event being handled (`tcp_clock_cache`).
    pub now: Time,
    /// The host's timer frequency, for jiffies.
    pub hz: u64,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Congestion window.
    pub snd_cwnd: u32,
    /// Packets acknowledged since the window last grew by one.
    pub snd_cwnd_cnt: u32,
    /// Slow start threshold.
    pub snd_ssthresh: u32,
    /// Upper bound of the window.
    pub snd_cwnd_clamp: u32,
    /// Window at the start of the current reduction.
    pub prior_cwnd: u32,
    /// Segments sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Of these, SACKed.
    pub sacked_out: u32,
    /// Of these, marked lost.
    pub lost_out: u32,
    /// Of these, retransmitted and still out.
    pub retrans_out: u32,
    /// Most packets out in this window, for cwnd validation.
    pub max_packets_out: u32,
    /// Whether the window was the limit (cwnd validation).
    pub is_cwnd_limited: bool,
    /// Whether unsent application data waits.
    pub write_queue: bool,
    /// First unacknowledged byte.
    pub snd_una: u64,
    /// Next byte to send.
    pub snd_nxt: u64,
    /// `snd_nxt` at the entry of Disorder, CWR, Recovery or Loss.
    pub high_seq: u64,
    /// Packets delivered so far.
    pub delivered: u64,
    /// Of these, reported with CE.
    pub delivered_ce: u64,
    /// When a packet was last delivered (`delivered_mstamp`).
    pub delivered_mstamp: Time,
    /// `delivered` up to which samples are application limited; 0: none.
    pub app_limited: u64,
    /// Packets marked lost so far.
    pub lost: u64,
    /// Smoothed RTT, times 8.
    pub srtt_us: u64,
    /// Windowed minimum of the RTT; `u64::MAX` before the first sample.
    pub min_rtt_us: u64,
    /// Highest reordering degree seen, in packets.
    pub reordering: u32,
    /// State of the congestion machine.
    pub ca_state: CaState,
    /// Pacing rate in bytes per second; `u64::MAX` means unlimited.
    pub pacing_rate: u64,
    /// Who paces.
    pub pacing: Pacing,
    /// Earliest departure of the next packet (`tcp_wstamp_ns`).
    pub wstamp: Time,
    /// Cap on the pacing rate in bytes per second (`SO_MAX_PACING_RATE`).
    pub max_pacing_rate: u64,
    /// Time stamp of the ACK being handled (`rcv_tsval`).
    pub rcv_tsval: Time,
    /// The time stamp that it echoes (`rcv_tsecr`).
    pub rcv_tsecr: Time,
    /// Packets delivered since the newest packet that the ACK being handled delivers was sent.
    pub sample_delivered: u32,
    /// A module's growth asks for a reduction instead (`tcp_enter_cwr`).
    pub wants_cwr: bool,
    /// Whether AccECN feedback is in use.
    pub accecn: bool,
    /// Whether any ECN feedback is in use.
    pub ecn_ok: bool,
    /// The peer does not do SACK (`tcp_is_reno`).
    pub no_sack: bool,
    /// Whether the ACK being handled echoes SCE.
    pub esce: bool,
    /// Whether the ACK being handled changes the window.
    pub win_update: bool,
    /// Whether the module alone sets `pacing_rate` now, and nothing waits for a larger burst (SUSS).
    pub own_pacing_rate: bool,
    /// Whether the window stays when it is not full for a timeout (`validation`).
    pub keeps_unused: bool,
    /// The same after a silence (RFC 7661).
    pub keeps_idle: bool,
    /// Whether SCE's modules are to pace (`tcp_sce_pacing`).
    pub sce_pacing: bool,
    /// When data was last sent.
    pub last_sent: Time,
}

impl TcpSock {
    /// A connection just established, as Linux initialises it: window 10, infinite threshold.
    pub fn new(mss: u32, hz: u64) -> Self {
        TcpSock {
            now: Time::ZERO,
            hz,
            mss,
            snd_cwnd: 10,
            snd_cwnd_cnt: 0,
            snd_ssthresh: INFINITE_SSTHRESH,
            snd_cwnd_clamp: u32::MAX,
            prior_cwnd: 0,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            max_packets_out: 0,
            is_cwnd_limited: false,
            write_queue: false,
            snd_una: 0,
            snd_nxt: 0,
            high_seq: 0,
            delivered: 0,
            delivered_ce: 0,
            delivered_mstamp: Time::ZERO,
            app_limited: 0,
            lost: 0,
            srtt_us: 0,
            min_rtt_us: u64::MAX,
            reordering: 3,
            ca_state: CaState::Open,
            pacing_rate: u64::MAX,
            pacing: Pacing::None,
            wstamp: Time::ZERO,
            max_pacing_rate: u64::MAX,
            rcv_tsval: Time::ZERO,
            rcv_tsecr: Time::ZERO,
            sample_delivered: 0,
            wants_cwr: false,
            accecn: false,
            ecn_ok: false,
            no_sack: false,
            esce: false,
            win_update: false,
            own_pacing_rate: false,
            keeps_unused: false,
            keeps_idle: false,
            sce_pacing: false,
            last_sent: Time::ZERO,
        }
    }

    /// Packets believed to be in the network (`tcp_packets_in_flight`).
    pub fn packets_in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// Asks for pacing, if nobody paces already.
    pub fn request_pacing(&mut self) {
        if self.pacing == Pacing::None {
            self.pacing = Pacing::Needed;
        }
    }

    /// What is in flight now was sent for want of more, or is too little to tell the path's rate.
    pub fn mark_app_limited(&mut self) {
        self.app_limited = (self.delivered + u64::from(self.packets_in_flight())).max(1);
    }

    /// `tcp_in_slow_start`
    pub fn in_slow_start(&self) -> bool {
        self.snd_cwnd < self.snd_ssthresh
    }

    /// `tcp_current_ssthresh`: what undo goes back to.
    pub fn current_ssthresh(&self) -> u32 {
        if matches!(self.ca_state, CaState::Cwr | CaState::Recovery) {
            self.snd_ssthresh
        } else {
            self.snd_ssthresh.max((self.snd_cwnd >> 1) + (self.snd_cwnd >> 2))
        }
    }

    /// `tcp_is_cwnd_limited`
    pub fn cwnd_limited(&self) -> bool {
        self.is_cwnd_limited || (self.in_slow_start() && self.snd_cwnd < 2 * self.max_packets_out)
    }

    /// `tcp_slow_start`: grows by `acked` up to ssthresh; returns what is left over.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.snd_cwnd.saturating_add(acked).min(self.snd_ssthresh);
        let left = acked - (cwnd - self.snd_cwnd);
        self.snd_cwnd = cwnd.min(self.snd_cwnd_clamp);
        left
    }

    /// `tcp_cong_avoid_ai`: one more packet per `w` acknowledged ones.
    pub fn cong_avoid_ai(&mut self, w: u32, acked: u32) {
        if self.snd_cwnd_cnt >= w {
            self.snd_cwnd_cnt = 0;
            self.snd_cwnd += 1;
        }
        self.snd_cwnd_cnt += acked;
        if self.snd_cwnd_cnt >= w {
            let delta = self.snd_cwnd_cnt / w;
            self.snd_cwnd_cnt -= delta * w;
            self.snd_cwnd += delta;
        }
        self.snd_cwnd = self.snd_cwnd.min(self.snd_cwnd_clamp);
    }

    /// The kernel's jiffies at [`TcpSock::now`].
    pub fn jiffies(&self) -> u64 {
        self.now.jiffies(self.hz)
    }

    /// `tcp_update_pacing_rate`: the default rate, for algorithms without their own.
    /// `ss_ratio` and `ca_ratio` are the sysctls in percent.
    pub fn update_pacing_rate(&mut self, ss_ratio: u64, ca_ratio: u64) {
        if self.own_pacing_rate {
            return;
        }
        let ratio = if self.snd_cwnd < self.snd_ssthresh / 2 { ss_ratio } else { ca_ratio };
        let window = u64::from(self.snd_cwnd.max(self.packets_out));
        // mss * 8 * 1e6 / (srtt << 3) bytes per second, times the ratio
        let rate = u64::from(self.mss) * 8 * 10_000 * ratio * window;
        let rate = rate.checked_div(self.srtt_us).unwrap_or(rate);
        self.pacing_rate = rate.min(self.max_pacing_rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_stops_at_ssthresh_and_returns_the_rest() {
        let mut tp = TcpSock::new(1448, 250);
        tp.snd_ssthresh = 12;
        assert_eq!(tp.slow_start(5), 3);
        assert_eq!(tp.snd_cwnd, 12);
    }

    #[test]
    fn additive_increase_adds_one_per_window() {
        let mut tp = TcpSock::new(1448, 250);
        for _ in 0..4 {
            tp.cong_avoid_ai(10, 2);
        }
        assert_eq!((tp.snd_cwnd, tp.snd_cwnd_cnt), (10, 8));
        tp.cong_avoid_ai(10, 2);
        assert_eq!((tp.snd_cwnd, tp.snd_cwnd_cnt), (11, 0));
    }

    #[test]
    fn default_pacing_is_120_percent_of_the_window_per_rtt() {
        let mut tp = TcpSock::new(1448, 250);
        tp.snd_ssthresh = 10;
        tp.snd_cwnd = 100;
        tp.srtt_us = 20_000 << 3;
        tp.update_pacing_rate(200, 120);
        // 1448 B * 100 / 20 ms * 1.2 = 8.688 MB/s
        assert_eq!(tp.pacing_rate, 8_688_000);
    }
}
