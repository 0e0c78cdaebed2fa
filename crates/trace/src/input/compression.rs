//! Compressed files, told by their first bytes and not by their names.
//!
//! Several compressed files that follow each other in one are read as one, as their own programs do. What a file makes a
//! decoder remember is bounded: 100 MiB for zstd (`--long=26`), 160 MiB for xz (`-9` needs 65).

use std::io::{self, BufRead, BufReader, Cursor, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const XZ_MEMORY_KIB: u32 = 160 << 10;
const READ_AHEAD: usize = 1 << 17;
const ZSTD_STEP: usize = 1 << 18;

/// A file's name of its compression, and its content. `stop` is asked when a signal interrupts the wait for its begin.
pub fn open(
    mut source: Box<dyn Read + Send>,
    stop: &mut dyn FnMut() -> bool,
) -> io::Result<(&'static str, Box<dyn Read + Send>)> {
    let (mut magic, mut got) = ([0; 6], 0);
    while got < magic.len() {
        match source.read(&mut magic[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted && !stop() => {}
            Err(e) => return Err(e),
        }
    }
    let magic = &magic[..got];
    let begin = magic.to_vec();
    let whole = BufReader::with_capacity(READ_AHEAD, Cursor::new(begin.clone()).chain(source));
    Ok(match magic {
        [0x1f, 0x8b, ..] => ("gzip", Box::new(flate2::bufread::MultiGzDecoder::new(whole))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            ("zstd", Box::new(Zstd { source: whole, decoder: FrameDecoder::new(), begun: false }))
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            ("xz", Box::new(lzma_rust2::XzReader::new_mem_limit(whole, true, XZ_MEMORY_KIB)))
        }
        [b'B', b'Z', b'h', ..] => ("bzip2", Box::new(bzip2::bufread::MultiBzDecoder::new(whole))),
        // Not through the buffer: it would copy every byte once more.
        _ => ("none", Box::new(Cursor::new(begin).chain(whole.into_inner().into_inner().1))),
    })
}

/// All frames of a zstd file.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    begun: bool,
}

impl<R: BufRead> Zstd<R> {
    /// Goes to the next frame; whether there is one.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.source.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(e) => return Err(io::Error::other(e)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.begun {
                let got = self.decoder.read(into)?;
                if got > 0 || into.is_empty() {
                    return Ok(got);
                }
            }
            if !self.begun || self.decoder.is_finished() {
                self.begun = self.next_frame()?;
                if !self.begun {
                    return Ok(0);
                }
            }
            self.decoder
                .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBytes(ZSTD_STEP))
                .map_err(io::Error::other)?;
        }
    }
}
