//! What a flow's application offers, as the resolved run says it (docs/resolved-run.md).

use serde::{Deserialize, Serialize};

/// What an application offers to a flow.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// Always more data.
    Bulk,
    /// That many bytes, then the end.
    Bytes {
        /// Payload bytes.
        bytes: u64,
    },
    /// A constant rate.
    Rate {
        /// Payload bits per second.
        rate_bps: u64,
        /// Bytes per write or datagram.
        size: u32,
    },
    /// Writes of `size` bytes every `every_s` seconds (isochronous UDP, VBR as a sum of several).
    Periodic {
        /// Bytes per burst.
        size: u32,
        /// Datagrams or writes per burst.
        count: u32,
        /// Seconds between bursts.
        every_s: f64,
    },
    /// A new connection per object.
    Short {
        /// When each begins, in seconds after the flow's start, ascending, and its payload bytes.
        objects: Vec<(f64, u64)>,
    },
    /// A segmented video, fetched by an adaptive player ([`crate::video`]).
    Video {
        /// Encoding rate in bits per second of each quality level, ascending.
        rates_bps: Vec<u64>,
        /// Seconds of video per segment.
        segment_s: f64,
        /// Seconds of buffer before it pauses.
        buffer_s: f64,
    },
}
