//! The handshake of an [`Endpoint`]: SYN, SYN/ACK, their options and repetitions, and the connection that comes of it.

use bakeoff_document::units::Time;
use bakeoff_sim::base::rng::Stream;
use bakeoff_sim::cc::{Cc, CcEnv, CongestionControl};
use bakeoff_sim::packet::{Ecn, Packet};
use bakeoff_sim::tcp::ecn::{Mode, Policy, Sysctls};
use bakeoff_sim::tcp::handshake::{
    Agreement, ReceiverSetup, Repetition, ack_field, needs_of, syn_ace, synack_ace,
};
use bakeoff_sim::tcp::receive_window::Buffer;
use bakeoff_sim::tcp::sack_compression::CompSack;
use bakeoff_sim::tcp::sender::SenderSetup;

use crate::accecn;
use crate::endpoint::{Endpoint, LOCAL_MSS, Sent, State};
use crate::opening::{Cause, Handshake, Peer, local_scale};
use crate::segment::{Flags, Opt, Segment};
use crate::sysctl::RMEM_MAX;

/// The frequency of the kernel that the scripts were written for (`config`).
const HZ: u64 = 1000;

/// `TCP_MAX_WSCALE`
const LARGEST_SCALE: u32 = 14;

impl Endpoint {
    pub(super) fn congestion_control(&self) -> Result<Cc, String> {
        let env = CcEnv { rng: Stream::new(1, "cc/packetdrill"), now: Time::ZERO };
        Cc::build(&self.settings.congestion_control, env).map_err(|e| e.to_string())
    }

    pub(super) fn on_syn(&mut self, segment: &Segment, now: Time) -> Result<(), String> {
        self.learn(segment);
        let (field, needs) = (segment.ecn.unwrap_or_default(), needs_of(&self.congestion_control()?));
        self.mode = Policy(self.settings.ecn).accept(segment.ace, field, needs);
        self.state = State::SynReceived;
        self.handshake = Some(Handshake::new(Repetition::of_synack(now, self.longest_timeout()), field));
        self.syn_field = field;
        self.send_syn(now, Cause::First);
        Ok(())
    }

    /// The peer's SYN again: it has not got our SYN/ACK.
    pub(super) fn on_syn_again(&mut self, segment: &Segment, now: Time) {
        if let Some(handshake) = self.handshake.as_mut().filter(|_| self.mode == Mode::AccEcn) {
            handshake.field = segment.ecn.unwrap_or_default();
            handshake.resent += 1;
            self.syn_field = handshake.field;
            if segment.ace == 0 {
                self.accecn.failures |= accecn::ACE_FAIL_RECV;
            }
            if handshake.resent > 1 {
                self.accecn.failures |= accecn::ACE_FAIL_SEND;
            }
        }
        self.send_syn(now, Cause::Asked);
    }

    /// Takes the options of the peer's SYN or SYN/ACK.
    pub(super) fn learn(&mut self, segment: &Segment) {
        self.peer = Peer { mss: 536, ..Peer::default() };
        for option in segment.options.iter().flatten() {
            match option {
                Opt::Mss(mss) if *mss > 0 => self.peer.mss = *mss,
                Opt::WindowScale(scale) => self.peer.scale = Some((*scale).min(LARGEST_SCALE)),
                Opt::SackOk => self.peer.sack = self.settings.sender.sack,
                Opt::Timestamp(val, _) => {
                    self.peer.timestamps = self.settings.timestamps;
                    self.ts_recent = *val;
                }
                _ => {}
            }
        }
    }

    /// Sends the SYN, or the SYN/ACK.
    pub(super) fn send_syn(&mut self, now: Time, cause: Cause) {
        let again = cause != Cause::First;
        let answer = self.state == State::SynReceived;
        let timestamps = if answer { self.peer.timestamps } else { self.settings.timestamps };
        let mut options = vec![Opt::Mss(LOCAL_MSS)];
        let sack = if answer { self.peer.sack } else { self.settings.sender.sack };
        if sack && timestamps {
            options.push(Opt::SackOk);
        }
        if timestamps {
            options.push(Opt::Timestamp(now.as_ms() as u32, self.ts_recent));
        }
        if answer && self.mode == Mode::AccEcn && self.settings.ecn_option > 0 && !again {
            options.push(accecn::initial_option());
        }
        // Without timestamps it takes the place of the padding of what follows.
        if sack && !timestamps {
            options.push(Opt::SackOk);
        }
        if !answer || self.peer.scale.is_some() {
            options.push(Opt::WindowScale(local_scale()));
        }
        let syn = Handshake::new(Repetition::of_syn(now, self.longest_timeout()), Ecn::NotEct);
        let handshake = self.handshake.get_or_insert(syn);
        let timeouts = handshake.repetition.timeouts;
        let slack = if cause == Cause::Timer { wheel_slack(now - handshake.sent) } else { Time::ZERO };
        handshake.sent = now;
        let ace = if answer {
            synack_ace(self.mode, handshake.field, timeouts)
        } else {
            syn_ace(self.mode, timeouts, self.settings.ecn_fallback)
        };
        let segment = Segment {
            ecn: Some(Ecn::NotEct),
            flags: Flags { syn: true, ack: answer, ..Flags::default() },
            ace,
            ack: u32::from(answer),
            window: Some(65535),
            options: Some(options),
            ..Segment::default()
        };
        self.sent.push_back(Sent { at: now, slack, segment });
    }

    /// The handshake is done; `window` in bytes; `marked`: we are a client to which CE on the SYN/ACK counts.
    pub(super) fn establish(&mut self, window: u32, marked: bool, now: Time) -> Result<(), String> {
        self.state = State::Established;
        self.max_window = window.into();
        self.last_data = now;
        let cc = self.congestion_control()?;
        let rtt = self.handshake.take().map_or(Time::ZERO, |h| now - h.repetition.begun);
        let ect = ack_field(self.mode, &cc);
        self.ect = ect;
        let agreement = Agreement {
            mode: self.mode,
            accecn_option: self.option_level() > 0,
            sack: self.peer.sack,
            timestamps: self.peer.timestamps,
        };
        let sysctls = Sysctls {
            option: self.settings.ecn_option,
            beacon: self.settings.ecn_option_beacon,
            ..Sysctls::default()
        };
        let mut receiver = agreement.receiver(ReceiverSetup {
            template: Packet { ecn: ect, ..Packet::default() },
            sysctls: &sysctls,
            state_changes: cc.tells_state_changes(),
            mss: self.mss(),
            hz: HZ,
            buffer: Buffer { most: RMEM_MAX, ..Buffer::default() },
            compression: CompSack::default(),
        });
        receiver.handshake_took(rtt);
        receiver.feedback_mut().after_handshake(self.syn_field, marked);
        let setup = SenderSetup {
            template: Packet::default(),
            mode: self.mode,
            option: agreement.option_clock(&sysctls),
            sce_pacing: false,
            mss: self.mss(),
            hz: HZ,
            ss_ratio: self.settings.pacing_ratios.0,
            ca_ratio: self.settings.pacing_ratios.1,
            // Pacing by fq has no rate limit of its own.
            max_pacing_rate: self.settings.fq.then_some(u64::MAX),
            fq: false,
            gso: false,
            single_segments: false,
            charges: None,
            // The virtual clock may stand still over a handshake; a real one does not.
            handshake_rtt: rtt.max(Time::from_us(1)),
            sysctl: self.settings.sender,
        };
        self.sender = Some(agreement.sender(setup, cc, u64::from(window), now));
        self.receiver = Some(receiver);
        self.update_option();
        Ok(())
    }

    fn longest_timeout(&self) -> Time {
        Time::from_ms(self.settings.rto_max_ms)
    }

    /// The ACK that ends a client's handshake tells with which ECN field the SYN/ACK arrived.
    pub(super) fn send_handshake_ack(&mut self, field: Ecn, now: Time) {
        let ace = (self.mode == Mode::AccEcn).then(|| accecn::ace_of(field));
        self.send_bare_ack(ace, now);
    }
}

/// By how much a timer may be late that was set for `timeout`: the kernel's wheel has coarser slots the later they are
/// (`kernel/time/timer.c`: 64 slots per level, each level 8 times as coarse).
fn wheel_slack(timeout: Time) -> Time {
    let mut jiffies = timeout.as_ms() * HZ / 1000;
    let mut slot = 1;
    while jiffies >= 64 {
        jiffies /= 8;
        slot *= 8;
    }
    Time::from_ms(slot * 1000 / HZ)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysctl::Settings;

    #[test]
    fn a_syn_ack_is_repeated_after_1_and_3_seconds() {
        let mut e = Endpoint::new(Settings::default());
        e.listen();
        e.on_segment(&Segment::parse("S 0:0(0) win 1000 <mss 1000>").unwrap(), Time::ZERO).unwrap();
        for _ in 0..2 {
            let at = e.deadline().unwrap();
            e.on_timer(at);
        }
        let times: Vec<_> = e.sent.iter().map(|s| s.at.as_ms()).collect();
        assert_eq!(times, [0, 1000, 3000]);
    }

    #[test]
    fn a_syn_is_repeated_every_second_before_its_timeout_doubles() {
        let mut e = Endpoint::new(Settings::default());
        e.connect(Time::ZERO).unwrap();
        for _ in 0..6 {
            let at = e.deadline().unwrap();
            e.on_timer(at);
        }
        let times: Vec<_> = e.sent.iter().map(|s| s.at.as_ms() / 1000).collect();
        assert_eq!(times, [0, 1, 2, 3, 4, 5, 7]);
    }

    #[test]
    fn a_timer_may_be_late_by_a_slot_of_the_wheel() {
        // Jiffies of 1 ms: slots of 8 from 64 on, of 64 from 512, of 512 from 4096.
        let slack = [10, 64, 1000, 4000, 8000].map(|ms| wheel_slack(Time::from_ms(ms)).as_ms());
        assert_eq!(slack, [1, 8, 64, 64, 512]);
    }

    #[test]
    fn a_client_whose_syn_was_repeated_owes_a_cwr() {
        let first = |ecn: u8, answer: &str, timeouts: usize| {
            let mut e = Endpoint::new(Settings { ecn, ..Settings::default() });
            e.connect(Time::ZERO).unwrap();
            for _ in 0..timeouts {
                let at = e.deadline().unwrap();
                e.on_timer(at);
            }
            let now = Time::from_ms(1500);
            e.on_segment(
                &Segment::parse(&format!("{answer} 0:0(0) ack 1 win 65535 <mss 1000>")).unwrap(),
                now,
            )
            .unwrap();
            e.sent.clear();
            e.write(100, now);
            let data = e.sent.pop_front().unwrap().segment;
            (data.ecn, data.ace & 2 != 0)
        };
        assert_eq!(first(1, "SE.", 1), (Some(Ecn::Ect0), true));
        assert_eq!(first(1, "SE.", 0), (Some(Ecn::Ect0), false));
        // Who asked for AccECN had not settled for RFC 3168 when the timer expired.
        assert_eq!(first(3, "SE.", 1), (Some(Ecn::Ect0), false));
        assert_eq!(first(1, "S.", 1), (Some(Ecn::NotEct), false));
    }

    #[test]
    fn an_accecn_syn_loses_its_bits_with_its_second_repetition() {
        let mut e = Endpoint::new(Settings { ecn: 3, ..Settings::default() });
        e.connect(Time::ZERO).unwrap();
        for _ in 0..2 {
            let at = e.deadline().unwrap();
            e.on_timer(at);
        }
        assert_eq!(e.sent.iter().map(|s| s.segment.ace).collect::<Vec<_>>(), [7, 7, 0]);
    }

    #[test]
    fn the_handshake_tells_how_its_packets_arrived() {
        let mut e = Endpoint::new(Settings { ecn: 3, ..Settings::default() });
        e.listen();
        let syn = Segment::parse("[ce] SEWA 0:0(0) win 32792 <mss 1000,sackOK>").unwrap();
        e.on_segment(&syn, Time::ZERO).unwrap();
        assert_eq!(e.sent[0].segment.ace, 0b110);
        e.on_segment(&Segment::parse("[ect0] W. 1:1(0) ack 1 win 264").unwrap(), Time::from_ms(50)).unwrap();
        assert_eq!(e.sender().unwrap().sock().delivered_ce, 0);
    }
}
