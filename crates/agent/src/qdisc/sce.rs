//! The SCE project's qdiscs as the modules of `kernel/modules/sch_sce` have them. Numbers and layouts: `sce.h` there. Words: as the
//! simulator reads and shows them.

use bakeoff_document::qdisc::framing::{Cells, Framing};
use bakeoff_document::qdisc::sce::{SceConfig, SceWords};
use bakeoff_document::tc::{TcError, Words};
use bakeoff_document::units::{Rate, Time};

use super::kind::Kind;
use super::netlink::{Attributes, attributes, u32_at, u64_at};

const RATE64: u16 = 2;
const CELLS: u16 = 4;
const OVERHEAD: u16 = 6;
const RTT: u16 = 7;
const RAW: u16 = 12;
const MPU: u16 = 14;
const THRESH: u16 = 20;
const LIMIT: u16 = 21;

pub const CNQ_COBALT: Kind = Kind { name: "cnq_cobalt", ..CNQ_CODEL_AF };

pub const CNQ_CODEL_AF: Kind = Kind {
    name: "cnq_codel_af",
    options: |words| options(words, false),
    show,
    show_stats: |own| {
        let [flows, tokens] = flows(own);
        format!("  flows {flows} sparse {tokens} {}", counts(own))
    },
    overlimit_drops,
    marks,
    sce_marks,
    delays,
};

pub const LFQ_COBALT: Kind =
    Kind { name: "lfq_cobalt", show_stats: |own| format!("  {}", counts(own)), ..CNQ_CODEL_AF };

pub const TWIN_CODEL_AF: Kind = Kind {
    name: "twin_codel_af",
    options: |words| options(words, true),
    show_stats: |own| {
        let [flows, low_latency] = flows(own);
        format!("  flows {flows} low_latency_flows {low_latency} {}", counts(own))
    },
    ..CNQ_CODEL_AF
};

/// What the words name; a change leaves the rest as it is.
fn options(words: &mut Words, has_limit: bool) -> Result<Attributes, TcError> {
    let said = SceWords::take_all(words, has_limit)?;
    let mut put = Attributes::default();
    if let Some(bandwidth) = said.bandwidth {
        put.put_u64(RATE64, bandwidth.map_or(0, Rate::bytes_per_s));
    }
    if let Some(rtt) = said.rtt {
        put.put_u32(RTT, rtt.as_us() as u32);
    }
    if let Some(cells) = said.framing.cells {
        put.put_u32(CELLS, cells_code(cells));
    }
    if let Some(overhead) = said.framing.overhead {
        put.put_i32(OVERHEAD, overhead);
    }
    if said.framing.raw {
        put.put_u32(RAW, 0);
    }
    if let Some(mpu) = said.framing.mpu.filter(|mpu| *mpu > 0) {
        put.put_u32(MPU, mpu);
    }
    if let Some(n) = said.sce_thresh {
        put.put_u32(THRESH, n);
    }
    if let Some(limit) = said.limit {
        put.put_u32(LIMIT, limit);
    }
    Ok(put)
}

/// Linux's number, of cake too.
pub fn cells_code(cells: Cells) -> u32 {
    match cells {
        Cells::None => 0,
        Cells::Atm => 1,
        Cells::Ptm => 2,
    }
}

/// What has this number.
pub fn cells_of(code: u32) -> Cells {
    [Cells::Atm, Cells::Ptm].into_iter().find(|&cells| cells_code(cells) == code).unwrap_or_default()
}

fn show(name: &str, options: &[u8]) -> String {
    let mut framing = Framing { replaces_header: true, ..Framing::default() };
    let mut config = SceConfig { bandwidth: None, rtt: Time::ZERO, framing, sce_thresh: 0, limit: None };
    for (kind, value) in attributes(options) {
        let number = u32_at(value, 0).unwrap_or_default();
        match kind {
            RATE64 => {
                let bytes = u64_at(value, 0).unwrap_or_default();
                config.bandwidth = (bytes > 0).then_some(Rate(bytes.saturating_mul(8)));
            }
            CELLS => framing.cells = cells_of(number),
            OVERHEAD => framing.overhead = number as i32,
            RTT => config.rtt = Time::from_us(u64::from(number)),
            RAW => framing.replaces_header = false,
            MPU => framing.mpu = number,
            THRESH => config.sce_thresh = number,
            LIMIT => config.limit = Some(number),
            _ => {}
        }
    }
    config.framing = framing;
    config.show(name)
}

/// `struct sce_xstats`: what all of them count.
fn counts(own: &[u8]) -> String {
    let long = |offset| u64_at(own, offset).unwrap_or_default();
    format!("ecn_mark {} sce_marks {} drop_overlimit {}", long(0), long(8), long(24))
}

/// Its last two numbers.
fn flows(own: &[u8]) -> [u32; 2] {
    [40, 44].map(|offset| u32_at(own, offset).unwrap_or_default())
}

fn overlimit_drops(own: &[u8]) -> Option<u64> {
    u64_at(own, 24)
}

fn marks(own: &[u8]) -> Option<u64> {
    u64_at(own, 0)
}

fn sce_marks(own: &[u8]) -> Option<u64> {
    u64_at(own, 8)
}

fn delays(own: &[u8]) -> Vec<(&'static str, u32)> {
    u64_at(own, 32).map(|ns| ("sojourn", (ns / 1_000) as u32)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(line: &str) -> Result<Attributes, String> {
        options(&mut Words::new(line), false).map_err(|error| error.to_string())
    }

    #[test]
    fn only_what_is_said_is_sent() {
        assert_eq!(sent("").expect("no words").bytes(), [0_u8; 0]);
        // 50 Mbit/s are 6250000 B/s, 80 ms are 80000 us.
        let put = sent("bandwidth 50mbit rtt 80ms sce-thresh 4").expect("words of all");
        let read: Vec<_> = attributes(put.bytes()).map(|(kind, value)| (kind, value.to_vec())).collect();
        let expected = [
            (RATE64, 6_250_000_u64.to_ne_bytes().to_vec()),
            (RTT, 80_000_u32.to_ne_bytes().to_vec()),
            (THRESH, 4_u32.to_ne_bytes().to_vec()),
        ];
        assert_eq!(read, expected);
        assert!(sent("limit 10").expect_err("twin_codel_af's").contains("unknown word 'limit'"));
        assert!(sent("sce-thresh 2000").expect_err("too much").contains("from 1 to 1024"));
    }

    #[test]
    fn what_is_in_effect_is_shown_in_the_simulators_words() {
        // The kernel tells all of it, and RAW where the header counts.
        let mut put = sent("bandwidth 50mbit rtt 80ms pppoe-llcsnap no-sce").expect("words of all");
        assert_eq!(show("x", put.bytes()), "x bandwidth 50Mbit rtt 80ms atm overhead 40 no-sce");
        put.put_u64(RATE64, 0);
        put.put_u32(CELLS, 0);
        put.put_i32(OVERHEAD, 0);
        put.put_u32(RAW, 0);
        put.put_u32(LIMIT, 5);
        assert_eq!(show("x", put.bytes()), "x limit 5p unlimited rtt 80ms no-sce");
    }

    #[test]
    fn statistics_are_shown_as_tc_would() {
        // ce_marks 1, sce_marks 2, aqm_drops 3, overlimit_drops 4, sojourn 5 us, flows 6, tokens 7
        let mut own: Vec<u8> = [1_u64, 2, 3, 4, 5_000].iter().flat_map(|value| value.to_ne_bytes()).collect();
        own.extend([6_u32, 7].iter().flat_map(|value| value.to_ne_bytes()));
        let shown = (CNQ_CODEL_AF.show_stats)(&own);
        assert_eq!(shown, "  flows 6 sparse 7 ecn_mark 1 sce_marks 2 drop_overlimit 4");
        assert_eq!(overlimit_drops(&own), Some(4));
        assert_eq!((marks(&own), sce_marks(&own), delays(&own)), (Some(1), Some(2), vec![("sojourn", 5)]));
    }
}
