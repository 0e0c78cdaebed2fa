//! AccECN's TCP option as bytes (RFC 9768, section 3.2.3).

use super::Packet;

/// Kind of the option with ECT(1) first.
const OPTION_KIND: u8 = 174;

/// The option as bytes, with the counters' initial values.
pub fn wire(packet: &Packet) -> Vec<u8> {
    let mut bytes = vec![OPTION_KIND, 2 + 3 * packet.n_accecn];
    for (counter, offset) in packet.accecn.iter().zip([1, 0, 1]).take(packet.n_accecn.into()) {
        bytes.extend(write(read(*counter).wrapping_add(offset)));
    }
    bytes
}

/// A counter of 24 bits.
pub fn write(counter: u32) -> [u8; 3] {
    let [_, a, b, c] = counter.to_be_bytes();
    [a, b, c]
}

/// The value of a counter of 24 bits.
pub fn read([a, b, c]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}
