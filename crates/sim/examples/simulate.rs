//! Runs resolved runs without Python: for a profiler, and to hold the results of two builds against each other.
//!
//! `simulate FILE…` runs each document, which is a resolved run or a results folder's `run.json` with one inside, and
//! prints for each a line: its data packets, its events, and a digest of everything that it leaves behind (series,
//! counters without `events`, `setup.log`, `teardown.log`, captures and traces).

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use bakeoff_sim::record::series::Series;
use bakeoff_sim::{Outcome, simulate};
use serde_json::Value;

/// FNV-1a, 64 bits.
struct Digest(u64);

impl Digest {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn series(&mut self, series: &Series) {
        for (kind, name, metric) in &series.names {
            self.feed(format!("{kind}/{name}/{metric}\n").as_bytes());
        }
        for i in 0..series.time.len() {
            self.feed(&series.time[i].to_bits().to_le_bytes());
            self.feed(&series.series[i].to_le_bytes());
            self.feed(&series.value[i].to_bits().to_le_bytes());
        }
    }
}

/// The events that were handled may change from build to build; nothing else may.
fn digest(outcome: &mut Outcome) -> u64 {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    digest.series(&outcome.series);
    if let Some(counters) = outcome.counters.as_object_mut() {
        counters.remove("events");
    }
    digest.feed(outcome.counters.to_string().as_bytes());
    digest.feed(outcome.setup.as_bytes());
    digest.feed(outcome.teardown.as_bytes());
    for (name, file) in &outcome.captures {
        digest.feed(name.as_bytes());
        digest.feed(file);
    }
    if let Some(trace) = &outcome.trace {
        digest.series(trace);
    }
    digest.0
}

/// A data packet is a full segment of payload that reached the receiving application.
fn packets(counters: &Value) -> u64 {
    let of = |flow: &Value| Some(flow["received_bytes"].as_u64()? / flow["mss"].as_u64()?);
    counters["flows"].as_object().map_or(0, |flows| flows.values().filter_map(of).sum())
}

fn run(path: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let document: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let document = document.get("resolved").map_or(text, Value::to_string);
    let mut outcome = simulate(&document).map_err(|e| e.to_string())?;
    let (packets, events) = (packets(&outcome.counters), outcome.counters["events"].as_u64().unwrap_or(0));
    let mut line = String::new();
    let _ = write!(line, "{packets:>10} {events:>12} {:016x} {path}", digest(&mut outcome));
    Ok(line)
}

fn main() -> ExitCode {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        let line = run(&path).unwrap_or_else(|e| {
            failed = true;
            format!("{path}: {e}")
        });
        if writeln!(std::io::stdout(), "{line}").is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::from(u8::from(failed))
}
