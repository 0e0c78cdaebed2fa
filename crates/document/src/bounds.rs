//! What each number of a resolved run may be. Within these bounds no sum or product of the simulator overflows, and no
//! single value of a document makes it allocate without limit; what a whole run may cost is its budget's.
//!
//! They are wide on purpose: wider than any network, and no judgement of what is sensible. `bakeoff.scenario` has the same for
//! what a user writes. Sizes and weights of a medium are checked where the medium is built.
//!
//! Validation: tests below; `tests/fuzz_documents.rs` (nothing within them panics or hangs).

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::error::Refused;
use crate::run::{Action, Flow, Link, Loss, Probe, Run, Source};

/// Bytes of the least and the largest IP packet of a link or tunnel. In 128 bytes fit all headers and options of a
/// segment, and some payload.
pub const MTU: RangeInclusive<u32> = 128..=65_535;
/// Seconds: 31 years. A clock of 64 bits in nanoseconds holds the sum of some.
pub const TIME_S: RangeInclusive<f64> = 0.0..=1e9;
/// Seconds that a link may delay: 2^32 microseconds hold four times that.
pub const DELAY_S: RangeInclusive<f64> = 0.0..=1000.0;
/// Seconds from one packet of a train or probe to the next: a microsecond at least.
pub const EVERY_S: RangeInclusive<f64> = 1e-6..=1e9;
/// Bits per second: 10 Tbit/s.
pub const RATE_BPS: RangeInclusive<u64> = 1..=10_000_000_000_000;
/// Payload bytes of a flow or object: a petabyte.
pub const BYTES: RangeInclusive<u64> = 1..=1_000_000_000_000_000;
/// Bytes that an application writes at once.
pub const WRITE: RangeInclusive<u32> = 1..=1_000_000_000;
/// Writes or datagrams of one burst.
pub const BURST: RangeInclusive<u32> = 1..=10_000;
/// Payload bytes of a datagram in one IPv4 packet.
const DATAGRAM: RangeInclusive<u32> = 1..=65_507;
/// IP bytes of a probe: the headers of IPv4 and ICMP or UDP at least.
pub const PROBE: RangeInclusive<u32> = 28..=65_535;
/// The codepoints of a DSCP.
pub const DSCP: RangeInclusive<u8> = 0..=63;
/// The kernel's timer frequency, in hertz.
pub const HZ: RangeInclusive<u64> = 100..=1000;
/// Seconds from one sample to the next.
pub const SAMPLE_INTERVAL_S: RangeInclusive<f64> = 1e-4..=1e9;
/// Seconds of video: of a segment, and of a player's buffer.
pub const VIDEO_S: RangeInclusive<f64> = 1e-3..=1e6;
/// Nodes and links: routes are a table of nodes by nodes.
const MOST_NODES: usize = 2_048;
/// Flows and probes together, and changes: they are counted in 16 bits.
const MOST_TRAFFIC: usize = 65_535;
/// Stimuli: all of a flow are looked at after each of its ACKs.
const MOST_STIMULI: usize = 1_000;
/// Objects of all short flows together: each is a connection.
const MOST_OBJECTS: usize = 1_000_000;

/// Refuses `value` at `place` unless it is in `bounds`; no number is in any.
pub fn within<T: PartialOrd + Display + Copy>(
    place: &str,
    value: T,
    bounds: &RangeInclusive<T>,
) -> Result<(), Refused> {
    within_as(place, value, bounds, |value| value.to_string())
}

/// Refuses a time in seconds as `within`, and says it with its unit.
pub fn time(place: &str, seconds: f64, bounds: &RangeInclusive<f64>) -> Result<(), Refused> {
    within_as(place, seconds, bounds, |seconds| {
        let units = [("s", 1.0), ("ms", 1e3), ("us", 1e6)];
        let none = seconds.abs() <= 0.0;
        let whole = units.into_iter().find(|(_, per_s)| none || seconds.abs() * per_s >= 1.0);
        let (unit, per_s) = whole.unwrap_or(("ns", 1e9));
        match seconds.abs() {
            // Not hundreds of digits.
            1e15.. | ..1e-15 if !none => format!("{seconds:e}s"),
            // A millionth of the unit is shown, and no digits that only the conversion made.
            _ => format!("{}{unit}", (seconds * per_s * 1e6).round() / 1e6),
        }
    })
}

/// Refuses a rate in bits per second as `within`, and says it with its unit.
pub fn rate(place: &str, bps: u64, bounds: &RangeInclusive<u64>) -> Result<(), Refused> {
    within_as(place, bps, bounds, |bps| {
        let units = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1000)];
        let whole = units.into_iter().find(|(_, of_it)| bps > 0 && bps % of_it == 0);
        let (unit, of_it) = whole.unwrap_or(("bit", 1));
        format!("{}{unit}", bps / of_it)
    })
}

fn within_as<T: PartialOrd + Copy>(
    place: &str,
    value: T,
    bounds: &RangeInclusive<T>,
    shown: impl Fn(T) -> String,
) -> Result<(), Refused> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let [value, least, most] = [value, *bounds.start(), *bounds.end()].map(shown);
    Err(Refused(format!("{place}: {value} is not between {least} and {most}")))
}

fn at_most(place: &str, count: usize, most: usize) -> Result<(), Refused> {
    if count <= most { Ok(()) } else { Err(Refused(format!("{place}: {count} of them; at most {most}"))) }
}

/// Checks every number of `run` that has a meaning without the rest of the document.
///
/// # Errors
/// The first that is out of its bounds, with its place, its value and the bounds.
pub fn check(run: &Run) -> Result<(), Refused> {
    times(run)?;
    at_most("nodes", run.nodes.len(), MOST_NODES)?;
    at_most("links", run.links.len(), MOST_NODES)?;
    at_most("flows and probes", run.flows.len() + run.probes.len(), MOST_TRAFFIC)?;
    at_most("changes", run.changes.len(), MOST_TRAFFIC)?;
    for (i, node) in run.nodes.iter().enumerate() {
        let place = format!("nodes[{i}]");
        within(&format!("{place}.hz"), node.hz, &HZ)?;
        if let Some(stall) = node.stall {
            time(&format!("{place}.stall.length_s"), stall.length_s, &DELAY_S)?;
            time(&format!("{place}.stall.every_s"), stall.every_s, &EVERY_S)?;
            if stall.length_s >= stall.every_s {
                return Err(Refused(format!(
                    "{place}.stall: not shorter than its period; expected less than every_s"
                )));
            }
        }
        time(&format!("{place}.timer_slack_s"), node.timer_slack_s, &DELAY_S)?;
        time(&format!("{place}.receive_coalescing_s"), node.receive_coalescing_s, &DELAY_S)?;
    }
    for (i, each) in run.links.iter().enumerate() {
        link(each, &format!("links[{i}]"))?;
    }
    let mut objects = 0;
    for (i, each) in run.flows.iter().enumerate() {
        objects += flow(each, &format!("flows[{i}]"))?;
    }
    at_most("flows: objects of short flows", objects, MOST_OBJECTS)?;
    for (i, each) in run.probes.iter().enumerate() {
        probe(each, &format!("probes[{i}]"))?;
    }
    for (i, change) in run.changes.iter().enumerate() {
        let place = format!("changes[{i}]");
        time(&format!("{place}.at_s"), change.at_s, &TIME_S)?;
        action(&change.action, &place)?;
    }
    at_most("when", run.when.len(), MOST_STIMULI)?;
    for (i, each) in run.when.iter().enumerate() {
        each.check(&format!("when[{i}]"))?;
    }
    Ok(())
}

/// Checks what a change at `place` does.
pub(crate) fn action(action: &Action, place: &str) -> Result<(), Refused> {
    if let Action::Link { rate_bps, delay_s, loss, .. } = action {
        rate_if_any(&format!("{place}.action.rate_bps"), *rate_bps)?;
        time(&format!("{place}.action.delay_s"), delay_s.unwrap_or_default(), &DELAY_S)?;
        probability(&format!("{place}.action.loss"), loss.unwrap_or_default())?;
    }
    Ok(())
}

fn times(run: &Run) -> Result<(), Refused> {
    if run.duration_s.is_nan() || run.duration_s <= 0.0 {
        return Err(Refused(format!("duration_s: {} is not a time above 0", run.duration_s)));
    }
    time("duration_s", run.duration_s, &TIME_S)?;
    time("sample_interval_s", run.sample_interval_s, &SAMPLE_INTERVAL_S)?;
    let [from, to] = run.window_s;
    if from.is_nan() || to.is_nan() || from >= to {
        return Err(Refused(format!("window_s: [{from:?}, {to:?}] is empty")));
    }
    time("window_s[0]", from, &TIME_S)?;
    time("window_s[1]", to, &TIME_S)
}

fn rate_if_any(place: &str, rate_bps: Option<u64>) -> Result<(), Refused> {
    rate_bps.map_or(Ok(()), |bps| rate(place, bps, &RATE_BPS))
}

fn probability(place: &str, loss: f64) -> Result<(), Refused> {
    if (0.0..=1.0).contains(&loss) {
        return Ok(());
    }
    Err(Refused(format!("{place}: {loss} is not a probability from 0 to 1")))
}

fn link(link: &Link, place: &str) -> Result<(), Refused> {
    rate_if_any(&format!("{place}.rate_bps"), link.rate_bps)?;
    time(&format!("{place}.delay_s"), link.delay_s, &DELAY_S)?;
    within(&format!("{place}.mtu"), link.mtu, &MTU)?;
    if link.ends[0] == link.ends[1] {
        return Err(Refused(format!("{place}.ends: '{}' twice; expected two nodes", link.ends[0])));
    }
    if let Loss::Sent(by) = &link.loss
        && let Some(end) = by.keys().find(|&end| !link.ends.contains(end))
    {
        return Err(Refused(format!("{place}.loss: '{end}' is not an end of the link")));
    }
    link.ends.iter().try_for_each(|end| probability(&format!("{place}.loss"), link.loss.of(end)))
}

/// Checks a flow; how many connections it has an object for each.
fn flow(flow: &Flow, place: &str) -> Result<usize, Refused> {
    within(&format!("{place}.dscp"), flow.dscp, &DSCP)?;
    time(&format!("{place}.start_s"), flow.start_s, &TIME_S)?;
    time(&format!("{place}.stop_s"), flow.stop_s, &TIME_S)?;
    rate_if_any(&format!("{place}.max_pacing_rate_bps"), flow.max_pacing_rate_bps)?;
    source(&flow.source, &flow.transport, &format!("{place}.source"))
}

/// Checks a source at `place`; how many connections it has an object for each.
pub(crate) fn source(source: &Source, transport: &str, place: &str) -> Result<usize, Refused> {
    let at = |key: &str| format!("{place}.{key}");
    let written = if transport == "udp" { DATAGRAM } else { WRITE };
    match source {
        Source::Bulk => {}
        Source::Bytes { bytes } => within(&at("bytes"), *bytes, &BYTES)?,
        Source::Rate { rate_bps, size } => {
            rate(&at("rate_bps"), *rate_bps, &RATE_BPS)?;
            within(&at("size"), *size, &written)?;
        }
        Source::Periodic { size, count, every_s } => {
            within(&at("size"), *size, &written)?;
            within(&at("count"), *count, &BURST)?;
            time(&at("every_s"), *every_s, &EVERY_S)?;
        }
        Source::Short { objects } => {
            for (n, (after_s, bytes)) in objects.iter().enumerate() {
                time(&at(&format!("objects[{n}][0]")), *after_s, &TIME_S)?;
                within(&at(&format!("objects[{n}][1]")), *bytes, &BYTES)?;
            }
            return Ok(objects.len());
        }
        Source::Video { rates_bps, segment_s, buffer_s } => {
            for (n, each) in rates_bps.iter().enumerate() {
                rate(&at(&format!("rates_bps[{n}]")), *each, &RATE_BPS)?;
            }
            time(&at("segment_s"), *segment_s, &VIDEO_S)?;
            time(&at("buffer_s"), *buffer_s, &VIDEO_S)?;
        }
    }
    Ok(0)
}

fn probe(probe: &Probe, place: &str) -> Result<(), Refused> {
    within(&format!("{place}.dscp"), probe.dscp, &DSCP)?;
    within(&format!("{place}.size"), probe.size, &PROBE)?;
    time(&format!("{place}.every_s"), probe.every_s, &EVERY_S)?;
    time(&format!("{place}.start_s"), probe.start_s, &TIME_S)?;
    time(&format!("{place}.stop_s"), probe.stop_s, &TIME_S)
}
