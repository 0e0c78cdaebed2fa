//! Runs a script's events against an endpoint on a virtual clock.

use bakeoff_document::units::Time;
use bakeoff_sim::packet::Ecn;

use crate::endpoint::{Endpoint, Sent, State};
use crate::python;
use crate::script::{Call, Event, Kind, Script, When};
use crate::segment::{Opt, Segment};
use crate::sysctl::Settings;

/// How far a time may be off, in microseconds (packetdrill's default).
const TOLERANCE_US: i64 = 4000;
/// How long to look for a packet that is late, to say by how much.
const LATE_US: i64 = 60_000_000;

/// How long a script may last.
const LONGEST_US: i64 = 10 * 86_400 * 1_000_000;
/// The most that one call may write, in bytes.
const LARGEST_WRITE: u64 = 1 << 30;

/// The names that assertions may use; see `Runner::info`.
pub const INFO_NAMES: &[&str] = &[
    "tcpi_last_data_recv",
    "TCP_CA_Open",
    "TCP_CA_Disorder",
    "TCP_CA_CWR",
    "TCP_CA_Recovery",
    "TCP_CA_Loss",
    "tcpi_ca_state",
    "tcpi_snd_cwnd",
    "tcpi_snd_ssthresh",
    "tcpi_snd_mss",
    "tcpi_unacked",
    "tcpi_sacked",
    "tcpi_lost",
    "tcpi_retrans",
    "tcpi_total_retrans",
    "tcpi_reordering",
    "tcpi_rtt",
    "tcpi_min_rtt",
    "tcpi_delivered",
    "tcpi_delivered_ce",
    "tcpi_delivered_ce_bytes",
    "tcpi_delivered_e0_bytes",
    "tcpi_delivered_e1_bytes",
    "tcpi_received_ce",
    "tcpi_received_ce_bytes",
    "tcpi_received_e0_bytes",
    "tcpi_received_e1_bytes",
    "tcpi_accecn_fail_mode",
    "tcpi_accecn_opt_seen",
];

/// Where a script and the endpoint differ first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Line of the script.
    pub line: usize,
    /// What the script says.
    pub expected: String,
    /// What happened.
    pub got: String,
}

/// A call that waits.
struct Pending {
    call: Call,
    line: usize,
    until_us: i64,
}

/// A script on its way.
pub struct Runner {
    now_us: i64,
    tolerance_us: i64,
    ticks: bool,
    settings: Settings,
    endpoint: Endpoint,
    listener: Option<String>,
    connection: Option<String>,
    pending: Option<Pending>,
    /// Timestamps: the script's number and ours, of packets that were expected.
    stamps: Vec<(u32, u32)>,
    /// What happened, for `--verbose`.
    pub log: Vec<String>,
}

type Step = Result<(), (String, String)>;

fn differ<T>(expected: impl Into<String>, got: impl Into<String>) -> Result<T, (String, String)> {
    Err((expected.into(), got.into()))
}

impl Runner {
    /// Prepares a script.
    pub fn new(script: &Script) -> Self {
        let option = |name: &str| script.options.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        let settings = Settings::default();
        Runner {
            now_us: 0,
            tolerance_us: option("tolerance_usecs")
                .and_then(|v| v.parse().ok())
                .map_or(TOLERANCE_US, |us: i64| us.clamp(0, LATE_US)),
            ticks: option("tcp_ts_tick_usecs").is_some(),
            endpoint: Endpoint::new(settings.clone()),
            settings,
            listener: None,
            connection: None,
            pending: None,
            stamps: Vec::new(),
            log: Vec::new(),
        }
    }

    /// Runs the script up to the first difference.
    ///
    /// # Errors
    /// That difference.
    pub fn run(&mut self, script: &Script) -> Result<(), Difference> {
        for event in &script.events {
            self.event(event).map_err(|(expected, got)| Difference { line: event.line, expected, got })?;
            self.finish_pending()?;
        }
        match &self.pending {
            Some(p) => Err(Difference {
                line: p.line,
                expected: format!("{} returns {}", p.call.name, p.call.result),
                got: "it still waits at the end of the script".into(),
            }),
            None => Ok(()),
        }
    }

    fn event(&mut self, event: &Event) -> Step {
        let (start, end) = match event.when {
            When::Absolute(t) => (t, Some(t)),
            When::Relative(t) => (self.now_us + t, Some(self.now_us + t)),
            When::Between(a, b) => (self.now_us + a, Some(self.now_us + b)),
            When::Within(a, b) => (a, Some(b)),
            When::Any => (self.now_us, None),
        };
        if start.max(end.unwrap_or(start)) > LONGEST_US {
            return differ("a script of at most ten days", "a later time");
        }
        if let Kind::Expect(segment) = &event.kind {
            return self.expect(segment, start, end);
        }
        self.advance(start)?;
        match &event.kind {
            Kind::Inject(segment) => {
                self.log.push(format!("{:>9.6} < {segment}", seconds(self.now_us)));
                let segment = self.with_our_stamps(segment);
                let now = self.now();
                self.endpoint.on_segment(&segment, now).or_else(|e| differ("a known congestion control", e))
            }
            Kind::Shell(commands) => {
                self.settings.run(commands).or_else(|e| differ("a setting", e))?;
                if self.endpoint.state() == State::Closed {
                    self.endpoint = Endpoint::new(self.settings.clone());
                } else {
                    self.endpoint.set_ecn_option(self.settings.ecn_option);
                }
                Ok(())
            }
            Kind::Python(code) => self.assertions(code),
            Kind::Call(call) => self.call(call, event, start),
            Kind::Expect(_) | Kind::OtherPacket(_) => Ok(()),
        }
    }

    fn now(&self) -> Time {
        Time::from_us(self.now_us as u64)
    }

    /// Lets time pass, running timers.
    fn advance(&mut self, to_us: i64) -> Step {
        let to = Time::from_us(to_us.max(self.now_us) as u64);
        while let Some(due) = self.endpoint.deadline().filter(|&due| due <= to) {
            self.endpoint.on_timer(due);
        }
        self.now_us = to_us.max(self.now_us);
        self.finish_pending().map_err(|d| (d.expected, d.got))
    }

    fn expect(&mut self, expected: &Segment, start: i64, end: Option<i64>) -> Step {
        let limit = Time::from_us((end.unwrap_or(start) + LATE_US) as u64);
        while self.endpoint.sent.is_empty() {
            let Some(due) = self.endpoint.deadline().filter(|&due| due <= limit) else { break };
            self.endpoint.on_timer(due);
        }
        let Some(sent) = self.take_like(expected) else {
            return differ(expected.to_string(), "nothing");
        };
        self.log.push(format!("{:>9.6} > {}", sent.at.as_secs_f64(), sent.segment));
        self.compare(expected, &sent)?;
        let at = sent.at.as_us() as i64;
        let slack = sent.slack.as_us() as i64;
        if let Some(end) = end
            && !(start - self.tolerance_us - slack..=end + self.tolerance_us).contains(&at)
        {
            let when = if start == end {
                format!("at {:.6} s", seconds(start))
            } else {
                format!("between {:.6} and {:.6} s", seconds(start), seconds(end))
            };
            return differ(format!("{expected} {when}"), format!("the same at {:.6} s", seconds(at)));
        }
        self.now_us = self.now_us.max(at);
        // A timer that is late in Linux: the script goes on from there.
        if at < start - self.tolerance_us {
            self.advance(start)?;
        }
        Ok(())
    }

    /// The next packet sent. Linux hands a GSO packet of several segments to the wire at once, which the script
    /// sees as one large packet: a run of segments sent together becomes one, as long as the script expects.
    fn take_like(&mut self, expected: &Segment) -> Option<Sent> {
        let mut sent = self.endpoint.sent.pop_front()?;
        while sent.segment.payload > 0 && sent.segment.payload < expected.payload && !sent.segment.flags.fin {
            let first = &sent.segment;
            let follows = self.endpoint.sent.front().is_some_and(|next| {
                next.at == sent.at
                    && next.segment.seq == first.end()
                    && next.segment.payload > 0
                    && first.payload + next.segment.payload <= expected.payload
                    && (next.segment.ecn, next.segment.ace) == (first.ecn, first.ace)
            });
            if !follows {
                break;
            }
            let next = self.endpoint.sent.pop_front()?;
            sent.segment.payload += next.segment.payload;
            sent.segment.flags.fin = next.segment.flags.fin;
        }
        Some(sent)
    }

    fn compare(&mut self, expected: &Segment, sent: &Sent) -> Step {
        let got = &sent.segment;
        // Of the ends of writes, which PSH marks, the simulator knows the last only.
        let flags = |s: &Segment| (s.flags.syn, s.flags.fin, s.flags.rst, s.flags.ack, s.flags.urg);
        let same = flags(expected) == flags(got)
            && expected.ace == got.ace
            && (expected.seq, expected.payload) == (got.seq, got.payload)
            && (!expected.flags.ack || expected.ack == got.ack)
            && expected.window.is_none_or(|w| Some(w) == got.window)
            && expected.ecn.is_none_or(|e| e == got.ecn.unwrap_or(Ecn::NotEct))
            && self.same_options(expected, got);
        if same { Ok(()) } else { differ(expected.to_string(), got.to_string()) }
    }

    fn same_options(&mut self, expected: &Segment, got: &Segment) -> bool {
        let (Some(expected), Some(got)) = (&expected.options, &got.options) else { return true };
        expected.len() == got.len()
            && expected.iter().zip(got).all(|(e, g)| match (e, g) {
                (Opt::Timestamp(e_val, e_ecr), Opt::Timestamp(g_val, g_ecr)) => {
                    let first = *self.stamps.first().unwrap_or(&(*e_val, *g_val));
                    self.stamps.push((*e_val, *g_val));
                    // The value is a clock's: it has a tolerance, and only scripts that say its unit rely on it.
                    let (e_gone, g_gone) = (e_val.wrapping_sub(first.0), g_val.wrapping_sub(first.1));
                    let off = i64::from(e_gone.wrapping_sub(g_gone) as i32).abs() * 1000;
                    e_ecr == g_ecr && (!self.ticks || off <= self.tolerance_us)
                }
                _ => e == g,
            })
    }

    /// The script's timestamp echoes are in its own numbers; ours are milliseconds of the virtual clock.
    fn with_our_stamps(&self, segment: &Segment) -> Segment {
        let mut segment = segment.clone();
        for option in segment.options.iter_mut().flatten() {
            if let Opt::Timestamp(_, ecr) = option
                && let Some((script, ours)) =
                    self.stamps.iter().rev().find(|(s, _)| s == ecr).or(self.stamps.first())
            {
                *ecr = ours.wrapping_add(ecr.wrapping_sub(*script));
            }
        }
        segment
    }

    fn assertions(&mut self, code: &str) -> Step {
        let bad = |e: String| ("assertions".to_string(), e);
        for assertion in python::parse(code).map_err(bad)? {
            if !assertion.holds(&|name| self.info(name)).map_err(bad)? {
                let values: Vec<String> = assertion
                    .names()
                    .filter(|n| n.starts_with("tcpi_"))
                    .map(|n| format!("{n} is {}", self.info(n).unwrap_or_default()))
                    .collect();
                return differ(format!("assert {}", assertion.text), values.join(", "));
            }
        }
        Ok(())
    }

    /// What `TCP_INFO` tells, by name.
    fn info(&self, name: &str) -> Option<i64> {
        if let Some(state) = name.strip_prefix("TCP_CA_") {
            return ["Open", "Disorder", "CWR", "Recovery", "Loss"]
                .iter()
                .position(|s| *s == state)
                .map(|n| n as i64);
        }
        let sender = self.endpoint.sender()?;
        let tp = sender.sock();
        let delivered = sender.ace().bytes();
        let (received_ce, received) = self.endpoint.received()?;
        let accecn = self.endpoint.accecn();
        Some(match name {
            "tcpi_ca_state" => tp.ca_state as i64,
            "tcpi_snd_cwnd" => tp.snd_cwnd.into(),
            "tcpi_snd_ssthresh" => tp.snd_ssthresh.into(),
            "tcpi_snd_mss" => tp.mss.into(),
            "tcpi_unacked" => tp.packets_out.into(),
            "tcpi_sacked" => tp.sacked_out.into(),
            "tcpi_lost" => tp.lost_out.into(),
            "tcpi_retrans" => tp.retrans_out.into(),
            "tcpi_total_retrans" => sender.counters.retransmits as i64,
            "tcpi_reordering" => tp.reordering.into(),
            "tcpi_rtt" => (tp.srtt_us >> 3) as i64,
            "tcpi_min_rtt" => tp.min_rtt_us as i64,
            "tcpi_delivered" => tp.delivered as i64,
            "tcpi_last_data_recv" => self.endpoint.since_data(self.now()).as_ms() as i64,
            "tcpi_delivered_ce" => tp.delivered_ce as i64,
            "tcpi_delivered_e1_bytes" => delivered[0].into(),
            "tcpi_delivered_ce_bytes" => delivered[1].into(),
            "tcpi_delivered_e0_bytes" => delivered[2].into(),
            "tcpi_received_ce" => received_ce as i64,
            "tcpi_received_e1_bytes" => received[0].into(),
            "tcpi_received_ce_bytes" => received[1].into(),
            "tcpi_received_e0_bytes" => received[2].into(),
            "tcpi_accecn_fail_mode" => accecn.failures.into(),
            "tcpi_accecn_opt_seen" => accecn.seen as i64,
            _ => return None,
        })
    }

    fn call(&mut self, call: &Call, event: &Event, start: i64) -> Step {
        let now = self.now();
        self.log.push(format!("{:>9.6} {}({})", seconds(self.now_us), call.name, call.args.join(", ")));
        let fd = call.args.first().cloned().unwrap_or_default();
        match call.name.as_str() {
            "listen" => {
                self.endpoint = Endpoint::new(self.settings.clone());
                self.endpoint.listen();
                self.listener = Some(fd);
            }
            "connect" => {
                self.endpoint = Endpoint::new(self.settings.clone());
                self.connection = Some(fd);
                self.endpoint.connect(now).or_else(|e| differ("a known congestion control", e))?;
                if !call.result.starts_with("-1") {
                    self.wait(call, event, start)?;
                }
            }
            "read" | "recv" | "recvfrom"
                if self.listener.as_deref() == Some(&fd) && call.result.contains("ENOTCONN") => {}
            "read" | "recv" | "recvfrom" if self.listener.as_deref() == Some(&fd) => {
                return differ(format!("{} = {}", call.name, call.result), "-1 ENOTCONN");
            }
            "accept" | "read" | "recv" | "recvfrom" | "recvmsg" if !self.try_complete(call)? => {
                self.wait(call, event, start)?;
            }
            "write" | "send" | "sendto" => {
                let bytes: u64 = call.args.get(2).and_then(|a| a.parse().ok()).unwrap_or(0);
                if call.result != bytes.to_string() {
                    return differ(format!("{} = {}", call.name, call.result), bytes.to_string());
                }
                if bytes > LARGEST_WRITE {
                    return differ(format!("at most {LARGEST_WRITE} bytes in one call"), bytes.to_string());
                }
                self.endpoint.write(bytes, now);
            }
            "close" if self.connection.as_deref() == Some(&fd) => self.endpoint.close(now),
            "shutdown" if self.connection.as_deref() == Some(&fd) => self.endpoint.shutdown(now),
            "close" if self.listener.as_deref() == Some(&fd) => self.listener = None,
            "ioctl" => {
                let got = format!("[{}]", self.endpoint.readable());
                if call.args.get(2) != Some(&got) {
                    let told = call.args.get(1..).unwrap_or_default().join(" ");
                    return differ(told, got);
                }
            }
            // Options that change nothing that the simulator models.
            _ => {}
        }
        Ok(())
    }

    fn wait(&mut self, call: &Call, event: &Event, start: i64) -> Step {
        let offset = match event.when {
            When::Relative(t) => start - t,
            _ => 0,
        };
        let Some(until) = event.until_us else {
            return differ(format!("{} = {} at once", call.name, call.result), "it would wait");
        };
        self.pending = Some(Pending { call: call.clone(), line: event.line, until_us: offset + until });
        Ok(())
    }

    /// Whether the call can return now; its result is checked if so.
    fn try_complete(&mut self, call: &Call) -> Result<bool, (String, String)> {
        let got = match call.name.as_str() {
            "connect" => (self.endpoint.state() == State::Established).then_some(0),
            "accept" => {
                let open = self.endpoint.state() == State::Established;
                if open {
                    self.connection = Some(call.result.clone());
                }
                // Descriptors are numbered as the script says.
                open.then(|| call.result.parse().unwrap_or(-1))
            }
            _ => {
                let message = call.name == "recvmsg";
                let size = if message { number_after(call, "msg_iov(1)=[{...,") } else { None };
                let wanted = size.or(call.args.get(2).and_then(|a| a.parse().ok())).unwrap_or(0);
                let ready = self.endpoint.readable().min(wanted);
                if !flags_of(call).contains("MSG_PEEK") {
                    self.endpoint.read(ready);
                }
                // TCP_INQ: what is left to read, the end of the stream as one byte.
                let left = self.endpoint.readable();
                let left = if self.endpoint.at_end() { left.max(1) } else { left };
                if let Some(inq) = number_after(call, "cmsg_data=").filter(|inq| message && *inq != left) {
                    return differ(format!("cmsg_data={inq}"), format!("cmsg_data={left}"));
                }
                (ready > 0 || wanted == 0 || self.endpoint.at_end()).then_some(ready as i64)
            }
        };
        match got {
            None if call.result.contains("EAGAIN") => Ok(true),
            None => Ok(false),
            Some(value) if call.result.split_whitespace().next() == Some(&value.to_string()) => Ok(true),
            Some(value) => differ(format!("{} = {}", call.name, call.result), value.to_string()),
        }
    }

    fn finish_pending(&mut self) -> Result<(), Difference> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let difference = |(expected, got)| Difference { line: pending.line, expected, got };
        if !self.try_complete(&pending.call).map_err(difference)? {
            self.pending = Some(pending);
            return Ok(());
        }
        if (self.now_us - pending.until_us).abs() > self.tolerance_us {
            return Err(difference((
                format!("{} returns at {:.6} s", pending.call.name, seconds(pending.until_us)),
                format!("{:.6} s", seconds(self.now_us)),
            )));
        }
        Ok(())
    }
}

/// The flags of a call that receives.
fn flags_of(call: &Call) -> &str {
    let at = match call.name.as_str() {
        "recvmsg" => 2,
        "recv" | "recvfrom" => 3,
        _ => return "",
    };
    call.args.get(at).map_or("", String::as_str)
}

/// The number behind `words` in the call's arguments.
fn number_after(call: &Call, words: &str) -> Option<u64> {
    let text: String = call.args.join(",").split_whitespace().collect();
    let rest = &text[text.find(words)? + words.len()..];
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

fn seconds(us: i64) -> f64 {
    us as f64 / 1e6
}
