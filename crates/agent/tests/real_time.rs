//! The agent against the kernel of this machine, in real time: each test takes a second or two of wall time, as the kernel's time is the thing
//! tested. What is stated holds on a machine of any speed: a flow that its run's end cut short has delivered less, never more. What needs root
//! (namespaces, PID 1) skips without it and says so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn agent() -> Command {
    Command::new(env!("CARGO_BIN_EXE_bakeoff-agent"))
}

/// A folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("bakeoff-agent-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn write(&self, name: &str, document: &Value) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, document.to_string()).expect("written");
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The rows by (kind, name, metric), and the last line.
struct Measured {
    rows: BTreeMap<(String, String, String), Vec<(f64, f64)>>,
    summary: Value,
}

impl Measured {
    fn read(path: &Path) -> Measured {
        let text = std::fs::read_to_string(path).expect("the agent's output");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("time\tkind\tname\tmetric\tvalue"));
        let mut measured = Measured { rows: BTreeMap::new(), summary: Value::Null };
        for line in lines {
            assert!(measured.summary.is_null(), "nothing follows the line of JSON");
            if let Some(summary) = line.strip_prefix('#') {
                measured.summary = serde_json::from_str(summary).expect("JSON behind the #");
                continue;
            }
            let [time, kind, name, metric, value] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("five columns: {line:?}")
            };
            let row = (time.parse().expect("a number"), value.parse().expect("a number"));
            measured.rows.entry((kind.into(), name.into(), metric.into())).or_default().push(row);
        }
        measured
    }

    fn series(&self, kind: &str, name: &str, metric: &str) -> &[(f64, f64)] {
        self.rows.get(&(kind.into(), name.into(), metric.into())).map_or(&[], Vec::as_slice)
    }

    /// A TCP flow delivered `offered` bytes, every one and no more; fewer only if the run or the flow's time was over first. Returns when its
    /// last byte was read, if that was before `end_s`.
    fn delivered(&self, flow: &str, offered: u64, end_s: f64) -> Option<f64> {
        let (source, sink) = (&self.summary["sources"][flow], &self.summary["sinks"][flow]);
        let received = sink["received_bytes"].as_u64().unwrap_or(0);
        // The source has `finished_s` once the kernel took all of it, the sink once it read the end of the stream.
        let finished = source["finished_s"].as_f64().and(sink["finished_s"].as_f64());
        if let Some(finished) = finished.filter(|&finished| finished < end_s) {
            assert_eq!(received, offered, "{flow}: {source} {sink}");
            return Some(finished);
        }
        eprintln!("{flow}: this machine is busy: {received} of {offered} bytes arrived in time");
        assert!(received <= offered, "{flow}: {source} {sink}");
        None
    }
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().into()
}

/// A TCP port that is free on this machine now.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

fn plan(folder: &Folder, duration_s: f64, roles: &Value) -> Value {
    json!({"format": 1, "sample_interval_s": 0.05, "duration_s": duration_s, "drain_s": 0.2, "output": folder.path("out.tsv"), "roles": roles})
}

/// Three objects, one of them due after the stop, and a video of one rate: 250 kbit/s x 0.2 s are 6250 bytes a segment, of which the buffer holds
/// two. From 0.1 s on a segment fits each 0.2 s, after the first two.
#[test]
fn short_flows_and_a_video() {
    let folder = Folder::new("short");
    let (web, tv) = (free_port(), free_port());
    let roles = json!([
        {"role": "tcp-sink", "name": "web", "port": web, "answers": "objects"},
        {"role": "tcp-source", "name": "web", "to": format!("127.0.0.1:{web}"), "cc": "reno", "start_s": 0.1, "stop_s": 0.8,
         "source": {"kind": "short", "objects": [[0.0, 100_000], [0.2, 1], [0.7, 1000]]}},
        {"role": "tcp-sink", "name": "tv", "port": tv, "answers": "segments"},
        {"role": "tcp-source", "name": "tv", "to": format!("127.0.0.1:{tv}"), "cc": "reno", "start_s": 0.1, "stop_s": 1.0,
         "source": {"kind": "video", "rates_bps": [250_000], "segment_s": 0.2, "buffer_s": 0.4}},
    ]);
    let plan = plan(&folder, 1.5, &roles);
    let output = agent().arg("run").arg(folder.write("plan.json", &plan)).output().expect("started");
    assert!(output.status.success(), "{}", message(&output));

    let measured = Measured::read(&folder.path("out.tsv"));
    let source = &measured.summary["sources"]["web"];
    // Of objects that a busy machine begins late some may be missing, never one too many.
    let sizes = measured.series("flow", "web", "size");
    assert!(
        !sizes.is_empty() && sizes.iter().zip([(0.1, 100_000.0), (0.3, 1.0)]).all(|(row, due)| *row == due),
        "{sizes:?}"
    );
    assert_eq!(source["objects"]["offered"], 3);
    let fct = measured.series("flow", "web", "fct");
    assert!(fct.iter().all(|row| row.1 > 0.0) && fct.len() <= sizes.len());
    if fct.len() == 2 {
        assert_eq!(measured.summary["sinks"]["web"]["received_bytes"], 100_001);
        assert!(source["delivered"].as_u64() >= Some(2), "{source}");
    }
    let rates = measured.series("flow", "tv", "segment_rate");
    assert!(!rates.is_empty() && rates.iter().all(|row| row.1 as u64 == 250_000), "{rates:?}");
    // None sooner than it fits, counted from the first's arrival: two, then one each 0.2 s.
    let buffer = measured.series("flow", "tv", "buffer");
    for (n, row) in rates.iter().enumerate().skip(2) {
        assert!(row.0 >= buffer[0].0 + 0.2 * (n as f64 - 1.0) - 1e-6, "{n}: {rates:?} {buffer:?}");
    }
    assert_eq!(measured.summary["sinks"]["tv"]["received_bytes"].as_u64().map(|n| n % 6250), Some(0));
}

/// One flow and one probe over loopback. 400 kB/s in writes of 4 kB from 0.1 to 0.9 s are 80 writes: 320 000 bytes, all of which arrive.
/// A probe every 50 ms from 0 to 1 s asks 20 times, late or not, and loopback loses nothing.
#[test]
fn loopback() {
    let folder = Folder::new("loopback");
    let (tcp, udp) = (free_port(), free_port());
    let roles = json!([
        {"role": "tcp-sink", "name": "a", "port": tcp},
        {"role": "tcp-source", "name": "a", "to": format!("127.0.0.1:{tcp}"), "cc": "reno", "start_s": 0.1, "stop_s": 0.9,
         "source": {"kind": "rate", "rate_bps": 3_200_000, "size": 4000}},
        {"role": "udp-reflector", "port": udp},
        {"role": "udp-probe", "name": "p", "to": format!("127.0.0.1:{udp}"), "every_s": 0.05, "size": 84, "ecn": "ce", "start_s": 0.0, "stop_s": 9.0},
    ]);
    let mut plan = plan(&folder, 1.0, &roles);
    // An upper bound: the run is over once every request has its answer.
    plan["drain_s"] = json!(30.0);
    let output = agent().arg("run").arg(folder.write("plan.json", &plan)).output().expect("started");
    assert!(output.status.success(), "{}", message(&output));

    let measured = Measured::read(&folder.path("out.tsv"));
    let summary = &measured.summary;
    assert_eq!((&summary["complete"], &summary["error"]), (&json!(true), &Value::Null));
    let received = measured.series("flow", "a", "received");
    // The last tick is that of 1 s: what was over before is in its row.
    if measured.delivered("a", 320_000, 1.0).is_some() {
        assert_eq!(received.last().map(|row| row.1 as u64), Some(320_000));
        // TCP sends again what a busy machine acknowledges late: what was sent has a lower bound only.
        assert!(summary["sources"]["a"]["sent_bytes"].as_u64() >= Some(320_000));
    }
    assert_eq!(summary["sources"]["a"]["cc"], "reno");
    assert_eq!(summary["probes"]["p"], json!({"sent": 20, "received": 20, "ce_out": 20, "ce_back": 20}));
    let goodput: BTreeMap<u64, f64> =
        measured.series("flow", "a", "goodput").iter().map(|row| (row.0.to_bits(), row.1)).collect();
    for (before, now) in received.iter().zip(&received[1.min(received.len())..]) {
        let bits = (now.1 - before.1) * 8.0;
        let rate = goodput[&now.0.to_bits()];
        assert!(
            (rate * (now.0 - before.0) - bits).abs() < 1.0,
            "goodput is what was received since the row before"
        );
    }
    assert_eq!(measured.series("probe", "p", "rtt").len(), 20);
    assert!(measured.series("probe", "p", "lost").is_empty());
    for (rtt, (out, back)) in measured
        .series("probe", "p", "rtt")
        .iter()
        .zip(measured.series("probe", "p", "owd_out").iter().zip(measured.series("probe", "p", "owd_back")))
    {
        assert!(
            (rtt.1 - out.1 - back.1).abs() < 1e-9 && out.1 > 0.0 && back.1 > 0.0,
            "there and back make the round trip"
        );
    }
    let cwnd = measured.series("flow", "a", "cwnd");
    assert!(
        cwnd.iter().all(|&(time, packets)| time >= 0.1 && packets >= 1.0),
        "sampled while the flow was open: {cwnd:?}"
    );
    let ticks: Vec<u64> = cwnd.iter().map(|row| (row.0 / 0.05) as u64).collect();
    assert!(ticks.is_sorted_by(|a, b| a < b), "one row per tick; a tick that was missed stays so: {ticks:?}");
}

#[test]
fn a_congestion_control_that_the_kernel_has_not() {
    let folder = Folder::new("cc");
    let roles = json!([{"role": "tcp-source", "name": "a", "to": "127.0.0.1:9", "cc": "nosuchcc", "start_s": 0.0, "stop_s": 1.0, "source": {"kind": "bulk"}}]);
    let output = agent()
        .arg("run")
        .arg(folder.write("plan.json", &plan(&folder, 1.0, &roles)))
        .output()
        .expect("started");
    assert_eq!(output.status.code(), Some(1));
    let available =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("Linux");
    let expected = format!(
        "tcp-source 'a': congestion control 'nosuchcc': No such file or directory; this kernel has: {}",
        available.trim()
    );
    assert_eq!(message(&output), format!("bakeoff-agent: {expected}"));
    let summary = Measured::read(&folder.path("out.tsv")).summary;
    assert_eq!((&summary["complete"], &summary["error"]), (&json!(false), &json!(expected)));
}

#[test]
fn nobody_listens() {
    let folder = Folder::new("refused");
    let port = free_port();
    let to = format!("127.0.0.1:{port}");
    let roles = json!([{"role": "tcp-source", "name": "a", "to": to, "cc": "reno", "start_s": 0.0, "stop_s": 1.0, "source": {"kind": "bulk"}}]);
    let output = agent()
        .arg("run")
        .arg(folder.write("plan.json", &plan(&folder, 30.0, &roles)))
        .output()
        .expect("started");
    assert_eq!(output.status.code(), Some(1), "long before the 30 s are over");
    assert!(
        message(&output)
            .starts_with(&format!("bakeoff-agent: tcp-source 'a': connect to {to}: ECONNREFUSED")),
        "{}",
        message(&output)
    );
}

#[test]
fn a_refused_plan_writes_nothing() {
    let folder = Folder::new("refusal");
    let path = folder
        .write("plan.json", &plan(&folder, 1.0, &json!([{"role": "tcp-sink", "name": "a", "port": 0}])));
    let output = agent().arg("run").arg(&path).output().expect("started");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        message(&output),
        format!("bakeoff-agent: {}: roles[0].port: 0; 1 to 65535 is expected", path.display())
    );
    assert!(!folder.path("out.tsv").exists());
}

#[test]
fn an_epoch_that_has_passed() {
    let folder = Folder::new("epoch");
    let mut plan = plan(&folder, 1.0, &json!([]));
    plan["epoch"] = json!({"clock": "monotonic", "ns": 1});
    let output = agent().arg("run").arg(folder.write("plan.json", &plan)).output().expect("started");
    assert_eq!(output.status.code(), Some(1));
    assert!(message(&output).ends_with(" s before the roles were ready"), "{}", message(&output));
}

/// A flow of a minute that sends a megabyte a second.
fn a_minute(folder: &Folder) -> Value {
    let port = free_port();
    let roles = json!([
        {"role": "tcp-sink", "name": "a", "port": port},
        {"role": "tcp-source", "name": "a", "to": format!("127.0.0.1:{port}"), "cc": "reno", "start_s": 0.0, "stop_s": 60.0,
         "source": {"kind": "bulk"}, "max_pacing_rate_bps": 8_000_000},
    ]);
    plan(folder, 60.0, &roles)
}

/// SIGTERM in the middle of a minute: what was measured is there, the exit code 0.
#[test]
fn sigterm_ends_a_run_cleanly() {
    let folder = Folder::new("sigterm");
    // A change of the plan sends the signal to its parent, the agent, once a row of the receiver is in the file.
    let mut plan = a_minute(&folder);
    let wait = "until grep -q received \"$0\"; do sleep 0.05; done; kill -TERM $PPID";
    plan["changes"] = json!([{"at_s": 0.1, "argv": ["sh", "-c", wait, folder.path("out.tsv")]}]);
    let output = agent().arg("run").arg(folder.write("plan.json", &plan)).output().expect("started");
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    let measured = Measured::read(&folder.path("out.tsv"));
    assert_eq!((&measured.summary["complete"], &measured.summary["error"]), (&json!(false), &Value::Null));
    let (time, _) = *measured.series("flow", "a", "received").last().expect("rows");
    assert!(time < 60.0, "long before the 60 s are over: {time} s");
    // A megabyte a second is on its way, so that the sink never saw the end of the stream.
    assert_eq!(measured.summary["sinks"]["a"]["finished_s"], Value::Null);
    assert!(measured.summary["sinks"]["a"]["received_bytes"].as_u64().is_some());
}

/// A shell starts a run of a minute and is killed once a row of the receiver is in the file. What the shell leaves behind holds its standard
/// output open, so that this ends with the agent.
#[test]
fn a_run_ends_with_the_process_that_started_it() {
    let folder = Folder::new("parent");
    let plan = folder.write("plan.json", &a_minute(&folder));
    let words = "\"$0\" run \"$1\" & until grep -qs received \"$2\"; do sleep 0.05; done; kill -KILL $$";
    let mut shell = Command::new("sh");
    shell.args(["-c", words, env!("CARGO_BIN_EXE_bakeoff-agent")]).arg(plan).arg(folder.path("out.tsv"));
    let output = shell.output().expect("started");
    assert_eq!(message(&output), "");
    let measured = Measured::read(&folder.path("out.tsv"));
    assert_eq!((&measured.summary["complete"], &measured.summary["error"]), (&json!(false), &Value::Null));
    let (time, _) = *measured.series("flow", "a", "received").last().expect("rows");
    assert!(time < 60.0, "long before the 60 s are over: {time} s");
}

#[test]
fn a_change_that_fails_fails_the_run() {
    let folder = Folder::new("change");
    let mut plan = plan(&folder, 60.0, &json!([]));
    plan["changes"] =
        json!([{"at_s": 0.1, "node": "mid", "argv": ["sh", "-c", "echo no such class; exit 2"]}]);
    let output = agent().arg("run").arg(folder.write("plan.json", &plan)).output().expect("started");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        message(&output),
        "bakeoff-agent: change at 0.1 s: mid: sh -c 'echo no such class; exit 2': exit code 2: no such class"
    );
}

/// A server stands before t = 0 and is ended after the run; a client starts at its time, and what both say is in their files.
#[test]
fn programs_of_others() {
    let folder = Folder::new("programs");
    let mut plan = plan(&folder, 0.5, &json!([]));
    plan["drain_s"] = json!(30.0);
    let server = json!({"name": "server", "argv": ["sh", "-c", "echo ready; exec sleep 1000"], "output": folder.path("server.txt")});
    let client = |argv: &[&str]| json!({"name": "client", "argv": argv, "start_s": 0.2, "output": folder.path("client.txt")});
    plan["programs"] = json!([server, client(&["echo", "done"])]);
    let run =
        |plan: &Value| agent().arg("run").arg(folder.write("plan.json", plan)).output().expect("started");
    let output = run(&plan);
    assert!(output.status.success(), "{}", message(&output));
    let said = |file| std::fs::read_to_string(folder.path(file)).expect("written");
    assert_eq!((said("server.txt"), said("client.txt")), ("ready\n".into(), "done\n".into()));
    let summary = Measured::read(&folder.path("out.tsv")).summary;
    let told = &summary["programs"][0];
    assert_eq!((&summary["complete"], &told["name"]), (&json!(true), &json!("client")));
    assert!(told["started_s"].as_f64() >= Some(0.2) && told["ended_s"].as_f64() > told["started_s"].as_f64());

    plan["programs"][1] = client(&["sh", "-c", "echo cannot; exit 3"]);
    let output = run(&plan);
    assert_eq!(
        message(&output),
        "bakeoff-agent: program 'client': sh -c 'echo cannot; exit 3': exit code 3: cannot"
    );

    plan["programs"] = json!([{"name": "server", "argv": ["true"], "output": folder.path("server.txt")}]);
    let output = run(&plan);
    assert_eq!(
        message(&output),
        "bakeoff-agent: program 'server': true: ended before the run did: exit code 0"
    );
}

/// Whether this test may make namespaces; says why not.
fn is_root(test: &str) -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let ip = Command::new("ip").arg("netns").output().is_ok_and(|output| output.status.success());
    if !(root && ip) {
        eprintln!("skipped: {test} needs root and iproute2's ip netns");
    }
    root && ip
}

/// Two namespaces joined by a veth pair, 10.77.0.1 and 10.77.0.2.
struct Pair {
    cli: String,
    srv: String,
}

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().expect("ip");
    assert!(output.status.success(), "ip {words}: {}", message(&output));
}

impl Pair {
    fn new(test: &str) -> Pair {
        let id = std::process::id();
        let pair = Pair { cli: format!("bk{id}{test}c"), srv: format!("bk{id}{test}s") };
        let Pair { cli, srv } = &pair;
        ip(&format!("netns add {cli}"));
        ip(&format!("netns add {srv}"));
        ip(&format!("-n {cli} link add cli.r type veth peer name srv.l netns {srv}"));
        for (netns, dev, address) in [(cli, "cli.r", "10.77.0.1"), (srv, "srv.l", "10.77.0.2")] {
            ip(&format!("-n {netns} address add {address}/24 dev {dev}"));
            ip(&format!("-n {netns} link set {dev} up"));
        }
        pair
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for netns in [&self.cli, &self.srv] {
            let _ = Command::new("ip").args(["netns", "delete", netns]).status();
        }
    }
}

/// 2 000 000 bytes through a 20 Mbit/s tbf take at least 8 × 2e6 / 20e6 = 0.8 s; its rate halves at c = 0.4 s (later on a busy machine: the
/// summary tells when), then at least c + (16e6 - 20e6 c) / 10e6 = 1.2 s, less the 15 kB burst that passes at once, at the beginning and after the
/// change (12 ms each at 10 Mbit/s). Every byte arrives.
#[test]
fn two_namespaces_with_a_queue_and_a_change() {
    if !is_root("two_namespaces_with_a_queue_and_a_change") {
        return;
    }
    let pair = Pair::new("q");
    ip(&format!(
        "netns exec {} tc qdisc add dev cli.r root handle 1: tbf rate 20mbit burst 15k limit 100k",
        pair.cli
    ));
    let folder = Folder::new("netns");
    let Pair { cli, srv } = &pair;
    let roles = json!([
        {"role": "tcp-sink", "name": "a", "netns": srv, "port": 5201, "dscp": 19},
        {"role": "tcp-source", "name": "a", "netns": cli, "to": "10.77.0.2:5201", "cc": "cubic", "dscp": 19, "start_s": 0.0, "stop_s": 3.0,
         "source": {"kind": "bytes", "bytes": 2_000_000}},
        {"role": "icmp-probe", "name": "ping", "netns": cli, "to": "10.77.0.2", "every_s": 0.05, "size": 84, "start_s": 0.0, "stop_s": 9.0},
        {"role": "icmp-probe", "name": "nobody", "netns": cli, "to": "10.77.0.3", "every_s": 0.5, "size": 84, "start_s": 0.0, "stop_s": 9.0},
        {"role": "udp-sink", "name": "cbr", "netns": cli, "port": 5301, "start_s": 0.0, "stop_s": 1.0,
         "source": {"kind": "periodic", "size": 100, "count": 2, "every_s": 0.1}},
        {"role": "udp-source", "name": "cbr", "netns": srv, "to": "10.77.0.1:5301", "ecn": "ce", "start_s": 0.0, "stop_s": 1.0,
         "source": {"kind": "periodic", "size": 100, "count": 2, "every_s": 0.1}},
    ]);
    let mut plan = plan(&folder, 2.0, &roles);
    plan["queues"] = json!([{"name": "cli>srv", "netns": cli, "dev": "cli.r", "at": "root"}]);
    let change = "tc qdisc change dev cli.r root handle 1: tbf rate 10mbit burst 15k limit 100k";
    plan["changes"] = json!([{"at_s": 0.4, "netns": cli, "argv": change.split(' ').collect::<Vec<_>>()}]);
    let output = agent().arg("run").arg(folder.write("plan.json", &plan)).output().expect("started");
    assert!(output.status.success(), "{}", message(&output));

    let measured = Measured::read(&folder.path("out.tsv"));
    let summary = &measured.summary;
    let change = &summary["changes"][0];
    assert_eq!(change["node"], json!(cli));
    let started = change["started_s"].as_f64().expect("told");
    assert!(started >= 0.4, "not before its time: {started}");
    let queue = &summary["queues"]["cli>srv"];
    assert_eq!(queue["kind"], "tbf");
    if let Some(finished) = measured.delivered("a", 2_000_000, 2.0) {
        let slower_from = change["ended_s"].as_f64().expect("told").min(0.8);
        let at_least = slower_from + (16e6 - 20e6 * slower_from) / 10e6 - 2.0 * 0.012;
        assert!(finished > at_least, "the slower rate was in force from {slower_from} s on: {finished} s");
        assert!(summary["sources"]["a"]["sent_bytes"].as_u64() >= Some(2_000_000));
        // Each byte passed the queue once per transmission, behind 14 + 20 + 32 bytes of headers per segment of 1448.
        let passed = queue["sent_bytes"].as_f64().expect("told");
        assert!(passed > 2_000_000.0 * 1514.0 / 1448.0, "headers included: {passed}");
    }
    let nobody = &summary["probes"]["nobody"];
    assert_eq!((&nobody["received"], &nobody["ce_out"]), (&json!(0), &Value::Null));
    // 2 s hold 4 requests at 0.5 s and 40 at 0.05 s, each answered or lost.
    for (probe, most) in [("nobody", 4), ("ping", 40)] {
        let rows = ["rtt", "lost"].map(|metric| measured.series("probe", probe, metric).len() as u64);
        let sent = summary["probes"][probe]["sent"].as_u64().expect("told");
        assert!(rows[0] + rows[1] <= sent && sent <= most, "{probe}: {rows:?} of {sent}");
    }
    // The way back has no queue: what arrived did so whole, in order and marked.
    let cbr = &summary["sinks"]["cbr"];
    let arrived = cbr["received_packets"].as_u64().expect("told");
    assert!(arrived <= 20, "10 times 2: {arrived}");
    assert_eq!(
        cbr,
        &json!({"received_packets": arrived, "received_bytes": 100 * arrived, "missing": 0, "reordered": 0, "ce": arrived})
    );
    let delays = measured.series("flow", "cbr", "delay");
    assert_eq!(delays.len() as u64, arrived, "both ends read one clock");
    assert!(delays.iter().all(|&(sent, took)| sent >= 0.0 && took > 0.0 && sent + took <= 2.0), "{delays:?}");
    assert!(measured.series("flow", "cbr", "transit").is_empty());
    assert!(measured.series("flow", "cbr", "missing").is_empty(), "2 s have not passed by the end");
    let backlog = measured.series("queue", "cli>srv", "backlog");
    // There is always a last tick.
    assert!(
        !backlog.is_empty() && backlog.iter().all(|row| row.1 <= 102_400.0),
        "100 kB at most: {backlog:?}"
    );
    assert!(measured.series("queue", "cli>srv", "marks").is_empty(), "tbf tells no marks");
}

#[test]
fn a_queue_that_is_not_there_is_named_with_those_that_are() {
    if !is_root("a_queue_that_is_not_there_is_named_with_those_that_are") {
        return;
    }
    let pair = Pair::new("n");
    let folder = Folder::new("noqueue");
    let mut plan = plan(&folder, 1.0, &json!([]));
    plan["queues"] = json!([{"name": "q", "netns": pair.cli, "dev": "cli.r", "at": "handle 10:"}]);
    let output = agent().arg("run").arg(folder.write("plan.json", &plan)).output().expect("started");
    assert_eq!(
        message(&output),
        "bakeoff-agent: queue 'q': dev cli.r: no qdisc at handle 10:; there are: noqueue handle 0:0 root"
    );
}

/// PID 1 of a PID namespace of its own, with mounts of its own: the kernel takes the power-off there for the end of that namespace.
fn init(folder: &Folder, script: &Value) -> Output {
    let path = folder.write("script.json", script);
    let exe = env!("CARGO_BIN_EXE_bakeoff-agent");
    Command::new("unshare")
        .args(["--fork", "--pid", "--mount", "--net", exe, "init"])
        .arg(path)
        .output()
        .expect("unshare")
}

#[test]
fn pid_1_sets_up_runs_and_tears_down() {
    if !is_root("pid_1_sets_up_runs_and_tears_down") {
        return;
    }
    // Not under /tmp, which init covers with a tmpfs of its own.
    let folder = Folder(PathBuf::from(format!("/var/tmp/bakeoff-agent-init-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder for the test");
    let roles = json!([
        {"role": "tcp-sink", "name": "a", "netns": "n1", "port": 5201},
        {"role": "tcp-source", "name": "a", "netns": "n1", "to": "127.0.0.1:5201", "cc": "reno", "start_s": 0.0, "stop_s": 0.5,
         "source": {"kind": "bytes", "bytes": 1_000_000}},
    ]);
    let step = |netns: Option<&str>, argv: &[&str]| json!({"node": "n1", "netns": netns, "argv": argv});
    let mut background = step(None, &["sleep", "1000"]);
    background["background"] = json!(true);
    let mut reading = step(None, &["cat"]);
    reading["stdin"] = json!("from the script\n");
    let mut script = json!({
        "format": 1, "settle_s": 0.1, "log": folder.path("setup.log"), "teardown_log": folder.path("teardown.log"),
        "status": folder.path("status.json"),
        "mounts": [{"type": "tmpfs", "source": "none", "target": "/tmp/made/on/the/way", "options": "size=64k"}],
        "setup": [step(None, &["ip", "netns", "add", "n1"]), step(Some("n1"), &["ip", "link", "set", "lo", "up"]), reading, background],
        "plan": plan(&folder, 0.6, &roles),
        "teardown": [step(Some("n1"), &["ip", "-o", "link", "show", "lo"]), step(None, &["df", "/tmp/made/on/the/way"])],
    });
    let output = init(&folder, &script);
    let status = |folder: &Folder| -> Value {
        serde_json::from_str(&std::fs::read_to_string(folder.path("status.json")).expect("status"))
            .expect("JSON")
    };
    assert_eq!(
        status(&folder),
        json!({"format": 1, "status": "ok", "phase": null, "error": null}),
        "{}",
        message(&output)
    );
    let measured = Measured::read(&folder.path("out.tsv"));
    assert_eq!(measured.summary["complete"], true);
    measured.delivered("a", 1_000_000, 0.6);
    let log = std::fs::read_to_string(folder.path("setup.log")).expect("log");
    assert_eq!(
        log,
        "+ n1: ip netns add n1\n+ n1: ip link set lo up\n+ n1: cat\nfrom the script\n+ n1: sleep 1000 &\n"
    );
    let log = std::fs::read_to_string(folder.path("teardown.log")).expect("log");
    assert!(
        log.contains("LOOPBACK,UP") && log.contains("64 ") && log.contains("/tmp/made/on/the/way\n"),
        "{log}"
    );

    // The first step of setup that fails ends it; teardown is done all the same.
    script["setup"][1] = step(Some("n1"), &["sh", "-c", "echo cannot; exit 4"]);
    script["teardown"] = json!([step(None, &["echo", "torn down"])]);
    let output = init(&folder, &script);
    let error = "n1: sh -c 'echo cannot; exit 4': exit code 4: cannot";
    assert_eq!(status(&folder), json!({"format": 1, "status": "failed", "phase": "setup", "error": error}));
    assert!(message(&output).contains(&format!("bakeoff-agent: setup: {error}")), "{}", message(&output));
    assert!(std::fs::read_to_string(folder.path("teardown.log")).expect("log").ends_with("torn down\n"));

    // A worker that is killed is told by PID 1.
    script["setup"] = json!([step(None, &["sh", "-c", "kill -KILL $PPID"])]);
    let output = init(&folder, &script);
    assert_eq!(status(&folder)["error"], "init: the worker died: killed by SIGKILL");
    assert!(message(&output).contains("init: the worker died"), "{}", message(&output));
}
