//! Latency probes: UDP to a reflector of this program, and ICMP echo. A probe's thread sends on an absolute schedule and reports each answer as a [`Sample`].

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{MsgFlags, SockProtocol, SockType, send};
use nix::sys::time::{TimeSpec, TimeValLike};

use crate::clock;
use crate::error::{Error, at};
use crate::limits::{HEADER, IP_HEADER};
use crate::net;
use crate::plan::{self, Ecn};

/// One answered or lost request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When the request was sent, ns of CLOCK_MONOTONIC.
    pub sent: i64,
    /// Round trip in ns; none = never answered.
    pub rtt: Option<i64>,
    /// One-way delays there and back in ns, if both ends stand on one kernel.
    pub owd: Option<[i64; 2]>,
}

/// What travels in a UDP probe, big endian, padded with zeros to the size asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UdpMessage {
    /// Tells this run's probe from any other.
    session: u32,
    sequence: u32,
    /// Reply: the kernel on which the reflector's stamp was taken. 0 = unknown.
    kernel: u32,
    /// TOS as sent by the probe, to be used for the reply.
    tos: u8,
    /// Reply: TOS as it arrived at the reflector.
    seen: u8,
    /// Reply: when the reflector received it, ns of its CLOCK_MONOTONIC.
    received: i64,
}

impl UdpMessage {
    fn write(&self, to: &mut [u8]) {
        to[0..4].copy_from_slice(&self.session.to_be_bytes());
        to[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        to[8..12].copy_from_slice(&self.kernel.to_be_bytes());
        to[12..16].copy_from_slice(&[self.tos, self.seen, 0, 0]);
        to[16..24].copy_from_slice(&self.received.to_be_bytes());
    }

    fn read(from: &[u8]) -> Option<UdpMessage> {
        let received = i64::from_be_bytes(from.get(16..24)?.try_into().ok()?);
        Some(UdpMessage {
            session: word(from, 0)?,
            sequence: word(from, 4)?,
            kernel: word(from, 8)?,
            tos: from[12],
            seen: from[13],
            received,
        })
    }
}

fn word(from: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(from.get(at..at + 4)?.try_into().ok()?))
}

/// How a probe talks.
enum Wire {
    Udp,
    /// `raw`: the socket shows IP headers, and the echo header is ours to fill in.
    Icmp {
        raw: bool,
        id: u16,
    },
}

/// What was read from an answer.
struct Answer {
    sequence: u32,
    /// TOS as it arrived at the reflector, and its stamp, if that is this kernel's clock.
    reflected: Option<(u8, Option<i64>)>,
}

/// A probe with its counters.
pub struct Probe {
    /// Its name.
    pub name: String,
    to: SocketAddrV4,
    socket: OwnedFd,
    wire: Wire,
    tos: u8,
    payload: usize,
    every: i64,
    /// From the epoch, in ns.
    start: i64,
    /// From the epoch, in ns.
    stop: i64,
    session: u32,
    kernel: u32,
    /// Requests sent.
    pub sent: AtomicU64,
    /// Answers.
    pub received: AtomicU64,
    /// Requests that reached the reflector with a CE mark.
    pub ce_out: AtomicU64,
    /// Answers that came with a CE mark.
    pub ce_back: AtomicU64,
}

/// What both kinds of probe have in common in a plan.
struct Common<'a> {
    name: &'a str,
    netns: Option<&'a str>,
    every_s: f64,
    size: u16,
    dscp: u8,
    ecn: Ecn,
    start_s: f64,
    stop_s: f64,
}

impl Probe {
    /// A UDP probe, its socket made in its namespace.
    pub fn udp(plan: &plan::UdpProbe, session: u32) -> Result<Arc<Probe>, Error> {
        let plan::UdpProbe { name, netns, to, every_s, size, dscp, ecn, start_s, stop_s } = plan;
        let common = Common {
            name,
            netns: netns.as_deref(),
            every_s: *every_s,
            size: *size,
            dscp: *dscp,
            ecn: *ecn,
            start_s: *start_s,
            stop_s: *stop_s,
        };
        Probe::prepare("udp-probe", &common, *to, session, || {
            let fd = net::open(SockType::Datagram, SockProtocol::Udp).map_err(at("socket"))?;
            Ok((fd, Wire::Udp))
        })
    }

    /// An ICMP probe, its socket made in its namespace: raw if the kernel lets us, else a ping socket (`net.ipv4.ping_group_range`).
    pub fn icmp(plan: &plan::IcmpProbe, session: u32) -> Result<Arc<Probe>, Error> {
        let plan::IcmpProbe { name, netns, to, every_s, size, dscp, ecn, start_s, stop_s } = plan;
        let common = Common {
            name,
            netns: netns.as_deref(),
            every_s: *every_s,
            size: *size,
            dscp: *dscp,
            ecn: *ecn,
            start_s: *start_s,
            stop_s: *stop_s,
        };
        let id = (session ^ session >> 16) as u16;
        Probe::prepare("icmp-probe", &common, SocketAddrV4::new(*to, 0), session, || {
            if let Ok(fd) = net::open(SockType::Raw, SockProtocol::Icmp) {
                return Ok((fd, Wire::Icmp { raw: true, id }));
            }
            let fd = net::open(SockType::Datagram, SockProtocol::Icmp)
                .map_err(at("ICMP socket (raw needs CAP_NET_RAW, the other kind a group within net.ipv4.ping_group_range)"))?;
            Ok((fd, Wire::Icmp { raw: false, id }))
        })
    }

    fn prepare(
        role: &str,
        plan: &Common,
        to: SocketAddrV4,
        session: u32,
        make: impl FnOnce() -> Result<(OwnedFd, Wire), Error> + Send,
    ) -> Result<Arc<Probe>, Error> {
        let tos = net::tos(plan.dscp, plan.ecn);
        let (socket, wire) = net::in_netns(plan.netns, || {
            let (fd, wire) = make()?;
            net::set_tos(&fd, tos).map_err(at("IP_TOS"))?;
            net::ask_tos(&fd).map_err(at("IP_RECVTOS"))?;
            net::connect_to(&fd, to).map_err(at(to))?;
            Ok((fd, wire))
        })
        .map_err(at(format!("{role} '{}'", plan.name)))?;
        Ok(Arc::new(Probe {
            name: plan.name.into(),
            to,
            socket,
            wire,
            tos,
            payload: usize::from(plan.size) - IP_HEADER - HEADER,
            every: clock::ns(plan.every_s).max(1),
            start: clock::ns(plan.start_s),
            stop: clock::ns(plan.stop_s),
            session,
            kernel: clock::kernel_id(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            ce_out: AtomicU64::new(0),
            ce_back: AtomicU64::new(0),
        }))
    }

    /// Whether the reflector tells the marks of the way out.
    pub fn knows_ce_out(&self) -> bool {
        matches!(self.wire, Wire::Udp)
    }

    /// Sends until its stop or `duration`, then awaits answers for `drain` more; `report` gets the samples, the lost ones at the end. For
    /// a thread of its own. All in ns.
    pub fn run(
        &self,
        epoch: i64,
        duration: i64,
        drain: i64,
        mut report: impl FnMut(Sample),
    ) -> Result<(), Error> {
        let end = self.stop.min(duration);
        // Index = sequence number; none = answered.
        let mut waiting: Vec<Option<i64>> = Vec::new();
        let mut unanswered = 0;
        loop {
            let next = self.start + waiting.len() as i64 * self.every;
            let wake = if next < end { next } else { duration + drain };
            let now = clock::monotonic();
            if now < epoch + wake {
                if next >= end && unanswered == 0 {
                    break;
                }
                self.wait_readable(epoch + wake - now)?;
                unanswered -= self.read_answers(&mut waiting, &mut report)?;
            } else if next < end {
                waiting.push(Some(now));
                unanswered += 1;
                self.send(waiting.len() as u32 - 1)?;
                self.sent.fetch_add(1, Relaxed);
            } else {
                break;
            }
        }
        for sent in waiting.into_iter().flatten() {
            report(Sample { sent, rtt: None, owd: None });
        }
        Ok(())
    }

    fn wait_readable(&self, at_most: i64) -> Result<(), Error> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, Some(TimeSpec::nanoseconds(at_most)), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(self.failed("poll", error)),
        }
    }

    fn send(&self, sequence: u32) -> Result<(), Error> {
        let message = match self.wire {
            Wire::Udp => {
                let mut payload = vec![0; self.payload];
                UdpMessage {
                    session: self.session,
                    sequence,
                    kernel: 0,
                    tos: self.tos,
                    seen: 0,
                    received: 0,
                }
                .write(&mut payload);
                payload
            }
            Wire::Icmp { id, .. } => echo_request(id, self.session, sequence, self.payload),
        };
        match send(self.socket.as_raw_fd(), &message, MsgFlags::MSG_DONTWAIT) {
            Err(error @ Errno::ECONNREFUSED) => Err(self.failed("nothing listens at the other end", error)),
            // A full queue or a missing route loses the request, which is what a probe is to tell.
            _ => Ok(()),
        }
    }

    /// Returns how many requests found their answer.
    fn read_answers(
        &self,
        waiting: &mut [Option<i64>],
        report: &mut impl FnMut(Sample),
    ) -> Result<usize, Error> {
        let mut buffer = vec![0; IP_HEADER + 40 + HEADER + self.payload];
        let mut answered = 0;
        loop {
            let message = match net::receive(&self.socket, &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(message) => message,
                Err(Errno::EAGAIN) => return Ok(answered),
                Err(error @ Errno::ECONNREFUSED) => {
                    return Err(self.failed("nothing listens at the other end", error));
                }
                Err(_) => continue, // an ICMP error of the path: the request will count as lost
            };
            let now = clock::monotonic();
            let Some(answer) = self.decode(&buffer[..message.len.min(buffer.len())]) else {
                continue;
            };
            let Some(sent) = waiting.get_mut(answer.sequence as usize).and_then(Option::take) else {
                continue;
            };
            answered += 1;
            self.received.fetch_add(1, Relaxed);
            self.ce_back.fetch_add(u64::from(is_ce(message.tos)), Relaxed);
            let (seen, stamp) = answer.reflected.unzip();
            self.ce_out.fetch_add(u64::from(is_ce(seen)), Relaxed);
            report(Sample {
                sent,
                rtt: Some(now - sent),
                owd: stamp.flatten().map(|stamp| [stamp - sent, now - stamp]),
            });
        }
    }

    fn decode(&self, message: &[u8]) -> Option<Answer> {
        match self.wire {
            Wire::Udp => {
                let reply = UdpMessage::read(message).filter(|reply| reply.session == self.session)?;
                let here = reply.kernel != 0 && reply.kernel == self.kernel;
                Some(Answer {
                    sequence: reply.sequence,
                    reflected: Some((reply.seen, here.then_some(reply.received))),
                })
            }
            Wire::Icmp { raw, .. } => {
                let skip = if raw { usize::from(message.first()? & 0xf) * 4 } else { 0 };
                echo_reply(message.get(skip..)?, self.session)
                    .map(|sequence| Answer { sequence, reflected: None })
            }
        }
    }

    fn failed(&self, call: &str, error: Errno) -> Error {
        let to: &dyn std::fmt::Display = match self.wire {
            Wire::Udp => &self.to,
            Wire::Icmp { .. } => self.to.ip(),
        };
        Error::Failed(format!("probe '{}' to {to}: {call}: {error}", self.name))
    }
}

fn is_ce(tos: Option<u8>) -> bool {
    tos.is_some_and(|tos| tos & 3 == Ecn::Ce as u8)
}

/// ICMP echo request (RFC 792): type 8, code 0, checksum, identifier, sequence number; then our session and full sequence number.
fn echo_request(id: u16, session: u32, sequence: u32, payload: usize) -> Vec<u8> {
    let mut message = vec![0; HEADER + payload];
    message[0] = 8;
    message[4..6].copy_from_slice(&id.to_be_bytes());
    message[6..8].copy_from_slice(&(sequence as u16).to_be_bytes());
    message[8..12].copy_from_slice(&session.to_be_bytes());
    message[12..16].copy_from_slice(&sequence.to_be_bytes());
    let sum = internet_checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// The sequence number of an echo reply (type 0) to our session.
fn echo_reply(message: &[u8], session: u32) -> Option<u32> {
    let ours = message.first() == Some(&0) && word(message, 8)? == session;
    if ours { word(message, 12) } else { None }
}

/// RFC 1071.
fn internet_checksum(message: &[u8]) -> u16 {
    let mut sum: u32 = message
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Answers UDP probes: same bytes, with its receive stamp, the TOS that it saw, and the TOS that the probe had sent.
pub struct Reflector {
    socket: OwnedFd,
    port: u16,
    kernel: u32,
}

impl Reflector {
    /// Binds, in its namespace.
    pub fn prepare(plan: &plan::UdpReflector) -> Result<Reflector, Error> {
        let socket = net::in_netns(plan.netns.as_deref(), || {
            let fd = net::open(SockType::Datagram, SockProtocol::Udp).map_err(at("socket"))?;
            net::bind_port(&fd, plan.port).map_err(at(format!("port {}", plan.port)))?;
            net::ask_tos(&fd).map_err(at("IP_RECVTOS"))?;
            Ok(fd)
        })
        .map_err(at("udp-reflector"))?;
        Ok(Reflector { socket, port: plan.port, kernel: clock::kernel_id() })
    }

    /// Answers until the process ends. For a thread of its own.
    pub fn run(&self) -> Result<(), Error> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let datagram = match net::receive(&self.socket, &mut buffer, MsgFlags::empty()) {
                Ok(datagram) => datagram,
                Err(Errno::EINTR | Errno::ECONNREFUSED) => continue,
                Err(error) => {
                    return Err(Error::Failed(format!(
                        "udp-reflector: port {}: receive: {error}",
                        self.port
                    )));
                }
            };
            let received = clock::monotonic();
            let payload = &mut buffer[..datagram.len];
            let (Some(request), Some(from)) = (UdpMessage::read(payload), datagram.from) else {
                continue;
            };
            let reply =
                UdpMessage { kernel: self.kernel, seen: datagram.tos.unwrap_or(0), received, ..request };
            reply.write(payload);
            // A reply that cannot be sent is a lost one: the probe will say so.
            let _ = net::send_with_tos(&self.socket, payload, &from, request.tos);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::UDP_MESSAGE;

    #[test]
    fn a_udp_message_survives_the_wire() {
        let message =
            UdpMessage { session: 0xdead_beef, sequence: 7, kernel: 1, tos: 0xb9, seen: 0xbb, received: -5 };
        let mut bytes = [0; UDP_MESSAGE];
        message.write(&mut bytes);
        assert_eq!(UdpMessage::read(&bytes), Some(message));
        assert_eq!(UdpMessage::read(&bytes[..23]), None);
    }

    /// RFC 1071, section 3: 00 01 f2 03 f4 f5 f6 f7 sum to ddf2, so the checksum is its complement; an odd last byte counts as a high one.
    #[test]
    fn checksum() {
        assert_eq!(internet_checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(internet_checksum(&[0x12, 0x34, 0x56]), !(0x1234 + 0x5600));
    }

    #[test]
    fn an_echo_is_recognised_by_type_and_session() {
        let mut message = echo_request(0x1234, 99, 70_000, 8);
        assert_eq!(internet_checksum(&message), 0, "with its checksum the sum is all ones");
        assert_eq!(message[6..8], (70_000u32 as u16).to_be_bytes());
        assert_eq!(echo_reply(&message, 99), None, "a request is not a reply");
        message[0] = 0;
        assert_eq!(echo_reply(&message, 99), Some(70_000), "beyond 16 bits");
        assert_eq!(echo_reply(&message, 98), None);
        assert_eq!(echo_reply(&message[..15], 99), None);
    }
}
