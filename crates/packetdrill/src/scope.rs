//! Which scripts ask for what the simulator does not have, by design: the table of docs/packetdrill.md.
//!
//! A script is run if all that it does is known: options, system calls with their flags and results, shell commands,
//! settings, TCP options and Python. Anything else that packetdrill accepts does not apply, and says why.

use crate::commands;
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
    ("TCP MD5 and AO signatures", |e| option(e, "md5") || option(e, "tcp-ao") || arg(e, "TCP_MD5SIG")),
    ("splice and sendfile", |e| call(e, &["splice", "sendfile", "pipe", "open"])),
    (
        "ICMP and path MTU discovery",
        |e| matches!(&e.kind, Kind::OtherPacket(text) if text.starts_with("icmp")),
    ),
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
            || sysctl(e, "tcp_wmem")
            || is_short_write(e)
    }),
    (
        "MIB counters (nstat) and /proc/net/tcp",
        |e| matches!(&e.kind, Kind::Shell(s) if s.contains("nstat") || s.contains("/proc/net")),
    ),
    ("MPTCP", |e| {
        arg(e, "IPPROTO_MPTCP")
            || sysctl(e, "net.mptcp")
            || MPTCP.iter().any(|word| option(e, word))
            || matches!(&e.kind, Kind::Shell(s) if s.contains("mptcp"))
    }),
    ("packets other than TCP over IPv4", |e| matches!(e.kind, Kind::OtherPacket(_))),
    (
        "system calls outside the connection",
        |e| matches!(&e.kind, Kind::Call(c) if !KNOWN_CALLS.contains(&c.name.as_str())),
    ),
    ("fields of tcp_info that the simulator has not", unknown_info),
];

/// Errors that the driver tells.
const KNOWN_ERRORS: [&str; 3] = ["EAGAIN", "EINPROGRESS", "ENOTCONN"];

/// How MPTCP's options begin.
const MPTCP: [&str; 8] = ["mp_", "mptcp", "mpcapable", "dss", "add_addr", "remove_addr", "rm_addr", "mp-"];

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

/// Options of a script that change nothing here, and those that the driver follows.
const KNOWN_OPTIONS: [&str; 13] = [
    "ip_version",
    "tolerance_usecs",
    "tcp_ts_tick_usecs",
    "mss",
    "bind_port",
    "connect_port",
    "local_ip",
    "local_linux_ip",
    "remote_ip",
    "gateway_ip",
    "netmask_ip",
    "speed",
    "code_command",
];

/// Socket options that change nothing that is compared, or that the driver follows.
const KNOWN_SOCKET_OPTIONS: [&str; 10] = [
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_SNDBUF",
    "SO_PRIORITY",
    "SO_MARK",
    "IP_TOS",
    "IP_TTL",
    "TCP_INQ",
    "TCP_NODELAY",
    "IP_MTU_DISCOVER",
];

/// Flags of calls that send and receive.
const KNOWN_FLAGS: [&str; 6] = ["0", "...", "MSG_PEEK", "MSG_DONTWAIT", "MSG_NOSIGNAL", "MSG_TRUNC"];

/// Why a script does not apply: the feature, and the line that asks for it.
pub fn outside(script: &Script) -> Option<(String, usize)> {
    if script.options.iter().any(|(name, value)| name == "ip_version" && value == "ipv6") {
        return Some(("IPv6".into(), 1));
    }
    let named = OUTSIDE.iter().find_map(|(feature, needs)| {
        script.events.iter().find(|e| needs(e)).map(|event| ((*feature).to_string(), event.line))
    });
    let option = || script.options.iter().find_map(|(name, value)| unknown_option(name, value));
    named
        .or_else(|| option().map(|reason| (reason, 1)))
        .or_else(|| script.events.iter().find_map(|event| unknown(event).map(|reason| (reason, event.line))))
        .or_else(|| several(script))
}

fn unknown_option(name: &str, value: &str) -> Option<String> {
    match (name, value) {
        ("mtu", "1500") => None,
        _ if KNOWN_OPTIONS.contains(&name) => None,
        _ => Some(format!("option --{name}")),
    }
}

/// What of an event the driver does not know.
fn unknown(event: &Event) -> Option<String> {
    match &event.kind {
        Kind::Inject(segment) | Kind::Expect(segment) => {
            segment.options.iter().flatten().find_map(|option| match option {
                Opt::Other(words) => Some(format!(
                    "TCP option {}",
                    words.split_whitespace().next().unwrap_or("without a name")
                )),
                _ => None,
            })
        }
        Kind::OtherPacket(_) => None,
        Kind::Call(call) => unknown_call(call),
        Kind::Shell(text) => commands::unknown(text),
        Kind::Python(code) => match python::parse(code) {
            Err(why) => Some(format!("Python other than assertions: {why}")),
            Ok(all) => all
                .iter()
                .find_map(python::Assertion::unreadable)
                .map(|why| format!("Python other than assertions: {why}")),
        },
    }
}

fn unknown_call(call: &Call) -> Option<String> {
    let at = |i: usize| call.args.get(i).map_or("", String::as_str);
    let one_of = |known: &[&str], word: &str| known.contains(&word);
    match call.name.as_str() {
        "socket" => {
            let stream =
                at(1).split('|').all(|w| one_of(&["SOCK_STREAM", "SOCK_NONBLOCK", "SOCK_CLOEXEC"], w.trim()));
            let inet = one_of(&["...", "AF_INET", "PF_INET"], at(0));
            let known = inet && stream && one_of(&["IPPROTO_TCP", "0"], at(2));
            (!known).then(|| format!("socket({})", call.args.join(", ")))
        }
        "recv" | "recvfrom" | "send" | "sendto" => unknown_flags(at(3)),
        "recvmsg" => {
            let text: String = call.args.join(",").split_whitespace().collect();
            let none = !text.contains("msg_control") || text.contains("msg_control=[]");
            let control = !none && !text.contains("TCP_CM_INQ");
            let parts = text.contains("msg_iov(") && !text.contains("msg_iov(1)");
            if control || parts {
                return Some("messages of several parts, or with control data".into());
            }
            unknown_flags(at(2))
        }
        "shutdown" => (at(1) != "SHUT_WR").then(|| format!("shutdown {}", at(1))),
        "setsockopt" => {
            let off = at(2) == "SO_KEEPALIVE" && at(3) == "[0]";
            let discovers = at(2) == "IP_MTU_DISCOVER" && at(3) != "[IP_PMTUDISC_DONT]";
            let known = off || one_of(&KNOWN_SOCKET_OPTIONS, at(2)) && !discovers;
            (!known).then(|| format!("setsockopt {}", at(2)))
        }
        "getsockopt" => (at(2) != "SO_ERROR" || at(3) != "[0]").then(|| format!("getsockopt {}", at(2))),
        "fcntl" => (!one_of(&["F_SETFL", "F_GETFL", "F_SETFD", "F_GETFD"], at(1)))
            .then(|| format!("fcntl {}", at(1))),
        "ioctl" => (!one_of(&["SIOCINQ", "FIONREAD"], at(1))).then(|| format!("ioctl {}", at(1))),
        _ => None,
    }
}

fn unknown_flags(flags: &str) -> Option<String> {
    let unknown =
        flags.split('|').map(str::trim).find(|flag| !flag.is_empty() && !KNOWN_FLAGS.contains(flag));
    unknown.map(str::to_string)
}

/// A write that waits for room, or for which there is some only.
fn is_short_write(event: &Event) -> bool {
    let Kind::Call(call) = &event.kind else { return false };
    let size = call.args.get(2).and_then(|size| size.parse::<u64>().ok());
    let whole = size.is_none() || size.map(|size| size.to_string()).as_deref() == Some(call.result.trim());
    matches!(call.name.as_str(), "write" | "send" | "sendto") && (event.until_us.is_some() || !whole)
}

/// A second connection beside the first, or the SYN of a peer that opens at the same time: the driver has one socket.
fn several(script: &Script) -> Option<(String, usize)> {
    let opens = |event: &Event| {
        matches!(&event.kind, Kind::Call(c) if c.name == "connect"
            || c.name == "accept" && !c.result.starts_with('-'))
    };
    let ends = |event: &Event| call(event, &["close"]) || segment(event).is_some_and(|s| s.flags.rst);
    let connects = call_in(script, "connect");
    let mut open = false;
    for event in &script.events {
        if opens(event) && open {
            return Some(("several connections".into(), event.line));
        }
        open = (open || opens(event)) && !ends(event);
        if connects && matches!(&event.kind, Kind::Inject(s) if s.flags.syn && !s.flags.ack && !s.flags.rst) {
            return Some(("two ends that open at the same time".into(), event.line));
        }
    }
    None
}

fn call_in(script: &Script, name: &str) -> bool {
    script.events.iter().any(|event| call(event, &[name]))
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

    fn reason(text: &str) -> Option<(String, usize)> {
        outside(&Script::parse(text).unwrap())
    }

    #[test]
    fn a_script_outside_the_scope_says_why_and_where() {
        let cases = [
            ("0 < S 0:0(0) win 1 <mss 1000,FO 3021b9d8>", "TCP Fast Open", 1),
            ("0 close(3) = 0\n0 < U. 1:1(0) ack 1", "urgent data", 2),
            ("--ip_version=ipv6\n", "IPv6", 1),
            ("--mtu=9000\n", "option --mtu", 1),
            ("%{ assert tcpi_busy_time == 10 }%", "fields of tcp_info that the simulator has not", 1),
            (
                "%{ print(tcpi_snd_cwnd) }%",
                "Python other than assertions: 'print(tcpi_snd_cwnd)' is no assertion",
                1,
            ),
            (
                "%{ assert (tcpi_snd_cwnd, 1) == (10, 1) }%",
                "Python other than assertions: '(' without ')'",
                1,
            ),
            ("0 socket(..., SOCK_STREAM, IPPROTO_MPTCP) = 3", "MPTCP", 1),
            ("0 < S 0:0(0) win 1 <mss 1460,mp_capable v1 flags[flag_h] nokey>", "MPTCP", 1),
            ("0 > . 1:1(0) ack 1 <dss dack4=1 nocs>", "MPTCP", 1),
            ("`sysctl -q net.mptcp.enabled=1`", "MPTCP", 1),
            ("0 > . 1:1(0) ack 1 <tarr>", "TCP option tarr", 1),
            ("0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3", "socket(..., SOCK_DGRAM, IPPROTO_UDP)", 1),
            (
                "0 socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP) = 3",
                "socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP)",
                1,
            ),
            ("0 shutdown(4, SHUT_RD) = 0", "shutdown SHUT_RD", 1),
            ("0 shutdown(4, SHUT_RDWR) = 0", "shutdown SHUT_RDWR", 1),
            ("0 recv(4, ..., 10, MSG_PEEK|MSG_WAITALL) = 10", "MSG_WAITALL", 1),
            ("0 setsockopt(3, SOL_TCP, TCP_MAXSEG, [500], 4) = 0", "setsockopt TCP_MAXSEG", 1),
            ("0 setsockopt(3, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0", "setsockopt SO_LINGER", 1),
            ("0 getsockopt(3, SOL_TCP, TCP_MAXSEG, [500], [4]) = 0", "getsockopt TCP_MAXSEG", 1),
            ("0 ioctl(4, SIOCOUTQ, [10]) = 0", "ioctl SIOCOUTQ", 1),
            ("0 write(4, ..., 1000) = 500", "send buffer accounting", 1),
            ("0...0.1 write(4, ..., 1000) = 1000", "send buffer accounting", 1),
            ("0 readv(4, [{..., 1}], 1) = 1", "system calls outside the connection", 1),
            ("`ip route change 192.0.2.1 dev tun0 mtu lock 1400`", "mtu lock", 1),
            ("0 > (10.0.0.1:1 > 10.0.0.2:2) . 1:1(0) ack 1", "packets other than TCP over IPv4", 1),
            ("0 < icmp unreachable frag_needed mtu 1200 [1:1461(1460)]", "ICMP and path MTU discovery", 1),
            ("0 connect(3, ..., ...) = 0\n0 connect(4, ..., ...) = 0", "several connections", 2),
            ("0 connect(3, ..., ...) = 0\n0 < S 0:0(0) win 1", "two ends that open at the same time", 2),
        ];
        for (text, why, line) in cases {
            assert_eq!(reason(text), Some((why.to_string(), line)), "{text}");
        }
    }

    #[test]
    fn what_is_known_applies() {
        for text in [
            "0 > . 1:1(0) ack 1\n%{ assert tcpi_snd_cwnd == 10 }%",
            "0 recv(4, ..., 10, MSG_PEEK|MSG_DONTWAIT) = 10",
            "0 shutdown(4, SHUT_WR) = 0",
            "0 getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [4]) = 0",
            "0 ioctl(4, FIONREAD, [10]) = 0",
            "0 recvmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 9}], msg_flags=0, msg_control=[]}, MSG_PEEK) = 9",
            "--tolerance_usecs=7000 --tcp_ts_tick_usecs=1000\n",
            "%{ assert 1 // (tcpi_lost) == 0 }%",
        ] {
            assert_eq!(reason(text), None, "{text}");
        }
    }
}
