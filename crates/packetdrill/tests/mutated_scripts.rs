//! Scripts come from anywhere: whatever is done to one, it is run or refused, without a panic and to its end.

use bakeoff_packetdrill::script::Script;
use proptest::prelude::*;

const SCRIPTS: &[&str] = &[
    "--tolerance_usecs=7000\n// A comment.\n`sysctl -q net.ipv4.tcp_sack=1`\n\
     0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0\n\
     +0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>\n\
     +0 > S. 0:0(0) ack 1 <...>\n+.1 < . 1:1(0) ack 1 win 257\n+0 accept(3, ..., ...) = 4\n\
     +0 write(4, ..., 10000) = 10000\n+0 > P. 1:10001(10000) ack 1\n\
     +.1 < . 1:1(0) ack 1 win 257 <sack 2001:3001,nop,nop>\n+.1~+.3 > . 1:1001(1000) ack 1\n\
     +.01 < . 1:1(0) ack 10001 win 257\n+0 %{ assert tcpi_snd_cwnd >= 10, tcpi_snd_cwnd }%\n",
    "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
     +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n\
     +0 > SEWA 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8>\n\
     +.01 < S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS val 700 ecr 100,nop,wscale 7>\n\
     +0 > . 1:1(0) ack 1 <nop,nop,TS val 110 ecr 700>\n+.01...0.2 write(3, ..., 1000) = 1000\n\
     +0 > [ect0] P. 1:1001(1000) ack 1 <ECN e1b 1 ceb 0 e0b 1,nop>\n* < R. 1:1(0) ack 1 win 0\n\
     +0 /* more */ close(3) = 0\n",
    "`./defaults.sh\nsysctl -q net.ipv4.tcp_ecn=3`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
     +0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
     +0 < [ce] SEWA 0:0(0) win 1500 <mss 2,sackOK,TS val 1 ecr 0,nop,wscale 14>\n\
     +0 > [noecn] SA. 0:0(0) ack 1 <...>\n+.1 < [ect0] W. 1:1(0) ack 1 win 1 <nop,nop,TS val 2 ecr 1>\n\
     +0 accept(3, ..., ...) = 4\n+0 < . 0:1(1) ack 1 win 257 <nop,nop,TS val 3 ecr 1>\n\
     +0 < F. 1:101(100) ack 1 win 0 <nop,nop,TS val 4 ecr 1>\n+0 recv(4, ..., 1000, MSG_PEEK) = 100\n\
     +0 recv(4, ..., 1000, 0) = 100\n+0 write(4, ..., 5000) = 5000\n+.5 < . 102:102(0) ack 4294967290 win 2\n\
     +0 shutdown(4, SHUT_WR) = 0\n+1 ioctl(4, SIOCINQ, [0]) = 0\n+0 close(4) = 0\n",
];

const WORDS: &[&str] = &[
    "4294967295",
    "18446744073709551616",
    "-1",
    "0",
    "99999999999999",
    "1e999",
    "9223372036854775.9",
    "+",
    "~",
    "...",
    "*",
    "<",
    ">",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "`",
    "%{",
    "}%",
    "/*",
    "//",
    "--",
    "=",
    ",",
    ":",
    "sack 1:4294967295",
    "wscale 14",
    "mss 0",
    "win 0",
    "TS val 4294967295 ecr 0",
    "ECN ceb",
    "\u{e9}",
    "\u{0}",
    "\n",
    " ",
    "assert ",
    "not ",
];

/// What is done to a script: at which share of its length, and what.
#[derive(Clone, Debug)]
enum Change {
    Insert(&'static str),
    Delete(usize),
    Repeat(usize),
    Number(&'static str),
}

fn change() -> impl Strategy<Value = (u16, Change)> {
    let word = || prop::sample::select(WORDS);
    (
        any::<u16>(),
        prop_oneof![
            word().prop_map(Change::Insert),
            (1..40_usize).prop_map(Change::Delete),
            (1..200_usize).prop_map(Change::Repeat),
            prop::sample::select(&WORDS[..7]).prop_map(Change::Number),
        ],
    )
}

fn changed(text: &str, at: u16, change: &Change) -> String {
    let letters: Vec<char> = text.chars().collect();
    let at = letters.len() * usize::from(at) / (usize::from(u16::MAX) + 1);
    let upto = |count: usize| (at + count).min(letters.len());
    let (middle, after): (String, usize) = match change {
        Change::Insert(word) => ((*word).into(), at),
        Change::Delete(count) => (String::new(), upto(*count)),
        Change::Repeat(count) => {
            (letters[at..upto(*count)].iter().chain(&letters[at..upto(*count)]).collect(), upto(*count))
        }
        // The next number in the script becomes another one.
        Change::Number(number) => {
            let start = (at..letters.len()).find(|&i| letters[i].is_ascii_digit()).unwrap_or(letters.len());
            let end = (start..letters.len()).find(|&i| !letters[i].is_ascii_digit()).unwrap_or(letters.len());
            (letters[at..start].iter().copied().chain(number.chars()).collect(), end)
        }
    };
    letters[..at].iter().copied().chain(middle.chars()).chain(letters[after..].iter().copied()).collect()
}

/// `PROPTEST_CASES` says how many, 1000 without it.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1000);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_mutated_script_is_run_or_refused(
        script in prop::sample::select(SCRIPTS),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        let text = changes.iter().fold(script.to_string(), |text, (at, change)| changed(&text, *at, change));
        // Both ends are fine, and so is every verdict: getting there is what counts.
        match bakeoff_packetdrill::run(&text) {
            Ok(report) => prop_assert!(report.log.len() < 1_000_000),
            Err(error) => prop_assert!(error.line >= 1),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}|[-+.~*<>()\\[\\]{}`%\"=,:/ \n0-9a-zA-Z]{0,400}") {
        if let Err(error) = Script::parse(&text) {
            prop_assert!(error.line >= 1);
        }
    }
}

#[test]
fn the_scripts_themselves_are_read() {
    for script in SCRIPTS {
        assert!(Script::parse(script).is_ok(), "{script}");
    }
}

#[test]
fn what_has_no_end_is_refused() {
    let deep = format!("0 %{{ assert {}1 }}%\n", "(".repeat(1_000_000));
    let report = bakeoff_packetdrill::run(&deep).expect("it can be read");
    assert!(format!("{:?}", report.verdict).contains("expected at most 300"), "{:?}", report.verdict);
    let error = Script::parse("+99999999999999 a() = 0\n").expect_err("it is three million years");
    assert_eq!(error.what, "'99999999999999' is a time of more than 86400 seconds");
    let days = "+86400 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n".repeat(11);
    let report = bakeoff_packetdrill::run(&days).expect("it can be read");
    assert!(format!("{:?}", report.verdict).contains("at most ten days"), "{:?}", report.verdict);
}

#[test]
fn a_sack_block_that_is_none_is_taken_no_notice_of() {
    // Each begins before the connection did; the first is reversed too, the second ends inside of it.
    for block in ["4294967295:4294960000", "4294967291:5"] {
        // Up to the SACK, without what is expected to be sent before it.
        let script = SCRIPTS[0].replace("sack 2001:3001", &format!("sack {block}"));
        let script = script.replace("+0 > P. 1:10001(10000) ack 1\n", "");
        let report = bakeoff_packetdrill::run(&script).expect("it can be read");
        assert!(report.log.iter().any(|line| line.contains(block)), "{:?}", report.log);
    }
}
