//! The newer form: sections of blocks, each section with a byte order and interfaces of its own.

use std::io;

use super::{INTERFACES, LONGEST, Place, Step, u16_at, u32_at};
use crate::report::Interface;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// A block without content: type, length, length.
const EMPTY: u32 = 12;
const LONGEST_NAME: usize = 256;

const OPTION_END: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const ISB_IFDROP: u16 = 5;

/// Whether a file of this form begins so.
pub fn recognised(begin: &[u8]) -> bool {
    begin.len() >= 12 && u32_at(begin, 0, false) == SECTION && order(begin).is_some()
}

/// Whether the section that begins here is big endian.
fn order(block: &[u8]) -> Option<bool> {
    [false, true].into_iter().find(|big| u32_at(block, 8, *big) == BYTE_ORDER)
}

/// How an interface counts time.
#[derive(Clone, Copy)]
struct Clock {
    ticks: Ticks,
    offset_s: i64,
}

#[derive(Clone, Copy)]
enum Ticks {
    /// A tick has as many nanoseconds.
    Of(u64),
    /// As many ticks are a nanosecond.
    Per(u64),
    /// 2 to this power are a second.
    Binary(u32),
}

impl Clock {
    const MICROSECONDS: Clock = Clock { ticks: Ticks::Of(1000), offset_s: 0 };

    fn at_ns(self, ticks: u64) -> i64 {
        let ns = match self.ticks {
            Ticks::Of(ns) => u128::from(ticks) * u128::from(ns),
            Ticks::Per(per) => u128::from(ticks / per),
            Ticks::Binary(power) => (u128::from(ticks) * 1_000_000_000) >> power,
        };
        i64::try_from(ns).unwrap_or(i64::MAX).saturating_add(self.offset_s.saturating_mul(1_000_000_000))
    }

    /// By the option `if_tsresol`.
    fn ticks(resolution: u8) -> Ticks {
        let power = u32::from(resolution & 0x7f);
        if resolution & 0x80 != 0 {
            Ticks::Binary(power)
        } else if power <= 9 {
            Ticks::Of(10u64.pow(9 - power))
        } else {
            Ticks::Per(10u64.checked_pow(power - 9).unwrap_or(u64::MAX))
        }
    }
}

/// Where in the file the reader is.
#[derive(Default)]
pub struct Pcapng {
    big: bool,
    /// Index of the section's first interface.
    first: usize,
    /// The section's interfaces: their clock and snap length.
    clocks: Vec<(Clock, u32)>,
    told_long: bool,
    told_interface: bool,
    told_clockless: bool,
}

impl Pcapng {
    pub fn next(&mut self, place: &mut Place<'_>) -> io::Result<Step> {
        let window = place.buffer.peek(12)?;
        if window.len() < 12 {
            let left = window.len();
            return Ok(if left == 0 { Step::End } else { place.cut_off("block's header", 12, left) });
        }
        let kind = u32_at(window, 0, self.big);
        if kind == SECTION {
            let Some(big) = order(window) else {
                return Ok(place.stop("a section has no byte-order magic"));
            };
            self.big = big;
        }
        let length = u32_at(window, 4, self.big);
        if length < EMPTY || !length.is_multiple_of(4) {
            return Ok(
                place.stop(&format!("invalid block length {length}; expected a multiple of 4, at least 12"))
            );
        }
        if length > LONGEST {
            return self.pass_over(kind, length, place);
        }
        let whole = length as usize;
        let window = place.buffer.peek(whole)?;
        if window.len() < whole {
            let left = window.len();
            return Ok(place.cut_off("block", u64::from(length), left));
        }
        let block = &window[..whole];
        let again = u32_at(block, whole - 4, self.big);
        if again != length {
            return Ok(place.stop(&format!(
                "block length {length} at its start, {again} at its end; expected equal lengths"
            )));
        }
        match kind {
            ENHANCED_PACKET | PACKET | SIMPLE_PACKET => return Ok(self.packet(kind, place, whole)),
            INTERFACE if whole >= 20 => self.interface(place, whole),
            STATISTICS if whole >= 24 => self.statistics(place, whole),
            SECTION => {
                self.first = place.interfaces.len();
                self.clocks.clear();
            }
            _ => {}
        }
        place.buffer.consume(whole);
        Ok(Step::Other)
    }

    /// A block that is too long to look at.
    fn pass_over(&mut self, kind: u32, length: u32, place: &mut Place<'_>) -> io::Result<Step> {
        let offset = place.buffer.offset;
        let there = place.buffer.skip(u64::from(length))?;
        if there < u64::from(length) {
            place.notes.push(format!(
                "At byte {offset} the file ends inside a block of type {kind}: {there} of {length} bytes. The \
                 data before it was read."
            ));
            return Ok(Step::End);
        }
        if !self.told_long {
            self.told_long = true;
            place.notes.push(format!(
                "At byte {offset} a block of type {kind} has {length} bytes, more than {LONGEST}; it was skipped, and so \
                 were others as long."
            ));
        }
        Ok(Step::Other)
    }

    fn interface(&mut self, place: &mut Place<'_>, whole: usize) {
        let block = &place.buffer.window()[..whole];
        let mut interface = Interface {
            link_type: u32::from(u16_at(block, 8, self.big)),
            snap_length: u32_at(block, 12, self.big),
            ..Interface::default()
        };
        let mut clock = Clock::MICROSECONDS;
        options(&block[16..whole - 4], self.big, |code, value| match code {
            IF_NAME => {
                let name = &value[..value.len().min(LONGEST_NAME)];
                interface.name = Some(String::from_utf8_lossy(name).into_owned());
            }
            IF_TSRESOL if !value.is_empty() => clock.ticks = Clock::ticks(value[0]),
            IF_TSOFFSET if value.len() >= 8 => {
                let high = u32_at(value, if self.big { 0 } else { 4 }, self.big);
                let low = u32_at(value, if self.big { 4 } else { 0 }, self.big);
                clock.offset_s = (u64::from(high) << 32 | u64::from(low)) as i64;
            }
            _ => {}
        });
        if place.interfaces.len() < INTERFACES {
            self.clocks.push((clock, interface.snap_length));
            place.interface(interface);
        }
    }

    fn statistics(&mut self, place: &mut Place<'_>, whole: usize) {
        let block = &place.buffer.window()[..whole];
        let index = u32_at(block, 8, self.big) as usize;
        if index >= self.clocks.len() {
            return;
        }
        let mut dropped = None;
        options(&block[20..whole - 4], self.big, |code, value| {
            if code == ISB_IFDROP && value.len() >= 8 {
                let high = u32_at(value, if self.big { 0 } else { 4 }, self.big);
                let low = u32_at(value, if self.big { 4 } else { 0 }, self.big);
                dropped = Some(u64::from(high) << 32 | u64::from(low));
            }
        });
        if dropped.is_some() {
            // Each such block counts from the begin of the capture.
            place.dropped[self.first + index] = dropped;
        }
    }

    fn packet(&mut self, kind: u32, place: &mut Place<'_>, whole: usize) -> Step {
        let block = &place.buffer.window()[..whole];
        let header = if kind == SIMPLE_PACKET { 12 } else { 28 };
        if whole < header + 4 {
            return place.stop(&format!("a packet's block has {whole} bytes, fewer than its header"));
        }
        let index = match kind {
            ENHANCED_PACKET => u32_at(block, 8, self.big) as usize,
            PACKET => usize::from(u16_at(block, 8, self.big)),
            _ => 0,
        };
        let Some((clock, snap_length)) = self.clocks.get(index).copied() else {
            if !self.told_interface {
                self.told_interface = true;
                let offset = place.buffer.offset;
                place.notes.push(format!(
                    "At byte {offset} a packet names interface {index}, which its section does not describe; it was left \
                     out, and so were others like it."
                ));
            }
            place.buffer.consume(whole);
            return Step::Other;
        };
        let room = whole - header - 4;
        let (at_ns, kept, length) = if kind == SIMPLE_PACKET {
            let length = u32_at(block, 8, self.big);
            let limit = if snap_length == 0 { length } else { length.min(snap_length) };
            if !self.told_clockless {
                self.told_clockless = true;
                place.notes.push(
                    "The file has packets without a time (Simple Packet Blocks); they are taken to come with the packet \
                     before them."
                        .into(),
                );
            }
            (None, limit.min(room as u32), length)
        } else {
            let ticks = u64::from(u32_at(block, 12, self.big)) << 32 | u64::from(u32_at(block, 16, self.big));
            (Some(clock.at_ns(ticks)), u32_at(block, 20, self.big), u32_at(block, 24, self.big))
        };
        if kept as usize > room {
            return place.stop(&format!("a packet of {kept} bytes in a block with {room} bytes left"));
        }
        Step::Packet {
            at_ns,
            interface: self.first + index,
            length: length.max(kept),
            from: header,
            to: header + kept as usize,
            next: whole,
        }
    }
}

/// Calls `each` with the code and the value of every option.
fn options(mut bytes: &[u8], big: bool, mut each: impl FnMut(u16, &[u8])) {
    while bytes.len() >= 4 {
        let code = u16_at(bytes, 0, big);
        let length = usize::from(u16_at(bytes, 2, big));
        let rest = &bytes[4..];
        if code == OPTION_END || length > rest.len() {
            return;
        }
        each(code, &rest[..length]);
        bytes = &rest[length.next_multiple_of(4).min(rest.len())..];
    }
}
