//! Traffic tools of others (iperf3, netperf, irtt, …) beside the roles: servers that stand while the run lasts, and clients that start at their time.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::{self, SECOND};
use crate::command::{Background, Spec};
use crate::error::{Error, at};

/// How often a client is asked whether it has ended, in ns.
const POLL: i64 = SECOND / 50;
/// How much of a failed program's output its error tells, in bytes.
const TOLD: usize = 600;

/// A program of the plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// For messages and the summary.
    pub name: String,
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    pub netns: Option<String>,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// When it starts, in seconds; none: before the run, and it is ended after it.
    #[serde(default)]
    pub start_s: Option<f64>,
    /// Where its standard output and error go; truncated.
    pub output: PathBuf,
}

/// One that may be running.
pub struct Running {
    /// What was asked for.
    pub plan: Program,
    child: Mutex<Option<Background>>,
}

impl Running {
    /// Makes the output file; starts a server.
    pub fn prepare(plan: &Program) -> Result<Arc<Running>, Error> {
        let running = Running { plan: plan.clone(), child: Mutex::new(None) };
        if plan.start_s.is_none() {
            running.start()?;
        }
        Ok(Arc::new(running))
    }

    fn start(&self) -> Result<(), Error> {
        let place = format!("program '{}'", self.plan.name);
        let file = File::create(&self.plan.output)
            .map_err(at(format!("{place}: {}", self.plan.output.display())))?;
        let spec =
            Spec { node: &place, netns: self.plan.netns.as_deref(), argv: &self.plan.argv, stdin: None };
        *self.child() = Some(spec.start(&file)?);
        Ok(())
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Background>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a client in time and waits for its end; returns its line of the summary. For a thread of its own. Servers have none.
    pub fn run(&self, epoch: i64) -> Result<Option<Value>, Error> {
        let Some(start_s) = self.plan.start_s else { return Ok(None) };
        clock::sleep_until(epoch + clock::ns(start_s));
        let since_epoch = || clock::seconds(clock::monotonic() - epoch);
        let started = since_epoch();
        self.start()?;
        loop {
            clock::sleep_until(clock::monotonic() + POLL);
            // None: the run is over and has taken it away.
            let ended = self.child().as_mut().map_or(Ok(None), Background::ended).map_err(|error| {
                let said = std::fs::read(&self.plan.output).unwrap_or_default();
                let tail = String::from_utf8_lossy(&said[said.len().saturating_sub(TOLD)..]).into_owned();
                Error::Failed(format!("{error}: {}", tail.trim()))
            });
            if ended?.is_some() {
                *self.child() = None;
                return Ok(Some(
                    json!({"name": self.plan.name, "started_s": started, "ended_s": since_epoch()}),
                ));
            }
        }
    }

    /// Ends it if it still runs. A server that had ended by itself is an error; a client was waited for long enough.
    pub fn stop(&self) -> Result<(), Error> {
        match self.child().take() {
            Some(child) => child.stop(),
            None => Ok(()),
        }
    }
}
