//! Commands without their programs: `sysctl`, `cat`, `sleep` and `insmod` in the forms that plans have. The start of a process costs a
//! virtual-time kernel more than what these do.

use std::ffi::CString;
use std::fs::{self, File};
use std::path::Path;

use nix::kmod::{ModuleInitFlags, finit_module};

use crate::clock;
use crate::command::Spec;
use crate::error::{Error, at};
use crate::net;

/// Does what the command says and returns what the program would print; none if it is none of these forms, or fails: the program
/// will say why.
pub fn run(command: &Spec) -> Option<String> {
    let [program, arguments @ ..] = command.argv else { return None };
    let program = Path::new(program).file_name()?.to_str()?;
    if command.stdin.is_some() {
        return None;
    }
    let there = |what: &(dyn Fn() -> Result<String, Error> + Sync)| net::in_netns(command.netns, what).ok();
    match (program, arguments) {
        ("sysctl", [options @ .., setting]) if options.iter().any(|option| option == "-w") => {
            let (path, key, value) = setting_of(options, setting)?;
            there(&|| fs::write(&path, value).map(|()| format!("{key} = {value}\n")).map_err(at(&path)))
        }
        ("sysctl", keys @ [_, ..]) => {
            let paths: Option<Vec<String>> = keys.iter().map(|key| sysctl(key)).collect();
            let paths = paths?;
            there(&|| {
                let shown = keys.iter().zip(&paths).map(|(key, path)| {
                    let value = fs::read_to_string(path).map_err(at(path))?;
                    Ok(format!("{key} = {}\n", value.trim_end()))
                });
                shown.collect()
            })
        }
        ("cat", files @ [_, ..]) => there(&|| files.iter().map(|file| contents(file)).collect()),
        ("sleep", [time]) => {
            let seconds = time.parse().ok().filter(|seconds| (0.0..1e6).contains(seconds))?;
            clock::sleep_until(clock::monotonic() + clock::ns(seconds));
            Some(String::new())
        }
        ("insmod", [module, parameters @ ..]) if parameters.iter().all(|words| is_parameter(words)) => {
            let file = File::open(module).ok()?;
            let parameters = CString::new(parameters.join(" ")).ok()?;
            finit_module(&file, &parameters, ModuleInitFlags::empty()).ok().map(|()| String::new())
        }
        _ => None,
    }
}

/// The file of a key and the key with its value, of `-w`, `-e` and KEY=VALUE.
fn setting_of<'a>(options: &[String], setting: &'a str) -> Option<(String, &'a str, &'a str)> {
    let (key, value) = setting.split_once('=')?;
    let known = options.iter().all(|option| option == "-w" || option == "-e");
    known.then(|| sysctl(key)).flatten().map(|path| (path, key, value))
}

/// The file of a key.
fn sysctl(key: &str) -> Option<String> {
    let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    (plain && !key.starts_with('-') && !key.contains(".."))
        .then(|| format!("/proc/sys/{}", key.replace('.', "/")))
}

/// What a file holds. `/proc/net` is that of the process, and a namespace is one thread's.
fn contents(file: &str) -> Result<String, Error> {
    let own = file.strip_prefix("/proc/net/").map(|rest| format!("/proc/thread-self/net/{rest}"));
    fs::read_to_string(own.as_deref().unwrap_or(file)).map_err(at(file))
}

/// `NAME=VALUE` that needs no quotes.
fn is_parameter(words: &str) -> bool {
    words.split_once('=').is_some_and(|(name, _)| !name.is_empty())
        && !words.contains(|c: char| c.is_whitespace() || c == '"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<String> {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        run(&Spec { node: "x", netns: None, argv: &argv, stdin: None })
    }

    #[test]
    fn one_setting_is_written() {
        let (path, key, value) =
            setting_of(&["-e".into(), "-w".into()], "net.ipv4.tcp_ecn=3").expect("known");
        assert_eq!((path.as_str(), key, value), ("/proc/sys/net/ipv4/tcp_ecn", "net.ipv4.tcp_ecn", "3"));
    }

    /// The kernel's own words, as `sysctl` and `cat` print them.
    #[test]
    fn what_programs_would_print_is_returned() {
        let kind = fs::read_to_string("/proc/sys/kernel/ostype").expect("Linux has it");
        assert_eq!(
            said("/usr/sbin/sysctl kernel.ostype kernel.ostype"),
            Some(format!("kernel.ostype = {kind}").repeat(2))
        );
        assert_eq!(said("/bin/cat /proc/sys/kernel/ostype /proc/sys/kernel/ostype"), Some(kind.repeat(2)));
        assert!(said("cat /proc/net/dev").expect("every namespace has it").contains("lo:"));
        assert_eq!(said("sleep 0"), Some(String::new()));
    }

    #[test]
    fn anything_else_is_the_programs() {
        for line in [
            "sysctl net.ipv4.tcp_ecn=3",
            "sysctl -a",
            "sysctl -w -p net.ipv4.tcp_ecn=3",
            "sysctl -w net/ipv4/tcp_ecn=3",
            "sysctl -w ..x=3",
            "sysctl -w net.no.such.key=1",
            "sysctl",
            "cat",
            "cat -n /proc/net/dev",
            "cat /no/such/file",
            "sleep 1m",
            "sleep -1",
            "insmod /no/such/module.ko a=1",
            "tc -w a=3",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[test]
    fn a_parameter_with_blanks_is_the_programs() {
        assert!(is_parameter("prague_form=1"));
        assert!(["prague_form", "=1", "a=1 2", "a=\"1\""].iter().all(|words| !is_parameter(words)));
    }
}
