//! Says outside how far virtual time has come, in a file that is rewritten twenty times a (virtual) second. A program that never sleeps
//! keeps virtual time from passing, and this program from running: nobody inside could tell of it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::json;

use crate::clock::{self, SECOND};
use crate::error::{Error, at};

/// How often the file is rewritten, in ns.
const EVERY: i64 = SECOND / 20;

/// What is told.
pub struct Progress {
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    epoch: Option<i64>,
    running: Vec<String>,
}

impl Progress {
    /// Begins to tell, if there is a file to tell it in.
    pub fn begin(path: Option<&PathBuf>) -> Result<Arc<Progress>, Error> {
        let progress = Arc::new(Progress { path: path.cloned(), state: Mutex::default() });
        progress.write(|_| ())?;
        if path.is_some() {
            let told = Arc::clone(&progress);
            let tell = move || {
                // A file that cannot be written any more ends the telling, and a disk that is full the run by other ways.
                while told.write(|_| ()).is_ok() {
                    clock::sleep_until(clock::monotonic() + EVERY);
                }
            };
            thread::Builder::new().name("progress".into()).spawn(tell).map_err(at("thread 'progress'"))?;
        }
        Ok(progress)
    }

    /// The run begins at this instant.
    pub fn epoch(&self, epoch: i64) -> Result<(), Error> {
        self.write(|state| state.epoch = Some(epoch))
    }

    /// A program is about to start. It may be the last thing that is ever told.
    pub fn starts(&self, name: &str) -> Result<(), Error> {
        self.write(|state| state.running.push(name.to_owned()))
    }

    /// A program has ended.
    pub fn ended(&self, name: &str) -> Result<(), Error> {
        self.write(|state| state.running.retain(|other| other != name))
    }

    fn write(&self, change: impl FnOnce(&mut State)) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let Some(path) = &self.path else { return Ok(()) };
        let now = clock::monotonic();
        let t_s = state.epoch.map(|epoch| clock::seconds(now - epoch));
        let told = json!({"now_ns": now, "t_s": t_s, "running": state.running});
        // Closed at once: what is written to a hostfs is on the host when its file is closed.
        std::fs::write(path, told.to_string()).map_err(at(format!("progress {}", path.display())))
    }
}
