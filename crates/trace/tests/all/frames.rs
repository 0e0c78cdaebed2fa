//! Frames and files, byte by byte.

use std::io::Cursor;

use bakeoff_trace::options::Options;
use bakeoff_trace::report::Report;

pub const FIN: u16 = 1;
pub const SYN: u16 = 2;
pub const RST: u16 = 4;
pub const ACK: u16 = 16;
pub const ECE: u16 = 64;
pub const CWR: u16 = 128;
pub const AE: u16 = 256;

pub const ECT0: u8 = 2;
pub const ECT1: u8 = 1;
pub const CE: u8 = 3;

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

/// A TCP segment between 10.0.0.1:40000 (the client) and 10.0.0.2:443.
#[derive(Clone, Copy)]
pub struct Tcp<'a> {
    /// Whether it goes from client to server.
    pub up: bool,
    pub flags: u16,
    pub seq: u32,
    pub ack: u32,
    pub length: u16,
    pub window: u16,
    pub ecn: u8,
    /// A multiple of four bytes.
    pub options: &'a [u8],
}

/// Data from the client.
pub const DATA: Tcp<'static> =
    Tcp { up: true, flags: ACK, seq: 0, ack: 0, length: 1000, window: 100, ecn: 0, options: &[] };
/// A pure ACK from the server.
pub const PURE: Tcp<'static> = Tcp { up: false, length: 0, ..DATA };

impl Tcp<'_> {
    /// As an IPv4 packet.
    pub fn ip(&self) -> Vec<u8> {
        let (from, to, ports) =
            if self.up { (CLIENT, SERVER, [40_000, 443]) } else { (SERVER, CLIENT, [443, 40_000]) };
        let mut tcp: Vec<u8> = ports.into_iter().flat_map(u16::to_be_bytes).collect();
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        let words = 5 + self.options.len() as u16 / 4;
        tcp.extend((words << 12 | self.flags).to_be_bytes());
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(self.options);
        tcp.resize(tcp.len() + usize::from(self.length), 0);
        ipv4(from, to, 6, self.ecn, &tcp)
    }

    /// As an Ethernet frame.
    pub fn frame(&self) -> Vec<u8> {
        ethernet(0x0800, &self.ip())
    }
}

/// Timestamps as Linux writes them.
pub fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
}

/// One SACK block after another.
pub fn sack(blocks: &[(u32, u32)]) -> Vec<u8> {
    let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
    for (start, end) in blocks {
        option.extend(start.to_be_bytes());
        option.extend(end.to_be_bytes());
    }
    option
}

pub fn ipv4(from: [u8; 4], to: [u8; 4], protocol: u8, ecn: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut header =
        [&[0x45, ecn][..], &length.to_be_bytes(), &[0, 0, 0x40, 0, 64, protocol, 0, 0], &from, &to].concat();
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&header[..], payload].concat()
}

pub fn ipv6(protocol: u8, ecn: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, ecn << 4, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    packet.extend([&[0x20, 1][..], &[0; 13], &[1], &[0x20, 1], &[0; 13], &[2]].concat());
    packet.extend(payload);
    packet
}

pub fn udp(destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    [&50_000_u16.to_be_bytes()[..], &destination.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload]
        .concat()
}

pub fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &ethertype.to_be_bytes(), payload].concat()
}

/// A pcap file of frames and their times in microseconds; nanoseconds if the magic number says so.
pub fn pcap(link_type: u32, frames: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link_type] {
        file.extend(u32::to_le_bytes(word));
    }
    for (at, frame) in frames {
        let length = frame.len() as u32;
        for word in [at / 1_000_000, at % 1_000_000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// What is told of a file.
pub fn told(file: Vec<u8>) -> Report {
    told_with(file, &Options::default())
}

pub fn told_with(file: Vec<u8>, options: &Options) -> Report {
    bakeoff_trace::trace("here", Box::new(Cursor::new(file)), options, &mut || false)
        .unwrap_or_else(|e| panic!("{e}"))
}

/// The same of segments, each at a time in microseconds.
pub fn told_of(segments: &[(u32, Tcp<'_>)]) -> Report {
    told(capture(segments))
}

pub fn capture(segments: &[(u32, Tcp<'_>)]) -> Vec<u8> {
    let frames: Vec<_> = segments.iter().map(|(at, segment)| (*at, segment.frame())).collect();
    pcap(1, &frames)
}
