//! Namespaces and sockets: what the roles need of them beyond the standard library.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libc::{c_void, socklen_t};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::sockopt::{
    Get, IpRecvTos, Ipv4Tos, Linger, ReuseAddr, SndBuf, SndBufForce, TcpCongestion,
};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, GetSockOpt, MsgFlags, SockFlag, SockProtocol,
    SockType, SockaddrIn, bind, connect, recvmsg, sendmsg, setsockopt, socket,
};
use nix::{cmsg_space, getsockopt_impl, setsockopt_impl, sockopt_impl};

use crate::error::{Error, at};
use crate::plan::Ecn;
use crate::tcp_info::TcpInfo;

/// Does `work` inside the named network namespace (none = the one of this process) and comes back with its result. Sockets made
/// there stay there; only the thread made for this call enters, so nothing else of the process moves.
pub fn in_netns<T: Send>(
    netns: Option<&str>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let Some(name) = netns else { return work() };
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let path = format!("/run/netns/{name}");
                let file = File::open(&path).map_err(at(format!("netns '{name}': {path}")))?;
                setns(&file, CloneFlags::CLONE_NEWNET).map_err(at(format!("netns '{name}': setns")))?;
                work()
            })
            .join()
            .unwrap_or_else(|_| Err(Error::Failed(format!("netns '{name}': the thread panicked"))))
    })
}

/// The TOS byte (RFC 2474, RFC 3168).
pub fn tos(dscp: u8, ecn: Ecn) -> u8 {
    dscp << 2 | ecn as u8
}

/// A socket of the given type, closed on exec.
pub fn open(kind: SockType, protocol: SockProtocol) -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, protocol)
}

/// Binds to a port on all addresses.
pub fn bind_port(fd: &OwnedFd, port: u16) -> Result<(), Errno> {
    setsockopt(fd, ReuseAddr, &true)?;
    bind(fd.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, port))
}

/// Connects; of TCP it returns when the handshake is done.
pub fn connect_to(fd: &impl AsFd, to: SocketAddrV4) -> Result<(), Errno> {
    connect(fd.as_fd().as_raw_fd(), &SockaddrIn::from(to))
}

/// Sets the TOS byte of what a socket sends. On TCP the kernel keeps the two ECN bits for itself.
pub fn set_tos(fd: &OwnedFd, tos: u8) -> Result<(), Errno> {
    setsockopt(fd, Ipv4Tos, &i32::from(tos))
}

/// Asks for the TOS byte of what is received; see [`receive`].
pub fn ask_tos(fd: &OwnedFd) -> Result<(), Errno> {
    setsockopt(fd, IpRecvTos, &true)
}

/// Sets the congestion control. A failure names it and what this kernel has.
pub fn set_congestion_control(fd: &OwnedFd, cc: &str) -> Result<(), Error> {
    setsockopt(fd, TcpCongestion, &cc.into()).map_err(|error| {
        let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let available = available.as_deref().map_or("unknown", str::trim);
        Error::Failed(format!("congestion control '{cc}': {}; this kernel has: {available}", error.desc()))
    })
}

sockopt_impl!(
    /// `SO_MAX_PACING_RATE`, in bytes per second.
    MaxPacingRate,
    SetOnly,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    u64
);

/// Limits the rate at which a socket sends, in bits per second.
pub fn set_max_pacing_rate(fd: &OwnedFd, bps: u64) -> Result<(), Errno> {
    setsockopt(fd, MaxPacingRate, &(bps / 8))
}

/// Bytes of a send buffer that no queue of an experiment fills; only what waits takes memory.
const SEND_BUFFER: usize = 512 << 20;

/// Lets a socket have as much under way as the queues of its host take, so that they decide what is dropped, and a sender
/// does not wait for its own buffer (212,992 bytes by default: some 90 packets). Without CAP_NET_ADMIN up to
/// `net.core.wmem_max`.
pub fn widen_send_buffer(fd: &OwnedFd) -> Result<(), Errno> {
    setsockopt(fd, SndBufForce, &SEND_BUFFER).or_else(|_| setsockopt(fd, SndBuf, &SEND_BUFFER))
}

/// Makes close throw away what is still queued and send a RST.
pub fn abort_on_close(fd: &impl AsFd) -> Result<(), Errno> {
    setsockopt(&fd.as_fd(), Linger, &libc::linger { l_onoff: 1, l_linger: 0 })
}

/// More than any kernel's `struct tcp_info` (280 bytes in Linux 7.3).
const TCP_INFO_ROOM: usize = 512;

/// Receives what the kernel writes for `TCP_INFO`, however long.
struct GetTcpInfo {
    bytes: [u8; TCP_INFO_ROOM],
    len: socklen_t,
}

impl Get<TcpInfo> for GetTcpInfo {
    fn uninit() -> Self {
        GetTcpInfo { bytes: [0; TCP_INFO_ROOM], len: TCP_INFO_ROOM as socklen_t }
    }

    fn ffi_ptr(&mut self) -> *mut c_void {
        self.bytes.as_mut_ptr().cast()
    }

    fn ffi_len(&mut self) -> *mut socklen_t {
        &raw mut self.len
    }

    // No operation in here is unsafe: the array is initialised from the start, and the slice is bounds-checked. What the trait's caller relies on
    // holds: `ffi_ptr` is valid for writes of the `TCP_INFO_ROOM` bytes that `ffi_len` announces, both being fields of `self`.
    #[expect(
        unsafe_code,
        reason = "nix declares the method unsafe; nix has no safe option that returns bytes with their length"
    )]
    unsafe fn assume_init(self) -> TcpInfo {
        TcpInfo::new(&self.bytes[..(self.len as usize).min(TCP_INFO_ROOM)])
    }
}

sockopt_impl!(
    /// `TCP_INFO`.
    GetInfo,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    TcpInfo,
    GetTcpInfo
);

/// What the kernel tells of a TCP socket now.
pub fn tcp_info(fd: &impl AsFd) -> Result<TcpInfo, Errno> {
    GetInfo.get(&fd.as_fd())
}

/// A datagram that was received.
pub struct Received {
    /// Its length on the wire, even if the buffer was shorter.
    pub len: usize,
    /// Its TOS byte, if the socket was asked for it.
    pub tos: Option<u8>,
    /// Where it came from.
    pub from: Option<SockaddrIn>,
}

/// Receives one datagram; `flags` such as `MSG_DONTWAIT`.
pub fn receive(fd: &OwnedFd, buffer: &mut [u8], flags: MsgFlags) -> Result<Received, Errno> {
    let mut control = cmsg_space!(u8, i32);
    let mut iov = [IoSliceMut::new(buffer)];
    let message =
        recvmsg::<SockaddrIn>(fd.as_raw_fd(), &mut iov, Some(&mut control), flags | MsgFlags::MSG_TRUNC)?;
    let tos = message
        .cmsgs()?
        .find_map(|c| if let ControlMessageOwned::Ipv4Tos(tos) = c { Some(tos) } else { None });
    Ok(Received { len: message.bytes, tos, from: message.address })
}

/// Sends one datagram with its own TOS byte.
pub fn send_with_tos(fd: &OwnedFd, payload: &[u8], to: &SockaddrIn, tos: u8) -> Result<usize, Errno> {
    sendmsg(
        fd.as_raw_fd(),
        &[IoSlice::new(payload)],
        &[ControlMessage::Ipv4Tos(&tos)],
        MsgFlags::empty(),
        Some(to),
    )
}
