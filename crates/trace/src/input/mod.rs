//! Files in: decompression, and the two forms of captures.
//!
//! Sources: draft-ietf-opsawg-pcap (pcap), draft-ietf-opsawg-pcapng (pcapng).
//!
//! The crates that read these forms give no offsets to tell, hold whole blocks however long they are, and take some time
//! resolutions or one of the byte orders wrongly. So the few blocks that matter are read here.
//!
//! A file that is damaged or cut off somewhere is read up to there, and the place is told.

mod buffer;
mod compression;
mod pcap;
mod pcapng;

use std::io::{self, Read};

use buffer::Buffer;

use crate::error::TraceError;
use crate::report::Interface;

/// The longest packet or block that is looked at, in bytes. Linux's longest packet is 512 KiB.
pub const LONGEST: u32 = 16 << 20;
/// Most interfaces.
pub const INTERFACES: usize = 65_536;

/// One packet as the file has it.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Nanoseconds since 1970; none if the file gives no time.
    pub at_ns: Option<i64>,
    /// Index of its interface.
    pub interface: usize,
    /// Link type of that.
    pub link_type: u32,
    /// Length on the wire.
    pub length: u32,
    /// What was kept of it.
    pub bytes: &'a [u8],
}

/// What the next step through a file found.
enum Step {
    /// A packet: its record (time, interface, length), and where in the buffer its bytes are.
    Packet {
        at_ns: Option<i64>,
        interface: usize,
        length: u32,
        from: usize,
        to: usize,
        next: usize,
    },
    /// Something else, of which nothing is left in the buffer.
    Other,
    End,
}

enum Form {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// A capture that is being read.
pub struct Input {
    name: String,
    buffer: Buffer,
    form: Form,
    pending: usize,
    /// Name of the compression.
    pub compression: &'static str,
    /// The interfaces so far.
    pub interfaces: Vec<Interface>,
    /// What the interfaces dropped, if the file tells it.
    dropped: Vec<Option<u64>>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// What the two forms share.
struct Place<'a> {
    buffer: &'a mut Buffer,
    interfaces: &'a mut Vec<Interface>,
    dropped: &'a mut Vec<Option<u64>>,
    notes: &'a mut Vec<String>,
}

impl Place<'_> {
    fn interface(&mut self, interface: Interface) {
        let read = crate::decode::can_be_read(interface.link_type);
        self.interfaces.push(Interface { read, ..interface });
        self.dropped.push(None);
    }

    /// A sentence about this place, and the end of reading.
    fn stop(&mut self, sentence: &str) -> Step {
        let offset = self.buffer.offset;
        self.notes.push(format!("At byte {offset} {sentence}. The data before it was read."));
        Step::End
    }

    /// The same for a file that is cut off.
    fn cut_off(&mut self, what: &str, expected: u64, left: usize) -> Step {
        self.stop(&format!("the file ends inside a {what}: {left} of {expected} bytes"))
    }
}

impl Input {
    /// Begins to read what a program calls `name`.
    pub fn open(
        name: &str,
        source: Box<dyn Read + Send>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Input, TraceError> {
        let failed = |e: &dyn std::fmt::Display| TraceError::Refused(format!("{name}: {e}"));
        let (compression, source) =
            compression::open(source, stop).map_err(|e| interrupted(&e).unwrap_or_else(|| failed(&e)))?;
        let mut buffer = Buffer::new(source);
        loop {
            match buffer.peek(28).map(|_| ()) {
                Ok(()) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                    if stop() {
                        return Err(TraceError::Interrupted);
                    }
                }
                Err(e) if compression == "none" => return Err(failed(&e)),
                // What came before the damage may be a capture's header: then it is read.
                Err(_) if buffer.window().len() >= pcap::HEADER => break,
                Err(e) => {
                    let place = buffer.window().len();
                    return Err(failed(&format!(
                        "byte {place}: the {compression} data is truncated or damaged, or needs too much memory: {e}"
                    )));
                }
            }
        }
        let begin = buffer.window();
        let mut interfaces = Vec::new();
        let form = if pcapng::recognised(begin) {
            Form::Pcapng(pcapng::Pcapng::default())
        } else if let Some((pcap, interface)) = pcap::header(begin) {
            buffer.consume(pcap::HEADER);
            let read = crate::decode::can_be_read(interface.link_type);
            interfaces.push(Interface { read, ..interface });
            Form::Pcap(pcap)
        } else {
            let shown: Vec<String> = begin.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            return Err(failed(&if begin.is_empty() {
                let what = if compression == "none" { "file" } else { compression };
                format!("the {what} is empty; expected a packet capture (pcap or pcapng)")
            } else if begin.len() < pcap::HEADER && pcap::magic(begin) {
                format!(
                    "the file ends at byte {}, inside the header of a pcap file, which has 24",
                    begin.len()
                )
            } else {
                format!(
                    "byte 0: {} is not the start of a packet capture; expected pcap (a1 b2 c3 d4 or its kin) or pcapng \
                     (0a 0d 0d 0a), as it is or compressed by gzip, zstd, xz or bzip2",
                    shown.join(" ")
                )
            }));
        };
        let dropped = vec![None; interfaces.len()];
        let notes = Vec::new();
        Ok(Input { name: name.into(), buffer, form, pending: 0, compression, interfaces, dropped, notes })
    }

    /// `pcap` or `pcapng`.
    pub fn container(&self) -> &'static str {
        match self.form {
            Form::Pcap(_) => "pcap",
            Form::Pcapng(_) => "pcapng",
        }
    }

    /// What all interfaces dropped, if one tells it.
    pub fn dropped(&self) -> Option<u64> {
        self.dropped.iter().flatten().copied().reduce(u64::saturating_add)
    }

    /// The next packet; none at the end, or where the file is damaged, which a note then says.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub fn record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        self.buffer.consume(self.pending);
        self.pending = 0;
        loop {
            let mut place = Place {
                buffer: &mut self.buffer,
                interfaces: &mut self.interfaces,
                dropped: &mut self.dropped,
                notes: &mut self.notes,
            };
            let step = match &mut self.form {
                Form::Pcap(form) => form.next(&mut place),
                Form::Pcapng(form) => form.next(&mut place),
            };
            match step {
                Ok(Step::Other) => {}
                Ok(Step::End) => return Ok(None),
                Ok(Step::Packet { at_ns, interface, length, from, to, next }) => {
                    self.pending = next;
                    let bytes = &self.buffer.window()[from..to];
                    let known = &mut self.interfaces[interface];
                    known.packets += 1;
                    let link_type = known.link_type;
                    return Ok(Some(Record { at_ns, interface, link_type, length, bytes }));
                }
                Err(e) => return self.broken(&e),
            }
        }
    }

    /// Compressed data that is cut off or damaged ends the file; a disk that fails is an error.
    fn broken(&mut self, error: &io::Error) -> Result<Option<Record<'_>>, TraceError> {
        if let Some(interrupted) = interrupted(error) {
            return Err(interrupted);
        }
        let offset = self.buffer.offset;
        if self.compression == "none" {
            return Err(TraceError::Refused(format!("{}: at byte {offset}: {error}", self.name)));
        }
        self.notes.push(format!(
            "At compressed byte {offset} the {} data is truncated or damaged ({error}). The data before it \
             was read.",
            self.compression
        ));
        Ok(None)
    }
}

/// A signal came while a read waited.
fn interrupted(error: &io::Error) -> Option<TraceError> {
    (error.kind() == io::ErrorKind::Interrupted).then_some(TraceError::Interrupted)
}

/// An unsigned number of four bytes at `at`.
fn u32_at(bytes: &[u8], at: usize, big: bool) -> u32 {
    let four = <[u8; 4]>::try_from(&bytes[at..at + 4]).unwrap_or_default();
    if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
}

/// An unsigned number of two bytes at `at`.
fn u16_at(bytes: &[u8], at: usize, big: bool) -> u16 {
    let two = <[u8; 2]>::try_from(&bytes[at..at + 2]).unwrap_or_default();
    if big { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
}
