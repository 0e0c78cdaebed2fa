//! `resume`: Careful Resume, a jump to half of the window of an earlier connection.
//!
//! Source: RFC 9959 (phases, rules and names from memory of its last drafts). Reconnaissance until the initial window is
//! acknowledged; then, if the RTT is like the remembered one, Unvalidated: the window is half of the remembered one, does not
//! grow, and packets are paced through a round trip. Validating begins with the first ACK of such a packet, or after a round
//! trip, with what is in flight as the window. Congestion before the last of them is acknowledged is followed by Safe
//! Retreat: half of PipeSize, which is what was in flight at the jump and was acknowledged since.
//!
//! What is in flight stays below the peer's window: Linux's, whose first is 64 KiB, lets the jump through only in part.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `cwnd` | | the remembered window, in packets |
//! | `rtt` | | the remembered RTT; half of it to ten times is like it |
//!
//! Departures: the window comes down by PRR, from half of PipeSize over the window before. Safe Retreat ends with the first
//! ACK after the recovery. A timeout leads to Normal.
//!
//! Validation: the tests below.

use super::Part;
use crate::base::units::Time;
use crate::cc::sock::{CaState, Pacing, TcpSock};
use crate::cc::{CaEvent, CcError};
use bakeoff_document::cc::CcWords;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Until this byte, the end of the initial window, is acknowledged.
    Reconnaissance {
        end: u64,
    },
    /// From this byte on packets are unvalidated.
    Unvalidated {
        first: u64,
        since: Time,
    },
    /// Until this byte, the end of unvalidated packets, is acknowledged.
    Validating {
        end: u64,
    },
    SafeRetreat {
        end: u64,
    },
    Normal,
}

/// Parameters and state.
pub(super) struct Resume {
    saved_cwnd: u32,
    saved_rtt_us: u64,
    phase: Phase,
    /// PipeSize in packets.
    pipe: u32,
    /// Delivered by the last ACK.
    delivered: u64,
    /// The latest RTT; 0 before the first.
    rtt_us: u64,
    /// Whether pacing is this part's, and not the socket's.
    paces: bool,
}

impl Resume {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords) -> Result<Self, CcError> {
        let (mut cwnd, mut rtt) = (None, None);
        while let Some(parameter) = words.parameter(&["cwnd", "rtt"])? {
            match parameter {
                "cwnd" => cwnd = Some(words.number(1..=1_000_000)?),
                _ => rtt = Some(words.time(Time::from_us(1), Time::from_ms(10_000))?.as_us()),
            }
        }
        match (cwnd, rtt) {
            (Some(saved_cwnd), Some(saved_rtt_us)) => Ok(Resume {
                saved_cwnd,
                saved_rtt_us,
                phase: Phase::Normal,
                pipe: 0,
                delivered: 0,
                rtt_us: 0,
                paces: false,
            }),
            _ => Err(words.error("'resume' needs 'cwnd' and 'rtt', such as cwnd 200 rtt 50ms")),
        }
    }

    /// The initial window is acknowledged: jumps, unless the path is another one or the window is as large already.
    fn confirm(&mut self, tp: &mut TcpSock) {
        let jump = (self.saved_cwnd / 2).min(tp.snd_cwnd_clamp);
        let like = 2 * self.rtt_us >= self.saved_rtt_us && self.rtt_us <= 10 * self.saved_rtt_us;
        self.phase = Phase::Normal;
        if !like || jump <= tp.snd_cwnd || !tp.in_slow_start() {
            return;
        }
        self.phase = Phase::Unvalidated { first: tp.snd_nxt, since: tp.now };
        self.pipe = tp.packets_in_flight();
        tp.snd_cwnd = jump;
        let rate = u64::from(jump) * u64::from(tp.mss) * 1_000_000 / self.rtt_us.max(1);
        tp.pacing_rate = rate.min(tp.max_pacing_rate);
        tp.own_pacing_rate = true;
        self.paces = tp.pacing == Pacing::None;
        tp.request_pacing();
    }

    /// Packets leave by ACKs alone again.
    fn unpace(&mut self, tp: &mut TcpSock) {
        tp.own_pacing_rate = false;
        if std::mem::take(&mut self.paces) {
            tp.pacing = Pacing::None;
        }
    }

    /// Unvalidated packets are acknowledged, or as good as.
    fn validate(&mut self, tp: &mut TcpSock, in_flight: u32) {
        self.unpace(tp);
        if in_flight > self.pipe {
            tp.snd_cwnd = tp.snd_cwnd.min(in_flight);
            self.phase = Phase::Validating { end: tp.snd_nxt };
        } else {
            tp.snd_cwnd = tp.snd_cwnd.min(self.pipe.max(2));
            self.phase = Phase::Normal;
        }
    }
}

impl Part for Resume {
    fn init(&mut self, tp: &mut TcpSock) {
        self.phase = Phase::Reconnaissance { end: tp.snd_nxt + u64::from(tp.snd_cwnd) * u64::from(tp.mss) };
        self.delivered = tp.delivered;
    }

    fn timeout(&mut self, tp: &mut TcpSock) {
        self.unpace(tp);
        self.phase = Phase::Normal;
    }

    fn on_sample(&mut self, _tp: &mut TcpSock, rtt_us: u64) {
        self.rtt_us = rtt_us;
    }

    fn on_ack(&mut self, tp: &mut TcpSock) {
        let before = std::mem::replace(&mut self.delivered, tp.delivered);
        let delivered = (tp.delivered - before) as u32;
        match self.phase {
            Phase::Unvalidated { first, since } => {
                self.pipe = self.pipe.saturating_add(delivered);
                if tp.snd_una > first || (tp.now - since).as_us() > self.rtt_us {
                    self.validate(tp, tp.packets_in_flight().saturating_add(delivered));
                }
            }
            Phase::Validating { end } => {
                self.pipe = self.pipe.saturating_add(delivered);
                if tp.snd_una >= end {
                    self.phase = Phase::Normal;
                }
            }
            Phase::SafeRetreat { end } if tp.ca_state < CaState::Cwr && tp.snd_una >= end => {
                tp.snd_ssthresh = tp.snd_ssthresh.min((self.pipe / 2).max(2));
                self.phase = Phase::Normal;
            }
            Phase::SafeRetreat { .. } => self.pipe = self.pipe.saturating_add(delivered),
            Phase::Reconnaissance { .. } | Phase::Normal => {}
        }
    }

    fn before(&mut self, tp: &mut TcpSock, acked: u32) -> u32 {
        if let Phase::Reconnaissance { end } = self.phase
            && tp.snd_una >= end
            && tp.is_cwnd_limited
            && tp.ca_state == CaState::Open
        {
            self.confirm(tp);
        }
        if matches!(self.phase, Phase::Unvalidated { .. } | Phase::SafeRetreat { .. }) { 0 } else { acked }
    }

    fn reduces(&mut self, tp: &mut TcpSock) {
        self.phase = match self.phase {
            Phase::Unvalidated { .. } => Phase::SafeRetreat { end: tp.snd_nxt },
            Phase::Validating { end } => Phase::SafeRetreat { end },
            _ => {
                self.phase = Phase::Normal;
                return;
            }
        };
        self.unpace(tp);
        // What the control remembers shall be what the path is known to hold.
        tp.snd_cwnd = tp.snd_cwnd.min(self.pipe.max(2));
    }

    fn ssthresh(&mut self, tp: &mut TcpSock, own: u32) -> u32 {
        if !matches!(self.phase, Phase::SafeRetreat { .. }) {
            return own;
        }
        let half = own.min((self.pipe / 2).max(2));
        tp.snd_cwnd = tp.snd_cwnd.min(half);
        half
    }

    fn event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        if event == CaEvent::CwndRestart && !matches!(self.phase, Phase::Reconnaissance { .. }) {
            self.unpace(tp);
            self.phase = Phase::Normal;
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        let phase = match self.phase {
            Phase::Reconnaissance { .. } => 0.0,
            Phase::Unvalidated { .. } => 1.0,
            Phase::Validating { .. } => 2.0,
            Phase::SafeRetreat { .. } => 3.0,
            Phase::Normal => 4.0,
        };
        vec![("resume_phase", phase), ("pipe_size", self.pipe.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    /// 200 packets and 50 ms are remembered; the initial window was acknowledged as doubling has it, 18 are in flight.
    fn confirmed(rtt_us: u64) -> (Resume, TcpSock) {
        let Ok(mut part) = Resume::parse(&mut CcWords::new("resume cwnd 200 rtt 50ms")) else {
            panic!("refused")
        };
        let mut tp = TcpSock::new(1448, 1000);
        part.init(&mut tp);
        tp.is_cwnd_limited = true;
        tp.snd_una = 10 * MSS;
        tp.snd_cwnd = 18;
        tp.snd_nxt = 26 * MSS;
        tp.packets_out = 16;
        deliver(&mut part, &mut tp, 2, rtt_us);
        (part, tp)
    }

    /// Packets are delivered by an ACK in a sequence without holes, `us` after the one before.
    fn deliver(part: &mut Resume, tp: &mut TcpSock, packets: u32, rtt_us: u64) -> u32 {
        tp.delivered += u64::from(packets);
        part.on_sample(tp, rtt_us);
        part.on_ack(tp);
        part.before(tp, packets)
    }

    #[test]
    fn half_of_the_window_is_paced_through_a_round_trip_once_the_initial_window_is_acknowledged() {
        let (part, tp) = confirmed(50_000);
        assert_eq!(part.phase, Phase::Unvalidated { first: 26 * MSS, since: Time::ZERO });
        assert_eq!((tp.snd_cwnd, part.pipe), (100, 16));
        // 100 * 1448 B / 50 ms
        assert_eq!((tp.pacing, tp.pacing_rate, tp.own_pacing_rate), (Pacing::Needed, 2_896_000, true));

        let (mut part, mut tp) = confirmed(50_000);
        part.init(&mut TcpSock::new(1448, 1000));
        (tp.snd_una, tp.snd_cwnd) = (10 * MSS - 1, 18);
        assert_eq!(deliver(&mut part, &mut tp, 1, 50_000), 1, "a byte is missing");
        assert_eq!(tp.snd_cwnd, 18);
        (tp.snd_una, tp.is_cwnd_limited) = (12 * MSS, false);
        assert_eq!(deliver(&mut part, &mut tp, 1, 50_000), 1, "the application limits: it waits");
        assert_eq!(part.phase, Phase::Reconnaissance { end: 10 * MSS });
    }

    #[test]
    fn the_rtt_must_be_between_half_and_ten_times_the_remembered_one() {
        for (rtt_us, jumps) in [(24_999, false), (25_000, true), (500_000, true), (500_001, false)] {
            let (part, tp) = confirmed(rtt_us);
            assert_eq!((tp.snd_cwnd == 100, part.phase == Phase::Normal), (jumps, !jumps), "{rtt_us}");
        }
    }

    #[test]
    fn the_window_stays_until_an_unvalidated_packet_is_acknowledged_and_is_then_what_is_in_flight() {
        let (mut part, mut tp) = confirmed(50_000);
        tp.snd_nxt = 112 * MSS;
        tp.packets_out = 98;
        tp.snd_una = 26 * MSS;
        assert_eq!(deliver(&mut part, &mut tp, 14, 50_000), 0);
        assert_eq!((tp.snd_cwnd, part.pipe), (100, 30));
        (tp.snd_una, tp.packets_out) = (28 * MSS, 96);
        // 96 and the two of this ACK
        assert_eq!(deliver(&mut part, &mut tp, 2, 50_000), 2);
        assert_eq!((tp.snd_cwnd, part.pipe, part.phase), (98, 32, Phase::Validating { end: 112 * MSS }));
        assert_eq!((tp.pacing, tp.own_pacing_rate), (Pacing::None, false));
        tp.snd_una = 112 * MSS;
        deliver(&mut part, &mut tp, 1, 50_000);
        assert_eq!(part.phase, Phase::Normal);
    }

    #[test]
    fn a_round_trip_is_all_there_is_and_a_flow_that_did_not_use_it_goes_on_with_what_was_acknowledged() {
        let (mut part, mut tp) = confirmed(50_000);
        tp.now = Time::from_us(50_000);
        tp.packets_out = 16;
        deliver(&mut part, &mut tp, 2, 50_000);
        assert!(matches!(part.phase, Phase::Unvalidated { .. }));
        tp.now = Time::from_us(50_001);
        tp.packets_out = 14;
        // in flight 14 + 2, PipeSize 16 + 2 + 2
        deliver(&mut part, &mut tp, 2, 50_000);
        assert_eq!((tp.snd_cwnd, part.phase), (20, Phase::Normal));
    }

    #[test]
    fn congestion_leads_to_half_of_what_the_path_was_seen_to_hold() {
        let (mut part, mut tp) = confirmed(50_000);
        tp.snd_nxt = 112 * MSS;
        tp.packets_out = 90;
        deliver(&mut part, &mut tp, 24, 50_000);
        // 16 + 24
        part.reduces(&mut tp);
        assert_eq!((tp.snd_cwnd, tp.pacing), (40, Pacing::None));
        // Reno's half of 40, CUBIC's 28: not more than 20
        for own in [20, 28] {
            assert_eq!(part.ssthresh(&mut tp, own), 20);
        }
        assert_eq!(tp.snd_cwnd, 20);
        tp.snd_ssthresh = 20;
        tp.ca_state = CaState::Recovery;
        for (una, delivered) in [(60, 6), (112, 10)] {
            tp.snd_una = una * MSS;
            deliver(&mut part, &mut tp, delivered, 50_000);
            assert_eq!(tp.snd_ssthresh, 20);
        }
        tp.ca_state = CaState::Open;
        tp.snd_ssthresh = 100;
        tp.snd_una = 111 * MSS;
        assert_eq!(deliver(&mut part, &mut tp, 0, 50_000), 0, "no growth in Safe Retreat");
        tp.snd_una = 112 * MSS;
        assert_eq!(deliver(&mut part, &mut tp, 3, 50_000), 3);
        // (40 + 6 + 10) / 2
        assert_eq!((tp.snd_ssthresh, part.phase), (28, Phase::Normal));
    }

    #[test]
    fn congestion_before_the_jump_or_a_timeout_ends_it() {
        let (mut part, mut tp) = confirmed(50_000);
        part.timeout(&mut tp);
        assert_eq!((part.phase, tp.own_pacing_rate), (Phase::Normal, false));
        part.init(&mut tp);
        part.reduces(&mut tp);
        assert_eq!((part.phase, part.ssthresh(&mut tp, 9)), (Phase::Normal, 9));
    }
}
