"""BBR (v1) as Linux 7.3 has it, and defects of it. defects.yaml says what is wrong.

Gains are in 1/256, bandwidths in packets per 2**24 us. Not of Linux: no detection of policers, and what departs later than
now counts as in flight.
"""

from random import Random

from bakeoff.cc import CaEvent, CaState

UNIT = 256
HIGH, DRAIN = UNIT * 2885 // 1000 + 1, UNIT * 1000 // 2885
CYCLE = (320, 192, 256, 256, 256, 256, 256, 256)
STARTUP, DRAINING, PROBE_BW, PROBE_RTT = range(4)


class Bbr:
    """Healthy, as the simulator's `bbr`."""

    def init(self, sk):
        self.random = Random(sk.tcp_mstamp)
        self.mode, self.pacing_gain, self.cwnd_gain = STARTUP, HIGH, HIGH
        self.bws, self.rounds, self.round_start, self.next_round = [], 0, False, sk.delivered
        self.min_rtt, self.min_rtt_stamp = sk.min_rtt_us, sk.tcp_jiffies32()
        self.probe_rtt_done, self.probe_rtt_round = None, False
        self.phase, self.phase_start = 0, sk.tcp_mstamp
        self.full_bw, self.full_rounds, self.full = 0, 0, False
        self.idle_restart = self.conserve = False
        self.prev_state, self.prior_cwnd = CaState.OPEN, 0
        self.epoch, self.epoch_acked, self.extras, self.extra_rounds = sk.tcp_mstamp, 0, [0, 0], 0
        rtt_us = max(sk.srtt_us >> 3, 1) if sk.srtt_us else 1000
        sk.sk_pacing_rate = self.rate(sk, (sk.snd_cwnd << 24) // rtt_us, HIGH)
        sk.sk_pacing_needed = True

    # ---- what the path carries

    def bw(self):
        return max((bw for _, bw in self.bws), default=0)

    def rate(self, sk, bw, gain):
        return max((bw * sk.mss_cache * gain >> 8) * 990_000 >> 24, 1)

    def inflight(self, sk, gain):
        if self.min_rtt >= 1 << 63:
            return self.quantize(sk, 10)
        return self.quantize(sk, -(-(self.bw() * self.min_rtt * gain >> 8) >> 24))

    def quantize(self, sk, cwnd):
        segs = min(max(min(sk.sk_pacing_rate >> 10, 65215) // sk.mss_cache, self.min_tso_segs(sk)), 127)
        return (cwnd + 3 * segs + 1) // 2 * 2 + (2 if self.mode == PROBE_BW and self.phase == 0 else 0)

    def packets(self, sk, rs):
        """Of the rate sample."""
        return rs.delivered

    def is_sample(self, rs, bw):
        return not rs.is_app_limited or bw >= self.bw()

    def update_bw(self, sk, rs):
        self.round_start = False
        if not rs.interval_us:
            return
        if rs.prior_delivered >= self.next_round:
            self.next_round, self.round_start, self.conserve = sk.delivered, True, False
            self.rounds += 1
        bw = (self.packets(sk, rs) << 24) // rs.interval_us
        if self.is_sample(rs, bw):
            kept = [(at, value) for at, value in self.bws if value > bw]
            self.bws = [*kept, (self.rounds, bw)]
        self.bws = [each for each in self.bws if each[0] >= self.rounds - 10]

    # ---- aggregation of ACKs

    def update_extra(self, sk, rs):
        if not rs.acked_sacked or not rs.interval_us:
            return
        if self.round_start:
            self.extra_rounds += 1
            if self.extra_rounds >= 5:
                self.extra_rounds, self.extras = 0, [self.extras[1], 0]
        expected = self.bw() * (sk.tcp_mstamp - self.epoch) >> 24
        if self.epoch_acked <= expected:
            self.epoch, self.epoch_acked, expected = sk.tcp_mstamp, 0, 0
        self.epoch_acked += rs.acked_sacked
        self.extras[1] = max(self.extras[1], min(max(self.epoch_acked - expected, 0), sk.snd_cwnd))

    def extra(self):
        return min(max(self.extras), self.bw() * 100_000 >> 24)

    # ---- states

    def enter_probe_bw(self, sk):
        self.mode, self.phase = PROBE_BW, 7 - self.random.randrange(7)
        self.next_phase(sk)

    def next_phase(self, sk):
        self.phase, self.phase_start = (self.phase + 1) % 8, sk.tcp_mstamp

    def up_is_over(self, sk, rs):
        return rs.losses > 0 or rs.prior_in_flight >= self.inflight(sk, self.pacing_gain)

    def phase_is_over(self, sk, rs):
        is_long = sk.tcp_mstamp - self.phase_start > self.min_rtt
        if self.pacing_gain == UNIT:
            return is_long
        if self.pacing_gain > UNIT:
            return is_long and self.up_is_over(sk, rs)
        return is_long or rs.prior_in_flight <= self.inflight(sk, UNIT)

    def check_full(self, rs):
        if self.full or not self.round_start or rs.is_app_limited:
            return
        if self.bw() >= self.full_bw * 320 >> 8:
            self.full_bw, self.full_rounds = self.bw(), 0
            return
        self.full_rounds += 1
        self.full = self.full_rounds >= 3

    def check_drain(self, sk):
        if self.mode == STARTUP and self.full:
            self.mode = DRAINING
            sk.snd_ssthresh = self.inflight(sk, UNIT)
        if self.mode == DRAINING and sk.tcp_packets_in_flight() <= self.inflight(sk, UNIT):
            self.enter_probe_bw(sk)

    def min_rtt_expired(self, sk):
        return sk.tcp_jiffies32() > self.min_rtt_stamp + 10 * sk.hz

    def update_min_rtt(self, sk, rs):
        expired = self.min_rtt_expired(sk)
        if rs.rtt_us is not None and (rs.rtt_us < self.min_rtt or expired):
            self.min_rtt, self.min_rtt_stamp = rs.rtt_us, sk.tcp_jiffies32()
        if expired and not self.idle_restart and self.mode != PROBE_RTT:
            self.mode = PROBE_RTT
            self.save_cwnd(sk)
            self.probe_rtt_done = None
        if self.mode == PROBE_RTT:
            if self.probe_rtt_done is not None:
                self.probe_rtt_round |= self.round_start
                if self.probe_rtt_round:
                    self.check_probe_rtt_done(sk)
            elif sk.tcp_packets_in_flight() <= 4:
                self.probe_rtt_done, self.probe_rtt_round = sk.tcp_jiffies32() + sk.hz // 5, False
                self.next_round = sk.delivered
        if rs.delivered:
            self.idle_restart = False

    def check_probe_rtt_done(self, sk):
        if self.probe_rtt_done is None or sk.tcp_jiffies32() <= self.probe_rtt_done:
            return
        self.min_rtt_stamp = sk.tcp_jiffies32()
        sk.snd_cwnd = max(sk.snd_cwnd, self.prior_cwnd)
        if self.full:
            self.enter_probe_bw(sk)
        else:
            self.mode = STARTUP

    def update_gains(self):
        self.pacing_gain, self.cwnd_gain = {
            STARTUP: (HIGH, HIGH), DRAINING: (DRAIN, HIGH),
            PROBE_BW: (CYCLE[self.phase], 2 * UNIT), PROBE_RTT: (UNIT, UNIT),
        }[self.mode]  # fmt: skip

    # ---- rate and window

    def set_pacing_rate(self, sk, gain):
        rate = self.rate(sk, self.bw(), gain)
        if self.full or rate > sk.sk_pacing_rate:
            sk.sk_pacing_rate = rate

    def set_cwnd(self, sk, rs):
        if rs.acked_sacked:
            cwnd = max(sk.snd_cwnd - rs.losses, 1)
            state = sk.ca_state
            if state == CaState.RECOVERY and self.prev_state != CaState.RECOVERY:
                self.conserve, self.next_round = True, sk.delivered
                cwnd = sk.tcp_packets_in_flight() + rs.acked_sacked
            elif self.prev_state >= CaState.RECOVERY > state:
                self.conserve, cwnd = False, max(cwnd, self.prior_cwnd)
            self.prev_state = state
            if self.conserve:
                cwnd = max(cwnd, sk.tcp_packets_in_flight() + rs.acked_sacked)
            else:
                cwnd = self.approach(sk, cwnd, rs.acked_sacked)
            sk.snd_cwnd = cwnd
        if self.mode == PROBE_RTT:
            sk.snd_cwnd = min(sk.snd_cwnd, 4)

    def target(self, sk):
        return self.inflight(sk, self.cwnd_gain) + (self.extra() if self.full else 0)

    def approach(self, sk, cwnd, acked):
        target = self.target(sk)
        if self.full:
            cwnd = min(cwnd + acked, target)
        elif cwnd < target or sk.delivered < 10:
            cwnd += acked
        return max(cwnd, 4)

    def save_cwnd(self, sk):
        is_low = self.prev_state >= CaState.RECOVERY or self.mode == PROBE_RTT
        self.prior_cwnd = max(self.prior_cwnd, sk.snd_cwnd) if is_low else sk.snd_cwnd

    # ---- hooks

    def ssthresh(self, sk):
        self.save_cwnd(sk)
        return max(sk.snd_ssthresh, 2)

    def cong_control(self, sk, rs):
        self.update_bw(sk, rs)
        self.update_extra(sk, rs)
        if self.mode == PROBE_BW and self.phase_is_over(sk, rs):
            self.next_phase(sk)
        self.check_full(rs)
        self.check_drain(sk)
        self.update_min_rtt(sk, rs)
        self.update_gains()
        self.set_pacing_rate(sk, self.pacing_gain)
        self.set_cwnd(sk, rs)

    def set_state(self, sk, state):
        if state == CaState.LOSS:
            self.prev_state, self.full_bw, self.round_start = CaState.LOSS, 0, True

    def cwnd_event(self, sk, event):
        if event == CaEvent.TX_START:
            self.idle_restart, self.epoch, self.epoch_acked = True, sk.tcp_mstamp, 0
            if self.mode == PROBE_BW:
                self.set_pacing_rate(sk, UNIT)
            elif self.mode == PROBE_RTT:
                self.check_probe_rtt_done(sk)

    def undo_cwnd(self, sk):
        self.full_bw = self.full_rounds = 0
        return max(sk.snd_cwnd, 1)

    def min_tso_segs(self, sk):
        return 1 if sk.sk_pacing_rate < 150_000 else 2


class NoAggregation(Bbr):
    """The window has no room for ACKs that come together."""

    def extra(self):
        return 0


class CountsRetransmissions(Bbr):
    """A rate sample counts what is retransmitted and under way as delivered."""

    def packets(self, sk, rs):
        return rs.delivered + sk.retrans_out


class EndlessUp(Bbr):
    """The phase that probes for more goes on until packets are lost, and its window is not bounded."""

    def up_is_over(self, sk, rs):
        return rs.losses > 0

    def target(self, sk):
        return super().target(sk) if self.pacing_gain <= UNIT else 1 << 20


class KeepsMinRtt(Bbr):
    """The least RTT never ages."""

    def min_rtt_expired(self, sk):
        return False


class TakesAllSamples(Bbr):
    """Samples of an application that paused are rates of the path."""

    def is_sample(self, rs, bw):
        return True
