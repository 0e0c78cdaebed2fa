//! Round trips by timestamps (RFC 7323): from the first packet with a value to the first that echoes it.

use std::collections::VecDeque;

/// Values that wait for their echo; older ones are forgotten.
pub const WAITING: usize = 1024;

/// The timestamps of one direction.
#[derive(Clone, Debug, Default)]
pub struct Timestamps {
    highest: Option<u32>,
    waiting: VecDeque<(u32, i64)>,
}

impl Timestamps {
    /// Whether a segment's value is ahead of the highest so far.
    pub fn is_newer(&self, timestamps: Option<(u32, u32)>) -> bool {
        match (timestamps, self.highest) {
            (Some((value, _)), Some(highest)) => (value.wrapping_sub(highest) as i32) > 0,
            _ => false,
        }
    }

    /// Takes a value; whether it is behind the highest.
    pub fn sent(&mut self, value: u32, at_ns: i64) -> bool {
        let ahead = self.highest.map_or(1, |highest| value.wrapping_sub(highest) as i32);
        if ahead > 0 {
            self.highest = Some(value);
            if self.waiting.len() == WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back((value, at_ns));
        }
        ahead < 0
    }

    /// Takes an echo of this direction's values: the time since its value was first seen, for the first such echo.
    pub fn echoed(&mut self, echo: u32, at_ns: i64) -> Option<i64> {
        while let Some((value, seen)) = self.waiting.front().copied() {
            match echo.wrapping_sub(value) as i32 {
                0 => {
                    self.waiting.pop_front();
                    return Some(at_ns.saturating_sub(seen));
                }
                1.. => {
                    self.waiting.pop_front();
                }
                _ => return None,
            }
        }
        None
    }
}
