//! `sysctl -w KEY=VALUE` without the program: its start takes a virtual-time kernel longer than the writing.

use std::fs;
use std::path::Path;

use crate::command::Spec;
use crate::error::Error;
use crate::net;

/// Does what the command says and returns what the program would print; none if it is not this form of sysctl, or fails: the
/// program will say why.
pub fn write(command: &Spec) -> Option<String> {
    let (key, value) = setting(command.argv)?;
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    let written =
        net::in_netns(command.netns, || fs::write(path, value).map_err(|e| Error::Failed(e.to_string())));
    written.ok().map(|()| format!("{key} = {value}\n"))
}

fn setting(argv: &[String]) -> Option<(&str, &str)> {
    let [program, options @ .., setting] = argv else { return None };
    let is_sysctl = Path::new(program).file_name().is_some_and(|name| name == "sysctl");
    let known = options.iter().all(|option| option == "-w" || option == "-e");
    let writes = options.iter().any(|option| option == "-w");
    let (key, value) = setting.split_once('=')?;
    let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) && !key.contains("..");
    (is_sysctl && known && writes && plain).then_some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn one_setting_is_written() {
        let words = argv("/usr/sbin/sysctl -e -w net.ipv4.tcp_ecn=3");
        assert_eq!(setting(&words), Some(("net.ipv4.tcp_ecn", "3")));
    }

    #[test]
    fn anything_else_is_the_programs() {
        for line in [
            "sysctl net.ipv4.tcp_ecn",
            "sysctl net.ipv4.tcp_ecn=3",
            "sysctl -w -p net.ipv4.tcp_ecn=3",
            "sysctl -w net/ipv4/tcp_ecn=3",
            "sysctl -w ..x=3",
            "tc -w a=3",
            "sysctl",
        ] {
            assert_eq!(setting(&argv(line)), None, "{line}");
        }
        let absent = argv("sysctl -w net.no.such.key=1");
        assert_eq!(write(&Spec { node: "x", netns: None, argv: &absent, stdin: None }), None);
    }
}
