"""Congestion controls of a user, as the text of a file: Reno, and one that fails."""

CONTROLS = """\
class Reno:
    def ssthresh(self, sk):
        return max(sk.snd_cwnd // 2, 2)

    def cong_avoid(self, sk, acked):
        if sk.tcp_in_slow_start():
            acked = sk.tcp_slow_start(acked)
        if acked:
            sk.tcp_cong_avoid_ai(sk.snd_cwnd, acked)


class Raises(Reno):
    def cong_avoid(self, sk, acked):
        return 1 // 0
"""
