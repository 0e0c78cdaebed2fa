//! Anti-replay windows: which sequence numbers a receiver still takes.
//!
//! # Source
//! IPsec: `net/xfrm/xfrm_replay.c` (legacy and bitmap modes, Linux 7.3). `WireGuard`: RFC 6479 with 64-bit
//! blocks, `drivers/net/wireguard/receive.c` (`counter_validate`).
//!
//! # Parameters
//! The window in packets. XFRM: any; 0 checks nothing (Linux's largest is 4096). RFC 6479: a multiple of
//! 64; Linux has 8128 (8192 bits without one block), and had 1984 before May 2020.
//!
//! # Departures
//! Extended sequence numbers: below the window, XFRM takes a number for one of the next 2^32 and drops the
//! packet for its checksum; the loss is the same, the counter another. With a window that does not divide
//! 2^32, Linux takes a duplicate of the very first packet.
//!
//! # Validation
//! Tests below: the edges of both windows, and any order of arrival against a set of all numbers seen.
//! `tests/engines/test_tunnels.py`: losses under reordering against the real XFRM.

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// Too old to tell whether it came before.
    Window,
    /// It came before.
    Duplicate,
}

/// A receiver's memory.
#[derive(Clone, Debug)]
pub enum Replay {
    /// XFRM's.
    Xfrm(Xfrm),
    /// RFC 6479's.
    Rfc6479(Rfc6479),
}

impl Replay {
    /// Takes packet number `n`, counted from 0, or says why not.
    ///
    /// # Errors
    /// [`Reject`]
    pub fn accept(&mut self, n: u64) -> Result<(), Reject> {
        match self {
            // The first packet of a security association has the number 1.
            Replay::Xfrm(window) => window.accept(n + 1),
            Replay::Rfc6479(window) => window.accept(n),
        }
    }

    /// The window in packets.
    pub fn window(&self) -> u64 {
        match self {
            Replay::Xfrm(x) => x.window,
            Replay::Rfc6479(r) => r.window(),
        }
    }
}

/// Exactly the last `window` numbers, one bit each in a ring.
#[derive(Clone, Debug)]
pub struct Xfrm {
    window: u64,
    highest: u64,
    seen: Vec<bool>,
}

impl Xfrm {
    /// An empty window of so many packets.
    pub fn new(window: u32) -> Xfrm {
        Xfrm { window: u64::from(window), highest: 0, seen: vec![false; window as usize] }
    }

    fn accept(&mut self, seq: u64) -> Result<(), Reject> {
        if self.window == 0 {
            return Ok(());
        }
        let slot = |n: u64| ((n - 1) % self.window) as usize;
        if seq > self.highest {
            // What was skipped has not been seen; beyond a whole window all is new.
            for skipped in self.highest.max(seq.saturating_sub(self.window)) + 1..seq {
                self.seen[slot(skipped)] = false;
            }
            self.highest = seq;
        } else if self.highest - seq >= self.window {
            return Err(Reject::Window);
        } else if self.seen[slot(seq)] {
            return Err(Reject::Duplicate);
        }
        self.seen[slot(seq)] = true;
        Ok(())
    }
}

/// Blocks of 64 bits in a ring; the oldest block is the one being filled, so it does not count.
#[derive(Clone, Debug)]
pub struct Rfc6479 {
    highest: u64,
    blocks: Vec<u64>,
}

impl Rfc6479 {
    /// An empty window of so many packets, a multiple of 64.
    pub fn new(window: u32) -> Rfc6479 {
        Rfc6479 { highest: 0, blocks: vec![0; (window / 64 + 1) as usize] }
    }

    fn window(&self) -> u64 {
        64 * (self.blocks.len() as u64 - 1)
    }

    fn accept(&mut self, counter: u64) -> Result<(), Reject> {
        // 0 is nothing yet.
        let counter = counter + 1;
        if counter + self.window() < self.highest {
            return Err(Reject::Window);
        }
        let n = self.blocks.len() as u64;
        let block = counter / 64;
        if counter > self.highest {
            let current = self.highest / 64;
            for passed in 1..=(block - current).min(n) {
                self.blocks[((current + passed) % n) as usize] = 0;
            }
            self.highest = counter;
        }
        let (bits, bit) = (&mut self.blocks[(block % n) as usize], 1 << (counter % 64));
        if *bits & bit != 0 {
            return Err(Reject::Duplicate);
        }
        *bits |= bit;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn xfrm_drops_what_a_whole_window_of_later_packets_overtook() {
        for window in [2, 7, 32, 33, 64, 4096] {
            let w = u64::from(window);
            let mut replay = Replay::Xfrm(Xfrm::new(window));
            // number 0 is late: w - 1 later ones do not hurt it, w do
            for n in 1..w {
                assert_eq!(replay.accept(n), Ok(()));
            }
            let mut overtaken = replay.clone();
            assert_eq!(replay.accept(0), Ok(()));
            assert_eq!(replay.accept(0), Err(Reject::Duplicate));
            assert_eq!(overtaken.accept(w), Ok(()));
            assert_eq!(overtaken.accept(0), Err(Reject::Window));
        }
    }

    #[test]
    fn without_a_window_nothing_is_checked() {
        let mut replay = Replay::Xfrm(Xfrm::new(0));
        for n in [5, 0, 5, 1_000_000, 5] {
            assert_eq!(replay.accept(n), Ok(()));
        }
    }

    #[test]
    fn a_jump_beyond_the_window_forgets_everything() {
        let mut replay = Replay::Xfrm(Xfrm::new(32));
        for n in (0..32).chain([100]) {
            assert_eq!(replay.accept(n), Ok(()));
        }
        // numbers 101 (index 100) and the 31 below it: 69 is the oldest index that counts
        assert_eq!(replay.accept(68), Err(Reject::Window));
        for n in 69..100 {
            assert_eq!(replay.accept(n), Ok(()));
        }
        assert_eq!(replay.accept(69), Err(Reject::Duplicate));
    }

    #[test]
    fn rfc_6479_window_of_wireguard() {
        // 8192 bits, of which a block of 64 is being filled: 8128 behind the highest is the last that counts.
        let window = 8128;
        let mut replay = Replay::Rfc6479(Rfc6479::new(window as u32));
        assert_eq!(replay.window(), window);
        for (n, expected) in [
            (0, Ok(())),
            (0, Err(Reject::Duplicate)),
            (9, Ok(())),
            (1, Ok(())),
            (9, Err(Reject::Duplicate)),
            (window, Ok(())),
            (0, Err(Reject::Duplicate)),
            (window + 2, Ok(())),
            (1, Err(Reject::Window)),
            (2, Ok(())),
            (2, Err(Reject::Duplicate)),
            // far ahead: all blocks are cleared
            (5 * window, Ok(())),
            (4 * window, Ok(())),
            (4 * window - 1, Err(Reject::Window)),
            (4 * window, Err(Reject::Duplicate)),
            (window + 2, Err(Reject::Window)),
        ] {
            assert_eq!(replay.accept(n), expected, "{n}");
        }
    }

    #[test]
    fn rfc_6479_in_reverse_takes_the_window_and_one() {
        // the highest and the 1984 behind it
        let mut replay = Replay::Rfc6479(Rfc6479::new(1984));
        let taken = (0..10_000).rev().take_while(|n| replay.accept(*n).is_ok()).count();
        assert_eq!(taken, 1985);
    }

    proptest! {
        #[test]
        fn any_order_agrees_with_a_set(
            window in prop::sample::select(vec![0_u32, 1, 5, 32, 64, 100, 128]),
            numbers in prop::collection::vec(0_u64..400, 1..600),
        ) {
            let mut xfrm = Replay::Xfrm(Xfrm::new(window));
            let aligned = window / 64 * 64;
            let mut blocks = Replay::Rfc6479(Rfc6479::new(aligned));
            let mut seen = BTreeSet::new();
            let mut taken = BTreeSet::new();
            for n in numbers {
                let behind = seen.last().map_or(0, |top: &u64| top.saturating_sub(n));
                let known = seen.contains(&n);
                let expected = match () {
                    () if window == 0 => Ok(()),
                    () if behind >= u64::from(window) => Err(Reject::Window),
                    () if known => Err(Reject::Duplicate),
                    () => Ok(()),
                };
                prop_assert_eq!(xfrm.accept(n), expected);
                let expected = match () {
                    () if behind > u64::from(aligned) => Err(Reject::Window),
                    () if taken.contains(&n) => Err(Reject::Duplicate),
                    () => Ok(()),
                };
                prop_assert_eq!(blocks.accept(n), expected);
                taken.insert(n);
                seen.insert(n);
            }
        }
    }
}
