//! A flow: an application, a TCP connection with its handshake, or a train of datagrams.

use bakeoff_workload::{Next, Player};

use crate::base::histogram::Times;
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::cc::{Cc, CcEnv, CongestionControl, Registry};
use crate::document::run::{Flow, Source};
use crate::endpoint::probe::PATIENCE;
use crate::endpoint::short::Short;
use crate::packet::charge::Charges;
use crate::packet::{Ecn, Flags, Packet, Proto};
use crate::tcp::accecn::{OPTION_LEN, OptionClock};
use crate::tcp::ecn::{Mode, Sysctls, mode_of_synack, syn_bits, syn_keeps_bits, synack_bits};
use crate::tcp::feedback::Feedback;
use crate::tcp::receive_window::Buffer;
use crate::tcp::receiver::{Receiver, ReceiverCounters};
use crate::tcp::sender::{Sender, SenderCounters, SenderSetup, Sysctl};

/// Frame bytes of a SYN: Ethernet 14, IPv4 20, TCP 40.
const SYN_LEN: u32 = 74;
/// Bytes that a frame has around a UDP payload: Ethernet 14, IPv4 20, UDP 8.
const UDP_HEADERS: u32 = 42;
const SYN_TIMEOUT: Time = Time::from_ms(1000);
/// `tcp_syn_linear_timeouts`: so many repeated SYNs come at that interval before it doubles.
const LINEAR_SYNS: u32 = 4;
/// `TCP_RTO_MAX`
const SYN_TIMEOUT_MAX: Time = Time::from_ms(120_000);
/// A source without end.
const ENDLESS: u64 = 1 << 60;

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
    /// Sysctls of its senders.
    pub sender: Sysctl,
}

/// What the connections of a flow counted.
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

/// How a flow's packets leave the sending host.
#[derive(Clone, Default)]
pub struct Exit {
    /// Through a queue that holds them until they are to depart.
    pub fq: bool,
    /// Several segments in one buffer.
    pub gso: bool,
    /// See [`SenderSetup::charges`].
    pub charges: Option<Charges>,
    /// [`Packet::tunnel`]
    pub tunnel: u8,
}

/// Where a connection stands.
enum Phase {
    Idle,
    SynSent { at: Time, timeout: Time, repeats: u32 },
    Established,
}

/// A flow in the simulation.
pub struct FlowState {
    /// As in the resolved run.
    pub spec: Flow,
    /// Index in the run's table of traffic.
    pub id: u16,
    /// Sending and receiving node.
    pub nodes: [u16; 2],
    hosts: [Host; 2],
    exit: Exit,
    mss: u32,
    /// [`Packet::conn`]
    pub conn: u16,
    /// The connections of a `short` source, which has none of its own.
    pub short: Option<Box<Short>>,
    /// The application of a `video` source.
    pub player: Option<Player>,
    phase: Phase,
    cc: Option<Cc>,
    /// The connection's sender, once established.
    pub sender: Option<Sender>,
    /// The connection's receiver, once the SYN arrived.
    pub receiver: Option<Receiver>,
    /// Feedback in use, once known.
    pub mode: Option<Mode>,
    hashes: [u32; 2],
    next_write: Time,
    written: u64,
    stopped: bool,
    /// Datagrams: sent and received, in packets and payload bytes.
    pub datagrams: [(u64, u64); 2],
    /// Of each datagram, by its number: when it was sent, and how long its first copy took to the receiver, if it came.
    transits: Vec<(Time, Option<Time>)>,
    /// RTT samples inside the window.
    pub rtts: Times,
    /// Received bytes when last sampled.
    pub sampled_received: u64,
}

impl FlowState {
    /// Prepares a flow.
    ///
    /// # Errors
    /// What this simulator cannot do, by name.
    pub fn new(
        spec: &Flow,
        id: u16,
        nodes: [u16; 2],
        hosts: [Host; 2],
        mtu: u32,
        seed: u64,
        modules: &Registry,
    ) -> Result<Self, String> {
        let place = format!("flows[{id}]");
        match &spec.source {
            Source::Rate { .. } | Source::Periodic { .. } => {}
            _ if spec.transport == "udp" => {
                return Err(format!("{place}.source: a udp flow needs 'rate' or 'periodic'"));
            }
            _ => {}
        }
        match &spec.source {
            Source::Rate { rate_bps: 0, .. } => {
                return Err(format!("{place}.source.rate_bps: must be above 0"));
            }
            Source::Rate { size: 0, .. } | Source::Periodic { size: 0, .. } => {
                return Err(format!("{place}.source.size: must be above 0"));
            }
            Source::Periodic { every_s, .. } if *every_s <= 0.0 => {
                return Err(format!("{place}.source.every_s: {every_s} is not a time above 0"));
            }
            _ => {}
        }
        let player = match &spec.source {
            Source::Video { rates_bps, segment_s, buffer_s } => {
                let [start, segment, buffer] =
                    [spec.start_s, *segment_s, *buffer_s].map(|s| Time::from_secs_f64(s).as_ns());
                let player = Player::new(rates_bps, segment, buffer, start);
                Some(player.map_err(|e| format!("{place}.source.{e}"))?)
            }
            _ => None,
        };
        let mut rng = Stream::new(seed, &format!("flow/{}", spec.name));
        let hashes = [rng.u32(), rng.u32()];
        let cc = match spec.transport.as_str() {
            "tcp" => Some(build_cc(spec, seed, modules).map_err(|e| format!("{place}.cc: {e}"))?),
            "udp" => None,
            other => return Err(format!("{place}.transport: unknown transport '{other}'; known: tcp, udp")),
        };
        let short = match &spec.source {
            Source::Short { objects } => {
                let one = |part: &Flow| FlowState::new(part, id, nodes, hosts.clone(), mtu, seed, modules);
                Some(Box::new(Short::new(spec, objects, &place, one)?))
            }
            _ => None,
        };
        Ok(FlowState {
            spec: spec.clone(),
            id,
            nodes,
            hosts,
            exit: Exit::default(),
            conn: 0,
            short,
            player,
            // IPv4 20, TCP 20, timestamps 12
            mss: mtu - 52,
            phase: Phase::Idle,
            cc,
            sender: None,
            receiver: None,
            mode: None,
            hashes,
            next_write: Time::ZERO,
            written: 0,
            stopped: false,
            datagrams: [(0, 0); 2],
            transits: Vec::new(),
            rtts: Times::default(),
            sampled_received: 0,
        })
    }

    /// Payload bytes of a full segment.
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// Sets how its packets leave the sending host.
    pub fn leaves_by(&mut self, exit: &Exit) {
        self.exit = exit.clone();
        // Short connections share a flow's number, by which memory is given back.
        let part_exit = Exit { charges: None, ..exit.clone() };
        for part in self.short.iter_mut().flat_map(|short| short.parts()) {
            part.leaves_by(&part_exit);
        }
    }

    fn template(&self, side: usize) -> Packet {
        Packet {
            flow: self.id,
            conn: self.conn,
            dst: self.nodes[1 - side],
            dscp: self.spec.dscp,
            hash: self.hashes[side],
            flags: Flags::ACK,
            proto: if self.spec.transport == "udp" { Proto::Udp } else { Proto::Tcp },
            tunnel: self.exit.tunnel,
            ..Packet::default()
        }
    }

    /// Opens the connection, or starts the train of datagrams; returns when to call `on_source` next.
    pub fn start(&mut self, now: Time, out: &mut Vec<Packet>) -> Option<Time> {
        self.next_write = now;
        if self.spec.transport == "udp" || self.short.is_some() {
            return self.on_source(now, out);
        }
        self.phase = Phase::SynSent { at: now, timeout: SYN_TIMEOUT, repeats: 0 };
        self.send_syn(0, now, out);
        None
    }

    /// The module, which the sender has once there is one.
    fn module(&self) -> Option<&Cc> {
        self.cc.as_ref().or_else(|| self.sender.as_ref().map(Sender::cc))
    }

    fn needs_ecn(&self) -> bool {
        self.module().is_some_and(CongestionControl::needs_ecn)
    }

    /// The ECN field of what a module that needs ECN sends, even while ECN is being negotiated.
    fn ect_if_needed(&self) -> Ecn {
        if self.needs_ecn() { self.ect() } else { Ecn::NotEct }
    }

    fn ect(&self) -> Ecn {
        if self.module().is_some_and(CongestionControl::ect1) { Ecn::Ect1 } else { Ecn::Ect0 }
    }

    fn request(&self) -> Mode {
        self.hosts[0].ecn.ecn.request(self.needs_ecn())
    }

    /// Whether both ends send AccECN's option: each only if it sees the other's.
    fn accecn_option(&self) -> bool {
        self.hosts.iter().all(|h| h.ecn.option > 0)
    }

    /// SACK is permitted by both ends or not used.
    fn sack(&self) -> bool {
        self.hosts.iter().all(|h| h.sender.sack)
    }

    fn send_syn(&mut self, repeats: u32, now: Time, out: &mut Vec<Packet>) {
        let request = self.request();
        let mut syn = self.template(0);
        syn.flags = Flags::SYN;
        syn.len = SYN_LEN;
        syn.sent = now;
        syn.ecn = self.ect_if_needed();
        if syn_keeps_bits(request, repeats, self.hosts[0].ecn.fallback) {
            syn.ace = syn_bits(request);
        }
        out.push(syn);
    }

    /// A packet of this flow reached its destination. Returns true if the application has to be
    /// called (the connection is open now).
    pub fn on_packet(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) -> bool {
        if packet.proto == Proto::Udp {
            self.datagrams[1].0 += 1;
            self.datagrams[1].1 += u64::from(packet.payload);
            if let Some((sent, took)) = self.transits.get_mut(packet.seq as usize) {
                took.get_or_insert(now - *sent);
            }
            return false;
        }
        let to_server = packet.dst == self.nodes[1];
        if let Some(short) = &mut self.short {
            short.on_packet(packet, now, out);
            return false;
        }
        match (to_server, packet.flags.has(Flags::SYN)) {
            (true, true) => self.on_syn(packet, now, out),
            (true, false) => {
                if packet.payload > 0
                    && let Some(receiver) = &mut self.receiver
                {
                    receiver.on_data(packet, now, out);
                }
            }
            (false, true) => return self.on_synack(packet, now),
            (false, false) => {
                if let Some(sender) = &mut self.sender {
                    sender.on_ack(packet, now, out);
                    return self.player.is_some() && sender.is_done();
                }
            }
        }
        false
    }

    fn on_syn(&mut self, syn: &Packet, now: Time, out: &mut Vec<Packet>) {
        let host = &self.hosts[1];
        let mode = host.ecn.ecn.accept(syn.ace, syn.ecn, self.needs_ecn());
        let mut template = self.template(1);
        template.ecn = match mode {
            Mode::AccEcn => self.ect(),
            // Modules of ECT(1) run as Reno without AccECN.
            Mode::Rfc3168 if self.ect() == Ecn::Ect0 => self.ect_if_needed(),
            _ => Ecn::NotEct,
        };
        let state_changes = self.module().is_some_and(CongestionControl::tells_state_changes);
        let feedback = Feedback::new(mode, &host.ecn, state_changes, self.accecn_option());
        let mut receiver = Receiver::new(template, feedback, self.mss, host.hz, host.receive);
        if !self.sack() {
            receiver = receiver.without_sack();
        }
        let mut reply = self.template(1);
        reply.flags = Flags::SYN.with(Flags::ACK);
        reply.len = SYN_LEN;
        if mode == Mode::AccEcn && host.ecn.option > 0 {
            reply.len += OPTION_LEN;
            reply.n_accecn = 3;
        }
        reply.sent = now;
        reply.echo = syn.sent;
        reply.ecn = self.ect_if_needed();
        reply.ace = synack_bits(mode, syn.ecn);
        reply.window = self.receiver.get_or_insert(receiver).window();
        out.push(reply);
    }

    fn on_synack(&mut self, packet: &Packet, now: Time) -> bool {
        let Phase::SynSent { .. } = self.phase else { return false };
        let mode = mode_of_synack(self.request(), packet.ace);
        let Some(cc) = self.cc.take() else { return false };
        self.mode = Some(mode);
        self.phase = Phase::Established;
        let host = &self.hosts[0];
        let setup = SenderSetup {
            template: self.template(0),
            mode,
            option: OptionClock::new(
                if mode == Mode::AccEcn && self.accecn_option() { host.ecn.option } else { 0 },
                host.ecn.beacon,
            ),
            sce_pacing: host.sce_pacing,
            mss: self.mss,
            hz: host.hz,
            ss_ratio: host.ss_ratio,
            ca_ratio: host.ca_ratio,
            max_pacing_rate: self.spec.max_pacing_rate_bps.map(|r| r / 8),
            fq: self.exit.fq,
            gso: self.exit.gso,
            charges: self.exit.charges.clone(),
            handshake_rtt: Time::from_us(now.us_since(packet.echo)),
            sysctl: host.sender,
        };
        let mut sender = Sender::new(setup, cc, now);
        if !self.sack() {
            sender.without_sack();
        }
        sender.set_window(u64::from(packet.window));
        self.sender = Some(sender);
        self.next_write = now;
        true
    }

    /// The sender's timers, or the SYN's.
    pub fn on_sender_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        if let Some(short) = &mut self.short {
            return short.on_sender_timer(now, out);
        }
        match &mut self.phase {
            Phase::SynSent { at, timeout, repeats } if *at + *timeout <= now => {
                *at = now;
                if *repeats >= LINEAR_SYNS {
                    *timeout = (*timeout + *timeout).min(SYN_TIMEOUT_MAX);
                }
                *repeats += 1;
                let repeats = *repeats;
                self.send_syn(repeats, now, out);
            }
            Phase::Established => {
                if let Some(sender) = &mut self.sender {
                    sender.on_timer(now, out);
                }
            }
            _ => {}
        }
    }

    /// When the sending side's earliest timer expires.
    pub fn sender_deadline(&self) -> Option<Time> {
        if let Some(short) = &self.short {
            return short.sender_deadline();
        }
        match &self.phase {
            Phase::Idle => None,
            Phase::SynSent { at, timeout, .. } => Some(*at + *timeout),
            Phase::Established => self.sender.as_ref().and_then(Sender::deadline),
        }
    }

    /// When the receiving side's earliest timer expires.
    pub fn receiver_deadline(&self) -> Option<Time> {
        match &self.short {
            None => self.receiver.as_ref().and_then(Receiver::deadline),
            Some(short) => short.receiver_deadline(),
        }
    }

    /// Runs the receiving side's timers that are due.
    pub fn on_receiver_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        if let Some(short) = &mut self.short {
            short.on_receiver_timer(now, out);
        } else if let Some(receiver) =
            self.receiver.as_mut().filter(|r| r.deadline().is_some_and(|d| d <= now))
        {
            receiver.on_timer(now, out);
        }
    }

    /// The RTT that the last packet told, in microseconds; see [`Sender::last_rtt_us`].
    pub fn last_rtt_us(&self) -> Option<u64> {
        match &self.short {
            None => self.sender.as_ref().and_then(|s| s.last_rtt_us),
            Some(short) => short.last_rtt_us,
        }
    }

    /// The application writes what is due; returns when it wants to be called again.
    pub fn on_source(&mut self, now: Time, out: &mut Vec<Packet>) -> Option<Time> {
        let stop = Time::from_secs_f64(self.spec.stop_s);
        if let Some(short) = &mut self.short {
            return short.start_due(now, stop, out);
        }
        if self.player.is_some() {
            return self.play(now, stop, out);
        }
        if now >= stop {
            if let Some(sender) = &mut self.sender
                && !self.stopped
                && !matches!(self.spec.source, Source::Bytes { .. })
            {
                sender.close();
            }
            self.stopped = true;
            return None;
        }
        let (bytes, next) = match &self.spec.source {
            Source::Bulk => (ENDLESS, stop),
            Source::Bytes { bytes } => (*bytes, stop),
            Source::Rate { rate_bps, size } => {
                let gap = Time((u64::from(*size) * 8_000_000_000 / rate_bps).max(1));
                (u64::from(*size), self.next_write + gap)
            }
            Source::Periodic { size, count, every_s } => {
                (u64::from(*size) * u64::from(*count), self.next_write + Time::from_secs_f64(*every_s))
            }
            // Both were served above.
            Source::Short { .. } | Source::Video { .. } => return None,
        };
        self.next_write = next;
        if self.spec.transport == "udp" {
            self.send_datagrams(bytes, now, out);
        } else if let Some(sender) = &mut self.sender {
            self.written = (self.written + bytes).min(ENDLESS);
            sender.write(self.written, now, out);
        }
        Some(next.min(stop))
    }

    /// The video player asks for its next segment if it is time to; an answer that is complete was taken note of before.
    fn play(&mut self, now: Time, stop: Time, out: &mut Vec<Packet>) -> Option<Time> {
        let (Some(player), Some(sender)) = (&mut self.player, &mut self.sender) else { return None };
        if sender.is_done() {
            player.arrived(now.as_ns());
        }
        if now >= stop {
            return None;
        }
        match player.next(now.as_ns()) {
            Next::Fetching => None,
            Next::Wait(until) => Some(Time(until)),
            Next::Fetch(bytes) => {
                self.written += bytes;
                sender.write(self.written, now, out);
                None
            }
        }
    }

    fn send_datagrams(&mut self, bytes: u64, now: Time, out: &mut Vec<Packet>) {
        let (Source::Rate { size, .. } | Source::Periodic { size, .. }) = self.spec.source else { return };
        for _ in 0..bytes / u64::from(size) {
            let mut packet = self.template(0);
            packet.seq = self.datagrams[0].0;
            packet.payload = size;
            packet.len = size + UDP_HEADERS;
            packet.sent = now;
            self.datagrams[0].0 += 1;
            self.datagrams[0].1 += u64::from(size);
            self.transits.push((now, None));
            out.push(packet);
        }
    }

    /// In-order payload bytes that reached the receiving application.
    pub fn received(&self) -> u64 {
        if let Some(short) = &self.short {
            return short.totals().receiver.received;
        }
        self.receiver.as_ref().map_or(self.datagrams[1].1, |r| r.counters.received)
    }

    /// What its connection, or connections, counted; none before one is open, and of datagrams.
    pub fn totals(&self) -> Option<Totals> {
        if let Some(short) = &self.short {
            return Some(short.totals());
        }
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

    /// What went wrong inside a congestion control, if anything did.
    pub fn failure(&self) -> Option<String> {
        match &self.short {
            None => self.sender.as_ref().and_then(|s| s.cc().failure()),
            Some(short) => short.failure(),
        }
    }

    /// What happened to the application, by metric, in order of time: docs/results-folder.md.
    pub fn happenings(&mut self, now: Time) -> Vec<(&'static str, Vec<(Time, f64)>)> {
        if let Some(short) = &self.short {
            return short.happenings();
        }
        if !self.transits.is_empty() {
            return self.transits(now);
        }
        let start = Time::from_secs_f64(self.spec.start_s);
        let Some(player) = &mut self.player else { return Vec::new() };
        let seconds = |ns: u64| Time(ns).as_secs_f64();
        let stalls = player.stalls(now.as_ns()).into_iter();
        vec![
            ("startup", player.startup().map(|ns| (start, seconds(ns))).into_iter().collect()),
            ("segment_rate", player.segments().iter().map(|s| (Time(s.asked), s.rate_bps as f64)).collect()),
            ("buffer", player.segments().iter().map(|s| (Time(s.arrived), seconds(s.level))).collect()),
            ("stall", stalls.map(|(at, lasted)| (Time(at), seconds(lasted))).collect()),
        ]
    }

    /// One-way delays of the datagrams that arrived, and those that never will: a later one came, or two seconds went by.
    fn transits(&self, end: Time) -> Vec<(&'static str, Vec<(Time, f64)>)> {
        let last = self.transits.iter().rposition(|(_, took)| took.is_some());
        let arrived = |&(sent, took): &(Time, Option<Time>)| Some((sent, took?.as_secs_f64()));
        let missing = |(n, &(sent, took)): (usize, &(Time, Option<Time>))| {
            (took.is_none() && (last > Some(n) || sent + PATIENCE < end)).then_some((sent, 1.0))
        };
        vec![
            ("delay", self.transits.iter().filter_map(arrived).collect()),
            ("missing", self.transits.iter().enumerate().filter_map(missing).collect()),
        ]
    }

    /// Frame bytes of the datagrams sent.
    pub fn datagram_frame_bytes(&self) -> u64 {
        let (packets, payload) = self.datagrams[0];
        payload + packets * u64::from(UDP_HEADERS)
    }

    /// The name of the feedback in use.
    pub fn ecn_name(&self) -> &'static str {
        match self.short.as_ref().map_or(self.mode, |short| short.mode) {
            Some(Mode::AccEcn) => "accecn",
            Some(Mode::Rfc3168) => "rfc3168",
            _ => "off",
        }
    }
}

fn build_cc(spec: &Flow, seed: u64, modules: &Registry) -> Result<Cc, String> {
    let env = CcEnv { rng: Stream::new(seed, &format!("cc/{}", spec.name)), now: Time::ZERO };
    Cc::build_with(&spec.cc, env, modules).map_err(|e| e.to_string())
}
