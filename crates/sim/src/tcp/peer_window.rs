//! The window that the peer offers.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_ack_update_window`, `tcp_may_update_window`).

/// In bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    /// Its right edge in the stream: what may be sent ends there.
    pub(super) end: u64,
    /// What the peer offered last (`snd_wnd`).
    pub(super) bytes: u64,
    /// The most that it ever offered (`max_window`).
    pub(super) widest: u64,
}

impl PeerWindow {
    /// The peer offers `bytes` from `ack` on; whether that is another width than before.
    pub(super) fn offer(&mut self, ack: u64, bytes: u64) -> bool {
        self.end = ack + bytes;
        let changed = bytes != self.bytes;
        self.bytes = bytes;
        self.widest = self.widest.max(bytes);
        changed
    }

    /// An ACK is newer than what is known, or opens the window, or closes it.
    pub(super) fn is_news(&self, snd_una: u64, ack: u64, bytes: u64) -> bool {
        ack > snd_una || bytes > self.bytes || bytes == 0
    }

    /// Bytes that may be sent from `seq` on.
    #[inline]
    pub(super) fn room(&self, seq: u64) -> u64 {
        self.end.saturating_sub(seq)
    }
}
