//! A window on a stream, which remembers where in the stream it is.

use std::io::{self, Read};

const BEGIN: usize = 1 << 18;

/// Bytes of the stream from [`Buffer::offset`] on. It grows to what is asked for at once and no further.
pub struct Buffer {
    source: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Where in the (decompressed) stream the window begins.
    pub offset: u64,
    ended: bool,
    /// Why it ended, if not at the end of the stream: said whenever more is asked for.
    failure: Option<(io::ErrorKind, String)>,
}

impl Buffer {
    pub fn new(source: Box<dyn Read + Send>) -> Buffer {
        Buffer { source, bytes: vec![0; BEGIN], start: 0, end: 0, offset: 0, ended: false, failure: None }
    }

    /// At least `wanted` bytes, or all that are left.
    pub fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if self.end - self.start < wanted {
            self.fill(wanted)?;
        }
        Ok(&self.bytes[self.start..self.end])
    }

    /// What [`Buffer::peek`] brought, and not more than that.
    pub fn window(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    #[cold]
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if let Some((kind, why)) = &self.failure {
            return Err(io::Error::new(*kind, why.clone()));
        }
        if self.ended {
            return Ok(());
        }
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted.next_power_of_two(), 0);
        }
        while self.end < wanted {
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(got) => self.end += got,
                Err(e) => {
                    // After a signal the caller may come again.
                    if e.kind() != io::ErrorKind::Interrupted {
                        self.failure = Some((e.kind(), e.to_string()));
                    }
                    return Err(e);
                }
            }
        }
        Ok(())
    }

    /// Goes on by as many bytes, of which `peek` has brought all.
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Goes on by as many bytes, and says how many of them there were.
    pub fn skip(&mut self, bytes: u64) -> io::Result<u64> {
        let mut left = bytes;
        while left > 0 {
            let here = (self.peek(1)?.len() as u64).min(left);
            if here == 0 {
                break;
            }
            self.consume(here as usize);
            left -= here;
        }
        Ok(bytes - left)
    }
}
