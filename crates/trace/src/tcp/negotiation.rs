//! How a flow uses ECN: what its handshake agreed on, and what its packets show where the handshake does not say.
//!
//! Sources: RFC 3168, section 6.1.1; RFC 9768, sections 3.1.2 to 3.1.4; RFC 3540 (the nonce); draft-morton-tsvwg-sce.
//!
//! A SYN or SYN/ACK that is repeated without ECN bits clears the bits of its own packet only: the answer to an earlier
//! one still agrees (RFC 9768, section 3.1.4). So the bits of every SYN and SYN/ACK count.

use super::direction::Half;
use crate::report::{EcnMode, FlowEcn};

/// The SYN of RFC 3168, as AE, CWR and ECE.
const CLASSIC_SYN: u8 = 0b011;
/// The SYN/ACK of RFC 3168, and that of RFC 3540, which RFC 9768 reserves for AccECN.
const CLASSIC: u8 = 0b001;
const RESERVED: u8 = 0b101;
/// A SYN/ACK that repeats the bits of a SYN of AccECN: the server reflects what it does not know.
const REFLECTED: u8 = 0b111;
/// The ACE field before the first mark.
const ACE_BEGIN: usize = 5;

/// A set of values of AE, CWR and ECE.
#[derive(Clone, Copy, Debug, Default)]
struct Bits(u8);

impl Bits {
    fn add(&mut self, ace: u8) {
        self.0 |= 1 << (ace & 7);
    }

    fn has(self, ace: u8) -> bool {
        self.0 >> ace & 1 != 0
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn each(self) -> impl Iterator<Item = u8> {
        (0..8).filter(move |ace| self.has(*ace))
    }
}

/// The bits of all SYNs and SYN/ACKs of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Negotiation {
    asks: Bits,
    answers: Bits,
}

impl Negotiation {
    /// A SYN of the client.
    pub fn asks(&mut self, ace: u8) {
        self.asks.add(ace);
    }

    /// A SYN/ACK of the server.
    pub fn answers(&mut self, ace: u8) {
        self.answers.add(ace);
    }

    /// What the SYNs asked for. Bits that no RFC gives a meaning ask for AccECN (RFC 9768, section 3.1.3).
    fn requested(self) -> Option<EcnMode> {
        if self.asks.is_empty() {
            return None;
        }
        let accecn = self.asks.each().any(|ace| ace != 0 && ace != CLASSIC_SYN);
        Some(if accecn {
            EcnMode::AccEcn
        } else if self.asks.has(CLASSIC_SYN) {
            EcnMode::Rfc3168
        } else {
            EcnMode::None
        })
    }

    /// What a SYN/ACK with these bits agrees to (RFC 9768, table 2). Servers do not answer what nobody asked: where
    /// SYNs without bits alone were seen, or none, an earlier SYN is missing in the capture.
    fn agreed(self, answer: u8) -> EcnMode {
        let requested = self.requested();
        match answer {
            0 | REFLECTED => EcnMode::None,
            // Neither kind of ECN has such a SYN.
            CLASSIC
                if requested == Some(EcnMode::AccEcn)
                    && !self.asks.has(REFLECTED)
                    && !self.asks.has(CLASSIC_SYN) =>
            {
                EcnMode::None
            }
            CLASSIC => EcnMode::Rfc3168,
            RESERVED if requested == Some(EcnMode::Rfc3168) => EcnMode::Rfc3168,
            _ if requested == Some(EcnMode::Rfc3168) => EcnMode::None,
            _ => EcnMode::AccEcn,
        }
    }

    /// Whether the ends agreed on RFC 3540's nonce, whose sum is in the bit of ESCE.
    fn has_nonce(self) -> bool {
        self.answers.has(RESERVED) && self.requested() == Some(EcnMode::Rfc3168)
    }

    /// What client and server agreed on; None without a SYN/ACK. Where SYN/ACKs differ, the client took the first
    /// that reached it, and the packets show which one.
    fn accepted(self, shown: Shown) -> Option<EcnMode> {
        let mut possible: Vec<EcnMode> = self.answers.each().map(|answer| self.agreed(answer)).collect();
        if self.asks.is_empty() && self.answers.has(RESERVED) {
            possible.push(EcnMode::Rfc3168);
        }
        if self.requested() == Some(EcnMode::None) && !possible.is_empty() {
            possible.push(EcnMode::None);
        }
        let shown_mode = if shown.mode == EcnMode::Sce { EcnMode::Rfc3168 } else { shown.mode };
        let settles = shown_mode != EcnMode::None || shown.plain_data;
        if settles && possible.contains(&shown_mode) {
            return Some(shown_mode);
        }
        [EcnMode::AccEcn, EcnMode::Rfc3168, EcnMode::None].into_iter().find(|mode| possible.contains(mode))
    }

    /// How the bits of a flow are to be read, unless the user `told` it.
    pub fn mode(self, told: Option<EcnMode>, halves: &[Half; 2]) -> FlowEcn {
        let shown = Shown::by(halves);
        let accepted = self.accepted(shown);
        let (mode, chosen_by) = match (told, accepted) {
            (Some(mode), _) => (mode, "option"),
            // The SYN/ACK that agreed is missing in the capture.
            (None, Some(EcnMode::None)) if shown.is_used => (shown.mode, "packets"),
            (None, Some(EcnMode::Rfc3168)) if shown.sce && !self.has_nonce() => (EcnMode::Sce, "handshake"),
            (None, Some(mode)) => (mode, "handshake"),
            (None, None) => (shown.mode, "packets"),
        };
        FlowEcn { mode, chosen_by, requested: self.requested(), accepted }
    }
}

/// What the packets behind the handshake show.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    /// The mode that explains them.
    mode: EcnMode,
    /// Whether something has the marks of SCE.
    sce: bool,
    /// Whether both ends use ECN: one echoes or answers marks, and the other's data, where it was seen, can be marked.
    is_used: bool,
    /// Whether there is data, and no packet can be marked.
    plain_data: bool,
}

impl Shown {
    fn by(halves: &[Half; 2]) -> Shown {
        let [up, down] = halves;
        let sum = |of: &dyn Fn(&Half) -> u64| of(up) + of(down);
        let pure = |aces: &[usize]| sum(&|half| aces.iter().map(|ace| half.aces[0][*ace]).sum());
        // Pure ACKs of RFC 3168 and of SCE do not have CWR. Those of SCE have ESCE and ECE together beside others, and go
        // back and forth; the ACE field goes on.
        let counts = [(up, down), (down, up)].iter().any(|(half, other)| {
            half.aces.iter().any(|aces| aces[ACE_BEGIN] > 0) && !other.feedback.goes_back()
        });
        let accecn =
            up.feedback.options || down.feedback.options || pure(&[0b010, 0b011, 0b110, 0b111]) > 0 || counts;
        let sce = pure(&[0b100, 0b101]) > 0 || up.marks_ect1 || down.marks_ect1;
        let capable = sum(&|half| half.capable) > 0;
        let data = sum(&|half| half.sequence.data.packets) > 0;
        // ECE also comes with data of the other direction.
        let ece = sum(&|half| half.aces[1][0b001] + half.aces[1][0b011]);
        let echoed = pure(&[1, 2, 3, 4, 5, 6, 7]) + sum(&|half| half.cwr) + ece > 0;
        let mode = match (accecn, sce, capable || echoed) {
            (true, ..) => EcnMode::AccEcn,
            (_, true, _) => EcnMode::Sce,
            (.., true) => EcnMode::Rfc3168,
            _ => EcnMode::None,
        };
        let is_used = mode != EcnMode::None && echoed && (capable || !data);
        Shown { mode, sce, is_used, plain_data: data && !capable && !echoed }
    }
}
