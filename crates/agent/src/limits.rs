//! The smallest packets that hold what the agent writes into them. The plan is checked against these.

/// IPv4 header without options, in bytes.
pub const IP_HEADER: usize = 20;
/// UDP header, and ICMP echo header, in bytes.
pub const HEADER: usize = 8;
/// What a UDP probe carries: its session, number and times, in bytes.
pub const UDP_MESSAGE: usize = 24;
/// Smallest IP packet of a UDP probe, in bytes.
pub const UDP_MIN_SIZE: u16 = (IP_HEADER + HEADER + UDP_MESSAGE) as u16;
/// Smallest IP packet of an ICMP probe, in bytes: headers, session and sequence number.
pub const ICMP_MIN_SIZE: u16 = (IP_HEADER + HEADER + 8) as u16;
/// Smallest payload of a datagram of a flow, in bytes: its kind, number and time.
pub const MIN_PAYLOAD: u32 = 16;
