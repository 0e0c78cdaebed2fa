//! A flow: what an application does with one connection, with many, or with datagrams.

use bakeoff_workload::{Next, Player};

use crate::base::histogram::Times;
use crate::base::units::Time;
use crate::cc::{Cc, Registry};
use crate::endpoint::connection::{Connection, Place, Totals, congestion_control};
use crate::endpoint::datagrams::{Datagrams, paced};
use crate::endpoint::short::Short;
use crate::packet::{Flags, Packet};
use crate::tcp::ecn::Mode;
use crate::tcp::receiver::ReceiverCounters;
use crate::tcp::sender::Sender;
use bakeoff_document::run;
use bakeoff_document::run::Source;

/// A source without end.
const ENDLESS: u64 = 1 << 60;

/// What an application does.
pub enum Application {
    /// Writes into one connection: without end, so many bytes, or so many per interval.
    Bulk(Box<Bulk>),
    /// Opens a connection for each object.
    Short(Box<Short>),
    /// Plays a video that it fetches segment by segment over one connection.
    Video(Box<Video>),
    /// Sends datagrams.
    Datagrams(Box<Datagrams>),
}

/// An application that writes into one connection.
pub struct Bulk {
    connection: Connection,
    /// Bytes so far.
    written: u64,
    /// When it writes next, once it has begun.
    next_write: Option<Time>,
    /// The connection was told that no more comes.
    closed: bool,
}

/// A video player and its connection.
pub struct Video {
    connection: Connection,
    player: Player,
    /// Bytes asked for so far.
    written: u64,
}

/// A flow in the simulation.
pub struct Flow {
    /// As in the resolved run.
    pub spec: run::Flow,
    /// Sending and receiving node.
    pub nodes: [u16; 2],
    /// What it does.
    pub application: Application,
    mss: u32,
    /// RTT samples inside the window.
    pub rtts: Times,
    /// Received bytes when last sampled.
    pub sampled_received: u64,
}

impl Flow {
    /// Prepares a flow.
    ///
    /// # Errors
    /// What this simulator cannot do, by name.
    pub fn new(spec: &run::Flow, place: &Place, modules: &Registry) -> Result<Flow, String> {
        let at = format!("flows[{}]", place.id);
        check_source(spec, &at)?;
        let connection =
            || Connection::new(spec, &spec.name, 0, place, modules).map_err(|e| format!("{at}.cc: {e}"));
        let application = match (spec.transport.as_str(), &spec.source) {
            ("udp", _) => Application::Datagrams(Box::new(Datagrams::new(spec, place))),
            ("tcp", Source::Video { rates_bps, segment_s, buffer_s }) => {
                let [start, segment, buffer] =
                    [spec.start_s, *segment_s, *buffer_s].map(|s| Time::from_secs_f64(s).as_ns());
                let player = Player::new(rates_bps, segment, buffer, start);
                let player = player.map_err(|e| format!("{at}.source.{e}"))?;
                Application::Video(Box::new(Video { connection: connection()?, player, written: 0 }))
            }
            ("tcp", Source::Short { objects }) => {
                // Refused even where there is no object.
                congestion_control(spec, &spec.name, place.seed, modules)
                    .map_err(|e| format!("{at}.cc: {e}"))?;
                Application::Short(Box::new(Short::new(spec, objects, place, modules)?))
            }
            ("tcp", _) => Application::Bulk(Box::new(Bulk {
                connection: connection()?,
                written: 0,
                next_write: None,
                closed: false,
            })),
            (other, _) => {
                return Err(format!("{at}.transport: unknown transport '{other}'; known: tcp, udp"));
            }
        };
        Ok(Flow {
            spec: spec.clone(),
            nodes: place.nodes,
            application,
            mss: place.mss(),
            rtts: Times::default(),
            sampled_received: 0,
        })
    }

    /// Payload bytes of a full segment.
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// Its connection, if it has one all the time.
    #[inline]
    fn connection(&self) -> Option<&Connection> {
        match &self.application {
            Application::Bulk(bulk) => Some(&bulk.connection),
            Application::Video(video) => Some(&video.connection),
            Application::Short(_) | Application::Datagrams(_) => None,
        }
    }

    #[inline]
    fn connection_mut(&mut self) -> Option<&mut Connection> {
        match &mut self.application {
            Application::Bulk(bulk) => Some(&mut bulk.connection),
            Application::Video(video) => Some(&mut video.connection),
            Application::Short(_) | Application::Datagrams(_) => None,
        }
    }

    /// The sender of its connection, once that is open.
    #[inline]
    pub fn sender(&self) -> Option<&Sender> {
        self.connection()?.sender.as_ref()
    }

    /// The same, to change it.
    #[inline]
    pub fn sender_mut(&mut self) -> Option<&mut Sender> {
        self.connection_mut()?.sender.as_mut()
    }

    /// Whether it has sent, or could have received, anything.
    pub fn has_begun(&self) -> bool {
        match &self.application {
            Application::Short(_) => true,
            Application::Datagrams(datagrams) => datagrams.sent().packets > 0,
            Application::Bulk(_) | Application::Video(_) => {
                self.connection().is_some_and(|c| c.receiver.is_some())
            }
        }
    }

    /// A packet of this flow reached its destination. Returns true if the application has to be
    /// called (the connection is open now).
    #[inline]
    pub fn on_packet(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) -> bool {
        match &mut self.application {
            Application::Bulk(bulk) => bulk.connection.on_packet(packet, now, out),
            Application::Short(short) => {
                short.on_packet(packet, now, out);
                false
            }
            Application::Video(video) => {
                let opened = video.connection.on_packet(packet, now, out);
                let acked = packet.dst == self.nodes[0] && !packet.flags.has(Flags::SYN);
                opened || (acked && video.connection.sender.as_ref().is_some_and(Sender::is_done))
            }
            Application::Datagrams(datagrams) => {
                datagrams.on_packet(packet, now);
                false
            }
        }
    }

    /// The same of a packet for the sending end.
    #[expect(clippy::inline_always, reason = "part of each packet's way")]
    #[inline(always)]
    pub fn on_packet_to_sender(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) -> bool {
        if let Application::Bulk(bulk) = &mut self.application
            && let Some(sender) = &mut bulk.connection.sender
            && !packet.flags.has(Flags::SYN)
        {
            sender.on_ack(packet, now, out);
            return false;
        }
        self.on_packet(packet, now, out)
    }

    /// The same of a packet for the receiving end; when the earliest timer there expires.
    #[expect(clippy::inline_always, reason = "part of each packet's way")]
    #[inline(always)]
    pub fn on_packet_to_receiver(
        &mut self,
        packet: &Packet,
        now: Time,
        out: &mut Vec<Packet>,
    ) -> Option<Time> {
        if let Application::Bulk(bulk) = &mut self.application {
            bulk.connection.on_packet_to_receiver(packet, now, out);
            return bulk.connection.receiver_deadline();
        }
        self.on_packet(packet, now, out);
        self.receiver_deadline()
    }

    /// When the sending side's earliest timer expires.
    #[inline]
    pub fn sender_deadline(&self) -> Option<Time> {
        match &self.application {
            Application::Short(short) => short.sender_deadline(),
            _ => self.connection()?.sender_deadline(),
        }
    }

    /// None of them expires before this time: less work than to say when one does, where that matters.
    #[inline]
    pub fn sender_waits_until(&self) -> Time {
        match &self.application {
            Application::Bulk(bulk) => {
                if let Some(sender) = &bulk.connection.sender {
                    sender.waits_until()
                } else {
                    Time::ZERO
                }
            }
            _ => Time::ZERO,
        }
    }

    /// Whether its congestion control comes from outside this crate.
    pub fn is_controlled_from_outside(&self) -> bool {
        self.connection().and_then(Connection::module).is_some_and(|cc| matches!(cc, Cc::User(_)))
    }

    /// Runs the sending side's timers that are due.
    pub fn on_sender_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        if let Application::Short(short) = &mut self.application {
            short.on_sender_timer(now, out);
        } else if let Some(connection) = self.connection_mut() {
            connection.on_sender_timer(now, out);
        }
    }

    /// When the receiving side's earliest timer expires.
    #[inline]
    pub fn receiver_deadline(&self) -> Option<Time> {
        match &self.application {
            Application::Short(short) => short.receiver_deadline(),
            _ => self.connection()?.receiver_deadline(),
        }
    }

    /// Runs the receiving side's timers that are due.
    pub fn on_receiver_timer(&mut self, now: Time, out: &mut Vec<Packet>) {
        if let Application::Short(short) = &mut self.application {
            short.on_receiver_timer(now, out);
        } else if let Some(connection) = self.connection_mut() {
            connection.on_receiver_timer(now, out);
        }
    }

    /// The RTT that the last packet told, in microseconds; see [`Sender::last_rtt_us`].
    #[inline]
    pub fn last_rtt_us(&self) -> Option<u64> {
        match &self.application {
            Application::Short(short) => short.last_rtt_us,
            _ => self.connection()?.last_rtt_us(),
        }
    }

    /// The application's turn: it opens its connection first, then offers what is due. Returns when it wants to be
    /// called again.
    pub fn on_source(&mut self, now: Time, out: &mut Vec<Packet>) -> Option<Time> {
        let stop = Time::from_secs_f64(self.spec.stop_s);
        if let Some(connection) = self.connection_mut()
            && connection.is_closed()
        {
            connection.connect(now, out);
            return None;
        }
        match &mut self.application {
            Application::Bulk(bulk) => bulk.write(&self.spec.source, now, stop, out),
            Application::Short(short) => short.start_due(now, stop, out),
            Application::Video(video) => video.play(now, stop, out),
            Application::Datagrams(datagrams) => datagrams.send_due(&self.spec.source, now, stop, out),
        }
    }

    /// The application has another source from now on; what it wrote and TCP did not send is dropped.
    pub fn change_source(&mut self, source: Source) {
        self.spec.source = source;
        if let Application::Bulk(bulk) = &mut self.application
            && let Some(sender) = bulk.connection.sender.as_mut()
        {
            sender.close();
            bulk.written = sender.write_seq();
            bulk.next_write = None;
        }
    }

    /// Packets sent so far.
    pub fn sent_packets(&self) -> u64 {
        match &self.application {
            Application::Datagrams(datagrams) => datagrams.sent().packets,
            _ => self.totals().map_or(0, |totals| totals.sender.sent_packets),
        }
    }

    /// Bytes of memory that grow with what it sends.
    pub fn bytes(&self) -> u64 {
        match &self.application {
            Application::Datagrams(datagrams) => datagrams.bytes(),
            _ => 0,
        }
    }

    /// In-order payload bytes that reached the receiving application.
    pub fn received(&self) -> u64 {
        match &self.application {
            Application::Bulk(bulk) => bulk.connection.received(),
            Application::Video(video) => video.connection.received(),
            Application::Short(short) => short.totals().receiver.received,
            Application::Datagrams(datagrams) => datagrams.received().bytes,
        }
    }

    /// What its connection, or connections, counted; none before one is open, and of datagrams.
    pub fn totals(&self) -> Option<Totals> {
        match &self.application {
            Application::Short(short) => Some(short.totals()),
            _ => self.connection()?.totals(),
        }
    }

    /// What its receivers counted; none before a SYN arrived, and of datagrams.
    pub fn receiver_counters(&self) -> Option<ReceiverCounters> {
        match &self.application {
            Application::Short(short) => Some(short.totals().receiver),
            _ => Some(self.connection()?.receiver.as_ref()?.counters),
        }
    }

    /// How many segments of data or datagrams reached the receiver with each ECN field (`Ecn as usize`).
    pub fn arrived_by_ecn(&self) -> Option<[u64; 4]> {
        match &self.application {
            Application::Datagrams(datagrams) => Some(datagrams.ecn()),
            _ => self.receiver_counters().map(|counters| counters.ecn),
        }
    }

    /// What went wrong inside a congestion control, if anything did.
    pub fn failure(&self) -> Option<String> {
        match &self.application {
            Application::Short(short) => short.failure(),
            _ => self.connection()?.failure(),
        }
    }

    /// What happened to the application, by metric, in order of time: docs/results-folder.md.
    pub fn happenings(&mut self, now: Time) -> Vec<(&'static str, Vec<(Time, f64)>)> {
        match &mut self.application {
            Application::Bulk(_) => Vec::new(),
            Application::Short(short) => short.happenings(),
            Application::Video(video) => video.happenings(Time::from_secs_f64(self.spec.start_s), now),
            Application::Datagrams(datagrams) => datagrams.happenings(now),
        }
    }

    /// The name of the feedback in use.
    pub fn ecn_name(&self) -> &'static str {
        let mode = match &self.application {
            Application::Short(short) => short.mode,
            _ => self.connection().and_then(|c| c.mode),
        };
        match mode {
            Some(Mode::AccEcn) => "accecn",
            Some(Mode::Rfc3168) => "rfc3168",
            _ => "off",
        }
    }
}

fn check_source(spec: &run::Flow, at: &str) -> Result<(), String> {
    match &spec.source {
        Source::Rate { .. } | Source::Periodic { .. } => Ok(()),
        _ if spec.transport == "udp" => Err(format!("{at}.source: a udp flow needs 'rate' or 'periodic'")),
        _ => Ok(()),
    }
}

impl Bulk {
    fn write(&mut self, source: &Source, now: Time, stop: Time, out: &mut Vec<Packet>) -> Option<Time> {
        let sender = self.connection.sender.as_mut()?;
        if now >= stop {
            if !self.closed && !matches!(source, Source::Bytes { .. }) {
                sender.close();
            }
            self.closed = true;
            return None;
        }
        let due = self.next_write.unwrap_or(now);
        if due > now {
            // The source that called for this was replaced.
            return None;
        }
        let (bytes, next) = match source {
            Source::Bytes { bytes } => (*bytes, stop),
            _ => paced(source, due).unwrap_or((ENDLESS, stop)),
        };
        self.next_write = Some(next);
        self.written = (self.written + bytes).min(ENDLESS);
        sender.write(self.written, now, out);
        Some(next.min(stop))
    }
}

impl Video {
    /// The player asks for its next segment if it is time to; an answer that is complete is taken note of first.
    fn play(&mut self, now: Time, stop: Time, out: &mut Vec<Packet>) -> Option<Time> {
        let sender = self.connection.sender.as_mut()?;
        if sender.is_done() {
            self.player.arrived(now.as_ns());
        }
        if now >= stop {
            return None;
        }
        match self.player.next(now.as_ns()) {
            Next::Fetching => None,
            Next::Wait(until) => Some(Time(until)),
            Next::Fetch(bytes) => {
                self.written += bytes;
                sender.write(self.written, now, out);
                None
            }
        }
    }

    fn happenings(&mut self, start: Time, now: Time) -> Vec<(&'static str, Vec<(Time, f64)>)> {
        let player = &mut self.player;
        let seconds = |ns: u64| Time(ns).as_secs_f64();
        let stalls = player.stalls(now.as_ns()).into_iter();
        vec![
            ("startup", player.startup().map(|ns| (start, seconds(ns))).into_iter().collect()),
            ("segment_rate", player.segments().iter().map(|s| (Time(s.asked), s.rate_bps as f64)).collect()),
            ("buffer", player.segments().iter().map(|s| (Time(s.arrived), seconds(s.level))).collect()),
            ("stall", stalls.map(|(at, lasted)| (Time(at), seconds(lasted))).collect()),
        ]
    }
}
