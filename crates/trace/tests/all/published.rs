//! Captures that were published with a paper, against tshark's counters and the authors' own.
//!
//! They are not part of the repository: `BAKEOFF_CAPTURES` names their folder, `../shared/captures` beside the
//! repository is looked at otherwise, and without it the test says so and passes.

use std::fs::File;
use std::path::{Path, PathBuf};

use bakeoff_trace::options::Options;
use bakeoff_trace::report::{EcnMode, Report};

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("BAKEOFF_CAPTURES").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3)?.join("shared/captures");
    let folder = named.unwrap_or(beside);
    folder.is_dir().then_some(folder)
}

fn read(folder: &Path, name: &str) -> Report {
    let path = folder.join(name);
    let file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    bakeoff_trace::trace(name, Box::new(file), &Options::default(), &mut || false).expect("it is a capture")
}

/// Packets and bytes of the file and of both directions as `tshark -z conv,tcp` and `-z io,phs` have them; no
/// `tcp.analysis.retransmission`, no `ip.dsfield.ecn == 3`; goodput and round trips as the paper's.
#[test]
fn captures_of_a_paper_are_told_as_others_tell_them() {
    let Some(folder) = folder() else {
        eprintln!("skipped: there is no folder of published captures; BAKEOFF_CAPTURES names one");
        return;
    };
    let cases = [
        // packets, bytes; up; down; goodput in Mbit/s, round trip in ms at 50 %, 95 %, 99 %, most
        (
            "cubic_dualpi2_wifi.pcap.gz",
            [75_129, 68_479_112, 43_522, 65_886_609, 31_573, 2_588_962],
            [8.29, 39.6, 69.6, 166.0, 244.0],
        ),
        (
            "prague_fq_codel_wifi.pcap.gz",
            [83_283, 74_312_967, 47_129, 71_347_607, 36_120, 2_961_816],
            [8.98, 38.1, 82.7, 143.0, 189.0],
        ),
    ];
    for (name, counts, published) in cases {
        let report = read(&folder, name);
        let [_, flow] = &report.flows[..] else { panic!("{name}: two flows: {}", report.flows.len()) };
        let (capture, up, down) = (&report.capture, &flow.up, &flow.down);
        let found = [
            capture.packets,
            capture.frame_bytes,
            up.packets,
            up.frame_bytes,
            down.packets,
            down.frame_bytes,
        ];
        assert_eq!(found, counts, "{name}");
        assert_eq!((up.data.retransmits, down.acks.duplicates, up.marks.ce), (0, Some(0), 0), "{name}");
        assert_eq!(flow.ecn.mode, EcnMode::AccEcn);
        let rtt = up.rtt_s.values.expect("there are samples");
        let goodput = up.data.goodput.and_then(|goodput| goodput.mean_bps).expect("there are ACKs");
        let found = [goodput / 1e6, rtt.p50 * 1e3, rtt.p95 * 1e3, rtt.p99 * 1e3, rtt.max * 1e3];
        for (found, published) in found.into_iter().zip(published) {
            assert!((found / published - 1.0).abs() < 0.01, "{name}: {found} is not {published}");
        }
    }
}
