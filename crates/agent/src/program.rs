//! Programs of others (iperf3, netperf, irtt, …) beside the roles: servers that stand while the run lasts, and clients that start at their time.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::{self, SECOND};
use crate::command::{Background, Spec, told};
use crate::error::{Error, at};
use crate::progress::Progress;

/// How often a program is asked whether it has ended, in ns.
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
    /// When it is ended, in seconds; none: not before the run is over.
    #[serde(default)]
    pub stop_s: Option<f64>,
    /// Where its standard output goes, and its standard error if that has no file of its own; truncated.
    pub output: PathBuf,
    /// Where its standard error goes; truncated.
    #[serde(default)]
    pub error: Option<PathBuf>,
    /// The folder that it starts in, which is its home as well; none: the agent's own.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// How it may end by itself. Without this a server may not end at all, and a client has to end with 0.
    #[serde(default)]
    pub exit: Option<Exit>,
}

/// How a program may end by itself.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// In any way.
    Any(Any),
}

/// The word for any way to end.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Any {
    /// `any`
    Any,
}

impl Exit {
    fn allows(self, status: ExitStatus) -> bool {
        match self {
            Exit::Code(code) => status.code() == Some(code),
            Exit::Any(_) => true,
        }
    }
}

/// What ended a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Itself,
    Stop,
    Run,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            By::Itself => "itself",
            By::Stop => "stop",
            By::Run => "run",
        }
    }
}

/// How a program ended, and when, in ns of CLOCK_MONOTONIC.
struct Ending {
    at: i64,
    by: By,
    status: Option<ExitStatus>,
}

#[derive(Default)]
struct State {
    child: Option<Background>,
    started: Option<i64>,
    ending: Option<Ending>,
}

/// One that may be running.
pub struct Running {
    /// What was asked for.
    pub plan: Program,
    progress: Arc<Progress>,
    state: Mutex<State>,
}

impl Running {
    /// Starts a server.
    pub fn prepare(plan: &Program, progress: &Arc<Progress>) -> Result<Arc<Running>, Error> {
        let progress = Arc::clone(progress);
        let running = Running { plan: plan.clone(), progress, state: Mutex::default() };
        if plan.start_s.is_none() {
            running.start()?;
        }
        Ok(Arc::new(running))
    }

    /// Whether the run waits for its end.
    pub fn is_awaited(&self) -> bool {
        self.plan.start_s.is_some()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.state().ending.is_some()
    }

    fn place(&self) -> String {
        format!("program '{}'", self.plan.name)
    }

    fn start(&self) -> Result<(), Error> {
        let place = self.place();
        let create = |path: &Path| File::create(path).map_err(at(format!("{place}: {}", path.display())));
        let output = create(&self.plan.output)?;
        let error = self.plan.error.as_deref().map(create).transpose()?;
        let spec =
            Spec { node: &place, netns: self.plan.netns.as_deref(), argv: &self.plan.argv, stdin: None };
        self.progress.starts(&self.plan.name)?;
        let mut state = self.state();
        state.started = Some(clock::monotonic());
        state.child = Some(match &self.plan.folder {
            Some(folder) => spec.start_in(folder, &output, error.as_ref().unwrap_or(&output))?,
            None => spec.start(&output)?,
        });
        Ok(())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a client in time, and waits for the end of a program that may end. Returns whether the run waited for it too. For a thread of its own.
    pub fn run(&self, epoch: i64) -> Result<bool, Error> {
        if let Some(start_s) = self.plan.start_s {
            clock::sleep_until(epoch + clock::ns(start_s));
            self.start()?;
        } else if self.plan.exit.is_none() && self.plan.stop_s.is_none() {
            return Ok(false);
        }
        let stop = self.plan.stop_s.map_or(i64::MAX, |stop_s| epoch + clock::ns(stop_s));
        loop {
            clock::sleep_until((clock::monotonic() + POLL).min(stop));
            let mut state = self.state();
            // None: the run is over and has taken it away.
            let Some(child) = &mut state.child else { return Ok(false) };
            let status = child.status()?;
            let by = if status.is_some() { By::Itself } else { By::Stop };
            if status.is_none() && clock::monotonic() < stop {
                continue;
            }
            let Some(child) = state.child.take() else { return Ok(false) };
            let line = child.line().to_owned();
            let status = match status {
                Some(status) => status,
                // Nothing else touches a program that this thread has taken.
                None => child.interrupt()?,
            };
            state.ending = Some(Ending { at: clock::monotonic(), by, status: Some(status) });
            drop(state);
            self.progress.ended(&self.plan.name)?;
            let wanted = self.plan.exit.unwrap_or(Exit::Code(0));
            if by == By::Itself && !wanted.allows(status) {
                return Err(self.failure(&line, status, wanted));
            }
            return Ok(self.is_awaited());
        }
    }

    fn failure(&self, line: &str, status: ExitStatus, wanted: Exit) -> Error {
        let expected = match wanted {
            Exit::Code(code) if code != 0 => format!("; expected exit code {code}"),
            _ => String::new(),
        };
        let tail = |path: &Path| {
            let said = std::fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&said[said.len().saturating_sub(TOLD)..]).trim().to_owned()
        };
        let mut said = self.plan.error.as_deref().map(tail).unwrap_or_default();
        if said.is_empty() {
            said = tail(&self.plan.output);
        }
        Error::Failed(format!("{line}: {}{expected}: {said}", told(status)))
    }

    /// Ends it if it still runs. A traffic tool's server that had ended by itself is an error; a client was waited for long enough.
    pub fn stop(&self) -> Result<(), Error> {
        let Some(child) = self.state().child.take() else { return Ok(()) };
        let (ended, status) = match self.plan.exit {
            Some(_) => {
                let ended = child.interrupt();
                let status = ended.as_ref().ok().copied();
                (ended.map(drop), status)
            }
            None => (child.stop(), None),
        };
        self.state().ending = Some(Ending { at: clock::monotonic(), by: By::Run, status });
        ended
    }

    /// Its line of the summary; none of a traffic tool's server, nor of a client that did not come to its end.
    pub fn summary(&self, epoch: i64) -> Option<Value> {
        let state = self.state();
        let ending = state.ending.as_ref()?;
        let since_epoch = |instant: i64| clock::seconds(instant - epoch);
        let mut line = json!({
            "name": self.plan.name, "started_s": state.started.map(since_epoch), "ended_s": since_epoch(ending.at),
        });
        if self.plan.exit.is_some() {
            line["ended_by"] = json!(ending.by.name());
            line["exit"] = json!(ending.status.and_then(|status| status.code()));
            line["signal"] = json!(ending.status.and_then(|status| status.signal()));
        } else if ending.by == By::Run {
            return None;
        }
        Some(line)
    }
}
