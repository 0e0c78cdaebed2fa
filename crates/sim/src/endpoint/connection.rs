//! A TCP connection between two hosts: its handshake, the sender at one end and the receiver at the other.
//!
//! It is told what to send by its application ([`super::flow`]) and knows nothing of it.

use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::cc::{Cc, CcEnv, CongestionControl, Registry};
use crate::packet::charge::Charges;
use crate::packet::{Ecn, Flags, Packet};
use crate::tcp::accecn::OPTION_LEN;
use crate::tcp::ecn::{Mode, Sysctls, mode_of_synack, synack_bits};
use crate::tcp::handshake::{
    Agreement, LONGEST_TIMEOUT, ReceiverSetup, Repetition, ack_field, ect_of, needs_of, syn_ace, synack_ace,
};
use crate::tcp::receive_window::Buffer;
use crate::tcp::receiver::{HEADERS as FRAME_HEADERS, Receiver, ReceiverCounters};
use crate::tcp::sack_compression::CompSack;
use crate::tcp::sender::{Sender, SenderCounters, SenderSetup, Sysctl};
use bakeoff_document::run::Flow;

/// Frame bytes of a SYN: Ethernet 14, IPv4 20, TCP 40.
const SYN_LEN: u32 = 74;
/// Bytes of an IP packet around a full segment: IPv4 20, TCP 20, timestamps 12.
const HEADERS: u32 = 52;

/// A host as its flows see it.
#[derive(Clone, Debug)]
pub struct Host {
    /// `net.ipv4.tcp_ecn` and its kin.
    pub ecn: Sysctls,
    /// Timer frequency.
    pub hz: u64,
    /// `net.ipv4.tcp_pacing_ss_ratio` in percent.
    pub ss_ratio: u64,
    /// `net.ipv4.tcp_pacing_ca_ratio` in percent.
    pub ca_ratio: u64,
    /// `net.ipv4.tcp_sce_pacing` of the SCE kernels.
    pub sce_pacing: bool,
    /// What its receivers may keep.
    pub receive: Buffer,
    /// How its receivers compress SACK.
    pub compression: CompSack,
    /// Sysctls of its senders.
    pub sender: Sysctl,
}

/// How a flow's packets leave the sending host.
#[derive(Clone, Default)]
pub struct Exit {
    /// Through a queue that holds them until they are to depart.
    pub fq: bool,
    /// Several segments in one buffer.
    pub gso: bool,
    /// See [`SenderSetup::single_segments`].
    pub single_segments: bool,
    /// See [`SenderSetup::charges`].
    pub charges: Option<Charges>,
    /// [`Packet::tunnel`]
    pub tunnel: u8,
}

/// Where a flow stands in the run and in the network.
#[derive(Clone)]
pub struct Place {
    /// Index in the run's table of traffic.
    pub id: u16,
    /// Sending and receiving node.
    pub nodes: [u16; 2],
    /// The same as hosts.
    pub hosts: [Host; 2],
    /// Bytes of the largest IP packet on the way.
    pub mtu: u32,
    /// How packets leave the sending host.
    pub exit: Exit,
    /// The run's seed.
    pub seed: u64,
}

impl Place {
    /// Payload bytes of a full segment.
    pub fn mss(&self) -> u32 {
        self.mtu - HEADERS
    }

    /// What the packets of `flow` from this end (0 sends, 1 receives) have in common.
    pub fn template(&self, flow: &Flow, end: usize, hash: u32) -> Packet {
        Packet {
            flow: self.id,
            dst: self.nodes[1 - end],
            dscp: flow.dscp,
            hash,
            flags: Flags::ACK,
            tunnel: self.exit.tunnel,
            ..Packet::default()
        }
    }
}

/// The hashes of a flow's packets there and back, by its name in the run.
pub fn hashes(seed: u64, name: &str) -> [u32; 2] {
    let mut rng = Stream::new(seed, &format!("flow/{name}"));
    [rng.u32(), rng.u32()]
}

/// The congestion control of `flow`, which is called `name`.
///
/// # Errors
/// Unknown names, versions and parameters.
pub fn congestion_control(flow: &Flow, name: &str, seed: u64, modules: &Registry) -> Result<Cc, String> {
    let env = CcEnv { rng: Stream::new(seed, &format!("cc/{name}")), now: Time::ZERO };
    Cc::build_with(&flow.cc, env, modules).map_err(|e| e.to_string())
}

/// What connections counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// As senders.
    pub sender: SenderCounters,
    /// Packets delivered.
    pub delivered: u64,
    /// Of these, reported with CE.
    pub delivered_ce: u64,
    /// Packets marked lost.
    pub lost: u64,
    /// As receivers.
    pub receiver: ReceiverCounters,
}

impl Totals {
    /// Adds what another connection counted.
    pub fn add(&mut self, other: &Totals) {
        self.sender.add(&other.sender);
        self.delivered += other.delivered;
        self.delivered_ce += other.delivered_ce;
        self.lost += other.lost;
        self.receiver.add(&other.receiver);
    }
}

/// A connection.
pub struct Connection {
    place: Place,
    /// What the packets of either end have in common.
    templates: [Packet; 2],
    /// `SO_MAX_PACING_RATE` in bytes per second.
    max_pacing_rate: Option<u64>,
    mss: u32,
    /// The module, until the sender has it.
    cc: Option<Cc>,
    /// The SYN, while it is not answered.
    syn: Option<Repetition>,
    /// The sender, once established.
    pub sender: Option<Sender>,
    /// The receiver, once the SYN arrived.
    pub receiver: Option<Receiver>,
    /// Feedback in use, once known.
    pub mode: Option<Mode>,
}

impl Connection {
    /// A connection of `flow` under a name of its own, and with this number among the flow's ([`Packet::conn`]).
    ///
    /// # Errors
    /// What the congestion control refuses.
    pub fn new(
        flow: &Flow,
        name: &str,
        number: u16,
        place: &Place,
        modules: &Registry,
    ) -> Result<Connection, String> {
        let cc = congestion_control(flow, name, place.seed, modules)?;
        let hashes = hashes(place.seed, name);
        let template = |end: usize| Packet { conn: number, ..place.template(flow, end, hashes[end]) };
        Ok(Connection {
            place: place.clone(),
            templates: [template(0), template(1)],
            max_pacing_rate: flow.max_pacing_rate_bps.map(|r| r / 8),
            mss: place.mss(),
            cc: Some(cc),
            syn: None,
            sender: None,
            receiver: None,
            mode: None,
        })
    }

    /// Its number among the flow's.
    pub fn number(&self) -> u16 {
        self.templates[0].conn
    }

    /// Whether its sender is on `node`.
    pub fn is_sender_at(&self, node: u16) -> bool {
        node == self.place.nodes[0]
    }

    /// Whether nothing was sent yet.
    pub fn is_closed(&self) -> bool {
        self.syn.is_none() && self.sender.is_none()
    }

    /// Opens it.
    pub fn connect(&mut self, now: Time, out: &mut Vec<Packet>) {
        self.syn = Some(Repetition::of_syn(now, LONGEST_TIMEOUT));
        self.send_syn(0, now, out);
    }

    /// The module, which the sender has once there is one.
    pub fn module(&self) -> Option<&Cc> {
        self.cc.as_ref().or_else(|| self.sender.as_ref().map(Sender::cc))
    }

    fn needs(&self) -> Mode {
        self.module().map_or(Mode::Off, needs_of)
    }

    /// The ECN field of what a module that needs ECN sends, even while ECN is being negotiated.
    fn ect_if_needed(&self) -> Ecn {
        self.module().filter(|cc| cc.needs_ecn()).map_or(Ecn::NotEct, ect_of)
    }

    fn request(&self) -> Mode {
        self.place.hosts[0].ecn.ecn.request(self.needs())
    }

    /// With this feedback: AccECN's option is sent by either end only if it sees the other's, SACK is permitted by both
    /// or not used.
    fn agreement(&self, mode: Mode) -> Agreement {
        let hosts = &self.place.hosts;
        Agreement {
            mode,
            accecn_option: hosts.iter().all(|h| h.ecn.option > 0),
            sack: hosts.iter().all(|h| h.sender.sack),
            timestamps: true,
        }
    }

    fn send_syn(&self, timeouts: u32, now: Time, out: &mut Vec<Packet>) {
        let mut syn = self.templates[0];
        syn.flags = Flags::SYN;
        syn.len = SYN_LEN;
        syn.sent = now;
        syn.ecn = self.ect_if_needed();
        syn.ace = syn_ace(self.request(), timeouts, self.place.hosts[0].ecn.fallback);
        out.push(syn);
    }

    /// A packet reached its destination. Returns whether the connection is open now and was not before.
    #[expect(clippy::inline_always, reason = "part of each packet's way")]
    #[inline(always)]
    pub fn on_packet(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) -> bool {
        if packet.dst == self.place.nodes[1] {
            self.on_packet_to_receiver(packet, now, out);
        } else if packet.flags.has(Flags::SYN) {
            return self.on_synack(packet, now, out);
        } else if let Some(sender) = &mut self.sender {
            sender.on_ack(packet, now, out);
        }
        false
    }

    /// The same of a packet for the receiving end.
    #[expect(clippy::inline_always, reason = "part of each packet's way")]
    #[inline(always)]
    pub fn on_packet_to_receiver(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) {
        if packet.flags.has(Flags::SYN) {
            self.on_syn(packet, now, out);
        } else if packet.payload > 0
            && let Some(receiver) = &mut self.receiver
        {
            receiver.on_data(packet, now, out);
        } else if packet.seq == 0
            && let Some(receiver) = &mut self.receiver
        {
            receiver.established(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_syn(&mut self, syn: &Packet, now: Time, out: &mut Vec<Packet>) {
        let host = &self.place.hosts[1];
        // The first SYN decides: one that is repeated without ECN bits clears its own only.
        let known = self.receiver.as_ref().map(|receiver| receiver.feedback().mode());
        let mode = known.unwrap_or_else(|| host.ecn.ecn.accept(syn.ace, syn.ecn, self.needs()));
        let mut template = self.templates[1];
        template.ecn = self.module().map_or(Ecn::NotEct, |cc| ack_field(mode, cc));
        let receiver = self.agreement(mode).receiver(ReceiverSetup {
            template,
            sysctls: &host.ecn,
            state_changes: self.module().is_some_and(CongestionControl::tells_state_changes),
            mss: self.mss,
            hz: host.hz,
            buffer: host.receive,
            compression: host.compression,
        });
        let mut reply = self.templates[1];
        reply.flags = Flags::SYN.with(Flags::ACK);
        reply.len = SYN_LEN;
        if mode == Mode::AccEcn && host.ecn.option > 0 {
            reply.len += OPTION_LEN;
            reply.n_accecn = 3;
        }
        reply.sent = now;
        reply.echo = syn.sent;
        reply.ecn = self.ect_if_needed();
        // Every SYN is answered anew, so that no SYN/ACK has to be repeated.
        reply.ace = synack_ace(mode, syn.ecn, 0);
        reply.window = self.receiver.get_or_insert(receiver).window();
        out.push(reply);
    }

    #[cold]
    #[inline(never)]
    fn on_synack(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) -> bool {
        let Some(syn) = self.syn else { return false };
        let mode = mode_of_synack(self.request(), packet.ace, self.needs());
        let Some(cc) = self.cc.take() else { return false };
        self.syn = None;
        self.mode = Some(mode);
        let handshake_rtt = Time::from_us(now.us_since(packet.echo));
        // The receiving end measures its own, which takes as long.
        if let Some(receiver) = &mut self.receiver {
            receiver.handshake_took(handshake_rtt);
        }
        let agreement = self.agreement(mode);
        let mut ack = self.templates[0];
        ack.len = FRAME_HEADERS;
        ack.sent = now;
        ack.echo = packet.sent;
        if mode == Mode::AccEcn {
            ack.ecn = ack_field(mode, &cc);
            ack.ace = synack_bits(mode, packet.ecn);
        }
        out.push(ack);
        let host = &self.place.hosts[0];
        let exit = &self.place.exit;
        let setup = SenderSetup {
            template: self.templates[0],
            mode,
            option: agreement.option_clock(&host.ecn),
            sce_pacing: host.sce_pacing,
            mss: self.mss,
            hz: host.hz,
            ss_ratio: host.ss_ratio,
            ca_ratio: host.ca_ratio,
            max_pacing_rate: self.max_pacing_rate,
            fq: exit.fq,
            gso: exit.gso,
            single_segments: exit.single_segments,
            charges: exit.charges.clone(),
            handshake_rtt,
            sysctl: host.sender,
        };
        let mut sender = agreement.sender(setup, cc, u64::from(packet.window), now);
        if syn.timeouts > 0 {
            sender.syn_timed_out(self.request());
        }
        sender.heard_from_peer(packet.sent);
        self.sender = Some(sender);
        true
    }

    /// When the sending end's earliest timer expires, or the SYN's.
    pub fn sender_deadline(&self) -> Option<Time> {
        match &self.sender {
            Some(sender) => sender.deadline(),
            None => self.syn.map(|syn| syn.due()),
        }
    }

    /// Runs the sender's timers, or the SYN's.
    pub fn on_sender_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        if let Some(sender) = &mut self.sender {
            sender.on_timer(now, out);
        } else if let Some(syn) = self.syn.as_mut().filter(|syn| syn.due() <= now) {
            syn.repeat(now);
            let timeouts = syn.timeouts;
            self.send_syn(timeouts, now, out);
        }
    }

    /// When the receiving end's earliest timer expires.
    pub fn receiver_deadline(&self) -> Option<Time> {
        self.receiver.as_ref().and_then(Receiver::deadline)
    }

    /// Runs the receiving end's timers that are due.
    pub fn on_receiver_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        if let Some(receiver) = self.receiver.as_mut().filter(|r| r.deadline().is_some_and(|d| d <= now)) {
            receiver.on_timer(now, out);
        }
    }

    /// The RTT that the last packet told, in microseconds; see [`Sender::last_rtt_us`].
    pub fn last_rtt_us(&self) -> Option<u64> {
        self.sender.as_ref().and_then(|s| s.last_rtt_us)
    }

    /// In-order payload bytes that reached the receiving application.
    pub fn received(&self) -> u64 {
        self.receiver.as_ref().map_or(0, |r| r.counters.received)
    }

    /// What it counted; none before it is open.
    pub fn totals(&self) -> Option<Totals> {
        let sender = self.sender.as_ref()?;
        let sock = sender.sock();
        Some(Totals {
            sender: sender.counters,
            delivered: sock.delivered,
            delivered_ce: sock.delivered_ce,
            lost: sock.lost,
            receiver: self.receiver.as_ref().map(|r| r.counters).unwrap_or_default(),
        })
    }

    /// What went wrong inside the congestion control, if anything did.
    pub fn failure(&self) -> Option<String> {
        self.sender.as_ref().and_then(|s| s.cc().failure())
    }
}
