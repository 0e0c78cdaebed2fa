//! An adaptive video over one connection: the source decides (`bakeoff_workload::video`) and writes a segment, which begins with its length; the
//! sink answers with one byte when it has all of it. That is when a player that had asked for it over HTTP would have it, half a round trip on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};

use bakeoff_workload::{Next, Player};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

use crate::clock;

/// Bytes of a segment that tell its length, big end first.
const LENGTH: usize = 8;
/// What one write hands to the kernel, and one receive takes.
const CHUNK: usize = 1 << 20;

/// Fetches segment after segment until `stop`, ns from `epoch` (ns of CLOCK_MONOTONIC).
pub fn play(player: &Mutex<Player>, mut socket: &TcpStream, epoch: i64, stop: i64) -> std::io::Result<()> {
    let since_epoch = || (clock::monotonic() - epoch).max(0) as u64;
    let lock = || player.lock().unwrap_or_else(PoisonError::into_inner);
    let mut chunk = vec![0; CHUNK];
    while since_epoch() < stop.max(0) as u64 {
        let next = lock().next(since_epoch());
        match next {
            Next::Fetching => return Ok(()),
            Next::Wait(until) => clock::sleep_until(epoch + (until as i64).min(stop)),
            Next::Fetch(bytes) => {
                let mut left = bytes.max(LENGTH as u64);
                chunk[..LENGTH].copy_from_slice(&left.to_be_bytes());
                while left > 0 {
                    let part = left.min(CHUNK as u64) as usize;
                    socket.write_all(&chunk[..part])?;
                    chunk[..LENGTH].fill(0);
                    left -= part as u64;
                }
                socket.read_exact(&mut [0])?;
                lock().arrived(since_epoch());
            }
        }
    }
    Ok(())
}

/// Takes one segment and answers; the bytes taken, 0 when the stream has ended.
pub fn take_segment(connection: &impl AsFd) -> Result<u64, Errno> {
    let fd = connection.as_fd().as_raw_fd();
    let mut length = [0; LENGTH];
    if receive(fd, &mut length, MsgFlags::empty(), LENGTH)? < LENGTH {
        return Ok(0);
    }
    let bytes = u64::from_be_bytes(length);
    let mut left = bytes.saturating_sub(LENGTH as u64);
    let mut buffer = vec![0; CHUNK];
    while left > 0 {
        let part = left.min(CHUNK as u64) as usize;
        let taken = receive(fd, &mut buffer, MsgFlags::MSG_TRUNC, part)?;
        if taken == 0 {
            return Ok(0);
        }
        left -= taken as u64;
    }
    nix::sys::socket::send(fd, &[1], MsgFlags::MSG_NOSIGNAL)?;
    Ok(bytes)
}

/// Receives `wanted` bytes, fewer only at the end of the stream.
fn receive(fd: i32, buffer: &mut [u8], flags: MsgFlags, wanted: usize) -> Result<usize, Errno> {
    let mut taken = 0;
    while taken < wanted {
        match recv(fd, &mut buffer[taken..wanted], flags | MsgFlags::MSG_WAITALL) {
            Ok(0) => break,
            Ok(n) => taken += n,
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}
