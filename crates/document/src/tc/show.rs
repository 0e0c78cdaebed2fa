//! How tc prints times, sizes, rates and percentages.
//!
//! Source: iproute2 `lib/utils.c`, `tc/tc_util.c`, `lib/utils_math.c`; C's `%g`.

use crate::units::Rate;

/// A time of `us` microseconds: `5ms`, `999us`, `1.5s`, three significant digits.
pub fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us}us"),
        1_000..1_000_000 => format!("{}ms", general(us as f64 / 1e3, 3)),
        _ => format!("{}s", general(us as f64 / 1e6, 3)),
    }
}

/// A time of `ns` nanoseconds: like [`time`], down to `50ns`.
pub fn time64(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{}us", general(ns as f64 / 1e3, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", general(ns as f64 / 1e6, 3)),
        _ => format!("{}s", general(ns as f64 / 1e9, 3)),
    }
}

/// A size in bytes: `1514b`, and `32Mb` or `15Kb` when that is nearly exact.
pub fn size(bytes: u64) -> String {
    let near = |unit: u64, slack: u64| {
        let whole = (bytes + unit / 2) / unit;
        (bytes >= unit && (whole * unit).abs_diff(bytes) < slack).then_some(whole)
    };
    if let Some(mb) = near(1 << 20, 1024) {
        format!("{mb}Mb")
    } else if let Some(kb) = near(1 << 10, 16) {
        format!("{kb}Kb")
    } else {
        format!("{bytes}b")
    }
}

/// A rate: `50Mbit`, `1500Kbit`, `1001bit`: the largest unit that loses nothing, below 1000 of
/// the next.
pub fn rate(rate: Rate) -> String {
    let mut value = rate.bits_per_s() / 8 * 8;
    let mut units = ["", "K", "M", "G", "T"].into_iter().peekable();
    loop {
        let unit = units.next().unwrap_or_default();
        let exact = value.is_multiple_of(1000);
        if units.peek().is_none() || value < 1000 || (!exact && value < 1_000_000) {
            return format!("{value}{unit}bit");
        }
        value /= 1000;
    }
}

/// A 32-bit fraction as a percentage: `10%`, `0.1%`.
pub fn percent(fraction: u32) -> String {
    format!("{}%", general(100.0 * f64::from(fraction) / f64::from(u32::MAX), 6))
}

/// C's `%.{digits}g`.
pub fn general(value: f64, digits: usize) -> String {
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific; // inf and NaN
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    } else {
        let decimals = (digits as i32 - 1 - exponent) as usize;
        trim(&format!("{value:.decimals$}")).into()
    }
}

/// Without the zeros at the end of a fraction.
fn trim(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_significant_digits() {
        // 4999 us is what remains of 5 ms in ticks of 1024 ns
        assert_eq!(time(4_999), "5ms");
        assert_eq!(time(999), "999us");
        assert_eq!(time(99_999), "100ms");
        assert_eq!(time(1_500_000), "1.5s");
        assert_eq!(time64(1_499_968), "1.5ms");
        assert_eq!(time64(800), "800ns");
        assert_eq!(time64(12_345), "12.3us");
    }

    #[test]
    fn sizes_and_rates_use_the_largest_fitting_unit() {
        assert_eq!(size(32 << 20), "32Mb");
        assert_eq!(size(1600), "1600b");
        assert_eq!(size(15 * 1024), "15Kb");
        assert_eq!(rate(Rate(50_000_000)), "50Mbit");
        assert_eq!(rate(Rate(1_500_000)), "1500Kbit");
        assert_eq!(rate(Rate(8_000_000_000)), "8Gbit");
        // not a whole number of kilobits, and too long for bits
        assert_eq!(rate(Rate(1_234_568)), "1234Kbit");
        assert_eq!(rate(Rate(3_000)), "3Kbit");
        assert_eq!(rate(Rate(1_008)), "1008bit");
    }

    #[test]
    fn general_is_c_percent_g() {
        assert_eq!(general(0.02, 6), "0.02");
        assert_eq!(general(0.0, 6), "0");
        assert_eq!(general(1.593e-5, 6), "1.593e-05");
        assert_eq!(general(1234.0, 3), "1.23e+03");
        assert_eq!(general(99.96, 3), "100");
    }

    #[test]
    fn percentages_come_back_as_they_were_written() {
        assert_eq!(percent(0x1999_999a), "10%");
        assert_eq!(percent(0x0041_8937), "0.1%");
        assert_eq!(percent(u32::MAX), "100%");
        assert_eq!(percent(0), "0%");
    }
}
