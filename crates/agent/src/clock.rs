//! CLOCK_MONOTONIC in nanoseconds. All nodes of a run on one kernel share it; t = 0 of the run is an instant on it, the epoch.

use nix::errno::Errno;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000_000_000;

/// CLOCK_MONOTONIC, in ns.
pub fn monotonic() -> i64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, in ns.
pub fn realtime_offset() -> i64 {
    read(ClockId::CLOCK_REALTIME) - monotonic()
}

fn read(clock: ClockId) -> i64 {
    clock_gettime(clock).map_or(0, |t| t.num_nanoseconds())
}

/// A number that two processes share if and only if they run on one kernel, and so read one CLOCK_MONOTONIC (up to chance, 2^-32): the beginning of its boot id. 0 = unknown.
pub fn kernel_id() -> u32 {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

/// Sleeps until CLOCK_MONOTONIC shows `instant` (ns); returns at once if it has passed.
pub fn sleep_until(instant: i64) {
    let request = TimeSpec::nanoseconds(instant.max(0));
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &request)
        == Err(Errno::EINTR)
    {}
}

/// Seconds of a document to ns, to the nearest.
pub fn ns(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// ns to seconds.
pub fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
