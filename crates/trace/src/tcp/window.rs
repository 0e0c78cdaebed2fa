//! The windows that one direction offers.
//!
//! Source: RFC 7323, section 2.

use crate::report::Acks;

use super::direction::NS;

/// What is known of an end's window scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Its SYN was not seen, or the capture cut it off.
    #[default]
    Unknown,
    /// It offers none.
    None,
    /// It offers this one.
    Offered(u8),
}

impl Scale {
    /// The scale of this end's windows, if it is known: its own if both ends offer one, and 0 if one does not.
    /// `answers` says whether this end's offer answers the other's, which a SYN/ACK's does.
    pub fn in_use(self, other: Scale, answers: bool) -> Option<u8> {
        match (self, other) {
            (Scale::None, _) | (_, Scale::None) => Some(0),
            (Scale::Offered(scale), Scale::Offered(_)) => Some(scale),
            (Scale::Offered(scale), Scale::Unknown) => answers.then_some(scale),
            (Scale::Unknown, _) => None,
        }
    }
}

/// The windows as the packets have them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windows {
    pub scale: Scale,
    last: Option<u16>,
    /// The smallest and the largest behind the handshake, without scale.
    bounds: Option<(u16, u16)>,
    zero_since: Option<i64>,
}

impl Windows {
    /// Takes the window of a packet that is neither SYN nor RST; whether it is the one of the packet before.
    pub fn offer(&mut self, window: u16, at_ns: i64, acks: &mut Acks) -> bool {
        if self.last == Some(window) {
            return true;
        }
        self.last = Some(window);
        match (window, self.zero_since) {
            (0, None) => {
                acks.zero_windows += 1;
                self.zero_since = Some(at_ns);
            }
            (1.., Some(since)) => {
                self.zero_since = None;
                acks.zero_window_s += at_ns.saturating_sub(since).max(0) as f64 * NS;
            }
            _ => {}
        }
        let (least, most) = self.bounds.unwrap_or((window, window));
        self.bounds = Some((least.min(window), most.max(window)));
        false
    }

    /// Tells the windows, of which `scale` is known or not.
    pub fn finish(self, scale: Option<u8>, end_ns: i64, acks: &mut Acks) {
        if let Some(since) = self.zero_since {
            acks.zero_window_s += end_ns.saturating_sub(since).max(0) as f64 * NS;
        }
        let bytes = |window: u16| scale.map(|scale| u64::from(window) << scale);
        acks.window_min_bytes = self.bounds.and_then(|(least, _)| bytes(least));
        acks.window_max_bytes = self.bounds.and_then(|(_, most)| bytes(most));
    }
}
