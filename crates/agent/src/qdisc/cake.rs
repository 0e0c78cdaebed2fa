//! CAKE with SCE as the module of `kernel/modules/sch_cake_sce` has it. Numbers: mainline's of `TCA_CAKE_*` (`include/uapi/linux/pkt_sched.h`)
//! and `attributes.h` there. Words and statistics: as the simulator reads and shows them.

use bakeoff_document::qdisc::cake::{AckFilter, CakeWords, Config, Diffserv, Isolation, Version, target};
use bakeoff_document::qdisc::cake_stats::{ROWS, Statistics};
use bakeoff_document::tc::{TcError, Words};
use bakeoff_document::units::{Rate, Time};

use super::kind::Kind;
use super::netlink::{Attributes, attributes, u32_at, u64_at};
use super::sce::{cells_code, cells_of};

const RATE64: u16 = 2;
const DIFFSERV: u16 = 3;
const CELLS: u16 = 4;
const ISOLATION: u16 = 5;
const OVERHEAD: u16 = 6;
const RTT: u16 = 7;
const TARGET: u16 = 8;
const AUTORATE: u16 = 9;
const MEMORY: u16 = 10;
const NAT: u16 = 11;
const RAW: u16 = 12;
const WASH: u16 = 13;
const MPU: u16 = 14;
const INGRESS: u16 = 15;
const ACK_FILTER: u16 = 16;
const SPLIT_GSO: u16 = 17;
const FWMARK: u16 = 18;
const THRESH: u16 = 20;

const TINS: u16 = 10;
const TIN_SCE_MARKS: u16 = 64;
/// By row of the statistics: the number of a tin's attribute.
const TIN: [u16; ROWS.len()] = [12, 13, 14, 18, 19, 20, 11, 2, 3, 15, 16, 17, 4, 8, 6, 21, 22, 23, 24, 25];
/// The row of CE marks.
const MARKS: usize = 13;

/// By number.
const DIFFSERVS: [Diffserv; 5] =
    [Diffserv::Three, Diffserv::Four, Diffserv::Eight, Diffserv::BestEffort, Diffserv::Precedence];
const ACK_FILTERS: [AckFilter; 3] = [AckFilter::Off, AckFilter::On, AckFilter::Aggressive];

pub const CAKE_SCE: Kind = Kind {
    name: "cake_sce",
    options,
    show,
    show_stats: |own| statistics(own).show(),
    overlimit_drops: |_| None,
    marks: |own| Some(statistics(own).tins.iter().map(|tin| tin[MARKS]).sum()),
    sce_marks: |own| statistics(own).sce_marks,
    // Those of a tin are moving averages.
    delays: |_| Vec::new(),
};

/// What the words name; a change leaves the rest as it is.
fn options(words: &mut Words) -> Result<Attributes, TcError> {
    let said = CakeWords::take_all(words, Version::Sce)?;
    let mut put = Attributes::default();
    if let Some(bandwidth) = said.bandwidth {
        put.put_u64(RATE64, bandwidth.map_or(0, Rate::bytes_per_s));
    }
    let code = |place: Option<usize>| place.map(|at| at as u32);
    let numbers = [
        (DIFFSERV, code(said.diffserv.and_then(|asked| DIFFSERVS.iter().position(|one| *one == asked)))),
        (CELLS, said.framing.cells.map(cells_code)),
        (ISOLATION, said.isolation.map(|isolation| u32::from(isolation.code()))),
        (RTT, said.rtt.map(|rtt| rtt.as_us() as u32)),
        (TARGET, said.rtt.map(|rtt| target(rtt).as_us() as u32)),
        (AUTORATE, said.autorate_ingress.map(u32::from)),
        (MEMORY, said.memlimit.map(|bytes| bytes as u32)),
        (NAT, said.nat.map(u32::from)),
        (RAW, said.framing.raw.then_some(0)),
        (WASH, said.wash.map(u32::from)),
        // As tc does: what was stays.
        (MPU, said.framing.mpu.filter(|mpu| *mpu > 0)),
        (INGRESS, said.ingress.map(u32::from)),
        (
            ACK_FILTER,
            code(said.ack_filter.and_then(|asked| ACK_FILTERS.iter().position(|one| *one == asked))),
        ),
        (SPLIT_GSO, said.split_gso.map(u32::from)),
        (FWMARK, said.fwmark),
        (THRESH, said.sce_thresh),
    ];
    for (kind, number) in numbers {
        if let Some(number) = number {
            put.put_u32(kind, number);
        }
    }
    if let Some(overhead) = said.framing.overhead {
        put.put_i32(OVERHEAD, overhead);
    }
    Ok(put)
}

fn show(name: &str, options: &[u8]) -> String {
    let mut config = Config::new(Version::Sce);
    config.framing.replaces_header = true;
    for (kind, value) in attributes(options) {
        let number = u32_at(value, 0).unwrap_or_default();
        let on = number != 0;
        match kind {
            RATE64 => {
                let bytes = u64_at(value, 0).unwrap_or_default();
                config.bandwidth = (bytes > 0).then_some(Rate(bytes.saturating_mul(8)));
            }
            DIFFSERV => config.diffserv = *DIFFSERVS.get(number as usize).unwrap_or(&config.diffserv),
            CELLS => config.framing.cells = cells_of(number),
            ISOLATION => config.isolation = Isolation::of_code(number as u8),
            OVERHEAD => config.framing.overhead = number as i32,
            RTT => config.rtt = Time::from_us(u64::from(number)),
            AUTORATE => config.autorate_ingress = on,
            MEMORY => config.memlimit = u64::from(number),
            NAT => config.nat = on,
            RAW => config.framing.replaces_header = false,
            WASH => config.wash = on,
            MPU => config.framing.mpu = number,
            INGRESS => config.ingress = on,
            ACK_FILTER => config.ack_filter = *ACK_FILTERS.get(number as usize).unwrap_or(&config.ack_filter),
            SPLIT_GSO => config.split_gso = on,
            FWMARK => config.fwmark = number,
            THRESH => config.sce_thresh = number,
            _ => {}
        }
    }
    config.show(name)
}

/// A number of 32 or 64 bits.
fn number(value: &[u8]) -> u64 {
    u64_at(value, 0).or_else(|| u32_at(value, 0).map(u64::from)).unwrap_or_default()
}

fn statistics(own: &[u8]) -> Statistics {
    let mut found = Statistics::default();
    for (kind, value) in attributes(own) {
        let whole = number(value);
        match kind {
            2 => found.capacity = whole,
            3 => found.memory_limit = whole,
            4 => found.memory_max = whole,
            5 => found.header = whole as u32,
            6 => found.network[0] = whole as u32,
            7 => found.network[1] = whole as u32,
            8 => found.adjusted[0] = whole as u32,
            9 => found.adjusted[1] = whole as u32,
            TINS => {
                for (_, tin) in attributes(value) {
                    let mut numbers = [0; ROWS.len()];
                    for (kind, value) in attributes(tin) {
                        if let Some(row) = TIN.iter().position(|one| *one == kind) {
                            numbers[row] = number(value);
                        } else if kind == TIN_SCE_MARKS {
                            *found.sce_marks.get_or_insert(0) += number(value);
                        }
                    }
                    found.tins.push(numbers);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(line: &str) -> Result<Vec<(u16, u64)>, String> {
        let put = options(&mut Words::new(line)).map_err(|error| error.to_string())?;
        Ok(attributes(put.bytes()).map(|(kind, value)| (kind, number(value))).collect())
    }

    #[test]
    fn only_what_is_said_is_sent() {
        assert_eq!(sent(""), Ok(vec![]));
        // 50 Mbit/s are 6250000 B/s; the target of 80 ms is 4 ms; as for tc, a bandwidth ends autorate-ingress.
        assert_eq!(
            sent("bandwidth 50mbit besteffort flowblind rtt 80ms sce"),
            Ok(vec![
                (RATE64, 6_250_000),
                (DIFFSERV, 3),
                (ISOLATION, 0),
                (RTT, 80_000),
                (TARGET, 4000),
                (AUTORATE, 0),
                (THRESH, 1)
            ])
        );
        assert_eq!(
            sent("precedence dual-dsthost wash ack-filter-aggressive no-split-gso nat no-sce ethernet"),
            Ok(vec![
                (DIFFSERV, 4),
                (CELLS, 0),
                (ISOLATION, 6),
                (NAT, 1),
                (WASH, 1),
                (MPU, 84),
                (ACK_FILTER, 2),
                (SPLIT_GSO, 0),
                (THRESH, 0),
                (OVERHEAD, 38)
            ])
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, message) in [
            ("bandwidht 5mbit", "unknown word 'bandwidht'"),
            ("memlimit 5gb", "memlimit: '5gb' is not a size"),
            ("sce-thresh 0", "sce-thresh: '0' is not above zero"),
        ] {
            let error = sent(line).expect_err(line);
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn what_is_in_effect_is_shown_in_the_simulators_words() {
        let line = "bandwidth 20mbit diffserv4 hosts wash ack-filter rtt 30ms pppoe-llcsnap memlimit 8mb sce-thresh 4";
        let put = options(&mut Words::new(line)).expect("words");
        assert_eq!(
            show("cake_sce", put.bytes()),
            "cake_sce bandwidth 20Mbit diffserv4 hosts nonat wash ack-filter split-gso rtt 30ms atm overhead 40 \
             memlimit 8Mb sce-thresh 4"
        );
        // The kernel tells of RAW where the header counts.
        let mut put = options(&mut Words::new("unlimited")).expect("words");
        put.put_u32(RAW, 0);
        assert!(show("cake_sce", put.bytes()).ends_with("rtt 100ms raw overhead 0 no-sce"));
    }

    #[test]
    fn statistics_are_shown_as_the_simulators() {
        // Each number of the first of two tins is that of its attribute, 100 more in the second.
        let tins: Vec<u8> = [0, 100]
            .iter()
            .flat_map(|more| {
                let mut tin = Attributes::default();
                for kind in TIN.iter().chain(&[TIN_SCE_MARKS]) {
                    tin.put_u32(*kind, u32::from(*kind) + more);
                }
                let mut one = Attributes::default();
                one.put(1, tin.bytes());
                one.bytes().to_vec()
            })
            .collect();
        let mut own = Attributes::default();
        own.put_u64(2, 125_000);
        own.put_u32(4, 2048);
        own.put_u32(6, 40);
        own.put(TINS, &tins);
        let text = (CAKE_SCE.show_stats)(own.bytes());
        assert!(text.starts_with(" memory used: 2Kb of 0b\n capacity estimate: 1Mbit\n"), "{text}");
        for row in [
            "\n  thresh          96bit       896bit\n",
            "\n  drops               4          104\n",
            "\n  sce_marks 228",
        ] {
            assert!(text.contains(row), "{row}: {text}");
        }
        assert_eq!(
            ((CAKE_SCE.marks)(own.bytes()), (CAKE_SCE.sce_marks)(own.bytes())),
            (Some(116), Some(228))
        );
    }
}
