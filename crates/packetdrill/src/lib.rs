//! Runs packetdrill scripts against the simulated TCP: the kernel's own in
//! `tools/testing/selftests/net/packetdrill`, and any other in the same language.
//!
//! A script plays the peer and the application of one socket; the socket is a simulated sender and receiver
//! ([`endpoint::Endpoint`]) on a virtual clock. docs/packetdrill.md says what is compared, and what is outside.

pub mod accecn;
mod commands;
pub mod endpoint;
mod handshake;
mod opening;
pub mod python;
mod reset;
pub mod run;
pub mod scope;
pub mod script;
pub mod segment;
pub mod sysctl;

use serde::Serialize;

use run::Runner;
use script::{ParseError, Script};

/// What came of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Every packet and assertion was as the script says.
    Passed,
    /// The first difference.
    Failed {
        /// Line of the script, from 1.
        line: usize,
        /// What the script says.
        expected: String,
        /// What happened.
        got: String,
    },
    /// The script is about something that the simulator does not have, by design.
    NotApplicable {
        /// Line that asks for it, from 1.
        line: usize,
        /// What.
        reason: String,
    },
}

/// A verdict, and what happened on the way to it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Packets and calls, one line each with their time in seconds.
    pub log: Vec<String>,
}

/// Runs a script.
///
/// # Errors
/// A script that cannot be read.
pub fn run(text: &str) -> Result<Report, ParseError> {
    let script = Script::parse(text)?;
    if let Some((reason, line)) = scope::outside(&script) {
        return Ok(Report { verdict: Verdict::NotApplicable { line, reason }, log: Vec::new() });
    }
    let mut runner = Runner::new(&script);
    let verdict = match runner.run(&script) {
        Ok(()) => Verdict::Passed,
        Err(d) => Verdict::Failed { line: d.line, expected: d.expected, got: d.got },
    };
    Ok(Report { verdict, log: runner.log })
}
