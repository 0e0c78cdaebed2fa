//! What is kept of one direction of a flow.

use super::feedback::Feedback;
use super::rtt::Timestamps;
use super::sequence::Sequence;
use super::window::Windows;
use crate::decode::{Missing, Options, Segment};
use crate::histogram::Histogram;
use crate::report::{Acks, Direction, EcnCounts, EcnMode, Flags, Goodput, Marks, TcpOptions};

/// Nanoseconds as seconds.
pub const NS: f64 = 1e-9;

/// The packets, data and ACKs of one direction, and what the other end says of its data.
#[derive(Clone, Debug, Default)]
pub struct Half {
    pub packets: u64,
    pub frame_bytes: u64,
    pub ip_bytes: u64,
    pub ecn: EcnCounts,
    pub flags: Flags,
    pub options: Counts,
    pub acks: Acks,
    pub duplicates: u64,
    pub dsacks: u64,
    pub sequence: Sequence,
    /// Of this direction's marks.
    pub feedback: Feedback,
    pub timestamps: Timestamps,
    pub rtt: Histogram,
    pub timestamp_rtt: Histogram,
    pub windows: Windows,
    /// Sequence number with which this direction begins, as far as it was seen.
    pub begin: Option<u32>,
    /// Pure ACKs, and packets with payload, by their values of AE, CWR and ECE.
    pub aces: [[u64; 8]; 2],
    /// Packets with ECT or CE that are no SYN.
    pub capable: u64,
    /// Whether a packet of data with ECT(0) came after one with ECT(1). Senders change from ECT(0) to ECT(1) once, so
    /// ECT(1) was a mark then.
    pub marks_ect1: bool,
    pub goodput: Window,
    gaps: Histogram,
    bursts: Histogram,
    ce_runs: Histogram,
    sce_runs: Histogram,
    sce_gaps: Histogram,
    last_ns: Option<i64>,
    last_data_ns: Option<i64>,
    last_sce_ns: Option<i64>,
    burst: u64,
    ce_run: u64,
    sce_run: u64,
    /// Packets with CWR that are no SYN.
    pub cwr: u64,
}

/// The options that were seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub mss: Option<u16>,
    pub sack_permitted: Option<bool>,
    pub window_scale: Option<u8>,
    pub timestamps: u64,
    /// Packets whose timestamp is behind the highest.
    pub late: u64,
    sack: u64,
    accecn: u64,
    other: u64,
    malformed: u64,
    /// Packets whose options were cut off, and which options SYNs and other packets may lack.
    cut: u64,
    missing_of_syn: Missing,
    missing: Missing,
}

impl Counts {
    /// Counts the options of a packet.
    pub fn add(&mut self, options: &Options, syn: bool) {
        self.sack += u64::from(options.blocks > 0);
        self.accecn += u64::from(options.accecn.is_some());
        self.other += u64::from(options.other);
        self.malformed += u64::from(options.malformed);
        self.cut += u64::from(options.cut);
        if syn { &mut self.missing_of_syn } else { &mut self.missing }.join(options.missing);
    }

    /// Options that packets behind the handshake may lack.
    pub fn missing(&self) -> Missing {
        self.missing
    }

    fn lacks(&self, options: Missing) -> bool {
        self.missing.has(options)
    }

    fn finish(self) -> TcpOptions {
        let of_syn = self.missing_of_syn.known(
            self.mss.is_some(),
            self.window_scale.is_some(),
            self.sack_permitted.is_some(),
        );
        let mut missing = self.missing;
        missing.join(of_syn);
        let known = |count: u64, option: Missing| (!missing.has(option)).then_some(count);
        TcpOptions {
            mss: self.mss,
            window_scale: self.window_scale,
            sack_permitted: self.sack_permitted,
            timestamps: known(self.timestamps, Missing::TIMESTAMPS),
            sack: known(self.sack, Missing::SACK),
            accecn: known(self.accecn, Missing::ACCECN),
            other: (self.cut == 0).then_some(self.other),
            malformed: self.malformed,
            cut: self.cut,
            unknown: missing.names(),
        }
    }
}

impl Half {
    /// Counts a packet.
    pub fn packet(&mut self, segment: &Segment<'_>, ecn: u8, ip_bytes: u32, frame_bytes: u32, at_ns: i64) {
        self.packets += 1;
        self.frame_bytes += u64::from(frame_bytes);
        self.ip_bytes += u64::from(ip_bytes);
        self.ecn.add(ecn);
        for (count, set) in [
            (&mut self.flags.syn, segment.syn()),
            (&mut self.flags.fin, segment.fin()),
            (&mut self.flags.rst, segment.rst()),
            (&mut self.flags.psh, segment.psh()),
            (&mut self.flags.urg, segment.urg()),
            (&mut self.flags.ece, segment.ece()),
            (&mut self.flags.cwr, segment.cwr()),
            (&mut self.flags.ae, segment.ae),
        ] {
            *count += u64::from(set);
        }
        self.cwr += u64::from(segment.cwr() && !segment.syn());
        self.capable += u64::from(ecn & 3 != 0 && !segment.syn());
        self.begin.get_or_insert(segment.seq.wrapping_add(u32::from(segment.syn())));
        if segment.has_ack() && !segment.syn() && !segment.fin() && !segment.rst() {
            self.aces[usize::from(segment.payload_length > 0)][usize::from(segment.ace())] += 1;
        }
        if let Some(last) = self.last_ns {
            self.gaps.add_ns(at_ns.saturating_sub(last));
        }
        self.last_ns = Some(at_ns);
        if ecn == 1 {
            if let Some(last) = self.last_sce_ns {
                self.sce_gaps.add_ns(at_ns.saturating_sub(last));
            }
            self.last_sce_ns = Some(at_ns);
        }
    }

    /// Counts a packet with payload.
    pub fn payload(&mut self, length: u32, ecn: u8, frame_bytes: u32, at_ns: i64, burst_gap_ns: i64) {
        let data = &mut self.sequence.data;
        data.packets += 1;
        data.frame_bytes += u64::from(frame_bytes);
        data.payload_bytes += u64::from(length);
        data.ecn.add(ecn);
        self.marks_ect1 |= ecn == 2 && data.ecn.ect1 > 0;
        match self.last_data_ns {
            Some(last) if at_ns.saturating_sub(last) > burst_gap_ns => {
                self.bursts.add(self.burst);
                self.burst = 1;
            }
            _ => self.burst += 1,
        }
        self.last_data_ns = Some(at_ns);
        for (run, runs, marked) in [
            (&mut self.ce_run, &mut self.ce_runs, ecn == 3),
            (&mut self.sce_run, &mut self.sce_runs, ecn == 1),
        ] {
            if marked {
                *run += 1;
            } else if *run > 0 {
                runs.add(*run);
                *run = 0;
            }
        }
    }

    /// As it is told.
    pub fn finish(mut self, whole: &Whole) -> Direction {
        let mode = whole.mode;
        for (last, runs) in [
            (self.burst, &mut self.bursts),
            (self.ce_run, &mut self.ce_runs),
            (self.sce_run, &mut self.sce_runs),
        ] {
            if last > 0 {
                runs.add(last);
            }
        }
        self.windows.finish(whole.scale, whole.end_ns, &mut self.acks);
        // SACK alone says that data is under way where the data itself was not seen.
        let by_sack = !whole.other_carries && self.options.lacks(Missing::SACK);
        self.acks.duplicates = (!by_sack).then_some(self.duplicates);
        self.acks.dsacks = (!self.options.lacks(Missing::SACK)).then_some(self.dsacks);
        let accecn = mode == EcnMode::AccEcn;
        let classic = mode == EcnMode::Rfc3168 || mode == EcnMode::Sce;
        let sce = mode == EcnMode::Sce || accecn && self.marks_ect1;
        let feedback = &self.feedback;
        let bytes = feedback.bytes().filter(|_| accecn && !whole.other_lacks.has(Missing::ACCECN));
        let marks = Marks {
            ce: self.ecn.ce,
            sce: sce.then_some(self.ecn.ect1),
            ece_acks: classic.then_some(feedback.ece_acks),
            cwr: classic.then_some(self.cwr),
            esce_acks: (mode == EcnMode::Sce).then_some(feedback.esce_acks),
            esce_acked_bytes: (mode == EcnMode::Sce).then_some(feedback.esce_bytes),
            echoed_ce_packets: accecn.then_some(feedback.ce_packets),
            ace_ambiguous: accecn.then_some(feedback.ambiguous),
            echoed_ect0_bytes: bytes.map(|bytes| bytes[0]),
            echoed_ce_bytes: bytes.map(|bytes| bytes[1]),
            echoed_ect1_bytes: bytes.map(|bytes| bytes[2]),
            ce_runs: self.ce_runs.distribution(1.0),
            sce_runs: if sce {
                self.sce_runs.distribution(1.0)
            } else {
                Histogram::default().distribution(1.0)
            },
            sce_gap_s: if sce {
                self.sce_gaps.distribution(NS)
            } else {
                Histogram::default().distribution(1.0)
            },
        };
        let mut data = self.sequence.finish(!whole.other_lacks.has(Missing::SACK));
        data.late = (!self.options.lacks(Missing::TIMESTAMPS)).then_some(self.options.late);
        data.goodput = self.goodput.finish(whole.start_ns, whole.window_ns);
        Direction {
            packets: self.packets,
            frame_bytes: self.frame_bytes,
            ip_bytes: self.ip_bytes,
            ecn: self.ecn,
            flags: self.flags,
            options: self.options.finish(),
            data,
            acks: self.acks,
            marks,
            rtt_s: self.rtt.distribution(NS),
            timestamp_rtt_s: self.timestamp_rtt.distribution(NS),
            gap_s: self.gaps.distribution(NS),
            bursts: self.bursts.distribution(1.0),
        }
    }
}

/// What is known at the end of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Whole {
    pub mode: EcnMode,
    /// Scale of this direction's windows.
    pub scale: Option<u8>,
    /// Whether the other direction carries payload, and which options its packets may lack.
    pub other_carries: bool,
    pub other_lacks: Missing,
    /// Zero of all times, and the end of the flow.
    pub start_ns: i64,
    pub end_ns: i64,
    pub window_ns: i64,
}

/// Acknowledged payload per window of time, from the first ACK on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    span: Option<(i64, i64)>,
    bytes: u64,
    current: i64,
    current_bytes: u64,
    extremes: Option<(u64, u64)>,
}

impl Window {
    /// Takes what an ACK acknowledges.
    pub fn add(&mut self, bytes: u64, at_ns: i64, window_ns: i64) {
        let Some((first, last)) = &mut self.span else {
            self.span = Some((at_ns, at_ns));
            return;
        };
        // What the first ACK acknowledges was sent before it.
        self.bytes += bytes;
        *last = (*last).max(at_ns);
        // A window holds its end and not its begin, as the first ACK is not counted.
        let window = at_ns.saturating_sub(*first).saturating_sub(1).max(0) / window_ns;
        if window > self.current {
            let empty = window > self.current + 1;
            let bytes = self.current_bytes;
            let (least, most) = self.extremes.unwrap_or((bytes, bytes));
            self.extremes = Some((if empty { 0 } else { least.min(bytes) }, most.max(bytes)));
            (self.current, self.current_bytes) = (window, 0);
        }
        self.current_bytes += bytes;
    }

    fn finish(self, start_ns: i64, window_ns: i64) -> Option<Goodput> {
        let (first, last) = self.span?;
        let bps = |bytes: u64, ns: i64| bytes as f64 * 8.0 / (ns as f64 * NS);
        Some(Goodput {
            mean_bps: (last > first).then(|| bps(self.bytes, last.saturating_sub(first))),
            min_bps: self.extremes.map(|(least, _)| bps(least, window_ns)),
            max_bps: self.extremes.map(|(_, most)| bps(most, window_ns)),
            window_s: window_ns as f64 * NS,
            first_ack_s: first.saturating_sub(start_ns) as f64 * NS,
            last_ack_s: last.saturating_sub(start_ns) as f64 * NS,
        })
    }
}
