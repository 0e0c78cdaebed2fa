"""Reno (RFC 5681) as Linux 7.3 has it, and defects of it. defects.yaml says what is wrong."""

from bakeoff.cc import CaEvent, CaState


class Reno:
    """Healthy, as the simulator's `reno`."""

    def ssthresh(self, sk):
        return max(sk.snd_cwnd // 2, 2)

    def may_grow(self, sk):
        return sk.tcp_is_cwnd_limited()

    def cong_avoid(self, sk, acked):
        if not self.may_grow(sk):
            return
        if sk.tcp_in_slow_start():
            acked = sk.tcp_slow_start(acked)
        if acked:
            sk.tcp_cong_avoid_ai(sk.snd_cwnd, acked)


class EcnFactor(Reno):
    """An echo of CE leaves so many per cent of the window; losses halve it."""

    ece = False

    def __init__(self, percent=100):
        self.percent = percent

    def in_ack_event(self, sk, ece):
        self.ece = ece

    def ssthresh(self, sk):
        return max(sk.snd_cwnd * self.percent // 100, 2) if self.ece else super().ssthresh(sk)


class EveryEcho(Reno):
    """Each ACK with an echo halves again, not one per round trip."""

    def in_ack_event(self, sk, ece):
        if ece and sk.ca_state == CaState.CWR:
            sk.snd_ssthresh = max(sk.snd_ssthresh // 2, 2)


class NeverBelow10(Reno):
    """Ten packets are the least window, after a timeout too."""

    def ssthresh(self, sk):
        return max(super().ssthresh(sk), 10)

    def in_ack_event(self, sk, ece):
        sk.snd_cwnd = max(sk.snd_cwnd, 10)

    def set_state(self, sk, state):
        sk.snd_cwnd = max(sk.snd_cwnd, 10)


class NoValidation(Reno):
    """A window that is not used grows too."""

    def may_grow(self, sk):
        return True


class StretchAcks(Reno):
    """An ACK counts as one packet, however many it acknowledges."""

    def cong_avoid(self, sk, acked):
        super().cong_avoid(sk, 1)


class TwoPerPacket(Reno):
    """Slow start adds two packets for each that is acknowledged."""

    def cong_avoid(self, sk, acked):
        super().cong_avoid(sk, 2 * acked if sk.tcp_in_slow_start() else acked)


class KeepsIdleWindow(Reno):
    """Silence does not lower the window: all of it is sent at once afterwards."""

    kept = 0

    def cwnd_event(self, sk, event):
        if event == CaEvent.CWND_RESTART:
            self.kept = sk.snd_cwnd
        elif event == CaEvent.TX_START and self.kept:
            sk.snd_cwnd, self.kept = max(sk.snd_cwnd, self.kept), 0


class TimeoutHalves(Reno):
    """A timeout is answered as any loss: half of the window, not one packet."""

    def set_state(self, sk, state):
        if state == CaState.LOSS:
            sk.snd_cwnd = max(sk.snd_cwnd, sk.snd_ssthresh)


class ZeroWindow(Reno):
    """A reduction sets the window to what is in flight, which can be nothing."""

    def in_ack_event(self, sk, ece):
        if sk.ca_state in (CaState.CWR, CaState.RECOVERY):
            sk.snd_cwnd = sk.tcp_packets_in_flight()
