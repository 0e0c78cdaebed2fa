//! TCP flows. A source writes from many views of one small buffer at once and a sink receives with `MSG_TRUNC | MSG_WAITALL`, so that
//! megabytes pass per system call and a sink copies nothing. Buffer sizes and SO_RCVLOWAT are left alone: both would change what the kernel's autotuning does.

use std::io::{ErrorKind, IoSlice, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use bakeoff_workload::Player;
use nix::errno::Errno;
use nix::sys::socket::sockopt::TcpNoDelay;
use nix::sys::socket::{Backlog, MsgFlags, SockProtocol, SockType, listen, setsockopt};
use socket2::SockRef;

use crate::clock;
use crate::error::{Error, at};
use crate::net;
use crate::plan::{self, Answers, Ecn};
use crate::source::Schedule;
use crate::video;

/// The buffer that is written again and again: stays in the processor's cache.
const CHUNK: usize = 64 << 10;
/// Views of it per system call: 4 MiB.
const CHUNKS: usize = 64;
/// What one receive may take.
const RECEIVE: usize = 16 << 20;

/// The other end's agent may be on another machine, its clock ahead, and end the run that much earlier, in ns.
pub const AHEAD: i64 = clock::SECOND / 10;

/// An instant not reached yet.
pub const NEVER: i64 = i64::MIN;

/// The sending end of a flow. The socket is made at once, so that what the kernel refuses is refused before t = 0.
pub struct Source {
    /// What it was asked for.
    pub plan: plan::TcpSource,
    /// Connected at `start_s`.
    pub socket: TcpStream,
    /// ns of CLOCK_MONOTONIC, or [`NEVER`].
    pub connected: AtomicI64,
    /// When everything was handed to the kernel: ns of CLOCK_MONOTONIC, or [`NEVER`].
    pub finished: AtomicI64,
    /// The application of a video; its clock is ns from the epoch.
    pub player: Option<Mutex<Player>>,
    stopped: AtomicBool,
}

impl Source {
    /// Makes the socket, in its namespace.
    pub fn prepare(plan: &plan::TcpSource) -> Result<Arc<Source>, Error> {
        let place = format!("tcp-source '{}'", plan.name);
        let player = player(plan).map_err(at(format!("{place}: source")))?;
        let fd = net::in_netns(plan.netns.as_deref(), || {
            let fd = net::open(SockType::Stream, SockProtocol::Tcp).map_err(at("socket"))?;
            net::set_congestion_control(&fd, &plan.cc)?;
            net::set_tos(&fd, net::tos(plan.dscp, Ecn::NotEct)).map_err(at("IP_TOS"))?;
            if let Some(rate) = plan.max_pacing_rate_bps {
                net::set_max_pacing_rate(&fd, rate).map_err(at("SO_MAX_PACING_RATE"))?;
            }
            if Schedule::new(&plan.source, 0, 0).is_some() || player.is_some() {
                // Each write is a message of its own and leaves when it is made.
                setsockopt(&fd, TcpNoDelay, &true).map_err(at("TCP_NODELAY"))?;
            }
            if let Some(port) = plan.local_port {
                net::bind_port(&fd, port).map_err(at(format!("port {port}")))?;
            }
            Ok(fd)
        })
        .map_err(at(place))?;
        Ok(Arc::new(Source {
            plan: plan.clone(),
            socket: TcpStream::from(fd),
            connected: AtomicI64::new(NEVER),
            finished: AtomicI64::new(NEVER),
            player,
            stopped: AtomicBool::new(false),
        }))
    }

    /// Connects, and offers what the plan says until it is over or [`Source::stop`] is called. For a thread of its own.
    pub fn run(&self, epoch: i64) -> Result<(), Error> {
        let (start, stop) = (epoch + clock::ns(self.plan.start_s), epoch + clock::ns(self.plan.stop_s));
        clock::sleep_until(start);
        if let Err(error) = net::connect_to(&self.socket, self.plan.to) {
            return self.unless_over(error, "connect", stop);
        }
        self.connected.store(clock::monotonic(), Relaxed);
        let offered = match (Schedule::new(&self.plan.source, start, stop), &self.plan.source, &self.player) {
            (Some(schedule), ..) => self.write_on_time(&schedule),
            (None, _, Some(player)) => video::play(player, &self.socket, epoch, stop - epoch),
            (None, &plan::Source::Bytes { bytes }, _) => self.write(bytes),
            (None, ..) => self.write(u64::MAX),
        };
        if let Err(error) = offered {
            return self.unless_over(error, "write", stop);
        }
        self.finished.store(clock::monotonic(), Relaxed);
        let _ = self.socket.shutdown(Shutdown::Write); // fails only if the peer is gone already
        Ok(())
    }

    /// Ends the stream behind what the kernel has accepted, and with it a blocked connect or write.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
        let _ = self.socket.shutdown(Shutdown::Write); // fails if not connected: nothing to end
    }

    fn unless_over(&self, error: impl std::fmt::Display, call: &str, stop: i64) -> Result<(), Error> {
        if self.stopped.load(Relaxed) || clock::monotonic() >= stop - AHEAD {
            return Ok(());
        }
        Err(Error::Failed(format!("tcp-source '{}': {call} to {}: {error}", self.plan.name, self.plan.to)))
    }

    fn write(&self, bytes: u64) -> std::io::Result<()> {
        let chunk = vec![0; CHUNK];
        let views = [IoSlice::new(&chunk); CHUNKS];
        let mut left = bytes;
        while left >= (CHUNK * CHUNKS) as u64 {
            left -= write_some(&self.socket, &views)?;
        }
        while left > 0 {
            let view = IoSlice::new(&chunk[..left.min(CHUNK as u64) as usize]);
            left -= write_some(&self.socket, &[view])?;
        }
        Ok(())
    }

    fn write_on_time(&self, schedule: &Schedule) -> std::io::Result<()> {
        let message = vec![0; schedule.size];
        for due in (0..).map_while(|n| schedule.due(n)) {
            clock::sleep_until(due);
            (&self.socket).write_all(&message)?;
        }
        Ok(())
    }
}

fn player(plan: &plan::TcpSource) -> Result<Option<Mutex<Player>>, String> {
    let plan::Source::Video { rates_bps, segment_s, buffer_s } = &plan.source else { return Ok(None) };
    let [start, segment, buffer] =
        [plan.start_s, *segment_s, *buffer_s].map(|seconds| clock::ns(seconds).max(0) as u64);
    Player::new(rates_bps, segment, buffer, start).map(|player| Some(Mutex::new(player)))
}

fn write_some(mut socket: &TcpStream, views: &[IoSlice]) -> std::io::Result<u64> {
    match socket.write_vectored(views) {
        Ok(n) => Ok(n as u64),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

/// The receiving end of a flow: one connection, drained to nowhere.
pub struct Sink {
    /// What it was asked for.
    pub plan: plan::TcpSink,
    listener: TcpListener,
    /// The connection, once there is one.
    pub connection: OnceLock<OwnedFd>,
    /// ns of CLOCK_MONOTONIC, or [`NEVER`].
    pub accepted: AtomicI64,
    /// When the end of the stream was read: ns of CLOCK_MONOTONIC, or [`NEVER`].
    pub finished: AtomicI64,
    /// Payload bytes taken by receives that have returned: all of them, once finished.
    pub drained: AtomicU64,
}

impl Sink {
    /// Listens, in its namespace.
    pub fn prepare(plan: &plan::TcpSink) -> Result<Arc<Sink>, Error> {
        Ok(Arc::new(Sink {
            plan: plan.clone(),
            listener: listener(plan, Backlog::new(1).map_err(at("backlog"))?)?,
            connection: OnceLock::new(),
            accepted: AtomicI64::new(NEVER),
            finished: AtomicI64::new(NEVER),
            drained: AtomicU64::new(0),
        }))
    }

    /// Accepts and drains one connection. For a thread of its own. A reset at or after `end` (ns of CLOCK_MONOTONIC) is the other agent's way of ending.
    pub fn run(&self, end: i64) -> Result<(), Error> {
        let failed = |error: &dyn std::fmt::Display, call| {
            Error::Failed(format!("tcp-sink '{}': {call}: {error}", self.plan.name))
        };
        let (stream, _) = self.listener.accept().map_err(|e| failed(&e, "accept"))?;
        self.accepted.store(clock::monotonic(), Relaxed);
        let connection = self.connection.get_or_init(|| OwnedFd::from(stream));
        let mut room = Vec::new();
        loop {
            let taken = if self.plan.answers == Answers::Segments {
                video::take_segment(connection)
            } else {
                discard(connection, &mut room)
            };
            match taken {
                Ok(0) => break,
                Ok(n) => {
                    self.drained.fetch_add(n, Relaxed);
                }
                Err(Errno::EINTR) => {}
                Err(Errno::ECONNRESET) if clock::monotonic() >= end - AHEAD => break,
                Err(error) => return Err(failed(&error, "receive")),
            }
        }
        self.finished.store(clock::monotonic(), Relaxed);
        Ok(())
    }
}

/// Waits for 16 MiB of a connection, or for its end, and throws away what came; 0 at the end.
///
/// `room` is address space and takes no memory: with `MSG_TRUNC` the kernel copies nothing there (tcp(7)), and it is not
/// initialised. Zeroed memory would be written to where malloc takes it from its heap, as it does once a connection has ended.
pub fn discard(connection: &OwnedFd, room: &mut Vec<u8>) -> Result<u64, Errno> {
    room.reserve_exact(RECEIVE);
    let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_WAITALL;
    match SockRef::from(connection).recv_with_flags(room.spare_capacity_mut(), flags.bits()) {
        Ok(taken) => Ok(taken as u64),
        Err(error) => Err(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))),
    }
}

/// A socket that listens as a sink asks for, in its namespace.
pub fn listener(plan: &plan::TcpSink, backlog: Backlog) -> Result<TcpListener, Error> {
    let fd = net::in_netns(plan.netns.as_deref(), || {
        let fd = net::open(SockType::Stream, SockProtocol::Tcp).map_err(at("socket"))?;
        if let Some(cc) = &plan.cc {
            net::set_congestion_control(&fd, cc)?;
        }
        // Inherited by the accepted socket, and on the SYN-ACK already.
        net::set_tos(&fd, net::tos(plan.dscp, Ecn::NotEct)).map_err(at("IP_TOS"))?;
        net::bind_port(&fd, plan.port).map_err(at(format!("port {}", plan.port)))?;
        listen(&fd, backlog).map_err(at(format!("port {}", plan.port)))?;
        Ok(fd)
    });
    fd.map(TcpListener::from).map_err(at(format!("tcp-sink '{}'", plan.name)))
}

/// The port that a socket was given, once it is connected or bound.
pub fn local_port(socket: &TcpStream) -> Option<u16> {
    socket.local_addr().ok().map(|address| address.port()).filter(|&port| port != 0)
}
