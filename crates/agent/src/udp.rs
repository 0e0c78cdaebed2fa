//! UDP flows: datagrams on an absolute schedule, each told apart where it arrives. Payload, big endian, padded with zeros: the kernel
//! on which it was sent (u32), its number (u32), and when, in ns of that kernel's CLOCK_MONOTONIC (i64).

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockProtocol, SockType, send};

use crate::clock::{self, SECOND};
use crate::error::{Error, at};
use crate::limits::MIN_PAYLOAD;
use crate::net;
use crate::plan;
use crate::source::Schedule;

/// A datagram that has not come after this long is lost, in ns; as long as the simulator waits.
const PATIENCE: i64 = 2 * SECOND;

/// What stands at the beginning of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    kernel: u32,
    number: u32,
    sent: i64,
}

impl Stamp {
    fn write(self, to: &mut [u8]) {
        to[0..4].copy_from_slice(&self.kernel.to_be_bytes());
        to[4..8].copy_from_slice(&self.number.to_be_bytes());
        to[8..16].copy_from_slice(&self.sent.to_be_bytes());
    }

    fn read(from: &[u8]) -> Option<Stamp> {
        let word = |at: usize| Some(u32::from_be_bytes(from.get(at..at + 4)?.try_into().ok()?));
        let sent = i64::from_be_bytes(from.get(8..16)?.try_into().ok()?);
        Some(Stamp { kernel: word(0)?, number: word(4)?, sent })
    }
}

/// The sending end.
pub struct Source {
    /// What it was asked for.
    pub plan: plan::UdpSource,
    socket: OwnedFd,
    /// Datagrams that the kernel accepted.
    pub sent: AtomicU64,
    /// Datagrams that it refused (a full queue, no route).
    pub failed: AtomicU64,
}

impl Source {
    /// Makes the socket, in its namespace.
    pub fn prepare(plan: &plan::UdpSource) -> Result<Arc<Source>, Error> {
        let socket = net::in_netns(plan.netns.as_deref(), || {
            let fd = net::open(SockType::Datagram, SockProtocol::Udp).map_err(at("socket"))?;
            net::set_tos(&fd, net::tos(plan.dscp, plan.ecn)).map_err(at("IP_TOS"))?;
            net::widen_send_buffer(&fd).map_err(at("SO_SNDBUF"))?;
            if let Some(port) = plan.local_port {
                net::bind_port(&fd, port).map_err(at(format!("port {port}")))?;
            }
            net::connect_to(&fd, plan.to).map_err(at(plan.to))?;
            Ok(fd)
        })
        .map_err(at(format!("udp-source '{}'", plan.name)))?;
        Ok(Arc::new(Source {
            plan: plan.clone(),
            socket,
            sent: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }))
    }

    /// Sends on time until the plan's end. For a thread of its own.
    pub fn run(&self, epoch: i64) {
        let (start, stop) = (epoch + clock::ns(self.plan.start_s), epoch + clock::ns(self.plan.stop_s));
        let Some(schedule) = Schedule::new(&self.plan.source, start, stop) else {
            return;
        };
        let mut payload = vec![0; schedule.size];
        let kernel = clock::kernel_id();
        for (n, due) in (0..).map_while(|n| schedule.due(n).map(|due| (n, due))) {
            clock::sleep_until(due);
            Stamp { kernel, number: n as u32, sent: clock::monotonic() }.write(&mut payload);
            match send(self.socket.as_raw_fd(), &payload, MsgFlags::empty()) {
                Ok(_) => self.sent.fetch_add(1, Relaxed),
                Err(_) => self.failed.fetch_add(1, Relaxed),
            };
        }
    }

    /// Payload bytes per datagram.
    pub fn size(&self) -> u64 {
        Schedule::new(&self.plan.source, 0, 0).map_or(0, |schedule| schedule.size as u64)
    }
}

/// The first arrival of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it was sent, ns from the epoch; when it was due, if another kernel's clock tells its time.
    pub sent: i64,
    /// How long it was on its way, ns; with the unknown difference of two clocks unless `one_clock`.
    pub took: i64,
    /// Whether both ends stand on one kernel.
    pub one_clock: bool,
}

/// What a sink knows of each number.
#[derive(Default)]
struct Seen {
    /// Bit n: number n came.
    came: Vec<u64>,
    /// First arrivals that nobody has taken yet.
    fresh: Vec<Arrival>,
}

impl Seen {
    fn has(&self, number: u64) -> bool {
        self.came.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Whether it is the first of this number.
    fn note(&mut self, number: u64) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if word >= self.came.len() {
            self.came.resize(word + 1, 0);
        }
        let first = self.came[word] & bit == 0;
        self.came[word] |= bit;
        first
    }
}

/// The receiving end, with its counters.
pub struct Sink {
    /// What it was asked for.
    pub plan: plan::UdpSink,
    socket: OwnedFd,
    /// When each number is due, from the epoch.
    schedule: Option<Schedule>,
    kernel: u32,
    seen: Mutex<Seen>,
    /// Datagrams.
    pub packets: AtomicU64,
    /// Payload bytes.
    pub bytes: AtomicU64,
    /// One more than the highest number.
    pub expected: AtomicU64,
    /// Datagrams that came after one with a higher number.
    pub reordered: AtomicU64,
    /// Datagrams marked CE.
    pub ce: AtomicU64,
}

impl Sink {
    /// Binds, in its namespace.
    pub fn prepare(plan: &plan::UdpSink) -> Result<Arc<Sink>, Error> {
        let socket = net::in_netns(plan.netns.as_deref(), || {
            let fd = net::open(SockType::Datagram, SockProtocol::Udp).map_err(at("socket"))?;
            net::bind_port(&fd, plan.port).map_err(at(format!("port {}", plan.port)))?;
            net::ask_tos(&fd).map_err(at("IP_RECVTOS"))?;
            Ok(fd)
        })
        .map_err(at(format!("udp-sink '{}'", plan.name)))?;
        Ok(Arc::new(Sink::new(plan, socket)))
    }

    fn new(plan: &plan::UdpSink, socket: OwnedFd) -> Sink {
        let zero = || AtomicU64::new(0);
        Sink {
            plan: plan.clone(),
            socket,
            schedule: Schedule::new(&plan.source, clock::ns(plan.start_s), clock::ns(plan.stop_s)),
            kernel: clock::kernel_id(),
            seen: Mutex::default(),
            packets: zero(),
            bytes: zero(),
            expected: zero(),
            reordered: zero(),
            ce: zero(),
        }
    }

    /// Receives until the process ends, and counts what comes until `end` (ns of CLOCK_MONOTONIC, as `epoch` is). For a thread of its own.
    pub fn run(&self, epoch: i64, end: i64) -> Result<(), Error> {
        let mut header = [0; MIN_PAYLOAD as usize];
        loop {
            match net::receive(&self.socket, &mut header, MsgFlags::empty()) {
                Ok(datagram) => {
                    let now = clock::monotonic();
                    if now > end {
                        // What was still in a queue; it may not fill the socket's buffer.
                        continue;
                    }
                    let stamp = Stamp::read(&header[..datagram.len.min(header.len())]);
                    self.count(stamp, datagram.len as u64, datagram.tos, epoch, now);
                }
                Err(Errno::EINTR | Errno::ECONNREFUSED) => {}
                Err(error) => {
                    return Err(Error::Failed(format!("udp-sink '{}': receive: {error}", self.plan.name)));
                }
            }
        }
    }

    fn count(&self, stamp: Option<Stamp>, len: u64, tos: Option<u8>, epoch: i64, now: i64) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(len, Relaxed);
        if tos.is_some_and(|tos| tos & 3 == plan::Ecn::Ce as u8) {
            self.ce.fetch_add(1, Relaxed);
        }
        // What its source never sends has no number here.
        let Some((stamp, due)) = stamp.and_then(|stamp| Some((stamp, self.due(stamp.number.into())?))) else {
            return;
        };
        let number = u64::from(stamp.number);
        if self.expected.fetch_max(number + 1, Relaxed) > number {
            self.reordered.fetch_add(1, Relaxed);
        }
        let one_clock = stamp.kernel != 0 && stamp.kernel == self.kernel;
        let sent = if one_clock { stamp.sent - epoch } else { due };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.note(number) {
            seen.fresh.push(Arrival { sent, took: now - stamp.sent, one_clock });
        }
    }

    fn due(&self, number: u64) -> Option<i64> {
        self.schedule.as_ref().and_then(|schedule| schedule.due(number))
    }

    /// The first arrivals since the last call, as they came.
    pub fn take_arrivals(&self) -> Vec<Arrival> {
        std::mem::take(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner).fresh)
    }

    /// When those were due that never came, ns from the epoch. What may still be on its way at `end` is not among them: a later one
    /// has come, or two seconds have passed.
    pub fn never_came(&self, end: i64) -> Vec<i64> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = self.expected.load(Relaxed);
        (0..)
            .map_while(|n| Some((n, self.due(n)?)))
            .take_while(|&(n, due)| n < expected || due + PATIENCE < end)
            .filter(|&(n, _)| !seen.has(n))
            .map(|(_, due)| due)
            .collect()
    }

    /// Numbers below the highest that never came.
    pub fn missing(&self) -> u64 {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let came: u32 = seen.came.iter().map(|word| word.count_ones()).sum();
        self.expected.load(Relaxed).saturating_sub(u64::from(came))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number 0 at 1 s after the epoch, 1 at 1.1 s and so on up to 9, before 2 s; the epoch is 5 s.
    fn sink() -> Sink {
        let source = plan::Source::Periodic { size: 100, count: 1, every_s: 0.1 };
        let plan =
            plan::UdpSink { name: "a".into(), netns: None, port: 9, start_s: 1.0, stop_s: 2.0, source };
        Sink::new(&plan, net::open(SockType::Datagram, SockProtocol::Udp).expect("socket"))
    }

    const EPOCH: i64 = 5 * SECOND;

    fn ms(ms: i64) -> i64 {
        ms * 1_000_000
    }

    /// `number` leaves when it is due by the clock of `kernel`, and is seen here `took` later.
    fn arrives(sink: &Sink, kernel: u32, number: u32, took: i64, tos: u8) {
        let sent = EPOCH + sink.due(number.into()).expect("due");
        sink.count(Some(Stamp { kernel, number, sent }), 100, Some(tos), EPOCH, sent + took);
    }

    #[test]
    fn a_stamp_survives_the_wire() {
        let stamp = Stamp { kernel: 0xdead_beef, number: 7, sent: -5 };
        let mut bytes = [0; MIN_PAYLOAD as usize];
        stamp.write(&mut bytes);
        assert_eq!(Stamp::read(&bytes), Some(stamp));
        assert_eq!(Stamp::read(&bytes[..15]), None);
    }

    /// 0, 3, 1 arrive: 2 is missing, 1 came after 3; the second carries CE.
    #[test]
    fn missing_reordered_and_marked() {
        let sink = sink();
        for (number, tos) in [(0, 0b01), (3, 0b11), (1, 0b10)] {
            arrives(&sink, 1, number, ms(20), tos);
        }
        let counts = [&sink.packets, &sink.bytes, &sink.reordered, &sink.ce].map(|count| count.load(Relaxed));
        assert_eq!(counts, [3, 300, 1, 1]);
        assert_eq!(sink.missing(), 1);
    }

    /// Of a second copy only the first counts; one from elsewhere, with a number that is never sent, has no delay.
    #[test]
    fn delays_of_first_arrivals() {
        let sink = sink();
        arrives(&sink, sink.kernel, 2, ms(20), 0);
        arrives(&sink, sink.kernel, 2, ms(90), 0);
        sink.count(Some(Stamp { kernel: 1, number: 10, sent: 0 }), 100, None, EPOCH, EPOCH);
        let first = Arrival { sent: ms(1200), took: ms(20), one_clock: true };
        assert_eq!(sink.take_arrivals(), [first]);
        assert!(sink.take_arrivals().is_empty(), "they were taken");
    }

    /// Its clock runs an hour behind ours: the time is when it was due, and the difference is in what it took.
    #[test]
    fn another_kernels_clock() {
        let sink = sink();
        let sent = EPOCH + ms(1300) - 3600 * SECOND;
        let stamp = Stamp { kernel: sink.kernel ^ 1, number: 3, sent };
        sink.count(Some(stamp), 100, None, EPOCH, EPOCH + ms(1315));
        let arrival = Arrival { sent: ms(1300), took: 3600 * SECOND + ms(15), one_clock: false };
        assert_eq!(sink.take_arrivals(), [arrival]);
    }

    /// 0 and 2 came. At 1.95 s number 1 is lost, because 2 came; the rest may be on its way, until two seconds after each was due.
    #[test]
    fn what_is_on_its_way_is_not_lost() {
        let sink = sink();
        for number in [0, 2] {
            arrives(&sink, 1, number, ms(20), 0);
        }
        assert_eq!(sink.never_came(ms(1950)), [ms(1100)]);
        assert_eq!(sink.never_came(ms(3401)), [ms(1100), ms(1300), ms(1400)]);
        assert_eq!(sink.never_came(ms(9000)).len(), 8);
    }
}
