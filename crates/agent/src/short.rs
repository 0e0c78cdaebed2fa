//! Short flows: a connection for each object, made when it is due. An object is complete when the sink, which has read its end, has closed:
//! the source reads that. From connect to there are two round trips and the serialisation, as of a request and its answer.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::errno::Errno;
use nix::sys::socket::sockopt::TcpNoDelay;
use nix::sys::socket::{Backlog, SockProtocol, SockType, setsockopt};

use crate::clock;
use crate::error::{Error, at};
use crate::net;
use crate::plan::{self, Ecn};
use crate::tcp::{AHEAD, discard};
use crate::tcp_info::TcpInfo;

/// Linux's own range of local ports.
const FIRST_PORT: u32 = 32_768;
const PORTS: u32 = 61_000 - FIRST_PORT;
/// What one write hands to the kernel.
const CHUNK: usize = 64 << 10;

/// One object, as far as it came. Times in ns from the epoch.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// When it was due.
    pub due: i64,
    /// Payload bytes.
    pub bytes: u64,
    /// From connect until the sink had closed.
    pub took: Option<i64>,
}

/// What the connections counted, as far as their kernel tells.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// The first that was known.
    pub ecn: Option<&'static str>,
    /// Of the last connection.
    pub mss: Option<u32>,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub delivered: u64,
    pub delivered_ce: u64,
    pub retransmits: u64,
    pub rtos: u64,
}

#[derive(Default)]
struct Done {
    objects: BTreeMap<usize, Object>,
    totals: Totals,
    live: BTreeMap<usize, Arc<TcpStream>>,
}

/// The sending end.
pub struct Source {
    /// What it was asked for.
    pub plan: plan::TcpSource,
    objects: Vec<(f64, u64)>,
    kernel_major: u32,
    done: Mutex<Done>,
    stopped: AtomicBool,
}

impl Source {
    /// Makes a first socket, so that what the kernel refuses is refused before t = 0.
    pub fn prepare(
        plan: &plan::TcpSource,
        objects: &[(f64, u64)],
        kernel_major: u32,
    ) -> Result<Arc<Source>, Error> {
        let source = Source {
            plan: plan.clone(),
            objects: objects.to_vec(),
            kernel_major,
            done: Mutex::default(),
            stopped: AtomicBool::new(false),
        };
        net::in_netns(plan.netns.as_deref(), || source.socket(0).map(drop))?;
        Ok(Arc::new(source))
    }

    fn socket(&self, number: usize) -> Result<TcpStream, Error> {
        let plan = &self.plan;
        let open = || -> Result<TcpStream, Error> {
            let fd = net::open(SockType::Stream, SockProtocol::Tcp).map_err(at("socket"))?;
            net::set_congestion_control(&fd, &plan.cc)?;
            net::set_tos(&fd, net::tos(plan.dscp, Ecn::NotEct)).map_err(at("IP_TOS"))?;
            if let Some(rate) = plan.max_pacing_rate_bps {
                net::set_max_pacing_rate(&fd, rate).map_err(at("SO_MAX_PACING_RATE"))?;
            }
            setsockopt(&fd, TcpNoDelay, &true).map_err(at("TCP_NODELAY"))?;
            if let Some(first) = plan.local_port {
                let port = local_port(first, number);
                net::bind_port(&fd, port).map_err(at(format!("port {port}")))?;
            }
            Ok(TcpStream::from(fd))
        };
        open().map_err(at(format!("tcp-source '{}'", plan.name)))
    }

    /// Makes the connections as they are due, each in a thread of its own; the first that fails is told to `failed`. For a
    /// thread of its own.
    pub fn run(
        self: &Arc<Source>,
        epoch: i64,
        failed: impl Fn(Error) + Clone + Send + 'static,
    ) -> Result<(), Error> {
        let (start, stop) = (clock::ns(self.plan.start_s), clock::ns(self.plan.stop_s));
        // Threads are in the namespace of the one that made them.
        net::in_netns(self.plan.netns.as_deref(), move || {
            for (number, &(after_s, bytes)) in self.objects.iter().enumerate() {
                let due = start + clock::ns(after_s);
                if due >= stop {
                    return Ok(());
                }
                let socket = Arc::new(self.socket(number)?);
                clock::sleep_until(epoch + due);
                if self.stopped.load(Relaxed) {
                    return Ok(());
                }
                {
                    let mut done = self.lock();
                    done.objects.insert(number, Object { due, bytes, took: None });
                    done.live.insert(number, Arc::clone(&socket));
                }
                let (source, failed) = (Arc::clone(self), failed.clone());
                let one = move || {
                    if let Err(error) = source.fetch(&socket, number, bytes, epoch) {
                        failed(error);
                    }
                };
                thread::Builder::new().name("object".into()).spawn(one).map_err(at("thread 'object'"))?;
            }
            Ok(())
        })
    }

    /// One object.
    fn fetch(&self, socket: &TcpStream, number: usize, bytes: u64, epoch: i64) -> Result<(), Error> {
        let began = clock::monotonic();
        let exchanged = net::connect_to(socket, self.plan.to)
            .map_err(std::io::Error::from)
            .and_then(|()| write(socket, bytes))
            .and_then(|()| socket.shutdown(Shutdown::Write))
            .and_then(|()| read_end(socket));
        let took = clock::monotonic() - began;
        let info = net::tcp_info(&socket);
        let mut done = self.lock();
        done.live.remove(&number);
        if let Ok(info) = info {
            done.totals.add(&info, self.kernel_major);
        }
        match exchanged {
            Ok(()) => {
                if let Some(object) = done.objects.get_mut(&number) {
                    object.took = Some(took);
                }
                Ok(())
            }
            Err(_) if self.stopped.load(Relaxed) => Ok(()),
            Err(error) => Err(Error::Failed(format!(
                "tcp-source '{}': object {number}, due at {} s, to {}: {error}",
                self.plan.name,
                clock::seconds(clock::monotonic() - epoch),
                self.plan.to
            ))),
        }
    }

    /// The run is over: what is under way is thrown away.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
        for socket in self.lock().live.values() {
            let _ = net::abort_on_close(socket); // a socket that is gone needs no end
            let _ = socket.shutdown(Shutdown::Both); // nor one that never was connected
        }
    }

    /// Every object that began, in order.
    pub fn objects(&self) -> Vec<Object> {
        self.lock().objects.values().copied().collect()
    }

    /// How many it was asked for.
    pub fn offered(&self) -> usize {
        self.objects.len()
    }

    /// What the connections counted; of those under way what the kernel tells now.
    pub fn totals(&self) -> Totals {
        let done = self.lock();
        let mut sum = done.totals;
        for info in done.live.values().filter_map(|socket| net::tcp_info(socket).ok()) {
            sum.add(&info, self.kernel_major);
        }
        sum
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Totals {
    fn add(&mut self, info: &TcpInfo, kernel_major: u32) {
        let count = |value: Option<u32>| u64::from(value.unwrap_or(0));
        self.ecn = self.ecn.or(info.ecn(kernel_major));
        self.mss = info.snd_mss().or(self.mss);
        self.sent_packets += count(info.data_segs_out());
        self.sent_bytes += info.bytes_sent().unwrap_or(0);
        self.delivered += count(info.delivered());
        self.delivered_ce += count(info.delivered_ce());
        self.retransmits += count(info.total_retrans());
        self.rtos += count(info.total_rto().map(Into::into));
    }
}

/// The ports of a flow's connections go up from its first and begin again below Linux's own range's end.
fn local_port(first: u16, number: usize) -> u16 {
    let offset = u32::from(first).wrapping_sub(FIRST_PORT).wrapping_add(number as u32);
    (FIRST_PORT + offset % PORTS) as u16
}

fn write(mut socket: &TcpStream, bytes: u64) -> std::io::Result<()> {
    let chunk = vec![0; CHUNK];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(CHUNK as u64) as usize;
        socket.write_all(&chunk[..part])?;
        left -= part as u64;
    }
    Ok(())
}

fn read_end(mut socket: &TcpStream) -> std::io::Result<()> {
    loop {
        match socket.read(&mut [0]) {
            Ok(0) => return Ok(()),
            Ok(_) => return Err(std::io::Error::other("the sink sent data")),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[derive(Default)]
struct Drained {
    /// Payload bytes of the connections that have ended.
    bytes: u64,
    live: Vec<Arc<OwnedFd>>,
}

/// The receiving end: as many connections as come, each drained to nowhere and closed when its stream has ended.
pub struct Sink {
    /// What it was asked for.
    pub plan: plan::TcpSink,
    listener: TcpListener,
    drained: Mutex<Drained>,
    /// Connections accepted.
    pub accepted: AtomicU64,
}

impl Sink {
    /// Listens, in its namespace.
    pub fn prepare(plan: &plan::TcpSink) -> Result<Arc<Sink>, Error> {
        let listener = crate::tcp::listener(plan, Backlog::MAXCONN)?;
        Ok(Arc::new(Sink {
            plan: plan.clone(),
            listener,
            drained: Mutex::default(),
            accepted: AtomicU64::new(0),
        }))
    }

    /// Accepts for as long as the process lives; what fails in a connection is told to `failed`. A reset at or after `end` (ns of
    /// CLOCK_MONOTONIC) is the source's way of ending.
    pub fn run(
        self: &Arc<Sink>,
        end: i64,
        failed: impl Fn(Error) + Clone + Send + 'static,
    ) -> Result<(), Error> {
        let place = || format!("tcp-sink '{}'", self.plan.name);
        loop {
            let (stream, _) = self.listener.accept().map_err(at(format!("{}: accept", place())))?;
            self.accepted.fetch_add(1, Relaxed);
            let connection = Arc::new(OwnedFd::from(stream));
            self.lock().live.push(Arc::clone(&connection));
            let (sink, failed) = (Arc::clone(self), failed.clone());
            let one = move || {
                if let Err(error) = sink.drain(&connection, end) {
                    failed(Error::Failed(format!("tcp-sink '{}': receive: {error}", sink.plan.name)));
                }
            };
            thread::Builder::new().name("object".into()).spawn(one).map_err(at("thread 'object'"))?;
        }
    }

    fn drain(&self, connection: &Arc<OwnedFd>, end: i64) -> Result<(), Errno> {
        let mut room = Vec::new();
        let mut bytes = 0;
        let ended = loop {
            match discard(connection, &mut room) {
                Ok(0) => break Ok(()),
                Ok(n) => bytes += n,
                Err(Errno::EINTR) => {}
                Err(Errno::ECONNRESET) if clock::monotonic() >= end - AHEAD => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let mut drained = self.lock();
        drained.bytes += bytes;
        drained.live.retain(|live| !Arc::ptr_eq(live, connection));
        ended
    }

    /// Payload bytes received in order over all connections; none before there was one.
    pub fn received(&self) -> Option<u64> {
        let drained = self.lock();
        let live = drained.live.iter().filter_map(|c| net::tcp_info(c).ok()?.received_payload());
        (self.accepted.load(Relaxed) > 0).then(|| drained.bytes + live.sum::<u64>())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Drained> {
        self.drained.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_stay_in_linux_own_range() {
        assert_eq!([local_port(40_000, 0), local_port(40_000, 5)], [40_000, 40_005]);
        // 60 999 is the last.
        assert_eq!([local_port(60_998, 1), local_port(60_998, 2)], [60_999, 32_768]);
    }
}
