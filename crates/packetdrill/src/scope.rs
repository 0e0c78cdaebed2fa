//! Which scripts ask for what the simulator does not have, by design: the table of docs/packetdrill.md.

use crate::python;
use crate::run::INFO_NAMES;
use crate::script::{Call, Event, Kind, Script};
use crate::segment::{Opt, Segment};
use crate::sysctl::assignments;

/// Whether an event needs a feature.
type Needs = fn(&Event) -> bool;

/// Features outside the simulator's scope: what to call it, and whether an event needs it.
const OUTSIDE: &[(&str, Needs)] = &[
    ("TCP Fast Open", |e| {
        arg(e, "TCP_FASTOPEN") || arg(e, "MSG_FASTOPEN") || sysctl(e, "tcp_fastopen") || option(e, "FO")
    }),
    ("zero copy", |e| arg(e, "_ZEROCOPY")),
    ("epoll and poll", |e| call(e, &["epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "poll"])),
    ("transmit and receive timestamps of the socket", |e| arg(e, "SO_TIMESTAMP")),
    ("TCP MD5 and AO signatures", |e| option(e, "md5")),
    ("splice and sendfile", |e| call(e, &["splice", "sendfile", "pipe", "open"])),
    ("ICMP and path MTU discovery", |e| matches!(e.kind, Kind::OtherPacket(_))),
    ("urgent data", |e| arg(e, "MSG_OOB") || segment(e).is_some_and(|s| s.flags.urg)),
    ("TCP_USER_TIMEOUT", |e| arg(e, "TCP_USER_TIMEOUT")),
    ("SYN cookies", |e| sysctl(e, "tcp_syncookies")),
    ("write boundaries: MSG_MORE, MSG_EOR, TCP_CORK", |e| {
        arg(e, "MSG_MORE") || arg(e, "MSG_EOR") || arg(e, "TCP_CORK")
    }),
    (
        "errors of system calls",
        |e| matches!(&e.kind, Kind::Call(c) if c.result.starts_with("-1") && !KNOWN_ERRORS.iter().any(|e| c.result.contains(e))),
    ),
    ("receive buffer accounting", |e| {
        arg(e, "SO_RCVBUF")
            || sysctl(e, "tcp_rmem")
            || sysctl(e, "tcp_shrink_window")
            || matches!(&e.kind, Kind::Python(code) if code.contains("SK_MEMINFO"))
    }),
    ("send buffer accounting", |e| {
        matches!(&e.kind, Kind::Call(c) if c.name == "getsockopt") && arg(e, "SO_SNDBUF")
    }),
    (
        "MIB counters (nstat) and /proc/net/tcp",
        |e| matches!(&e.kind, Kind::Shell(s) if s.contains("nstat") || s.contains("/proc/net")),
    ),
    (
        "system calls outside the connection",
        |e| matches!(&e.kind, Kind::Call(c) if !KNOWN_CALLS.contains(&c.name.as_str())),
    ),
    ("fields of tcp_info that the simulator has not", unknown_info),
];

/// Errors that the driver tells.
const KNOWN_ERRORS: [&str; 3] = ["EAGAIN", "EINPROGRESS", "ENOTCONN"];

/// The system calls that the driver makes.
const KNOWN_CALLS: [&str; 18] = [
    "socket",
    "bind",
    "listen",
    "accept",
    "connect",
    "read",
    "recv",
    "recvfrom",
    "recvmsg",
    "write",
    "send",
    "sendto",
    "close",
    "shutdown",
    "setsockopt",
    "getsockopt",
    "fcntl",
    "ioctl",
];

/// Why a script does not apply: the feature, and the line that asks for it.
pub fn outside(script: &Script) -> Option<(&'static str, usize)> {
    if script.options.iter().any(|(name, value)| name == "ip_version" && value == "ipv6") {
        return Some(("IPv6", 1));
    }
    OUTSIDE.iter().find_map(|(feature, needs)| {
        script.events.iter().find(|e| needs(e)).map(|event| (*feature, event.line))
    })
}

fn segment(event: &Event) -> Option<&Segment> {
    match &event.kind {
        Kind::Inject(s) | Kind::Expect(s) => Some(s),
        _ => None,
    }
}

fn call(event: &Event, names: &[&str]) -> bool {
    matches!(&event.kind, Kind::Call(c) if names.contains(&c.name.as_str()))
}

fn arg(event: &Event, word: &str) -> bool {
    matches!(&event.kind, Kind::Call(Call { args, .. }) if args.iter().any(|a| a.contains(word)))
}

fn sysctl(event: &Event, name: &str) -> bool {
    matches!(&event.kind, Kind::Shell(s) if assignments(s).any(|(n, _)| n.starts_with(name)))
}

fn option(event: &Event, word: &str) -> bool {
    segment(event)
        .and_then(|s| s.options.as_ref())
        .is_some_and(|o| o.iter().any(|o| matches!(o, Opt::Other(words) if words.starts_with(word))))
}

fn unknown_info(event: &Event) -> bool {
    let Kind::Python(code) = &event.kind else { return false };
    python::parse(code).is_ok_and(|all| all.iter().any(|a| a.names().any(|n| !INFO_NAMES.contains(&n))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_outside_the_scope_says_why_and_where() {
        let reason = |text| outside(&Script::parse(text).unwrap());
        assert_eq!(reason("0 < S 0:0(0) win 1 <mss 1000,FO 3021b9d8>"), Some(("TCP Fast Open", 1)));
        assert_eq!(reason("0 close(3) = 0\n0 < U. 1:1(0) ack 1"), Some(("urgent data", 2)));
        assert_eq!(reason("--ip_version=ipv6\n"), Some(("IPv6", 1)));
        assert_eq!(reason("0 > . 1:1(0) ack 1\n%{ assert tcpi_snd_cwnd == 10 }%"), None);
        assert_eq!(
            reason("%{ assert tcpi_busy_time == 10 }%"),
            Some(("fields of tcp_info that the simulator has not", 1))
        );
    }
}
