"""Reno (RFC 5681) as Linux has it, written as a user's own congestion control."""


class Reno:
    def ssthresh(self, sk):
        """After a loss or a congestion echo: half, at least 2."""
        return max(sk.snd_cwnd // 2, 2)

    def cong_avoid(self, sk, acked):
        """Growth: `acked` packets were delivered."""
        if not sk.tcp_is_cwnd_limited():
            return
        if sk.snd_cwnd < sk.snd_ssthresh:
            cwnd = min(sk.snd_cwnd + acked, sk.snd_ssthresh)
            acked -= cwnd - sk.snd_cwnd
            sk.snd_cwnd = cwnd
            if not acked:
                return
        # One packet more per window of packets, in whole numbers as in the kernel.
        window = sk.snd_cwnd
        if sk.snd_cwnd_cnt >= window:
            sk.snd_cwnd_cnt = 0
            sk.snd_cwnd += 1
        grown, sk.snd_cwnd_cnt = divmod(sk.snd_cwnd_cnt + acked, window)
        sk.snd_cwnd += grown

    def trace(self):
        """What --trace cc keeps besides the window and the threshold: Reno has no state of its own."""
        return {}
