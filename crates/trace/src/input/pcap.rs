//! The older form: one header, then packets of one interface.

use std::io;

use super::{LONGEST, Place, Step, u32_at};
use crate::report::Interface;

/// Length of the header of the file.
pub const HEADER: usize = 24;
const LINK_TYPE: u32 = 0x03ff_ffff;

/// How packets of this file are written.
pub struct Pcap {
    big: bool,
    /// Nanoseconds in the unit of the second time field.
    fraction_ns: i64,
    /// Length of a packet's header.
    header: usize,
}

/// Whether a file of this form begins so.
pub fn magic(begin: &[u8]) -> bool {
    begin.len() >= 4 && kind(begin).is_some()
}

/// (big endian, nanoseconds per fraction, length of a packet's header)
fn kind(begin: &[u8]) -> Option<(bool, i64, usize)> {
    [false, true].into_iter().find_map(|big| match u32_at(begin, 0, big) {
        0xa1b2_c3d4 => Some((big, 1000, 16)),
        0xa1b2_3c4d => Some((big, 1, 16)),
        // A kernel patch of the 1990s that old tcpdumps came with.
        0xa1b2_cd34 => Some((big, 1000, 24)),
        _ => None,
    })
}

/// The header of the file.
pub fn header(begin: &[u8]) -> Option<(Pcap, Interface)> {
    if begin.len() < HEADER {
        return None;
    }
    let (big, fraction_ns, header) = kind(begin)?;
    let interface = Interface {
        link_type: u32_at(begin, 20, big) & LINK_TYPE,
        snap_length: u32_at(begin, 16, big),
        ..Interface::default()
    };
    Some((Pcap { big, fraction_ns, header }, interface))
}

impl Pcap {
    pub fn next(&mut self, place: &mut Place<'_>) -> io::Result<Step> {
        let window = place.buffer.peek(self.header)?;
        if window.len() < self.header {
            let left = window.len();
            return Ok(if left == 0 {
                Step::End
            } else {
                place.cut_off("packet's header", self.header as u64, left)
            });
        }
        let seconds = u32_at(window, 0, self.big);
        let fraction = u32_at(window, 4, self.big);
        let kept = u32_at(window, 8, self.big);
        let length = u32_at(window, 12, self.big);
        if kept > LONGEST {
            return Ok(place.stop(&format!("a packet of {kept} bytes; expected at most {LONGEST}")));
        }
        let next = self.header + kept as usize;
        let there = place.buffer.peek(next)?.len();
        if there < next {
            return Ok(place.cut_off("packet", next as u64, there));
        }
        let at_ns = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.fraction_ns;
        // Some programs cut packets and forget how long they were.
        let length = length.max(kept);
        Ok(Step::Packet { at_ns: Some(at_ns), interface: 0, length, from: self.header, to: next, next })
    }
}
