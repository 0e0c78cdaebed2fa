//! What a reader of a capture may ask for.

use serde::Deserialize;

use crate::error::TraceError;
use crate::report::EcnMode;

const SHORTEST_S: f64 = 1e-6;
const LONGEST_S: f64 = 1e6;

/// What to look for, and within which bounds. In JSON every key may be left out.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Length of the intervals of [`crate::report::Series`], in seconds; no series if it is absent.
    pub interval_s: Option<f64>,
    /// Length of the windows over which the smallest and the largest goodput are taken, in seconds.
    pub window_s: f64,
    /// How the ECN bits of TCP are to be read; chosen per flow if it is absent.
    pub ecn: Option<EcnMode>,
    /// How many TCP flows are followed. Packets of further ones are counted and not looked at.
    pub flows: usize,
    /// The longest gap, in seconds, between two packets of one burst.
    pub burst_gap_s: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { interval_s: None, window_s: 1.0, ecn: None, flows: 65_536, burst_gap_s: 0.001 }
    }
}

impl Options {
    /// What is wrong with them, if anything is.
    pub fn check(&self) -> Result<(), TraceError> {
        let times = [
            ("interval_s", self.interval_s),
            ("window_s", Some(self.window_s)),
            ("burst_gap_s", Some(self.burst_gap_s)),
        ];
        for (name, value) in times {
            if let Some(value) = value
                && !(SHORTEST_S..=LONGEST_S).contains(&value)
            {
                return Err(TraceError::Refused(format!(
                    "{name}: {value} is out of range; expected {SHORTEST_S} to {LONGEST_S} seconds"
                )));
            }
        }
        Ok(())
    }
}
