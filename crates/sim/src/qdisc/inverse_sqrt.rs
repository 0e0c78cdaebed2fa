//! 2^32 over the square root of a small count: how far apart the signals of CoDel's schedule are, as a share of its
//! interval. Linux's CAKE and the qdiscs of the SCE tree have unlike tables, and differ for it: at a count of 2 by 0.06 %.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c` (`inv_sqrt_cache`, `cobalt_newton_step`); chromi/sce
//! `net/sched/sch_cnq_cobalt.c`.
//!
//! Validation: the tests of both COBALTs, [`super::cobalt`] and CAKE's.

/// Counts that have an entry in a table.
const COUNTS: usize = 16;

/// CAKE's: rounded; those of 0 and 1 are as near to 1 as 32 bits allow.
pub(super) const ROUNDED: [u32; COUNTS] = [
    u32::MAX,
    u32::MAX,
    3_037_000_500,
    2_479_700_525,
    2_147_483_647,
    1_920_767_767,
    1_753_413_056,
    1_623_345_051,
    1_518_500_250,
    1_431_655_765,
    1_358_187_914,
    1_294_981_364,
    1_239_850_263,
    1_191_209_601,
    1_147_878_294,
    1_108_955_788,
];

/// The SCE tree's: four Newton steps from the one before.
pub(super) const STEPPED: [u32; COUNTS] = stepped();

const fn stepped() -> [u32; COUNTS] {
    let mut table = [u32::MAX; COUNTS];
    let mut value = u32::MAX;
    let mut count = 1;
    while count < COUNTS {
        let mut steps = 0;
        while steps < 4 {
            value = newton(count as u32, value);
            steps += 1;
        }
        table[count] = value;
        count += 1;
    }
    table
}

/// One Newton step from `value` towards 2^32/sqrt(count), beyond the tables.
pub(super) const fn newton(count: u32, value: u32) -> u32 {
    let value = value as u64;
    let square = (value * value) >> 32;
    let rest = (3_u64 << 32).wrapping_sub(count as u64 * square) >> 2;
    (rest.wrapping_mul(value) >> 31) as u32
}
