//! What one run may cost before it is ended. Counted is what happens and what is kept, never time, so that a run ends at
//! the same place on every machine.

use crate::base::error::Refused;

/// The most that a run may do and keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Events handled.
    pub events: u64,
    /// Bytes of samples, captures, answers that are waited for, and packets under way.
    pub bytes: u64,
    /// Whether every packet goes step by step, without the shortcuts of `sim/fast_path`: the same results by more events.
    pub exact: bool,
}

/// Raises or lowers [`Budget::events`].
pub const EVENTS: &str = "BAKEOFF_SIM_EVENTS";
/// Raises or lowers [`Budget::bytes`].
pub const BYTES: &str = "BAKEOFF_SIM_BYTES";
/// Sets [`Budget::exact`] (`1`) or not (`0`).
pub const EXACT: &str = "BAKEOFF_SIM_EXACT";

impl Default for Budget {
    /// Ten thousand million events, which take some ten minutes, and 4 GB.
    fn default() -> Self {
        Budget { events: 10_000_000_000, bytes: 4_000_000_000, exact: false }
    }
}

impl Budget {
    /// The default, but for what the environment says.
    ///
    /// # Errors
    /// A variable that is no whole number, or neither 0 nor 1.
    pub fn from_env() -> Result<Budget, Refused> {
        let default = Budget::default();
        let read = |name: &str, otherwise: u64| match std::env::var(name) {
            Ok(text) => text
                .parse()
                .map_err(|_| Refused(format!("{name}: '{text}' is not a whole number above or equal to 0"))),
            Err(_) => Ok(otherwise),
        };
        let exact = match std::env::var(EXACT).as_deref() {
            Ok("1") => true,
            Ok("0") | Err(_) => false,
            Ok(text) => return Err(Refused(format!("{EXACT}: '{text}' is neither 0 nor 1"))),
        };
        Ok(Budget { events: read(EVENTS, default.events)?, bytes: read(BYTES, default.bytes)?, exact })
    }
}
