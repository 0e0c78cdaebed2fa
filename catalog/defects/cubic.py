"""CUBIC (RFC 9438) as Linux 7.3 has it, and defects of it. defects.yaml says what is wrong."""

from bakeoff.cc import CaEvent, CaState


class Cubic:
    """Healthy, as the simulator's `cubic`, HyStart included. Time is in jiffies, K in 1/1024 s."""

    beta = 717

    def init(self, sk):
        self.reset()
        self.restart_hystart(sk)

    def reset(self):
        self.cnt = self.max = self.last_cwnd = self.last_time = self.origin = self.k = 0
        self.delay_min = self.ack_cnt = self.tcp_cwnd = 0
        self.epoch = None

    # ---- HyStart

    def restart_hystart(self, sk):
        self.found = False
        self.new_round(sk)

    def new_round(self, sk):
        self.round_start = self.last_ack = sk.tcp_mstamp
        self.end_seq, self.curr_rtt, self.samples = sk.snd_nxt, 1 << 63, 0

    def hystart(self, sk, delay):
        if self.found:
            return
        if sk.snd_una > self.end_seq:
            self.new_round(sk)
        if sk.snd_cwnd < 16:
            return
        now = sk.tcp_mstamp
        if now - self.last_ack <= 2000:
            self.last_ack = now
            length = self.delay_min + min(65536 * 4 * 1_000_000 // max(sk.sk_pacing_rate, 1), 1000)
            self.found = now - self.round_start > (length if sk.sk_pacing_needed else length >> 1)
        self.curr_rtt = min(self.curr_rtt, delay)
        if self.samples < 8:
            self.samples += 1
        elif self.curr_rtt > self.delay_min + min(max(self.delay_min >> 3, 4000), 16000):
            self.found = True
        if self.found:
            sk.snd_ssthresh = max(sk.snd_cwnd, 2)

    def pkts_acked(self, sk, acked, rtt_us):
        if rtt_us is None or (self.epoch is not None and sk.tcp_jiffies32() - self.epoch < sk.hz):
            return
        delay = max(rtt_us, 1)
        if not 0 < self.delay_min <= delay:
            self.delay_min = delay
        if sk.tcp_in_slow_start():
            self.hystart(sk, delay)

    # ---- the curve

    def start_epoch(self, cwnd, acked, now):
        self.epoch, self.ack_cnt, self.tcp_cwnd = now, acked, cwnd
        self.k = cube_root(max(self.max - cwnd, 0) * ((1 << 40) // 410))
        self.origin = max(self.max, cwnd)

    def update(self, sk, acked):
        cwnd, now = sk.snd_cwnd, sk.tcp_jiffies32()
        self.ack_cnt += acked
        if self.last_cwnd == cwnd and now - self.last_time <= sk.hz // 32:
            return
        if self.epoch is None or now != self.last_time:
            self.last_cwnd, self.last_time = cwnd, now
            if self.epoch is None:
                self.start_epoch(cwnd, acked, now)
            t = ((now - self.epoch - -self.delay_min * sk.hz // 1_000_000) << 10) // sk.hz
            delta = 410 * abs(t - self.k) ** 3 >> 40
            target = self.origin + (delta if t >= self.k else -delta)
            self.cnt = cwnd // (target - cwnd) if target > cwnd else cwnd * 100
            if self.max == 0:
                self.cnt = min(self.cnt, 20)
        self.follow_aimd(cwnd, 8 * (1024 + self.beta) // 3 // (1024 - self.beta))
        self.cnt = max(self.cnt, 2)

    def follow_aimd(self, cwnd, scale):
        per_packet = max(cwnd * scale >> 3, 1)
        if self.ack_cnt > per_packet:
            packets = (self.ack_cnt - 1) // per_packet
            self.ack_cnt -= packets * per_packet
            self.tcp_cwnd += packets
        if self.tcp_cwnd > cwnd:
            self.cnt = min(self.cnt, cwnd // (self.tcp_cwnd - cwnd))

    def cong_avoid(self, sk, acked):
        if not sk.tcp_is_cwnd_limited():
            return
        if sk.tcp_in_slow_start():
            acked = sk.tcp_slow_start(acked)
        if acked:
            self.update(sk, acked)
            sk.tcp_cong_avoid_ai(self.cnt, acked)

    # ---- reductions and silence

    def end_epoch(self):
        self.epoch = None

    def ssthresh(self, sk):
        self.end_epoch()
        cwnd = sk.snd_cwnd
        self.max = cwnd * (1024 + self.beta) // 2048 if cwnd < self.max else cwnd
        return max(cwnd * self.beta // 1024, 2)

    def set_state(self, sk, state):
        if state == CaState.LOSS:
            self.reset()
            self.restart_hystart(sk)

    def cwnd_event(self, sk, event):
        if event == CaEvent.TX_START and self.epoch is not None:
            now = sk.tcp_jiffies32()
            self.epoch = min(self.epoch + max(now - sk.lsndtime * sk.hz // 1_000_000, 0), now)


def cube_root(x):
    """Rounded down."""
    root = round(x ** (1 / 3))
    while root**3 > x:
        root -= 1
    while (root + 1) ** 3 <= x:
        root += 1
    return root


class CountsIdle(Cubic):
    """Silence counts as time on the curve."""

    def cwnd_event(self, sk, event):
        pass


class KeepsEpoch(Cubic):
    """A reduction does not begin a new curve."""

    def end_epoch(self):
        pass


class TwoConnections(Cubic):
    """Behaves as two connections: beta 0.85, and an AIMD flow that grows at four times the rate for this beta."""

    beta = 870

    def follow_aimd(self, cwnd, scale):
        super().follow_aimd(cwnd, scale // 4)


class MovesRecovery(Cubic):
    """What was sent before the last reduction grows nothing, and each send with nothing in flight, counted as the end of
    a silence, moves that time to the present: a window so small that it empties every round trip never grows again."""

    recovery = rtt = 0

    def ssthresh(self, sk):
        self.recovery = sk.tcp_mstamp
        return super().ssthresh(sk)

    def cwnd_event(self, sk, event):
        super().cwnd_event(sk, event)
        if event == CaEvent.TX_START and self.recovery:
            self.recovery += sk.tcp_mstamp - sk.lsndtime

    def pkts_acked(self, sk, acked, rtt_us):
        super().pkts_acked(sk, acked, rtt_us)
        self.rtt = rtt_us or 0

    def cong_avoid(self, sk, acked):
        if sk.tcp_mstamp - self.rtt > self.recovery:
            super().cong_avoid(sk, acked)
