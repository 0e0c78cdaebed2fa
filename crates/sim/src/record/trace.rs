//! Traces: what a congestion control thinks, after every ACK and every retransmission timeout, as series.
//!
//! Asked for by `trace: ["cc"]` in the resolved run; docs/results-folder.md has the units.

use std::collections::TryReserveError;

use crate::base::units::Time;
use crate::cc::CongestionControl;
use crate::record::series::{Recorder, Series};
use crate::tcp::sender::Sender;

/// What every module has, in the order of its series; the module's own follow.
pub const TRACE_METRICS: [&str; 9] = [
    "cc.cwnd",
    "cc.ssthresh",
    "cc.srtt",
    "cc.pacing_rate",
    "cc.state",
    "cc.in_flight",
    "cc.delivered",
    "cc.lost",
    "cc.app_limited",
];

/// What the run may ask for.
pub const TRACES: [&str; 1] = ["cc"];

/// The trace of a run.
#[derive(Default)]
pub struct Trace {
    recorder: Recorder,
    flows: Vec<FlowTrace>,
}

struct FlowTrace {
    /// First series of [`TRACE_METRICS`].
    first: u32,
    /// Series of the module's own metrics, in the order in which it first named them.
    own: Vec<(&'static str, u32)>,
}

/// What [`TRACE_METRICS`] name of a sender now.
pub fn common(sender: &Sender) -> [Option<f64>; TRACE_METRICS.len()] {
    let (info, sock) = (sender.info(), sender.sock());
    [
        Some(f64::from(info.cwnd)),
        info.ssthresh.map(f64::from),
        Some(info.srtt_s),
        info.pacing_rate_bps,
        Some(f64::from(sock.ca_state as u8)),
        Some(f64::from(info.in_flight)),
        Some(sock.delivered as f64),
        Some(sock.lost as f64),
        Some(f64::from(u8::from(sock.app_limited > 0))),
    ]
}

impl Trace {
    /// A trace of the flows with these names, in their order.
    pub fn new(flows: &[String]) -> Trace {
        let mut recorder = Recorder::default();
        let flows = flows
            .iter()
            .map(|name| FlowTrace { first: recorder.register("flow", name, TRACE_METRICS), own: Vec::new() })
            .collect();
        Trace { recorder, flows }
    }

    /// Flow number `f`, called `name`, has handled an ACK or a timeout.
    pub fn acked(&mut self, f: usize, name: &str, sender: &Sender, now: Time) {
        let flow = &mut self.flows[f];
        for (series, value) in (flow.first..).zip(common(sender)) {
            if let Some(value) = value {
                self.recorder.push(now, series, value);
            }
        }
        for (metric, value) in sender.cc().trace() {
            let known = flow.own.iter().find(|(known, _)| *known == metric).map(|(_, series)| *series);
            let series = known.unwrap_or_else(|| {
                let series = self.recorder.register("flow", name, [format!("cc.{metric}")]);
                flow.own.push((metric, series));
                series
            });
            self.recorder.push(now, series, value);
        }
    }

    /// Bytes of memory that the rows take.
    pub fn bytes(&self) -> u64 {
        self.recorder.bytes()
    }

    /// Makes room for rows to come; see [`Recorder::reserve`].
    ///
    /// # Errors
    /// There is no memory.
    pub fn reserve(&mut self, rows: usize) -> Result<(), TryReserveError> {
        self.recorder.reserve(rows)
    }

    /// The rows in order of time.
    ///
    /// # Errors
    /// There is no memory.
    pub fn finish(self) -> Result<Series, TryReserveError> {
        self.recorder.finish()
    }
}
