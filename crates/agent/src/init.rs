//! PID 1 of a virtual-time kernel. PID 1 itself only mounts, reaps and powers off; the work is done by a child ([`worker`]), so that a
//! worker that dies still ends in a message and a halted machine.
//!
//! Boot the kernel with `init=/path/of/bakeoff-agent -- init /path/of/SCRIPT.json`; further words are ignored. The order:
//!
//! 1. `proc` on /proc, `sysfs` on /sys, `tmpfs` on /tmp and /run; then the script's mounts. Files of the host below /tmp
//!    or /run need a mount, except the script and the agent's binary.
//! 2. Sleep `settle_s`, because a virtual-time kernel has coarse timers before its first tick.
//! 3. `setup`; the first command that fails ends the run. Neighbouring commands of `ip` or `tc` in one namespace share a
//!    process (`-batch -`), and `sysctl`, `cat`, `sleep` and `insmod` are done here: a process costs more than its work.
//! 4. The plan, the shell, or both; with both, the end of the shell ends the plan.
//! 5. `teardown`, also after a failure.
//! 6. `status`: `{"format": 1, "status": "ok" | "failed", "phase": "setup" | "run" | "teardown" | null, "error": null | "…"}`.
//! 7. sync, and power off. An error is also on the console.
//!
//! Commands get `LC_ALL=C` and a PATH of the system's folders. `tests/data/script.json` is an example.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::{Pid, getpid, sync};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::batch;
use crate::builtin;
use crate::clock;
use crate::command::{Background, Spec};
use crate::error::{Error, at};
use crate::plan::{FORMAT, Plan};
use crate::run;
use crate::shell::Shell;

/// The word that makes this program the worker; its script comes by standard input.
pub const WORKER: &str = "init-worker";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    format: u32,
    /// Pause before the set-up, in seconds of the guest; 1 if absent.
    #[serde(default = "one_second")]
    settle_s: f64,
    /// Mounted in order; each target is made if absent.
    #[serde(default)]
    mounts: Vec<Mount>,
    /// Output of the set-up, below each command line (`+ mid: ip netns add mid`).
    #[serde(default)]
    log: Option<PathBuf>,
    #[serde(default)]
    setup: Vec<Step>,
    /// PLAN.json ([`crate::plan`]); its epoch should be null.
    #[serde(default)]
    plan: Option<Value>,
    /// A user's command, beside the plan or in its place.
    #[serde(default)]
    shell: Option<Shell>,
    /// Output of the teardown, like `log`.
    #[serde(default)]
    teardown_log: Option<PathBuf>,
    #[serde(default)]
    teardown: Vec<Step>,
    /// Where the outcome is written.
    #[serde(default)]
    status: Option<PathBuf>,
}

fn one_second() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mount {
    #[serde(rename = "type")]
    kind: String,
    source: String,
    target: PathBuf,
    #[serde(default)]
    options: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// For messages.
    node: String,
    /// Named network namespace, entered without a mount of /sys; none = the agent's own.
    #[serde(default)]
    netns: Option<String>,
    argv: Vec<String>,
    #[serde(default)]
    stdin: Option<String>,
    /// Keeps running; gets SIGTERM after the run and 5 s to end. Set-up only.
    #[serde(default)]
    background: bool,
}

impl Script {
    /// Reads and checks a script together with its plan, if it has one.
    fn parse(text: &str) -> Result<(Script, Option<Plan>), String> {
        let mut script: Script = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if script.format != FORMAT {
            return Err(format!("format: {} is not {FORMAT}, the only one this agent knows", script.format));
        }
        if !(0.0..1e6).contains(&script.settle_s) {
            return Err(format!("settle_s: {}; 0 seconds or more are expected", script.settle_s));
        }
        for (key, steps) in [("setup", &script.setup), ("teardown", &script.teardown)] {
            if let Some(i) = steps.iter().position(|step| step.argv.is_empty()) {
                return Err(format!("{key}[{i}].argv: is empty; a program and its arguments are expected"));
            }
        }
        if let Some(i) = script.teardown.iter().position(|step| step.background) {
            return Err(format!(
                "teardown[{i}].background: nothing would end it; only setup may have such a step"
            ));
        }
        if script.shell.as_ref().is_some_and(|shell| shell.argv.is_empty()) {
            return Err("shell.argv: is empty; a program and its arguments are expected".into());
        }
        if script.shell.is_none() && script.plan.is_none() {
            return Err("plan: is missing; a plan is expected, or a shell, or both".into());
        }
        let plan = script.plan.take().map(Plan::from_value).transpose().map_err(|e| format!("plan: {e}"))?;
        Ok((script, plan))
    }
}

impl Step {
    fn spec(&self) -> Spec<'_> {
        Spec {
            node: &self.node,
            netns: self.netns.as_deref(),
            argv: &self.argv,
            stdin: self.stdin.as_deref(),
        }
    }
}

/// Be PID 1. Returns only if that cannot be.
pub fn init(path: &Path) -> Result<(), Error> {
    if getpid() != Pid::from_raw(1) {
        return Err(Error::Refused(format!(
            "init: this is process {}, not PID 1: it would power off the machine",
            getpid()
        )));
    }
    if let Err(error) = work(path) {
        eprintln!("bakeoff-agent: {error}");
    }
    sync();
    let refused = reboot(RebootMode::RB_POWER_OFF).err();
    Err(Error::Failed(format!("init: power off: {}", refused.unwrap_or(Errno::EINVAL))))
}

fn work(path: &Path) -> Result<(), Error> {
    // Before anything is mounted over the place where it lies.
    let text = fs::read_to_string(path).map_err(at(format!("init: {}", path.display())))?;
    let mount_own = |kind, target| match mount(Some(kind), target, Some(kind), MsFlags::empty(), None::<&str>)
    {
        Ok(()) | Err(Errno::EBUSY) => Ok(()), // busy: it is there already
        Err(error) => Err(Error::Failed(format!("init: mount {kind} on {target}: {error}"))),
    };
    for (kind, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/tmp"), ("tmpfs", "/run")] {
        mount_own(kind, target)?;
    }
    let (script, _) =
        Script::parse(&text).map_err(|e| Error::Refused(format!("init: {}: {e}", path.display())))?;
    for m in &script.mounts {
        let place = format!("init: mount {} {} on {}", m.kind, m.source, m.target.display());
        fs::create_dir_all(&m.target).map_err(at(&place))?;
        mount(
            Some(m.source.as_str()),
            &m.target,
            Some(m.kind.as_str()),
            MsFlags::empty(),
            Some(m.options.as_str()),
        )
        .map_err(at(&place))?;
    }
    // By its open file: the path may be covered by now.
    let mut worker = Command::new("/proc/self/exe")
        .arg(WORKER)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(at("init: cannot start the worker"))?;
    if let Some(mut pipe) = worker.stdin.take() {
        pipe.write_all(text.as_bytes()).map_err(at("init: script to the worker"))?;
    }
    let pid = Pid::from_raw(worker.id() as i32);
    let died = loop {
        match wait() {
            Ok(WaitStatus::Exited(who, 0 | 1)) if who == pid => return Ok(()), // 1: it has told everything itself
            Ok(WaitStatus::Exited(who, code)) if who == pid => break format!("exit code {code}"),
            Ok(WaitStatus::Signaled(who, signal, _)) if who == pid => {
                break format!("killed by {signal}");
            }
            Ok(_) | Err(Errno::EINTR) => {} // an orphan of the worker's: reaped
            Err(error) => break format!("wait: {error}"),
        }
    };
    let error = format!("init: the worker died: {died}");
    write_status(script.status.as_deref(), Some("run"), Some(&error))?;
    Err(Error::Failed(error))
}

/// Does what the script on standard input says.
pub fn worker() -> Result<(), Error> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(at("init: script"))?;
    let (script, plan) = Script::parse(&text).map_err(|e| Error::Failed(format!("init: script: {e}")))?;
    let log = open_log(script.log.as_deref())?;
    let teardown_log = open_log(script.teardown_log.as_deref())?;
    clock::sleep_until(clock::monotonic() + clock::ns(script.settle_s));

    let mut background = Vec::new();
    let mut trouble = set_up(&script.setup, &log, &mut background).map_err(|error| ("setup", error));
    if trouble.is_ok() {
        trouble = conduct(script.shell.as_ref(), plan).map_err(|error| ("run", error));
    }
    for command in background.into_iter().rev() {
        trouble = trouble.and(command.stop().map_err(|error| ("run", error)));
    }
    for step in &script.teardown {
        trouble = trouble.and(logged(&step.spec(), &teardown_log).map_err(|error| ("teardown", error)));
    }
    let (phase, error) = trouble.map_or_else(|(phase, error)| (Some(phase), Some(error)), |()| (None, None));
    let message = error.as_ref().map(ToString::to_string);
    write_status(script.status.as_deref(), phase, message.as_deref())?;
    match (phase, message) {
        (Some(phase), Some(message)) => Err(Error::Failed(format!("{phase}: {message}"))),
        _ => Ok(()),
    }
}

/// The run, or a shell and what runs beside it.
fn conduct(shell: Option<&Shell>, plan: Option<Plan>) -> Result<(), Error> {
    match (shell, plan) {
        (Some(shell), plan) => shell.serve(plan.map(|plan| move || run::run(&plan))),
        (None, Some(plan)) => run::run(&plan),
        (None, None) => Ok(()),
    }
}

fn set_up(mut steps: &[Step], log: &File, background: &mut Vec<Background>) -> Result<(), Error> {
    while let Some(first) = steps.first() {
        let specs: Vec<Spec> = steps.iter().take_while(|step| !step.background).map(Step::spec).collect();
        let together = batch::length(&specs);
        if together > 1 {
            logged_batch(&specs[..together], log)?;
        } else if first.background {
            write_log(log, &format!("+ {} &\n", first.spec().line()))?;
            background.push(first.spec().start(log)?);
        } else {
            logged(&first.spec(), log)?;
        }
        steps = &steps[together.max(1)..];
    }
    Ok(())
}

/// Does them in one process; the log has them as if each had its own.
fn logged_batch(specs: &[Spec], log: &File) -> Result<(), Error> {
    let outcome = batch::run(specs);
    let begun = outcome.as_ref().err().map_or(specs.len(), |(done, _)| done + 1);
    let lines = specs.iter().take(begun).map(|spec| format!("+ {}\n", spec.line()));
    write_log(log, &lines.collect::<String>())?;
    let said = match &outcome {
        Ok(output) => output.clone(),
        Err((_, error)) => format!("! {error}\n"),
    };
    write_log(log, &said)?;
    outcome.map(drop).map_err(|(_, error)| error)
}

fn logged(spec: &Spec, log: &File) -> Result<(), Error> {
    write_log(log, &format!("+ {}\n", spec.line()))?;
    let outcome = builtin::run(spec).map_or_else(|| spec.run(), Ok);
    let output = match &outcome {
        Ok(output) => output.clone(),
        Err(error) => format!("! {error}\n"),
    };
    write_log(log, &output)?;
    outcome.map(drop)
}

fn open_log(path: Option<&Path>) -> Result<File, Error> {
    let path = path.unwrap_or(Path::new("/dev/null"));
    File::options().create(true).append(true).open(path).map_err(at(format!("init: log {}", path.display())))
}

fn write_log(mut log: &File, text: &str) -> Result<(), Error> {
    log.write_all(text.as_bytes()).map_err(at("init: log"))
}

fn write_status(path: Option<&Path>, phase: Option<&str>, error: Option<&str>) -> Result<(), Error> {
    let Some(path) = path else { return Ok(()) };
    let status = if error.is_some() { "failed" } else { "ok" };
    let text = json!({"format": FORMAT, "status": status, "phase": phase, "error": error}).to_string();
    fs::write(path, text + "\n").map_err(at(format!("init: status {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documented() -> Value {
        let mut script: Value =
            serde_json::from_str(include_str!("../tests/data/script.json")).expect("the script is JSON");
        script["plan"] =
            serde_json::from_str(include_str!("../tests/data/plan.json")).expect("the plan is JSON");
        script
    }

    /// The example script with the example plan.
    #[test]
    fn the_documented_script_is_accepted() {
        let (script, plan) = Script::parse(&documented().to_string()).expect("accepted");
        assert_eq!(
            (
                script.mounts.len(),
                script.setup.len(),
                script.teardown.len(),
                plan.map(|plan| plan.roles.len())
            ),
            (1, 3, 1, Some(7))
        );
        assert!(script.setup[2].background && script.setup[1].stdin.is_some());
    }

    #[test]
    fn a_shell_may_stand_in_place_of_the_plan() {
        let mut script = documented();
        script.as_object_mut().expect("an object").remove("plan");
        let said = Script::parse(&script.to_string()).err().expect("nothing to do");
        assert!(said.starts_with("plan: is missing;"), "{said}");
        script["shell"] =
            serde_json::from_str(include_str!("../tests/data/shell.json")).expect("the shell is JSON");
        let (read, plan) = Script::parse(&script.to_string()).expect("accepted");
        assert!(plan.is_none() && read.shell.is_some_and(|shell| shell.argv[0] == "/bin/bash"));
        script["shell"]["argv"] = json!([]);
        let said = Script::parse(&script.to_string()).err().expect("no program");
        assert!(said.starts_with("shell.argv: is empty;"), "{said}");
    }

    #[test]
    fn refusals_name_the_place() {
        let refused = |pointer: &str, value: Value| {
            let mut script = documented();
            *script.pointer_mut(pointer).expect("such a key") = value;
            Script::parse(&script.to_string()).err().expect("refused")
        };
        assert!(refused("/setup/0/argv", json!([])).starts_with("setup[0].argv: is empty"));
        assert!(refused("/plan/duration_s", json!(0)).starts_with("plan: duration_s: 0;"));
        assert!(refused("/format", json!(9)).starts_with("format: 9 is not 1"));
    }

    #[test]
    fn only_pid_1_may_be_init() {
        let error = init(Path::new("/nonexistent")).expect_err("this is a test");
        assert!(error.to_string().ends_with("not PID 1: it would power off the machine"), "{error}");
    }
}
