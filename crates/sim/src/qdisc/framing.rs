//! What packets cost on a link with the overhead words of [`bakeoff_document::qdisc::framing`].

use bakeoff_document::qdisc::framing::Framing;

use crate::packet::Packet;

/// The bytes that `packet` costs on the link; of several segments, what their frames cost.
pub(super) fn adjusted_len(framing: Framing, packet: &Packet) -> u32 {
    if packet.gso_size != 0 {
        let last = packet.segs() - 1;
        let [full, rest] = [0, last].map(|i| framing.adjusted_len(packet.segment(i).len));
        return last * full + rest;
    }
    framing.adjusted_len(packet.len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_segments_cost_what_their_frames_do() {
        let framing = Framing { overhead: 38, replaces_header: true, ..Framing::default() };
        // 2 x 1448 + 104 bytes of payload
        let whole = Packet { payload: 3000, len: 3000 + 3 * 66, gso_size: 1448, ..Packet::default() };
        assert_eq!(adjusted_len(framing, &whole), 2 * 1538 + 156 + 38);
    }
}
