//! Commands in a namespace. No shell: a program and its arguments.

use std::fs::File;
use std::io::{Read, Seek, Write, pipe};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use crate::borrowed;
use crate::clock;
use crate::error::{Error, at};
use crate::net;

/// PID 1 has no environment of use.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long a background command may take to end after SIGTERM, in ns.
const PATIENCE: i64 = 5 * clock::SECOND;

/// How to start a command.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    /// The node, for messages.
    pub node: &'a str,
    /// Named network namespace; none = the agent's own.
    pub netns: Option<&'a str>,
    /// Program and arguments; not empty.
    pub argv: &'a [String],
    /// What it reads.
    pub stdin: Option<&'a str>,
}

impl Spec<'_> {
    /// `mid: tc qdisc show`
    pub fn line(&self) -> String {
        let words: Vec<String> = self.argv.iter().map(|word| quoted(word)).collect();
        format!("{}: {}", self.node, words.join(" "))
    }

    /// The command, its input in a file that needs nobody to feed it.
    fn command(&self) -> Result<Command, Error> {
        let mut command = borrowed::command(&self.argv[0]);
        command.args(&self.argv[1..]).env("PATH", PATH).env("LC_ALL", "C");
        command.stdin(match self.stdin {
            Some(text) => Stdio::from(in_memory(text).map_err(at(self.line()))?),
            None => Stdio::null(),
        });
        Ok(command)
    }

    fn spawn(&self, mut command: Command) -> Result<Child, Error> {
        let start = || {
            // The agent blocks these to wait for them; a child inherits that, and could not be ended.
            SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT])
                .thread_unblock()
                .map_err(at("signal mask"))?;
            command.spawn().map_err(at("cannot start"))
        };
        // In a thread of its own, whose signal mask goes with it.
        let spawned = if self.netns.is_some() {
            net::in_netns(self.netns, start)
        } else {
            std::thread::scope(|scope| {
                scope.spawn(start).join().unwrap_or_else(|_| Err(Error::Failed("the thread panicked".into())))
            })
        };
        spawned.map_err(at(self.line()))
    }

    /// Runs it to its end; returns its standard output and error, in the order in which they were written. A failure's message has
    /// command, node, exit status and output.
    pub fn run(&self) -> Result<String, Error> {
        let (status, output) = self.outcome()?;
        if status.success() {
            return Ok(output);
        }
        Err(Error::Failed(format!("{}: {}: {}", self.line(), told(status), output.trim_end())))
    }

    /// Runs it to its end; returns its exit status, and its standard output and error.
    pub fn outcome(&self) -> Result<(ExitStatus, String), Error> {
        let mut command = self.command()?;
        let (mut reader, writer) = pipe().map_err(at(self.line()))?;
        command.stdout(writer.try_clone().map_err(at(self.line()))?).stderr(writer);
        // With the command goes this process's end of the pipe for writing.
        let mut child = self.spawn(command)?;
        let mut output = Vec::new();
        reader.read_to_end(&mut output).map_err(at(self.line()))?;
        let status = child.wait().map_err(at(self.line()))?;
        Ok((status, String::from_utf8_lossy(&output).into_owned()))
    }

    /// Starts it and leaves it running, its output in `log`.
    pub fn start(&self, log: &File) -> Result<Background, Error> {
        let copy = || log.try_clone().map_err(at(self.line()));
        let mut command = self.command()?;
        command.stdout(copy()?).stderr(copy()?);
        Ok(Background { child: self.spawn(command)?, line: self.line(), group: false })
    }

    /// Starts it in `folder`, which is its home too, as the first of a process group, and leaves it running.
    pub fn start_in(&self, folder: &Path, output: &File, error: &File) -> Result<Background, Error> {
        let copy = |file: &File| file.try_clone().map_err(at(self.line()));
        let mut command = self.command()?;
        command.stdout(copy(output)?).stderr(copy(error)?);
        command.current_dir(folder).env("HOME", folder).process_group(0);
        Ok(Background { child: self.spawn(command)?, line: self.line(), group: true })
    }
}

/// A command that runs beside the roles.
pub struct Background {
    child: Child,
    line: String,
    /// Whether it leads a process group, which is ended with it.
    group: bool,
}

impl Background {
    /// What it is, for messages.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// How it ended; none while it runs.
    pub fn status(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(at(&self.line))
    }

    /// Ends it as Ctrl-C does, which lets programs write what they have counted; then with SIGTERM, and then it is killed. Returns how
    /// it ended, also if that was by itself.
    pub fn interrupt(mut self) -> Result<ExitStatus, Error> {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            if let Some(status) = self.status()? {
                return Ok(status);
            }
            self.signal(signal);
            let deadline = clock::monotonic() + PATIENCE / 2;
            while clock::monotonic() < deadline {
                if let Some(status) = self.status()? {
                    return Ok(status);
                }
                clock::sleep_until(clock::monotonic() + clock::SECOND / 100);
            }
        }
        self.signal(Signal::SIGKILL);
        self.child.wait().map_err(at(&self.line))
    }

    /// Our child, and its group, are not yet waited for: the number is theirs.
    fn signal(&self, signal: Signal) {
        let pid = self.child.id() as i32;
        let _ = kill(Pid::from_raw(if self.group { -pid } else { pid }), signal);
    }

    /// Ends it with SIGTERM. One that had already ended by itself, or has to be killed, is an error.
    pub fn stop(mut self) -> Result<(), Error> {
        let failed = |what: String| Error::Failed(format!("{}: {what}", self.line));
        if let Some(status) = self.child.try_wait().map_err(at(&self.line))? {
            return Err(failed(format!("ended before the run did: {}", told(status))));
        }
        self.signal(Signal::SIGTERM);
        let deadline = clock::monotonic() + PATIENCE;
        while clock::monotonic() < deadline {
            if self.child.try_wait().map_err(at(&self.line))?.is_some() {
                return Ok(());
            }
            clock::sleep_until(clock::monotonic() + clock::SECOND / 100);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        Err(failed("did not end within 5 s of SIGTERM: killed".into()))
    }
}

/// A file without a name, to be read from its beginning.
fn in_memory(text: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create(c"stdin", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// How a command ended, in words.
pub fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Whether neither a shell nor a batch of iproute2 would take it for anything else.
pub fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./@%".contains(c);
    !word.is_empty() && word.chars().all(plain)
}

/// A word as a shell would take it back: for people who copy a line of the log.
fn quoted(word: &str) -> String {
    if is_plain(word) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(argv: &[&str]) -> Vec<String> {
        argv.iter().map(|word| (*word).into()).collect()
    }

    #[test]
    fn a_line_can_be_copied_into_a_shell() {
        let argv = words(&["sh", "-c", "echo it's", "", "a=1"]);
        let spec = Spec { node: "mid", netns: None, argv: &argv, stdin: None };
        assert_eq!(spec.line(), r"mid: sh -c 'echo it'\''s' '' a=1");
    }

    #[test]
    fn output_and_input() {
        let argv = words(&["cat"]);
        let spec = Spec { node: "mid", netns: None, argv: &argv, stdin: Some("qdisc add\n") };
        assert_eq!(spec.run().expect("cat ends with 0"), "qdisc add\n");
    }

    #[test]
    fn a_failure_names_node_command_code_and_output() {
        let argv = words(&["sh", "-c", "echo no such thing >&2; exit 3"]);
        let error = Spec { node: "mid", netns: None, argv: &argv, stdin: None }.run().expect_err("exit 3");
        assert_eq!(
            error.to_string(),
            "mid: sh -c 'echo no such thing >&2; exit 3': exit code 3: no such thing"
        );
        let argv = words(&["/nonexistent/tc"]);
        let error = Spec { node: "mid", netns: None, argv: &argv, stdin: None }.run().expect_err("absent");
        assert!(error.to_string().starts_with("mid: /nonexistent/tc: cannot start: "), "{error}");
        let argv = words(&["true"]);
        let error = Spec { node: "mid", netns: Some("no-such-ns"), argv: &argv, stdin: None }
            .run()
            .expect_err("absent");
        assert!(
            error.to_string().starts_with("mid: true: netns 'no-such-ns': /run/netns/no-such-ns: "),
            "{error}"
        );
    }
}
