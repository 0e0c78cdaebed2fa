"""Prague of November 2019 (L4STeam/linux, testing/5-11-2019), and defects of it. defects.yaml says what is wrong."""

from bakeoff.cc import CaState

ONE = 1 << 31


class Prague:
    """Healthy, as the simulator's `prague@2019-11`: alpha, one reduction per round, half after a loss, paced."""

    needs_ecn = True
    ect1 = True
    paced = True

    def __init__(self):
        self.alpha, self.saw_ce, self.lost, self.burst = ONE, False, False, 2

    def init(self, sk):
        sk.sk_pacing_needed = self.paced
        self.new_round(sk)

    def new_round(self, sk):
        self.next_seq, self.old = sk.snd_nxt, (sk.delivered, sk.delivered_ce)

    def end_round(self, sk):
        delivered, marked = sk.delivered - self.old[0], sk.delivered_ce - self.old[1]
        self.saw_ce |= marked > 0
        if self.saw_ce:
            fraction = min((marked << 31) // max(delivered, 1), ONE)
            self.alpha += (fraction >> 4) - (self.alpha >> 4)
        self.new_round(sk)

    def ssthresh(self, sk):
        return max(sk.snd_ssthresh, 2)

    def cong_control(self, sk, rs):
        if not rs.is_ece and rs.acked_sacked and sk.tcp_is_cwnd_limited():
            acked = rs.acked_sacked
            if sk.tcp_in_slow_start():
                acked = sk.tcp_slow_start(acked)
            if acked:
                sk.tcp_cong_avoid_ai(sk.snd_cwnd, acked)
        if sk.snd_una >= self.next_seq:
            self.end_round(sk)
        self.pace(sk)

    def pace(self, sk):
        window = max(sk.snd_cwnd, sk.packets_out)
        rate = sk.mss_cache * 8_000_000 // max(sk.srtt_us, 1) * window
        if sk.snd_cwnd < sk.snd_ssthresh // 2:
            rate *= 2
        elif sk.packets_out < sk.snd_cwnd:
            rate += rate * (1 + sk.packets_out) // max(sk.snd_cwnd, sk.tcp_packets_in_flight())
        sk.sk_pacing_rate = max(rate, 1)
        self.burst = max((rate >> 12) // sk.mss_cache, 2)

    def on_mark(self, sk):
        cut = (self.alpha * sk.snd_cwnd + ONE) >> 32
        sk.snd_cwnd = sk.snd_ssthresh = max(sk.snd_cwnd - cut, 2)

    def on_loss(self, sk):
        self.lost = True
        sk.snd_ssthresh = max(sk.snd_cwnd // 2, 2)

    def set_state(self, sk, state):
        if state == sk.ca_state:
            return
        if state == CaState.CWR:
            self.on_mark(sk)
        elif state == CaState.RECOVERY:
            self.on_loss(sk)
        elif state == CaState.LOSS and sk.ca_state < CaState.RECOVERY:
            sk.snd_ssthresh = max(sk.prior_cwnd // 2, 2)
        elif state == CaState.OPEN and self.lost:
            self.lost = False
            sk.snd_cwnd = max(min(sk.snd_cwnd, sk.snd_ssthresh), 2)

    def tso_segs(self, sk):
        return self.burst


class IgnoresLoss(Prague):
    """Fast recovery does not reduce."""

    def on_loss(self, sk):
        pass


class Unpaced(Prague):
    """The window leaves as fast as ACKs arrive."""

    paced = False
