//! The same document gives the same bytes: in debug and release, and on every machine.
//!
//! `tests/engines/test_determinism.py` asserts the same digest of the build behind the Python
//! extension (by the profile release or ci); here it is the test profile's.

use bakeoff_sim::record::series::Series;
use bakeoff_sim::simulate;

/// FNV-1a, 64 bits, over times, series numbers and values, little-endian, row by row.
fn digest(series: &Series) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut feed = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for i in 0..series.time.len() {
        feed(&series.time[i].to_le_bytes());
        feed(&series.series[i].to_le_bytes());
        feed(&series.value[i].to_le_bytes());
    }
    hash
}

#[test]
fn the_digest_is_that_of_every_other_build() {
    let document = include_str!("../../../tests/data/determinism.json");
    let expected = include_str!("../../../tests/data/determinism.digest");
    let outcome = simulate(document).expect("the document is valid");
    assert_eq!(format!("{:016x}", digest(&outcome.series)), expected.trim());
}
