//! Packets and bytes, counted together.

/// Packets and frame bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, Ethernet header included.
    pub bytes: u64,
}

impl Count {
    /// Counts one more packet, of so many bytes.
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Of packets, given by their bytes.
impl FromIterator<u32> for Count {
    fn from_iter<I: IntoIterator<Item = u32>>(packets: I) -> Count {
        let mut count = Count::default();
        packets.into_iter().for_each(|bytes| count.add(bytes));
        count
    }
}
