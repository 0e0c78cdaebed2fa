//! rtnetlink about qdiscs: one message, its answers, and attributes. Numbers and layouts: `include/uapi/linux/{netlink,rtnetlink}.h`.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket,
};
use nix::{setsockopt_impl, sockopt_impl};

use crate::error::{Error, at};

/// struct nlmsghdr.
pub const HEADER: usize = 16;
/// struct tcmsg: family, padding, ifindex, handle, parent, info.
pub const TCMSG: usize = 20;
pub const TCA_KIND: u16 = 1;
pub const TCA_OPTIONS: u16 = 2;

/// Of an answer to a request: it is not the whole request that comes back, and attributes follow.
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;
/// The attribute that holds the kernel's own words.
const NLMSGERR_ATTR_MSG: u16 = 1;

sockopt_impl!(
    /// The kernel says in words why it refuses.
    ExtendedAck,
    SetOnly,
    libc::SOL_NETLINK,
    libc::NETLINK_EXT_ACK,
    bool
);

sockopt_impl!(
    /// It does not send the refused request back.
    CappedAck,
    SetOnly,
    libc::SOL_NETLINK,
    libc::NETLINK_CAP_ACK,
    bool
);

/// Attributes that are sent, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// One more, padded to 4 bytes.
    pub fn put(&mut self, kind: u16, value: &[u8]) {
        self.0.extend(((value.len() + 4) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// A number of 32 bits.
    pub fn put_u32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// A signed one.
    pub fn put_i32(&mut self, kind: u16, value: i32) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// A number of 64 bits.
    pub fn put_u64(&mut self, kind: u16, value: u64) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// As they are sent.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Where a message about a qdisc goes, as `struct tcmsg` has it; all 0 in a request for a dump.
#[derive(Clone, Copy, Debug, Default)]
pub struct Address {
    pub ifindex: i32,
    pub handle: u32,
    pub parent: u32,
}

/// A socket in the network namespace of the thread that opened it.
pub struct Netlink {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens one.
    pub fn open() -> Result<Netlink, Error> {
        let place = "netlink socket";
        let fd =
            socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)
                .map_err(at(place))?;
        setsockopt(&fd, ExtendedAck, &true).map_err(at(place))?;
        setsockopt(&fd, CappedAck, &true).map_err(at(place))?;
        Ok(Netlink { fd, buffer: vec![0; 1 << 16] })
    }

    /// Sends a message and gives `take` the body of each answer of the kind `RTM_NEWQDISC`, until the kernel says that it was the last,
    /// or that it has done what it was asked for.
    pub fn ask(
        &mut self,
        kind: u16,
        flags: i32,
        address: Address,
        attributes: &Attributes,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        let len = HEADER + TCMSG + attributes.0.len();
        let mut request = Vec::with_capacity(len);
        request.extend((len as u32).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend(((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
        // Number and port, then family and padding.
        request.extend([0; 12]);
        request.extend(address.ifindex.to_ne_bytes());
        request.extend(address.handle.to_ne_bytes());
        request.extend(address.parent.to_ne_bytes());
        request.extend([0; 4]);
        request.extend(&attributes.0);
        send(self.fd.as_raw_fd(), &request, MsgFlags::empty()).map_err(at("netlink: send"))?;
        loop {
            let len = match recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Ok(len) => len,
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(Error::Failed(format!("netlink: receive: {error}"))),
            };
            if read_messages(&self.buffer[..len], &mut take)? {
                return Ok(());
            }
        }
    }
}

/// Reads the messages of one datagram; true when there will be no more.
pub fn read_messages(mut bytes: &[u8], take: &mut impl FnMut(&[u8])) -> Result<bool, Error> {
    while let (Some(len), Some(kind), Some(flags)) = (u32_at(bytes, 0), u16_at(bytes, 4), u16_at(bytes, 6)) {
        let len = len as usize;
        let Some(body) = bytes.get(HEADER..len) else {
            break;
        };
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => match u32_at(body, 0).unwrap_or(0) as i32 {
                0 => return Ok(true),
                code => return Err(Error::Failed(refusal(Errno::from_raw(-code), flags, body))),
            },
            _ if kind == libc::RTM_NEWQDISC => take(body),
            _ => {}
        }
        bytes = bytes.get(align(len)..).unwrap_or_default();
    }
    Ok(false)
}

/// The kernel's own words, if it has any, and the name of the error.
fn refusal(errno: Errno, flags: u16, body: &[u8]) -> String {
    // struct nlmsgerr: the error, then the header of the request.
    const TOLD: usize = 4 + HEADER;
    let known = flags & (NLM_F_CAPPED | NLM_F_ACK_TLVS) == NLM_F_CAPPED | NLM_F_ACK_TLVS;
    let told = body.get(TOLD..).filter(|_| known).unwrap_or_default();
    let words = attributes(told).find(|&(kind, _)| kind == NLMSGERR_ATTR_MSG);
    match words {
        Some((_, text)) => {
            format!("netlink: {}: {errno}", String::from_utf8_lossy(text).trim_end_matches('\0'))
        }
        None => format!("netlink: {errno}"),
    }
}

/// Netlink attributes: length and type (u16 each), then the value, padded to 4 bytes.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const NLA_TYPE_MASK: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let len = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & NLA_TYPE_MASK;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(align(len)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn align(len: usize) -> usize {
    len.max(1).next_multiple_of(4)
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{message, words};

    #[test]
    fn an_error_of_the_kernel_is_told() {
        let refused = message(libc::NLMSG_ERROR as u16, &words(&[-1i32 as u32]));
        let error = read_messages(&refused, &mut |_| ()).expect_err("EPERM");
        assert_eq!(error.to_string(), "netlink: EPERM: Operation not permitted");
        let done = message(libc::NLMSG_ERROR as u16, &words(&[0]));
        assert!(read_messages(&done, &mut |_| ()).expect("an acknowledgement"));
    }

    #[test]
    fn so_are_its_words() {
        let mut told = Attributes::default();
        told.put(NLMSGERR_ATTR_MSG, b"integer out of range\0");
        // The error, the header of the request, the attributes.
        let body = [words(&[-34i32 as u32]), vec![0; HEADER], told.0].concat();
        let mut refused = message(libc::NLMSG_ERROR as u16, &body);
        refused[6..8].copy_from_slice(&(NLM_F_CAPPED | NLM_F_ACK_TLVS).to_ne_bytes());
        let error = read_messages(&refused, &mut |_| ()).expect_err("ERANGE");
        assert!(error.to_string().starts_with("netlink: integer out of range: ERANGE: "), "{error}");
    }

    #[test]
    fn a_cut_message_ends_the_reading() {
        let whole = message(libc::RTM_NEWQDISC, &words(&[0, 7, 0, 0, 0]));
        let mut found = 0;
        assert!(!read_messages(&whole[..30], &mut |_| found += 1).expect("no error"));
        assert_eq!(found, 0);
    }

    #[test]
    fn attributes_come_back_as_they_were_put() {
        let mut put = Attributes::default();
        put.put(TCA_KIND, b"pie\0");
        put.put(7, b"12345");
        put.put_i32(8, -2);
        let read: Vec<_> = attributes(put.bytes()).collect();
        assert_eq!(read, [(TCA_KIND, &b"pie\0"[..]), (7, b"12345"), (8, &(-2i32).to_ne_bytes())]);
    }
}
