//! Runs resolved runs without Python: for a profiler, and to hold the results of two builds against each other.
//!
//! `simulate FILE…` runs each document, which is a resolved run or a results folder's `run.json` with one inside, and
//! prints for each a line: its data packets, its events, and a digest of everything that it leaves behind (series,
//! counters without `events`, `setup.log`, `teardown.log`, captures and traces). With `BAKEOFF_SIM_EXACT=1` in the
//! environment every packet goes step by step; the digests are the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use bakeoff_sim::record::series::{Name, Series};
use bakeoff_sim::{Outcome, simulate};
use serde::Deserialize;
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
        for Name { kind, name, metric } in &series.names {
            self.feed(format!("{kind}/{name}/{metric}\n").as_bytes());
        }
        for i in 0..series.time.len() {
            self.feed(&series.time[i].to_bits().to_le_bytes());
            self.feed(&series.series[i].to_le_bytes());
            self.feed(&series.value[i].to_bits().to_le_bytes());
        }
    }
}

/// The events that were handled, which are the only number of their name, may change from build to build; nothing else may.
fn digest(outcome: &Outcome, events: u64) -> u64 {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    digest.series(&outcome.series);
    digest.feed(outcome.counters.replacen(&format!("\"events\":{events},"), "", 1).as_bytes());
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

/// What is read of counters.json.
#[derive(Deserialize)]
struct Counted {
    events: u64,
    flows: BTreeMap<String, Received>,
}

#[derive(Deserialize)]
struct Received {
    received_bytes: u64,
    mss: u64,
}

/// A results folder's `run.json`.
#[derive(Deserialize)]
struct Record {
    resolved: Option<Value>,
}

fn run(path: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let record: Record = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let document = record.resolved.map_or(text, |resolved| resolved.to_string());
    let outcome = simulate(&document).map_err(|e| e.to_string())?;
    let counted: Counted = serde_json::from_str(&outcome.counters).map_err(|e| e.to_string())?;
    // A data packet is a full segment of payload that reached the receiving application.
    let packets: u64 = counted.flows.values().map(|flow| flow.received_bytes / flow.mss).sum();
    let events = counted.events;
    let mut line = String::new();
    let _ = write!(line, "{packets:>10} {events:>12} {:016x} {path}", digest(&outcome, events));
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
