//! `bakeoff-agent`: makes the traffic of a run on a real kernel and samples it. `docs/lab.md` describes its
//! commands, [`plan`] and [`init`] what it reads, and [`output`] what it writes.

mod batch;
mod borrowed;
mod builtin;
mod clock;
mod command;
mod error;
mod init;
mod limits;
mod net;
mod output;
mod plan;
mod probe;
mod program;
mod progress;
mod qdisc;
mod roles;
mod run;
mod sample;
mod shell;
mod short;
mod source;
mod summary;
mod tcp;
mod tcp_info;
mod udp;
mod video;

use std::path::Path;
use std::process::ExitCode;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use error::{Error, at};

const USAGE: &str = "usage: bakeoff-agent run PLAN.json | init SCRIPT.json | qdisc … | --version";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["run", path] => make(Path::new(path)),
        // User-Mode Linux appends `console=…` to its command line, behind the words that are ours.
        ["init", path, ..] => init::init(Path::new(path)),
        [init::WORKER] => init::worker(),
        [shell::SESSION, terminal, ref argv @ ..] => shell::session(terminal, argv),
        ["qdisc", ref rest @ ..] => qdisc::command::run(rest),
        ["--version"] => {
            println!("bakeoff-agent {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        _ => Err(Error::Refused(format!("{words:?} is not understood; {USAGE}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bakeoff-agent: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// A run that ends with the process that started it, even if that was killed.
fn make(plan: &Path) -> Result<(), Error> {
    set_pdeathsig(Signal::SIGTERM).map_err(at("prctl PR_SET_PDEATHSIG"))?;
    plan::Plan::read(plan).and_then(|plan| run::run(&plan))
}
