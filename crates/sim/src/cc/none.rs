//! `none`: no congestion control, a fixed window. For calibration: what the network does to a source that
//! does not answer.
//!
//! Source: none; the window of a sliding-window protocol.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `cwnd` | 10 | packets, 1 to 1000000 |
//!
//! Departures: none known. Losses are repaired as for any TCP, but for the window: neither loss nor echoes nor timeouts
//! change it. Nothing is paced unless the flow has a maximum pacing rate.
//!
//! Validation: the tests below, `tests/bbr_runs.rs` (a window over a round-trip time).

use super::{CcEnv, CcError, CongestionControl, RateSample};
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// The window.
pub struct Fixed {
    cwnd: u32,
}

impl Fixed {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut c = Fixed { cwnd: 10 };
        while words.parameter(&["cwnd"])?.is_some() {
            c.cwnd = words.number(1..=1_000_000)?;
        }
        Ok(c)
    }
}

impl CongestionControl for Fixed {
    fn init(&mut self, tp: &mut TcpSock) {
        tp.snd_cwnd = self.cwnd;
    }

    fn ssthresh(&mut self, _tp: &mut TcpSock) -> u32 {
        self.cwnd.max(2)
    }

    fn has_cong_control(&self) -> bool {
        true
    }

    fn cong_control(&mut self, tp: &mut TcpSock, _sample: &RateSample) {
        tp.snd_cwnd = self.cwnd;
        tp.update_pacing_rate(200, 120);
    }

    fn undo_cwnd(&mut self, _tp: &mut TcpSock) -> u32 {
        self.cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_was_asked_for_whatever_happens() {
        let Ok(mut none) = Fixed::parse(&mut CcWords::new("none cwnd 37"), CcEnv::default()) else {
            panic!("refused");
        };
        let mut tp = TcpSock::new(1448, 250);
        none.init(&mut tp);
        assert_eq!(tp.snd_cwnd, 37);
        // what an RTO leaves lasts until the next ACK
        tp.snd_cwnd = 1;
        none.cong_control(&mut tp, &RateSample { acked_sacked: 1, losses: 5, ..RateSample::default() });
        assert_eq!((tp.snd_cwnd, none.ssthresh(&mut tp), none.undo_cwnd(&mut tp)), (37, 37, 37));
    }
}
