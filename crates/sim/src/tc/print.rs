//! How `tc ... show` words times, sizes, rates and fractions.
//!
//! Source: iproute2 `tc/tc_util.c`, `lib/utils.c`.

use crate::units::{Rate, Time};

/// A time as tc prints it: whole microseconds, three significant digits from 1 ms up.
pub fn time(t: Time) -> String {
    let us = t.as_us();
    match us {
        1_000_000.. => format!("{}s", general(us as f64 / 1e6, 3)),
        1_000.. => format!("{}ms", general(us as f64 / 1e3, 3)),
        _ => format!("{us}us"),
    }
}

/// A size in bytes as tc prints it: a unit (of 1024) only where it is nearly exact.
pub fn size(bytes: u64) -> String {
    let near = |unit: u64, slack: u64| {
        let count = (bytes as f64 / unit as f64).round_ties_even() as u64;
        (bytes >= unit && (count * unit).abs_diff(bytes) < slack).then_some(count as f64)
    };
    if let Some(count) = near(1 << 20, 1024) {
        format!("{}Mb", general(count, 6))
    } else if let Some(count) = near(1 << 10, 16) {
        format!("{}Kb", general(count, 6))
    } else {
        format!("{bytes}b")
    }
}

/// A rate as tc prints it: the largest unit (of 1000) that keeps it whole.
pub fn rate(rate: Rate) -> String {
    let mut value = rate.bits_per_s();
    let mut prefix = "";
    for larger in ["K", "M", "G", "T"] {
        if value < 1000 || (!value.is_multiple_of(1000) && value < 1_000_000) {
            break;
        }
        value /= 1000;
        prefix = larger;
    }
    format!("{value}{prefix}bit")
}

/// C's `%.<digits>g`.
pub fn general(value: f64, digits: usize) -> String {
    let scientific = format!("{:.*e}", digits - 1, value);
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
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_in_tc() {
        assert_eq!(time(Time::from_ms(15)), "15ms");
        assert_eq!(time(Time::from_us(999)), "999us");
        assert_eq!(time(Time::from_us(1_234_567)), "1.23s");
        assert_eq!(size(400_000), "400000b");
        assert_eq!(size(32 << 20), "32Mb");
        assert_eq!(size(15 << 10), "15Kb");
        assert_eq!(rate(Rate(50_000_000)), "50Mbit");
        assert_eq!(rate(Rate(47_500_000)), "47500Kbit");
        assert_eq!(rate(Rate(999)), "999bit");
    }

    #[test]
    fn general_is_c_percent_g() {
        assert_eq!(general(0.02, 6), "0.02");
        assert_eq!(general(0.0, 6), "0");
        assert_eq!(general(1.593e-5, 6), "1.593e-05");
        assert_eq!(general(1234.0, 3), "1.23e+03");
        assert_eq!(general(99.96, 3), "100");
    }
}
