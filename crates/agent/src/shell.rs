//! A command of a person's inside the guest, at the other end of a line to the host: a shell with a terminal, or a command without one.
//!
//! Frames go over the line in both directions: a letter, the length of the payload (two bytes, big-endian), the payload.
//!
//! | letter | from | payload |
//! |---|---|---|
//! | `r` | guest | none: ready; the host sends nothing before |
//! | `o`, `e` | guest | output; errors of a command without a terminal |
//! | `x` | guest | exit code, four bytes: 128 + signal if killed, 127 if it cannot be started |
//! | `i` | host | input; empty at its end |
//! | `w` | host | rows and columns of the terminal, two bytes each |
//! | `s` | host | a signal for the process group of a command without a terminal, one byte |

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::sys::termios::{SetArg, cfmakeraw, tcdrain, tcgetattr, tcsetattr};
use nix::unistd::{Pid, setsid};
use serde::Deserialize;

use crate::error::{Error, at};
use crate::net;

/// The word that makes this program become a command with a terminal of its own.
pub const SESSION: &str = "session";

/// Bytes of a frame at most, behind its kind and length.
const MOST: usize = 4096;

/// Kinds of frames.
const READY: u8 = b'r';
const OUTPUT: u8 = b'o';
const ERROR: u8 = b'e';
const EXIT: u8 = b'x';
const INPUT: u8 = b'i';
const SIZE: u8 = b'w';
const SIGNAL: u8 = b's';

/// What to start, and where.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shell {
    /// The node, for messages.
    node: String,
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    netns: Option<String>,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// All of its environment.
    env: BTreeMap<String, String>,
    /// Where it starts.
    folder: PathBuf,
    /// The guest's end of the line to the host, a terminal device.
    line: PathBuf,
    /// Whether it gets a terminal; without one it has three pipes.
    terminal: bool,
}

impl Shell {
    /// Runs it to its end, and `beside` meanwhile, whose error is told where the command writes its own.
    pub fn serve(
        &self,
        beside: Option<impl FnOnce() -> Result<(), Error> + Send + 'static>,
    ) -> Result<(), Error> {
        let place = || format!("shell: {}", self.line.display());
        let line = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY)
            .open(&self.line)
            .map_err(at(place()))?;
        raw(&line).map_err(at(place()))?;
        let host = Arc::new(Host(Mutex::new(line.try_clone().map_err(at(place()))?)));
        if let Some(work) = beside {
            let host = Arc::clone(&host);
            spawn("beside", move || {
                if let Err(error) = work() {
                    let _ = host.tell(ERROR, format!("bakeoff-agent: {error}\n").as_bytes()); // the host may be gone
                }
            })?;
        }
        host.tell(READY, &[])?;
        let started = if self.terminal { self.with_terminal() } else { self.with_pipes() };
        let started = match started {
            Ok(started) => started,
            Err(error) => {
                // As a shell says it, with its exit code for what cannot be started.
                host.tell(ERROR, format!("bakeoff: {error}\n").as_bytes())?;
                host.tell(EXIT, &127_i32.to_be_bytes())?;
                return tcdrain(&line).map_err(at(place()));
            }
        };
        let status = self.attend(started, line.try_clone().map_err(at(place()))?, &host)?;
        host.tell(EXIT, &code(status).to_be_bytes())?;
        tcdrain(&line).map_err(at(place()))
    }

    /// Passes on what comes and goes, until it has ended and all that it wrote is told.
    fn attend(&self, started: Started, mut line: File, host: &Arc<Host>) -> Result<ExitStatus, Error> {
        let Started { mut child, mut input, outputs } = started;
        let pid = Pid::from_raw(child.id() as i32);
        spawn("input", move || {
            while let Some((kind, payload)) = frame(&mut line) {
                input.take(kind, &payload, pid);
            }
        })?;
        // Closed when it has ended: what it started may hold its outputs open.
        let (ended, holds) = pipe().map_err(at("shell: pipe"))?;
        let mut tellers = Vec::new();
        for (kind, output) in outputs {
            let (ended, host) = (ended.try_clone().map_err(at("shell: pipe"))?, Arc::clone(host));
            tellers.push(spawn("output", move || pass(kind, output, ended, &host))?);
        }
        let status = child.wait().map_err(at(format!("shell: {}", self.argv[0])))?;
        drop(holds);
        for teller in tellers {
            teller.join().map_err(|_| Error::Failed("shell: the thread 'output' panicked".into()))??;
        }
        Ok(status)
    }

    fn command(&self, argv: &[String]) -> Command {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).env_clear().envs(&self.env).current_dir(&self.folder);
        command
    }

    fn spawn(&self, mut command: Command) -> Result<Child, Error> {
        net::in_netns(self.netns.as_deref(), || {
            command.spawn().map_err(at(format!("{}: {}", self.node, self.argv[0])))
        })
    }

    fn with_terminal(&self) -> Result<Started, Error> {
        let place = "shell: a terminal (CONFIG_UNIX98_PTYS)";
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY).map_err(at(place))?;
        grantpt(&master).and_then(|()| unlockpt(&master)).map_err(at(place))?;
        let name = ptsname_r(&master).map_err(at(place))?;
        // Held until the end, so that the other side is never without a terminal at this one.
        let held =
            open(Path::new(&name), OFlag::O_RDWR | OFlag::O_NOCTTY, Mode::empty()).map_err(at(place))?;
        let master = master.as_fd().try_clone_to_owned().map_err(at(place))?;
        let argv =
            [&["/proc/self/exe", SESSION, name.as_str()].map(str::to_owned), self.argv.as_slice()].concat();
        let child = self.spawn(self.command(&argv))?;
        let input = Input::Terminal(File::from(master.try_clone().map_err(at(place))?), held);
        Ok(Started { child, input, outputs: vec![(OUTPUT, master)] })
    }

    fn with_pipes(&self) -> Result<Started, Error> {
        let mut command = self.command(&self.argv);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = self.spawn(command)?;
        let outputs = [
            child.stdout.take().map(|output| (OUTPUT, OwnedFd::from(output))),
            child.stderr.take().map(|output| (ERROR, OwnedFd::from(output))),
        ];
        let input = child.stdin.take().map(|input| File::from(OwnedFd::from(input)));
        Ok(Started { child, input: Input::Pipe(input), outputs: outputs.into_iter().flatten().collect() })
    }
}

/// The command as it runs, and what joins it to the line.
struct Started {
    child: Child,
    input: Input,
    /// Each with the kind of its frames.
    outputs: Vec<(u8, OwnedFd)>,
}

/// Becomes ARGV as the first process of a session whose terminal is `path`. Returns only if that cannot be.
pub fn session(path: &str, argv: &[&str]) -> Result<(), Error> {
    let Some((program, words)) = argv.split_first() else {
        return Err(Error::Refused("session: a program and its arguments are expected".into()));
    };
    setsid().map_err(at("session"))?;
    // The first terminal that such a process opens is its own.
    let terminal = File::options().read(true).write(true).open(path).map_err(at(path))?;
    let copy = || terminal.try_clone().map_err(at(path));
    Err(at(program)(Command::new(program).args(words).stdin(copy()?).stdout(copy()?).stderr(copy()?).exec()))
}

/// Where what the host sends goes to.
enum Input {
    /// The master's side of a terminal, and its other side, held open.
    Terminal(File, #[expect(dead_code, reason = "held open")] OwnedFd),
    /// Standard input of a process group; none: at its end.
    Pipe(Option<File>),
}

impl Input {
    /// Does what a frame says. What nobody reads is lost, as with any pipe.
    fn take(&mut self, kind: u8, payload: &[u8], pid: Pid) {
        match (kind, self) {
            (INPUT, Input::Terminal(terminal, _)) => drop(terminal.write_all(payload)),
            (INPUT, Input::Pipe(input)) => match input {
                Some(pipe) if !payload.is_empty() => drop(pipe.write_all(payload)),
                _ => *input = None,
            },
            (SIZE, Input::Terminal(terminal, _)) => {
                if let Ok([r0, r1, c0, c1]) = <[u8; 4]>::try_from(payload) {
                    set_size(terminal, u16::from_be_bytes([r0, r1]), u16::from_be_bytes([c0, c1]));
                }
            }
            (SIGNAL, Input::Pipe(_)) => {
                let signal = payload.first().and_then(|&number| Signal::try_from(i32::from(number)).ok());
                let _ = kill(Pid::from_raw(-pid.as_raw()), signal); // it may have ended by now
            }
            _ => {}
        }
    }
}

/// Passes on an output until its end, or until `ended` is closed and nothing is left in it.
fn pass(kind: u8, output: OwnedFd, ended: impl AsFd, host: &Host) -> Result<(), Error> {
    let mut buffer = vec![0; MOST];
    let mut file = File::from(output);
    loop {
        let over = {
            let mut waiting =
                [PollFd::new(file.as_fd(), PollFlags::POLLIN), PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
            match poll(&mut waiting, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                other => other.map_err(at("shell: poll"))?,
            };
            let there = |fd: &PollFd| fd.revents().is_some_and(|events| !events.is_empty());
            !there(&waiting[0]) && there(&waiting[1])
        };
        // EIO: a terminal that nobody has open any more.
        let n = if over { 0 } else { file.read(&mut buffer).unwrap_or(0) };
        if n == 0 {
            return Ok(());
        }
        host.tell(kind, &buffer[..n])?;
    }
}

/// The host, at the other end of the line.
struct Host(Mutex<File>);

impl Host {
    fn tell(&self, kind: u8, payload: &[u8]) -> Result<(), Error> {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for part in payload.chunks(MOST).chain(payload.is_empty().then_some(payload)) {
            let head = [[kind].as_slice(), &(part.len() as u16).to_be_bytes()].concat();
            line.write_all(&[&head, part].concat()).map_err(at("shell: line"))?;
        }
        Ok(())
    }
}

/// The next frame: its kind and what it carries; none at the end of the line.
fn frame(line: &mut impl Read) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 3];
    line.read_exact(&mut head).ok()?;
    let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
    line.read_exact(&mut payload).ok()?;
    Some((head[0], payload))
}

/// Bytes pass as they are.
fn raw(line: &File) -> Result<(), Errno> {
    let mut termios = tcgetattr(line)?;
    cfmakeraw(&mut termios);
    tcsetattr(line, SetArg::TCSANOW, &termios)
}

/// The kernel tells the processes of the terminal (SIGWINCH).
fn set_size(terminal: &File, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    nix::ioctl_write_ptr_bad!(tiocswinsz, libc::TIOCSWINSZ, Winsize);
    use std::os::fd::AsRawFd;
    #[expect(
        unsafe_code,
        reason = "nix has no safe call for it; the pointer is to a local of the type that it reads"
    )]
    // A terminal without a size works all the same.
    let _ = unsafe { tiocswinsz(terminal.as_raw_fd(), &raw const size) };
}

/// As a shell has it: 128 and the number of the signal for one that was killed.
fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<thread::JoinHandle<T>, Error> {
    thread::Builder::new().name(name.into()).spawn(work).map_err(at(format!("shell: thread '{name}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ab`, then an end: kind, two bytes of length, payload.
    #[test]
    fn frames_are_read_one_after_the_other() {
        let mut line = [b"i\0\x02ab".as_slice(), b"i\0\0", b"s\0\x01"].concat();
        line.push(2);
        let mut line = line.as_slice();
        assert_eq!(frame(&mut line), Some((INPUT, b"ab".to_vec())));
        assert_eq!(frame(&mut line), Some((INPUT, Vec::new())));
        assert_eq!(frame(&mut line), Some((SIGNAL, vec![2])));
        assert_eq!(frame(&mut line), None);
    }

    /// 9000 bytes are frames of 4096, 4096 and 808.
    #[test]
    fn what_is_long_goes_in_several_frames() {
        let (mut told, line) = pipe().expect("a pipe");
        let host = Host(Mutex::new(File::from(OwnedFd::from(line))));
        host.tell(OUTPUT, &[7; 9000]).expect("it fits into a pipe");
        host.tell(READY, &[]).expect("it fits into a pipe");
        drop(host);
        let lengths: Vec<(u8, usize)> =
            std::iter::from_fn(|| frame(&mut told)).map(|(kind, payload)| (kind, payload.len())).collect();
        assert_eq!(lengths, [(OUTPUT, 4096), (OUTPUT, 4096), (OUTPUT, 808), (READY, 0)]);
    }

    #[test]
    fn a_signal_is_told_as_a_shell_tells_it() {
        assert_eq!(code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(code(ExitStatus::from_raw(9)), 128 + 9);
    }
}
