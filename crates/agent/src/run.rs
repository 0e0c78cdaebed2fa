//! One run: everything that the kernel may refuse is made first ([`Roles`]), then one thread per role does its work while this one keeps the
//! sampling clock and is the only writer of the output.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use nix::sys::prctl::set_timerslack;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::utsname::uname;
use serde_json::{Map, Value, json};

use crate::clock::{self, SECOND};
use crate::command::Spec;
use crate::error::{Error, at};
use crate::net;
use crate::output::{Kind, Output};
use crate::plan::{self, Clock, Plan};
use crate::probe::Sample;
use crate::program::Running;
use crate::progress::Progress;
use crate::roles::Roles;
use crate::sample::{self, Sampler};
use crate::summary;

/// The least from the last role's being ready to t = 0, if the plan gives no epoch; in ns. The clock has a multiple of it at
/// t = 0, so that the kernel's ticks and milliseconds begin there too.
const LEAD: i64 = SECOND / 10;

/// What the threads of the roles tell this one.
enum Message {
    /// Of the probe with this index.
    Sample(usize, Sample),
    /// A probe has got its last answer, or given up.
    ProbeDone,
    /// A change was made; its line of the summary.
    Changed(Value),
    /// A program that the run waits for has ended.
    ProgramDone,
    /// The run has failed.
    Failed(Error),
    /// SIGTERM or SIGINT.
    Terminated,
}

/// Makes a run. What was measured is in the output file whatever happens; an error too.
pub fn run(plan: &Plan) -> Result<(), Error> {
    let mut output = Output::create(&plan.output)?;
    let mut summary = Map::new();
    let ended = conduct(plan, &mut output, &mut summary);
    summary.insert("format".into(), json!(plan::FORMAT));
    summary.insert("complete".into(), json!(matches!(ended, Ok(true))));
    summary
        .insert("error".into(), ended.as_ref().err().map_or(Value::Null, |error| json!(error.to_string())));
    summary.insert("duration_s".into(), json!(plan.duration_s));
    output.finish(&Value::Object(summary))?;
    ended.map(drop)
}

/// Returns whether the run went to its end.
fn conduct(plan: &Plan, output: &mut Output, summary: &mut Map<String, Value>) -> Result<bool, Error> {
    // The kernel may not be late on purpose; threads inherit it.
    set_timerslack(1).map_err(at("prctl PR_SET_TIMERSLACK"))?;
    let (tell, told) = mpsc::channel();
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    signals.thread_block().map_err(at("signal mask"))?;
    spawn(&tell, "signals", {
        let tell = tell.clone();
        move || {
            signals.wait().map_err(at("sigwait"))?;
            let _ = tell.send(Message::Terminated); // fails only when the run is over
            Ok(())
        }
    })?;

    let kernel = uname().map_err(at("uname"))?;
    let (name, release) = (kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy());
    summary
        .insert("kernel".into(), json!(format!("{name} {release} {}", kernel.version().to_string_lossy())));
    let major = release.split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);

    let progress = Progress::begin(plan.progress.as_ref())?;
    let mut roles = Roles::prepare(plan, major, &progress)?;
    let epoch = epoch(plan).and_then(|epoch| progress.epoch(epoch).map(|()| epoch)).inspect_err(|_| {
        let _ = roles.stop_programs(); // the error of the epoch is the one to tell
    })?;
    summary.insert("epoch_monotonic_ns".into(), json!(epoch));
    summary.insert("epoch_realtime_ns".into(), json!(epoch + clock::realtime_offset()));
    let mut run = Run {
        plan,
        epoch,
        duration: clock::ns(plan.duration_s),
        interval: clock::ns(plan.sample_interval_s).max(1),
        sampler: Sampler::new(&roles, major),
        changes: Vec::new(),
        programs_left: roles.programs.iter().filter(|program| program.is_awaited()).count(),
        probes_left: roles.probes.len(),
    };
    let ended = run.start(&roles, &tell).and_then(|()| run.keep_time(&mut roles, &told, output));
    let ended = match (ended, roles.stop_programs()) {
        (Ok(_), Err(error)) => Err(error),
        (ended, _) => ended,
    };
    for source in &roles.tcp_sources {
        source.stop();
    }
    for source in &roles.short_sources {
        source.stop();
    }
    if ended.is_ok() {
        sample::happenings(&roles, clock::monotonic() - epoch, run.duration, output)?;
        // The counters of the whole run, with the packets that arrived after the last sample.
        run.sampler.read_queues(&mut roles)?;
    }
    summary.extend(summary::counters(&roles, &run.sampler, epoch));
    summary.insert("changes".into(), Value::Array(run.changes));
    if !plan.programs.is_empty() {
        let lines = roles.programs.iter().filter_map(|program| program.summary(epoch));
        summary.insert("programs".into(), Value::Array(lines.collect()));
    }
    for source in &roles.tcp_sources {
        // Nothing is left for the kernel to send on behalf of a run that is over.
        net::abort_on_close(&source.socket)
            .map_err(at(format!("tcp-source '{}': SO_LINGER", source.plan.name)))?;
    }
    ended
}

/// t = 0 in ns of CLOCK_MONOTONIC.
fn epoch(plan: &Plan) -> Result<i64, Error> {
    let now = clock::monotonic();
    let epoch = match plan.epoch {
        None => return Ok((now + 2 * LEAD - 1) / LEAD * LEAD),
        Some(plan::Epoch { clock: Clock::Monotonic, ns }) => ns,
        Some(plan::Epoch { clock: Clock::Realtime, ns }) => ns - clock::realtime_offset(),
    };
    if epoch < now {
        let late = clock::seconds(now - epoch);
        return Err(Error::Failed(format!("epoch: t = 0 was {late} s before the roles were ready")));
    }
    Ok(epoch)
}

/// Does `work` in a thread of its own; its error, or panic, ends the run.
fn spawn(
    tell: &Sender<Message>,
    name: &str,
    work: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    let tell = tell.clone();
    let place = name.to_owned();
    let body = move || {
        let ended = catch_unwind(AssertUnwindSafe(work));
        if let Err(error) = ended.unwrap_or_else(|_| Err(Error::Failed(format!("thread '{place}' panicked"))))
        {
            let _ = tell.send(Message::Failed(error)); // fails only when the run is over
        }
    };
    thread::Builder::new().name(name.into()).spawn(body).map(drop).map_err(at(format!("thread '{name}'")))
}

/// A run in progress. Times in ns, from the epoch unless they are called instants.
struct Run<'a> {
    plan: &'a Plan,
    /// Instant of t = 0.
    epoch: i64,
    duration: i64,
    interval: i64,
    sampler: Sampler,
    changes: Vec<Value>,
    programs_left: usize,
    probes_left: usize,
}

impl Run<'_> {
    /// Starts the threads: who answers before who asks.
    fn start(&self, roles: &Roles, tell: &Sender<Message>) -> Result<(), Error> {
        let (epoch, duration) = (self.epoch, self.duration);
        for sink in &roles.tcp_sinks {
            let sink = Arc::clone(sink);
            spawn(tell, "tcp-sink", move || sink.run(epoch + duration))?;
        }
        for sink in &roles.udp_sinks {
            let sink = Arc::clone(sink);
            spawn(tell, "udp-sink", move || sink.run(epoch, epoch + duration))?;
        }
        for reflector in &roles.reflectors {
            let reflector = Arc::clone(reflector);
            spawn(tell, "udp-reflector", move || reflector.run())?;
        }
        for (i, probe) in roles.probes.iter().enumerate() {
            let probe = Arc::clone(probe);
            let drain = clock::ns(self.plan.drain_s);
            let to = tell.clone();
            spawn(tell, "probe", move || {
                probe.run(epoch, duration, drain, |sample| {
                    let _ = to.send(Message::Sample(i, sample)); // fails only when the run is over
                })?;
                let _ = to.send(Message::ProbeDone); // fails only when the run is over
                Ok(())
            })?;
        }
        for source in &roles.udp_sources {
            let source = Arc::clone(source);
            spawn(tell, "udp-source", move || {
                source.run(epoch);
                Ok(())
            })?;
        }
        for source in &roles.tcp_sources {
            let source = Arc::clone(source);
            spawn(tell, "tcp-source", move || source.run(epoch))?;
        }
        let failed = |to: &Sender<Message>| {
            let to = to.clone();
            move |error| {
                let _ = to.send(Message::Failed(error)); // fails only when the run is over
            }
        };
        for sink in &roles.short_sinks {
            let (sink, failed) = (Arc::clone(sink), failed(tell));
            spawn(tell, "tcp-sink", move || sink.run(epoch + duration, failed))?;
        }
        for source in &roles.short_sources {
            let (source, failed) = (Arc::clone(source), failed(tell));
            spawn(tell, "tcp-source", move || source.run(epoch, failed))?;
        }
        for program in &roles.programs {
            let program = Arc::clone(program);
            let to = tell.clone();
            spawn(tell, "program", move || {
                if program.run(epoch)? {
                    let _ = to.send(Message::ProgramDone); // fails only when the run is over
                }
                Ok(())
            })?;
        }
        if !self.plan.changes.is_empty() {
            let mut changes = self.plan.changes.clone();
            changes.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
            let to = tell.clone();
            spawn(tell, "changes", move || {
                for change in changes {
                    let _ = to.send(Message::Changed(make(&change, epoch)?)); // fails only when the run is over
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Samples, stops sources, writes what the threads tell, until all is over. Returns whether it came to that.
    fn keep_time(
        &mut self,
        roles: &mut Roles,
        told: &Receiver<Message>,
        output: &mut Output,
    ) -> Result<bool, Error> {
        let mut stops: Vec<(i64, usize)> =
            roles.tcp_sources.iter().map(|source| clock::ns(source.plan.stop_s)).zip(0..).collect();
        stops.sort_unstable();
        let mut stops = stops.into_iter().peekable();
        let give_up = self.duration + clock::ns(self.plan.drain_s);
        let mut tick = 0;
        let mut flush = SECOND;
        loop {
            let now = clock::monotonic() - self.epoch;
            if tick <= self.duration && now >= tick {
                self.sampler.tick(roles, now, output)?;
                // A tick that was missed stays so.
                tick = (now / self.interval + 1) * self.interval;
            }
            if now >= flush {
                output.flush()?;
                flush = now + SECOND;
            }
            while let Some((_, source)) = stops.next_if(|&(at, _)| now >= at) {
                roles.tcp_sources[source].stop();
            }
            let changes_left = self.plan.changes.len() - self.changes.len();
            if now >= self.duration
                && tick > self.duration
                && changes_left == 0
                && self.programs_left == 0
                && (self.probes_left == 0 || now >= give_up + SECOND)
            {
                return Ok(true);
            }
            if now >= give_up + SECOND {
                return Err(late(roles, changes_left, clock::seconds(now - self.duration)));
            }
            let next_stop = stops.peek().map_or(i64::MAX, |&(at, _)| at);
            let next_tick = if tick <= self.duration { tick } else { i64::MAX };
            let end = if now < self.duration { self.duration } else { give_up + SECOND };
            let wake = next_tick.min(next_stop).min(end);
            match told.recv_timeout(Duration::from_nanos((wake - now).max(0) as u64)) {
                Ok(Message::Sample(probe, sample)) => {
                    self.probe_rows(&roles.probes[probe].name, sample, output)?;
                }
                Ok(Message::ProbeDone) => self.probes_left -= 1,
                Ok(Message::Changed(line)) => self.changes.push(line),
                Ok(Message::ProgramDone) => self.programs_left -= 1,
                Ok(Message::Failed(error)) => return Err(error),
                Ok(Message::Terminated) => return Ok(false),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn probe_rows(&self, name: &str, sample: Sample, output: &mut Output) -> Result<(), Error> {
        let time = sample.sent - self.epoch;
        let mut row = |metric, value| output.row(time, Kind::Probe, name, metric, value);
        match sample.rtt {
            Some(rtt) => row("rtt", clock::seconds(rtt))?,
            None => row("lost", 1.0)?,
        }
        if let Some([out, back]) = sample.owd {
            row("owd_out", clock::seconds(out))?;
            row("owd_back", clock::seconds(back))?;
        }
        Ok(())
    }
}

/// What had not ended so many seconds after the run.
fn late(roles: &Roles, changes_left: usize, after_s: f64) -> Error {
    if changes_left > 0 {
        return Error::Failed(format!("changes: {changes_left} had not ended {after_s} s after the run"));
    }
    let late = |program: &&Arc<Running>| program.is_awaited() && !program.has_ended();
    let names: Vec<String> =
        roles.programs.iter().filter(late).map(|program| format!("'{}'", program.plan.name)).collect();
    Error::Failed(format!(
        "programs: {} had not ended {after_s} s after the run, and what still ran was ended",
        names.join(", ")
    ))
}

/// Makes a change in time and returns its line of the summary.
fn make(change: &plan::Change, epoch: i64) -> Result<Value, Error> {
    clock::sleep_until(epoch + clock::ns(change.at_s));
    let since_epoch = || clock::seconds(clock::monotonic() - epoch);
    let started = since_epoch();
    let node = change.node.as_deref().or(change.netns.as_deref()).unwrap_or("here");
    let spec = Spec { node, netns: change.netns.as_deref(), argv: &change.argv, stdin: None };
    let output = spec.run().map_err(at(format!("change at {} s", change.at_s)))?;
    Ok(
        json!({"at_s": change.at_s, "node": node, "argv": change.argv, "started_s": started, "ended_s": since_epoch(), "output": output}),
    )
}
