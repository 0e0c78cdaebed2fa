//! The distributions of `netem`: tables of quantiles, in 1/8192 of the standard deviation (or what stands for it).
//!
//! tc reads such a table from a file, `normal.dist` and others; here each is computed from its definition and equals
//! the file of iproute2 6.1 to 7.2 entry by entry. Entry i of the 4096 is, for
//!
//! * `normal`: the quantile at (4i + 1/2)/16384, cut down to a multiple of 0.00005;
//! * `pareto`: 4/3 (u^(-1/3) - 3/2) with u = 1 - i/4096: shape 3, mean 0 after the shift, at most 4;
//! * `paretonormal`: a quarter of the first and three quarters of the second, cut towards 0.
//!
//! `experimental` is a measured table, and not modelled.
//!
//! Source: iproute2 `man tc-netem`, the format of its `.dist` files; the definitions were found by fitting them to
//! the installed tables.

/// Entries of a table.
const SIZE: usize = 4096;
/// One standard deviation.
const SCALE: f64 = 8192.0;
/// The step of the normal distribution's table.
const GRID: f64 = 0.000_05;

/// A table, sorted.
#[derive(Clone, Debug)]
pub struct Distribution {
    table: Vec<i16>,
}

impl Distribution {
    /// The names that are modelled.
    pub const NAMES: [&str; 3] = ["normal", "pareto", "paretonormal"];

    /// The table called `name`; none if there is no such.
    pub fn named(name: &str) -> Option<Self> {
        let table = match name {
            "normal" => normal().into_iter().map(saturate).collect(),
            "pareto" => pareto().collect(),
            "paretonormal" => normal()
                .into_iter()
                .zip(pareto())
                .map(|(n, p)| saturate((0.25 * n + 0.75 * f64::from(p)).trunc()))
                .collect(),
            _ => return None,
        };
        Some(Distribution { table })
    }

    /// `mean` plus `deviation` times the entry that `draw` selects, in the kernel's integers.
    /// Source: Linux 7.3 `tabledist`.
    pub fn at(&self, draw: u32, mean: i64, deviation: i64) -> i64 {
        const SCALE: i64 = 8192;
        let t = i64::from(self.table[draw as usize % self.table.len()]);
        let x = deviation % SCALE * t;
        let rounded = if x >= 0 { x + SCALE / 2 } else { x - SCALE / 2 };
        rounded / SCALE + deviation / SCALE * t + mean
    }
}

fn saturate(value: f64) -> i16 {
    value.clamp(f64::from(i16::MIN), f64::from(i16::MAX)) as i16
}

fn normal() -> Vec<f64> {
    let mut x = -4.5_f64;
    (0..SIZE)
        .map(|i| {
            let p = (4.0 * i as f64 + 0.5) / 16384.0;
            for _ in 0..6 {
                let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
                x -= ((cumulative(x) - p) / density).clamp(-0.5, 0.5);
            }
            ((x / GRID).floor() * GRID * SCALE).round_ties_even()
        })
        .collect()
}

/// The normal distribution's cumulative probability, by the series of which all terms are positive.
fn cumulative(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    let mut n = 1.0;
    while term.abs() > sum.abs() * 1e-17 {
        n += 2.0;
        term *= x * x / n;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

fn pareto() -> impl Iterator<Item = i16> {
    (0..SIZE).map(|i| {
        let u = 1.0 - i as f64 / SIZE as f64;
        saturate(((1.0 / cube_root(u) - 1.5) * (4.0 / 3.0) * SCALE).round_ties_even())
    })
}

/// Newton's iteration: the same digits on every machine.
fn cube_root(u: f64) -> f64 {
    let mut y = 1.0;
    for _ in 0..60 {
        y = (2.0 * y + u / (y * y)) / 3.0;
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_those_that_tc_reads() {
        // first, second, third and last entries, and the sum of all, of iproute2's files
        for (name, ends, sum) in [
            ("normal", [-32768, -28307, -26871, 28858], -26_163),
            ("pareto", [-5461, -5460, -5460, 32767], -1_123_786),
            ("paretonormal", [-12305, -11171, -10812, 31789], -848_968),
        ] {
            let d = Distribution::named(name).unwrap();
            let t = &d.table;
            assert_eq!([t[0], t[1], t[2], t[SIZE - 1]], ends, "{name}");
            assert_eq!(t.iter().map(|v| i64::from(*v)).sum::<i64>(), sum, "{name}");
        }
        assert!(Distribution::named("experimental").is_none());
    }

    #[test]
    fn a_deviation_scales_the_table() {
        let d = Distribution::named("normal").unwrap();
        // entry 1 is -28307/8192 deviations: 2 ms * -3.4554 = -6.910889 ms
        assert_eq!(d.at(1, 10_000_000, 2_000_000), 10_000_000 - 6_910_889);
        assert_eq!(d.at(1 + 4096, 0, 0), 0);
    }
}
