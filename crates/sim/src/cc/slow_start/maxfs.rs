//! `validation maxfs`: the window grows to at most twice what was in flight.
//!
//! Source: draft-ietf-ccwg-ratelimited-increase (235b6eb). maxFS is the most in flight since the window was last reduced.
//! Where the window was not full, slow start stops at 2 maxFS and avoidance at the packet after maxFS. The window does not
//! shrink for want of use.
//!
//! Departures: a window that was full counts as full for a round trip, as in Linux. In avoidance an ACK may raise the window
//! while it is not above maxFS, which is Reno's limit; other controls exceed maxFS by what they grow in one ACK.
//!
//! Validation: the tests below, with the draft's appendix.

use super::Part;
use crate::cc::CaEvent;
use crate::cc::sock::{CaState, TcpSock};

pub(super) struct MaxFs {
    /// 0 after a reduction.
    max_fs: u32,
    /// The sender's own `is_cwnd_limited` while the control grows, and the bound of its growth.
    held: Option<(bool, u32)>,
}

impl MaxFs {
    pub fn new() -> Self {
        MaxFs { max_fs: 0, held: None }
    }
}

impl Part for MaxFs {
    fn init(&mut self, tp: &mut TcpSock) {
        tp.keeps_unused = true;
        self.max_fs = tp.snd_cwnd;
    }

    fn timeout(&mut self, _tp: &mut TcpSock) {
        self.max_fs = 0;
    }

    fn reduces(&mut self, _tp: &mut TcpSock) {
        self.max_fs = 0;
    }

    fn event(&mut self, _tp: &mut TcpSock, event: CaEvent) {
        if event != CaEvent::TxStart {
            self.max_fs = 0;
        }
    }

    fn sent(&mut self, tp: &mut TcpSock) {
        // In a reduction the window still comes down.
        if !matches!(tp.ca_state, CaState::Cwr | CaState::Recovery) {
            self.max_fs = self.max_fs.max(tp.packets_in_flight());
        }
    }

    fn before(&mut self, tp: &mut TcpSock, acked: u32) -> u32 {
        if tp.is_cwnd_limited {
            return acked;
        }
        if self.max_fs == 0 {
            self.max_fs = tp.packets_in_flight().saturating_add(acked);
        }
        let twice = self.max_fs.saturating_mul(2);
        let grows = if tp.in_slow_start() { tp.snd_cwnd < twice } else { tp.snd_cwnd <= self.max_fs };
        if !grows {
            return 0;
        }
        self.held = Some((tp.is_cwnd_limited, twice.max(tp.snd_cwnd)));
        tp.is_cwnd_limited = true;
        acked
    }

    fn after(&mut self, tp: &mut TcpSock) {
        if let Some((limited, bound)) = self.held.take() {
            tp.is_cwnd_limited = limited;
            tp.snd_cwnd = tp.snd_cwnd.min(bound);
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("max_fs", self.max_fs.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::reno::Reno;

    fn ack(part: &mut MaxFs, tp: &mut TcpSock) -> u32 {
        tp.packets_out -= 1;
        let seen = part.before(tp, 1);
        if seen > 0 {
            Reno::grow(tp, seen);
        }
        part.after(tp);
        tp.snd_cwnd
    }

    /// A round of `packets`, each acknowledged by itself: the window after each ACK.
    fn round(part: &mut MaxFs, tp: &mut TcpSock, packets: u32) -> Vec<u32> {
        for _ in 0..packets {
            tp.packets_out += 1;
            part.sent(tp);
        }
        tp.is_cwnd_limited = packets >= tp.snd_cwnd;
        tp.max_packets_out = packets;
        (0..packets).map(|_| ack(part, tp)).collect()
    }

    fn new() -> (MaxFs, TcpSock) {
        let (mut part, mut tp) = (MaxFs::new(), TcpSock::new(1000, 1000));
        part.init(&mut tp);
        assert!(tp.keeps_unused && !tp.keeps_idle);
        (part, tp)
    }

    #[test]
    fn the_drafts_appendix() {
        let (mut part, mut tp) = new();
        // packets of the round; maxFS; window after the first and the last ACK
        for (packets, max_fs, first, last) in
            [(4, 10, 11, 14), (8, 10, 15, 20), (4, 10, 20, 20), (20, 20, 21, 40)]
        {
            let windows = round(&mut part, &mut tp, packets);
            assert_eq!(
                (windows[0], windows[windows.len() - 1], part.max_fs),
                (first, last, max_fs),
                "{windows:?}"
            );
            if packets == 8 {
                assert_eq!(windows[4..], [19, 20, 20, 20], "2 maxFS at the sixth ACK");
            }
        }
    }

    #[test]
    fn ten_segments_and_then_four_make_20() {
        let (mut part, mut tp) = new();
        round(&mut part, &mut tp, 10);
        assert_eq!(round(&mut part, &mut tp, 4).last(), Some(&20), "unconstrained 24");
    }

    #[test]
    fn avoidance_goes_one_beyond_what_was_in_flight() {
        let (mut part, mut tp) = new();
        (tp.snd_cwnd, tp.snd_ssthresh, part.max_fs) = (12, 6, 12);
        // 12 ACKs of 1/12 packet; then 13 for ever
        for window in [13, 13, 13] {
            for _ in 0..12 {
                tp.packets_out += 1;
                part.sent(&mut tp);
            }
            tp.is_cwnd_limited = false;
            for _ in 0..12 {
                ack(&mut part, &mut tp);
            }
            assert_eq!(tp.snd_cwnd, window);
        }
    }

    #[test]
    fn a_window_that_was_cut_to_20_with_12_in_flight_grows_once_20_are() {
        let (mut part, mut tp) = new();
        part.max_fs = 40;
        part.reduces(&mut tp);
        (tp.snd_cwnd, tp.snd_ssthresh) = (20, 20);
        tp.ca_state = CaState::Cwr;
        tp.packets_out = 30;
        part.sent(&mut tp);
        assert_eq!(part.max_fs, 0, "the window still comes down");
        tp.ca_state = CaState::Open;
        tp.packets_out = 0;
        for _ in 0..5 {
            assert_eq!(round(&mut part, &mut tp, 12).last(), Some(&20));
        }
        assert_eq!(round(&mut part, &mut tp, 20).last(), Some(&21));
        // in slow start to 2 * 12
        part.timeout(&mut tp);
        (tp.snd_cwnd, tp.snd_ssthresh) = (20, 100);
        assert_eq!(round(&mut part, &mut tp, 12).last(), Some(&24));
    }
}
