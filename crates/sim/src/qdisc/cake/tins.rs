//! Which tin a codepoint goes to, and what part of the bandwidth a tin has.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c` (`cake_config_*`); RFC 4594, RFC 8622 (codepoints).

use bakeoff_document::qdisc::cake::Diffserv;

// Codepoints by the names of RFC 2474, 2597, 3246, 5865 and 8622.
const LE: u8 = 1;
const TOS2: u8 = 2;
const TOS4: u8 = 4;
const CS1: u8 = 8;
const CS2: u8 = 16;
const CS3: u8 = 24;
const CS4: u8 = 32;
const CS5: u8 = 40;
const VA: u8 = 44;
const EF: u8 = 46;
const CS6: u8 = 48;
const CS7: u8 = 56;

/// Whether `dscp` is AF`class`1, 2 or 3.
fn is_af(class: u8, dscp: u8) -> bool {
    matches!(dscp.wrapping_sub(8 * class), 2 | 4 | 6)
}

/// The tin for a codepoint. Source: Linux 7.3 `cake_select_tin`, `cake_handle_diffserv`.
pub(super) fn tin_of(diffserv: Diffserv, dscp: u8) -> usize {
    match diffserv {
        Diffserv::BestEffort => 0,
        Diffserv::Precedence => usize::from(dscp >> 3) & 7,
        Diffserv::Three => match dscp {
            LE | CS1 => 1,
            TOS4 | VA | EF | CS6 | CS7 => 2,
            _ => 0,
        },
        Diffserv::Four => match dscp {
            LE | CS1 => 1,
            TOS4 | CS2 | CS3 => 2,
            _ if (2..=4).any(|class| is_af(class, dscp)) => 2,
            CS4 | CS5 | VA | EF | CS6 | CS7 => 3,
            _ => 0,
        },
        Diffserv::Eight => match dscp {
            LE => 0,
            TOS2 | CS1 => 1,
            _ if is_af(1, dscp) => 1,
            CS3 => 3,
            _ if is_af(3, dscp) || is_af(4, dscp) => 3,
            TOS4 => 4,
            _ if is_af(2, dscp) => 4,
            CS2 => 5,
            CS4 | CS5 | VA | EF => 6,
            CS6 | CS7 => 7,
            _ => 2,
        },
    }
}

/// By tin: its threshold rate in bytes per second and its DRR quantum in bytes (for unlimited bandwidth).
/// Source: Linux 7.3 `cake_config_diffserv3` and its siblings.
pub(super) fn shares(diffserv: Diffserv, rate: u64) -> Vec<(u64, i64)> {
    let quartered = |shifts: &[u32]| shifts.iter().map(|s| (rate >> s, 1024 >> s)).collect();
    match diffserv {
        Diffserv::BestEffort => vec![(rate, 65_535)],
        Diffserv::Three => quartered(&[0, 4, 2]),
        Diffserv::Four => quartered(&[0, 4, 1, 2]),
        Diffserv::Precedence | Diffserv::Eight => {
            let less = |(rate, quantum): &(u64, i64)| Some(((rate * 7) >> 3, (quantum * 7) >> 3));
            std::iter::successors(Some((rate, 256)), less).take(8).collect()
        }
    }
}

/// The tins in the order in which statistics show them: bulk ahead of best effort, where tins have names.
pub(super) fn shown(diffserv: Diffserv) -> impl Iterator<Item = usize> {
    let swapped = matches!(diffserv, Diffserv::Three | Diffserv::Four);
    (0..shares(diffserv, 0).len()).map(move |at| if swapped && at < 2 { 1 - at } else { at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_go_where_cake_s_manual_sends_them() {
        let tins = |diffserv, dscps: &[u8]| dscps.iter().map(|d| tin_of(diffserv, *d)).collect::<Vec<_>>();
        // CS7 CS6 EF VA CS5 CS4 | AF41 AF33 CS3 AF21 TOS4 CS2 | 0 AF11 TOS2 63 | LE CS1
        let all = [56, 48, 46, 44, 40, 32, 34, 30, 24, 18, 4, 16, 0, 10, 2, 63, 1, 8];
        assert_eq!(tins(Diffserv::Four, &all), [3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1]);
        assert_eq!(tins(Diffserv::Three, &all), [2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(tins(Diffserv::Eight, &all), [7, 7, 6, 6, 6, 6, 3, 3, 3, 4, 4, 5, 2, 1, 1, 2, 0, 1]);
        assert_eq!(tins(Diffserv::Precedence, &[56, 47, 8, 7]), [7, 5, 1, 0]);
        assert!((0..64).all(|dscp| tin_of(Diffserv::BestEffort, dscp) == 0));
    }

    #[test]
    fn thresholds_are_fractions_of_the_bandwidth() {
        // 50 Mbit/s: tc shows 3125Kbit for Bulk, 12500Kbit for Voice
        let rates = |diffserv, mbit: u64| {
            shares(diffserv, mbit * 125_000).iter().map(|s| s.0 * 8).collect::<Vec<_>>()
        };
        assert_eq!(rates(Diffserv::Three, 50), [50_000_000, 3_125_000, 12_500_000]);
        assert_eq!(rates(Diffserv::Four, 1), [1_000_000, 62_496, 500_000, 250_000]);
        // tc's table for 1 Mbit/s
        assert_eq!(
            rates(Diffserv::Eight, 1),
            [1_000_000, 875_000, 765_624, 669_920, 586_176, 512_904, 448_784, 392_680]
        );
        let quanta = |diffserv| shares(diffserv, 0).iter().map(|s| s.1).collect::<Vec<_>>();
        assert_eq!(quanta(Diffserv::Three), [1024, 64, 256]);
        assert_eq!(quanta(Diffserv::Eight), [256, 224, 196, 171, 149, 130, 113, 98]);
    }
}
