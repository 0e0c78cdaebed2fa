//! The kernel's helpers of 64 bits that [`super::Prague`] computes with. Sums and products wrap as there.

/// `mul_u64_u64_shr`
pub(super) fn mul_shr(a: u64, b: u64, shift: u32) -> u64 {
    ((u128::from(a) * u128::from(b)) >> shift) as u64
}

/// The quotient rounded to the nearest (`DIV_U64_ROUND_CLOSEST`).
pub(super) fn closest(a: u64, divisor: u64) -> u64 {
    a.wrapping_add(divisor / 2) / divisor
}

/// The quotient rounded up (`DIV_U64_ROUND_UP`).
pub(super) fn up(a: u64, divisor: u64) -> u64 {
    a.wrapping_add(divisor - 1) / divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_round_to_the_nearest_or_up() {
        // 7 / 2 = 3.5, 7 / 3 = 2.3, 7 / 4 = 1.75
        assert_eq!([2, 3, 4].map(|d| closest(7, d)), [4, 2, 2]);
        assert_eq!([2, 3, 4, 7].map(|d| up(7, d)), [4, 3, 2, 1]);
        assert_eq!(mul_shr(u64::MAX, 1 << 20, 20), u64::MAX);
    }
}
