//! A socket under test: a simulated sender and a simulated receiver side by side, as the two halves of one
//! connection, with the handshake and the header fields around them.
//!
//! What is the simulator's: every data segment, retransmission, acknowledgement, SACK block, window and ECN bit
//! after the handshake, and of the handshake its timer, its ECN bits and the two halves that come of it. What is this
//! file's: the options of SYN and SYN/ACK, the timestamps' numbers, and FIN, which travels as one more byte of the
//! stream, as its sequence number does.

use std::collections::VecDeque;

use bakeoff_document::units::Time;
use bakeoff_sim::packet::{Ecn, Flags as SimFlags, Packet, SackBlock};
use bakeoff_sim::tcp::accecn::ACE_INIT;
use bakeoff_sim::tcp::ecn::{self, Mode, Policy};
use bakeoff_sim::tcp::handshake::needs_of;
use bakeoff_sim::tcp::receiver::Receiver;
use bakeoff_sim::tcp::sender::Sender;

use crate::accecn;
use crate::opening::{Cause, Handshake, Peer, local_scale};
use crate::segment::{Flags, Opt, Segment};
use crate::sysctl::Settings;

/// Largest segment of an Ethernet frame over IPv4.
pub(super) const LOCAL_MSS: u32 = 1460;
/// Bytes of the timestamp option with its padding.
const TIMESTAMP_BYTES: u32 = 12;
/// `TCP_MIN_SND_MSS`: a peer that takes less gets more.
const LEAST_MSS: u32 = 48;
/// `TCP_MSS_DEFAULT`
const DEFAULT_MSS: u64 = 536;
/// No segment is cut to less for a small window, headers included.
const LEAST_CUT: u64 = 68;

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing yet.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Sent a SYN.
    SynSent,
    /// Sent a SYN/ACK.
    SynReceived,
    /// Open.
    Established,
}

/// A segment that the endpoint sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When.
    pub at: Time,
    /// By how much the timer that sent it may be late in Linux.
    pub slack: Time,
    /// What.
    pub segment: Segment,
}

/// The socket.
pub struct Endpoint {
    pub(super) settings: Settings,
    pub(super) state: State,
    pub(super) sender: Option<Sender>,
    pub(super) receiver: Option<Receiver>,
    pub(super) peer: Peer,
    pub(super) mode: Mode,
    pub(super) accecn: accecn::State,
    /// ECN field with which the peer's SYN arrived, at a server.
    pub(super) syn_field: Ecn,
    /// ECN field of pure ACKs.
    pub(super) ect: Ecn,
    pub(super) handshake: Option<Handshake>,
    pub(super) ts_recent: u32,
    pub(super) written: u64,
    /// Where our FIN stands in the stream.
    pub(super) fin: Option<u64>,
    pub(super) peer_fin: Option<u64>,
    /// The application closed after the peer.
    pub(super) last_ack: bool,
    pub(super) last_data: Time,
    pub(super) read: u64,
    /// Largest window that the peer offered, in bytes.
    pub(super) max_window: u64,
    /// When the last challenge ACK was sent.
    pub(super) challenged: Option<Time>,
    /// What was sent and not yet looked at.
    pub sent: VecDeque<Sent>,
}

impl Endpoint {
    /// A closed socket on a host with these settings.
    pub fn new(settings: Settings) -> Self {
        Endpoint {
            settings,
            state: State::Closed,
            sender: None,
            receiver: None,
            peer: Peer::default(),
            mode: Mode::Off,
            accecn: accecn::State::default(),
            syn_field: Ecn::NotEct,
            ect: Ecn::NotEct,
            handshake: None,
            ts_recent: 0,
            written: 0,
            fin: None,
            peer_fin: None,
            last_ack: false,
            last_data: Time::ZERO,
            read: 0,
            max_window: 0,
            challenged: None,
            sent: VecDeque::new(),
        }
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// The sending half, once the connection is open.
    pub fn sender(&self) -> Option<&Sender> {
        self.sender.as_ref()
    }

    /// Failures of AccECN and whether its option was seen.
    pub fn accecn(&self) -> accecn::State {
        self.accecn
    }

    /// Packets that arrived with CE, and bytes of payload that arrived as ECT(1), CE and ECT(0).
    pub fn received(&self) -> Option<(u64, [u32; 3])> {
        Some(self.receiver.as_ref()?.feedback().received())
    }

    /// `tcp_ecn_option` changes.
    pub fn set_ecn_option(&mut self, level: u8) {
        self.settings.ecn_option = level;
        self.update_option();
    }

    /// The option is sent once the peer has sent one, until it seems to do harm.
    pub(super) fn update_option(&mut self) {
        let level = self.option_level();
        let (Some(sender), Some(receiver)) = (&mut self.sender, &mut self.receiver) else { return };
        sender.option_mut().set_level(level);
        receiver.feedback_mut().option_mut().set_level(level);
        if receiver.feedback().option_failed() {
            sender.option_mut().fail();
            self.accecn.failures |= accecn::OPT_FAIL_SEND;
        }
        if self.accecn.failures & accecn::OPT_FAIL_RECV != 0 {
            sender.ace_mut().distrust_option();
        }
    }

    pub(super) fn option_level(&self) -> u8 {
        let seen = self.mode == Mode::AccEcn && self.accecn.seen != accecn::Seen::Nothing;
        if seen { self.settings.ecn_option } else { 0 }
    }

    /// Segment size in use: what the peer takes, and no more than half of its largest window (`tcp_mtu_to_mss`,
    /// `tcp_bound_to_half_wnd`).
    pub fn mss(&self) -> u32 {
        let options = if self.peer.timestamps { TIMESTAMP_BYTES } else { 0 };
        let mss = self.peer.mss.clamp(LEAST_MSS, LOCAL_MSS) - options;
        let window = self.max_window;
        let cut = if window > DEFAULT_MSS { window / 2 } else { window };
        if window > 0 && u64::from(mss) > cut {
            cut.max(LEAST_CUT - 20 - u64::from(options)).min(mss.into()) as u32
        } else {
            mss
        }
    }

    /// The peer offers a window: segments grow if it is the largest so far (`tcp_ack_update_window`).
    pub(super) fn offered(&mut self, window: u64) {
        let before = self.mss();
        self.max_window = self.max_window.max(window);
        let mss = self.mss();
        if let Some(sender) = self.sender.as_mut().filter(|_| mss != before) {
            sender.set_mss(mss);
        }
    }

    /// Waits for a connection.
    pub fn listen(&mut self) {
        self.state = State::Listen;
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// A congestion control that the simulator does not have.
    pub fn connect(&mut self, now: Time) -> Result<(), String> {
        self.state = State::SynSent;
        let needs = needs_of(&self.congestion_control()?);
        self.mode = Policy(self.settings.ecn).request(needs);
        self.send_syn(now, Cause::First);
        Ok(())
    }

    /// The application writes.
    pub fn write(&mut self, bytes: u64, now: Time) {
        self.written += bytes;
        self.push(now);
    }

    /// The application will not write any more.
    pub fn shutdown(&mut self, now: Time) {
        if self.fin.is_none() {
            self.fin = Some(self.written);
            self.written += 1;
            self.push(now);
        }
    }

    fn push(&mut self, now: Time) {
        let mut out = Vec::new();
        if let Some(sender) = &mut self.sender {
            sender.write(self.written, now, &mut out);
        }
        self.send_data(&out, now);
    }

    /// In-order bytes that the application has not read.
    pub fn readable(&self) -> u64 {
        let received = self.receiver.as_ref().map_or(0, |r| r.counters.received);
        received - u64::from(self.at_end()) - self.read
    }

    /// Whether the peer's FIN is next.
    pub fn at_end(&self) -> bool {
        let next = self.receiver.as_ref().map_or(0, Receiver::rcv_nxt);
        self.peer_fin.is_some_and(|end| next >= end)
    }

    /// The application reads.
    pub fn read(&mut self, bytes: u64) {
        self.read += bytes;
    }

    /// How long ago data arrived last, or the connection opened (`tcpi_last_data_recv`).
    pub fn since_data(&self, now: Time) -> Time {
        now - self.last_data
    }

    /// When the earliest timer expires.
    pub fn deadline(&self) -> Option<Time> {
        [
            self.handshake.map(|h| h.repetition.due()),
            self.sender.as_ref().and_then(Sender::deadline),
            self.receiver.as_ref().and_then(Receiver::deadline),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Runs the timers that are due.
    pub fn on_timer(&mut self, now: Time) {
        if let Some(handshake) = self.handshake.as_mut().filter(|h| h.repetition.due() <= now) {
            handshake.repetition.repeat(now);
            handshake.resent += 1;
            self.send_syn(now, Cause::Timer);
        }
        let mut out = Vec::new();
        if let Some(receiver) = &mut self.receiver {
            receiver.on_timer(now, &mut out);
        }
        self.send_acks(&out, now);
        out.clear();
        if let Some(sender) = &mut self.sender {
            sender.on_timer(now, &mut out);
        }
        self.send_data(&out, now);
    }

    /// A segment arrives.
    ///
    /// # Errors
    /// A congestion control that the simulator does not have.
    pub fn on_segment(&mut self, segment: &Segment, now: Time) -> Result<(), String> {
        if segment.flags.rst {
            self.on_reset(segment, now);
            return Ok(());
        }
        match self.state {
            State::Listen if segment.flags.syn => self.on_syn(segment, now)?,
            State::SynSent if segment.flags.syn => {
                self.learn(segment);
                let needs = needs_of(&self.congestion_control()?);
                let requested = self.mode;
                let timeouts = self.handshake.map_or(0, |handshake| handshake.repetition.timeouts);
                self.mode = match ecn::mode_of_synack(self.mode, segment.ace, needs) {
                    Mode::AccEcn if self.mode == Mode::Rfc3168 => Mode::Off,
                    mode => mode,
                };
                let mut marked = false;
                if self.mode == Mode::AccEcn {
                    self.accecn.note_option(segment);
                    marked = self.accecn.synack_counts(segment, self.settings.ecn_fallback);
                }
                self.establish(segment.window.unwrap_or(0), marked, now)?;
                if let Some(sender) = self.sender.as_mut().filter(|_| timeouts > 0) {
                    sender.syn_timed_out(requested);
                }
                self.send_handshake_ack(segment.ecn.unwrap_or_default(), now);
                self.push(now);
            }
            State::SynReceived if segment.flags.syn => self.on_syn_again(segment, now),
            State::SynReceived if segment.flags.ack => {
                let scale = self.peer.scale.unwrap_or(0);
                let mut segment = segment.clone();
                let mut marked = false;
                if self.mode == Mode::AccEcn {
                    self.accecn.note_option(&segment);
                    marked = self.accecn.third_ack(&segment, self.settings.ecn_fallback);
                    // What acknowledges the SYN/ACK is not read as a counter yet, which starts at 5.
                    segment.ace = ACE_INIT as u8;
                }
                self.establish(segment.window.unwrap_or(0) << scale, false, now)?;
                self.receive(&segment, now);
                if let Some(sender) = self.sender.as_mut().filter(|_| marked) {
                    sender.synack_was_marked();
                }
            }
            // RFC 9293, section 3.10.7.4, step 5.
            State::Established if !(segment.flags.ack || segment.flags.syn) => {}
            State::Established => {
                self.receive(segment, now);
                self.finish_last_ack();
            }
            State::Closed => self.refuse(segment, now),
            State::Listen if segment.flags.ack => self.refuse(segment, now),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn abort(&mut self) {
        self.state = State::Closed;
        self.sender = None;
        self.receiver = None;
        self.handshake = None;
    }

    /// An ACK beyond the receiver's own, with `ace` instead of the counter.
    pub(super) fn send_bare_ack(&mut self, ace: Option<u8>, now: Time) {
        let mut packet = Packet { flags: SimFlags::ACK, ecn: self.ect, ..Packet::default() };
        if self.option_level() > 0 {
            packet.n_accecn = 3;
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.acknowledge(&mut packet, now);
        }
        packet.ace = ace.unwrap_or(packet.ace);
        self.send_acks(&[packet], now);
    }

    /// `tcp_send_challenge_ack` (RFC 5961), at most one per `tcp_invalid_ratelimit`.
    pub(super) fn challenge(&mut self, now: Time) {
        let pause = Time::from_ms(self.settings.invalid_ratelimit_ms);
        if self.challenged.is_none_or(|at| now - at >= pause) {
            self.challenged = Some(now);
            self.send_bare_ack(None, now);
        }
    }

    /// RFC 5961, section 5.2: an acknowledgement of what was not sent, or of what is older than a window.
    fn is_out_of_window(&self, segment: &Segment) -> bool {
        let Some(tp) = self.sender.as_ref().map(Sender::sock) else { return false };
        let offset = i64::from(segment.ack.wrapping_sub(1).wrapping_sub(tp.snd_una as u32) as i32);
        let (ahead, behind) = (tp.snd_nxt - tp.snd_una, self.max_window.min(tp.snd_una));
        offset > ahead as i64 || offset < -(behind as i64)
    }

    /// A segment of an open connection: the acknowledgement first, then the data, as the kernel does.
    fn receive(&mut self, segment: &Segment, now: Time) {
        if segment.flags.syn {
            // The SYN/ACK again: our ACK was lost.
            self.accecn.note_option(segment);
            self.update_option();
            self.send_handshake_ack(segment.ecn.unwrap_or_default(), now);
            return;
        }
        if self.is_out_of_window(segment) {
            self.challenge(now);
            return;
        }
        if self.mode == Mode::AccEcn {
            self.accecn.note_option(segment);
            self.update_option();
        }
        let window = segment.window.unwrap_or(0) << self.peer.scale.unwrap_or(0);
        self.offered(window.into());
        let (Some(sender), Some(receiver)) = (&mut self.sender, &mut self.receiver) else { return };
        let near = |base: u64, value: u32| {
            base.wrapping_add_signed(i64::from(value.wrapping_sub(base as u32) as i32))
        };
        // Both streams start at sequence number 1, the simulator's at 0.
        let seq = near(receiver.rcv_nxt(), segment.seq.wrapping_sub(1));
        let ack = near(sender.sock().snd_una, segment.ack.wrapping_sub(1));
        let payload = segment.payload.saturating_add(u32::from(segment.flags.fin));
        // What lies below the stream's begin is no part of it.
        let below = u32::try_from((seq as i64).min(0).unsigned_abs()).unwrap_or(u32::MAX);
        let old = below > 0 && payload > 0 && payload <= below;
        let seq = if below > 0 { 0 } else { seq };
        let mut packet = Packet { seq, ack, ..Packet::default() };
        packet.payload = payload.saturating_sub(below);
        packet.ecn = segment.ecn.unwrap_or_default();
        packet.window = window;
        packet.flags = SimFlags::ACK;
        match self.mode {
            Mode::Off => {}
            Mode::AccEcn => {
                packet.ace = segment.ace;
                accecn::read_option(segment, sender.ace().bytes(), &mut packet);
            }
            Mode::Rfc3168 => {
                for (bit, flag) in [(1, SimFlags::ECE), (2, SimFlags::CWR)] {
                    if segment.ace & bit != 0 {
                        packet.flags = packet.flags.with(flag);
                    }
                }
            }
        }
        for option in segment.options.iter().flatten() {
            match option {
                Opt::Timestamp(val, ecr) if self.peer.timestamps => {
                    packet.sent = Time::from_ms(u64::from(*val));
                    packet.echo = Time::from_ms(u64::from(*ecr));
                    if seq <= receiver.last_acknowledged() && val.wrapping_sub(self.ts_recent) < 1 << 31 {
                        self.ts_recent = *val;
                    }
                }
                Opt::Sack(blocks) if self.peer.sack => {
                    let offset = |s: u32| s.wrapping_sub(segment.ack) as i32;
                    // Linux takes no notice of a block that does not end after its start, or begins before the
                    // connection.
                    let sent = |s: u32| packet.ack.checked_add_signed(offset(s).into()).is_some();
                    let valid: Vec<(u32, u32)> =
                        blocks.iter().copied().filter(|&(s, e)| offset(s) < offset(e) && sent(s)).collect();
                    for (block, (start, end)) in packet.sack.iter_mut().zip(&valid) {
                        *block = SackBlock { start: offset(*start), end: offset(*end) };
                        packet.n_sack += 1;
                    }
                    if is_dsack(segment.ack, &valid) {
                        packet.flags = packet.flags.with(SimFlags::DSACK);
                    }
                }
                _ => {}
            }
        }
        if segment.flags.fin && !old {
            self.peer_fin = Some(seq + u64::from(packet.payload));
            if self.fin.is_none() && seq <= receiver.rcv_nxt() {
                receiver.peer_closes(segment.payload == 0);
            }
        }
        let (mut data, mut acks) = (Vec::new(), Vec::new());
        sender.on_ack(&packet, now, &mut data);
        if packet.payload > 0 {
            self.last_data = now;
            receiver.on_data(&packet, now, &mut acks);
        } else if !old {
            receiver.on_pure_ack(&packet);
        }
        self.update_option();
        self.send_data(&data, now);
        self.send_acks(&acks, now);
        if old {
            self.send_bare_ack(None, now);
            let options = self.sent.back_mut().and_then(|sent| sent.segment.options.as_mut());
            if let Some(options) = options.filter(|_| self.peer.sack) {
                options.push(Opt::Sack(vec![(segment.seq, segment.end())]));
            }
        }
    }

    /// What the sender emits: its segments carry the receiver's acknowledgement.
    fn send_data(&mut self, packets: &[Packet], now: Time) {
        for packet in packets {
            let mut packet = *packet;
            if let Some(receiver) = &mut self.receiver {
                receiver.acknowledge(&mut packet, now);
            }
            let mut segment = self.header(&packet, now);
            segment.seq = (packet.seq as u32).wrapping_add(1);
            segment.payload = packet.payload;
            if self.fin.is_some_and(|fin| packet.seq + u64::from(packet.payload) == fin + 1) {
                segment.flags.fin = true;
                segment.payload -= 1;
                // RFC 3168 marks data only.
                if segment.payload == 0 && self.mode == Mode::Rfc3168 {
                    segment.ecn = Some(Ecn::NotEct);
                }
            }
            self.sent.push_back(Sent { at: now, slack: Time::ZERO, segment });
        }
    }

    fn send_acks(&mut self, packets: &[Packet], now: Time) {
        for packet in packets {
            let mut segment = self.header(packet, now);
            let (next, una) = self.sender.as_ref().map_or((0, 0), |s| (s.sock().snd_nxt, s.sock().snd_una));
            // In TIME_WAIT there is no counter to tell any more.
            if self.at_end() && self.fin.is_some_and(|fin| una > fin) {
                segment.ace = 0;
            }
            segment.seq = (next as u32).wrapping_add(1);
            // A FIN in order ends the list of what came early (`tcp_fin`).
            if packet.n_sack > 0 && !self.at_end() {
                let at = |offset: i32| segment.ack.wrapping_add_signed(offset);
                let blocks =
                    packet.sack[..usize::from(packet.n_sack)].iter().map(|b| (at(b.start), at(b.end)));
                let blocks = Opt::Sack(blocks.collect());
                if let Some(options) = segment.options.as_mut().filter(|_| self.peer.sack) {
                    options.push(blocks);
                }
            }
            self.sent.push_back(Sent { at: now, slack: Time::ZERO, segment });
        }
    }

    fn header(&self, packet: &Packet, now: Time) -> Segment {
        let mut ace = packet.ace;
        for (bit, flag) in [(1, SimFlags::ECE), (2, SimFlags::CWR)] {
            if packet.flags.has(flag) {
                ace |= bit;
            }
        }
        let mut options = Vec::new();
        if self.peer.timestamps {
            options.push(Opt::Timestamp(now.as_ms() as u32, self.ts_recent));
        }
        if packet.n_accecn > 0 {
            options.push(accecn::option(packet));
        }
        let scale = if self.peer.scale.is_some() { local_scale() } else { 0 };
        let capable = self.mode != Mode::AccEcn || self.accecn.capable();
        Segment {
            ecn: Some(if capable { packet.ecn } else { Ecn::NotEct }),
            flags: Flags { ack: true, ..Flags::default() },
            ace,
            ack: (packet.ack as u32).wrapping_add(1),
            window: Some((packet.window >> scale).min(65535)),
            options: Some(options),
            ..Segment::default()
        }
    }
}

/// RFC 2883: the first block reports a duplicate if it lies below the acknowledgement or inside the second one.
fn is_dsack(ack: u32, blocks: &[(u32, u32)]) -> bool {
    let before = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
    match blocks {
        [(start, _), ..] if before(*start, ack) => true,
        [(s0, e0), (s1, e1), ..] => !before(*s0, *s1) && !before(*e1, *e0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Endpoint {
        let mut e = Endpoint::new(Settings::default());
        e.listen();
        let syn = Segment::parse("S 0:0(0) win 32792 <mss 1000,sackOK,wscale 7>").unwrap();
        e.on_segment(&syn, Time::ZERO).unwrap();
        e.on_segment(&Segment::parse(". 1:1(0) ack 1 win 257").unwrap(), Time::from_ms(100)).unwrap();
        e
    }

    fn sent(e: &mut Endpoint) -> Vec<String> {
        e.sent.drain(..).map(|s| format!("{} {}", s.at.as_ms(), s.segment)).collect()
    }

    #[test]
    fn a_syn_is_answered_with_the_options_it_offered() {
        let mut e = open();
        assert_eq!(sent(&mut e), ["0 [noecn] S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,wscale 8>"]);
        assert_eq!(e.state(), State::Established);
    }

    #[test]
    fn a_fin_takes_one_sequence_number_in_both_directions() {
        let mut e = open();
        e.write(500, Time::from_ms(100));
        e.shutdown(Time::from_ms(100));
        e.on_segment(&Segment::parse("F. 1:1(0) ack 502 win 257").unwrap(), Time::from_ms(200)).unwrap();
        let sent = sent(&mut e);
        assert_eq!(
            sent[1..3],
            ["100 [noecn] . 1:501(500) ack 1 win 254", "100 [noecn] F. 501:501(0) ack 1 win 254"]
        );
        assert_eq!(sent[3], "200 [noecn] . 502:502(0) ack 2 win 254");
        assert!(e.at_end());
    }

    #[test]
    fn segments_fit_the_peers_mss_and_half_of_its_window() {
        let opened = |syn: &str, window: u32| {
            let mut e = Endpoint::new(Settings::default());
            e.listen();
            e.on_segment(&Segment::parse(&format!("S 0:0(0) win 32792 <{syn}>")).unwrap(), Time::ZERO)
                .unwrap();
            let ack = Segment::parse(&format!(". 1:1(0) ack 1 win {window}")).unwrap();
            e.on_segment(&ack, Time::ZERO).unwrap();
            e
        };
        assert_eq!(opened("mss 1000", 3000).mss(), 1000);
        assert_eq!(opened("mss 1000", 1500).mss(), 750);
        assert_eq!(opened("mss 1000", 500).mss(), 500, "a window of up to 536 bytes is filled");
        assert_eq!(opened("mss 1000", 20).mss(), 48);
        // Room for 48 bytes, of which timestamps take 12.
        assert_eq!(opened("mss 2,TS val 1 ecr 0", 3000).mss(), 36);
        // It grows with the window.
        let mut e = opened("mss 1000", 1500);
        e.on_segment(&Segment::parse(". 1:1(0) ack 1 win 1800").unwrap(), Time::ZERO).unwrap();
        e.sent.clear();
        e.write(2000, Time::ZERO);
        assert_eq!(e.sent[0].segment.payload, 900);
    }

    #[test]
    fn data_below_the_connections_begin_is_old() {
        let mut e = open();
        e.sent.clear();
        e.on_segment(&Segment::parse(". 0:1(1) ack 1 win 257").unwrap(), Time::from_ms(200)).unwrap();
        assert_eq!(e.readable(), 0);
        assert_eq!(sent(&mut e), ["200 [noecn] . 1:1(0) ack 1 win 254 <sack 0:1>"]);
    }

    #[test]
    fn a_dsack_is_told_from_a_sack() {
        assert!(is_dsack(5001, &[(1, 1001)]));
        assert!(is_dsack(1, &[(5001, 6001), (5001, 7001)]));
        assert!(!is_dsack(1, &[(5001, 6001), (3001, 4001)]));
    }
}
