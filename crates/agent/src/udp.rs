//! UDP flows: datagrams on an absolute schedule, counted where they arrive. Payload: a zero word, then the sequence number (u32, big endian).

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockProtocol, SockType, send};

use crate::clock;
use crate::error::{Error, at};
use crate::net;
use crate::plan;
use crate::source::Schedule;

/// Bytes that the sequence number needs.
pub const MIN_PAYLOAD: u32 = 8;

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
        for (n, due) in (0..).map_while(|n| schedule.due(n).map(|due| (n, due))) {
            clock::sleep_until(due);
            payload[4..8].copy_from_slice(&(n as u32).to_be_bytes());
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

/// The receiving end, with its counters.
pub struct Sink {
    /// What it was asked for.
    pub plan: plan::UdpSink,
    socket: OwnedFd,
    /// Datagrams.
    pub packets: AtomicU64,
    /// Payload bytes.
    pub bytes: AtomicU64,
    /// One more than the highest sequence number.
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
        Ok(Arc::new(Sink {
            plan: plan.clone(),
            socket,
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            expected: AtomicU64::new(0),
            reordered: AtomicU64::new(0),
            ce: AtomicU64::new(0),
        }))
    }

    /// Receives until the process ends. For a thread of its own.
    pub fn run(&self) -> Result<(), Error> {
        let mut header = [0; MIN_PAYLOAD as usize];
        loop {
            match net::receive(&self.socket, &mut header, MsgFlags::empty()) {
                Ok(datagram) => self.count(header, datagram.len as u64, datagram.tos),
                Err(Errno::EINTR | Errno::ECONNREFUSED) => {}
                Err(error) => {
                    return Err(Error::Failed(format!("udp-sink '{}': receive: {error}", self.plan.name)));
                }
            }
        }
    }

    fn count(&self, header: [u8; MIN_PAYLOAD as usize], len: u64, tos: Option<u8>) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(len, Relaxed);
        if tos.is_some_and(|tos| tos & 3 == plan::Ecn::Ce as u8) {
            self.ce.fetch_add(1, Relaxed);
        }
        let number = u64::from(u32::from_be_bytes([header[4], header[5], header[6], header[7]]));
        if self.expected.fetch_max(number + 1, Relaxed) > number {
            self.reordered.fetch_add(1, Relaxed);
        }
    }

    /// Numbers below the highest that never came (duplicates make up for as many).
    pub fn missing(&self) -> u64 {
        self.expected.load(Relaxed).saturating_sub(self.packets.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0, 3, 1 arrive: 2 is missing, 1 came after 3; the second carries CE.
    #[test]
    fn missing_reordered_and_marked() {
        let plan = plan::UdpSink { name: "a".into(), netns: None, port: 9 };
        let socket = net::open(SockType::Datagram, SockProtocol::Udp).expect("socket");
        let zero = || AtomicU64::new(0);
        let sink = Sink {
            plan,
            socket,
            packets: zero(),
            bytes: zero(),
            expected: zero(),
            reordered: zero(),
            ce: zero(),
        };
        for (number, tos) in [(0u8, 0b01), (3, 0b11), (1, 0b10)] {
            sink.count([0, 0, 0, 0, 0, 0, 0, number], 100, Some(tos));
        }
        let counts = [&sink.packets, &sink.bytes, &sink.reordered, &sink.ce].map(|count| count.load(Relaxed));
        assert_eq!(counts, [3, 300, 1, 1]);
        assert_eq!(sink.missing(), 1);
    }
}
