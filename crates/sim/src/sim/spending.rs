//! Whether the run is still within its budget, and what it spends most on if it is not.

use std::collections::TryReserveError;

use super::Sim;
use crate::base::budget::{BYTES, EVENTS};
use crate::base::error::Refused;
use crate::packet::Packet;
use crate::record::trace::Trace;

/// Events from one look at the budget to the next: so many that a look costs nothing.
pub(super) const EVERY: u64 = 1 << 16;

/// The most metrics that a trace has of an ACK.
const OF_AN_ACK: usize = 32;

impl Sim {
    /// Looks at the budget, and whether the caller wants the run to end.
    ///
    /// # Errors
    /// It is interrupted; or it is spent: on what, and what to change.
    #[cold]
    pub(super) fn check_budget(&mut self) -> Result<(), Refused> {
        if (self.interrupted)() {
            let (now, end) = (self.now.as_secs_f64(), self.run.duration_s);
            return Err(Refused(format!("interrupted at {now:.3} s of {end} s")));
        }
        let done = self.handled + self.burst;
        if done > self.budget.events {
            // Packets wait here only while one arrival leads to the next at the same instant.
            let endless = if self.arrivals.is_empty() { "" } else { ", on a path that takes no time" };
            return Err(self.spent(
                &format!("{done} events are handled, and its budget is {}", self.budget.events),
                &format!("{}{endless}", self.busiest()),
                EVENTS,
            ));
        }
        let mut bytes = 0;
        self.for_each_kept(&mut |part, _| bytes += part);
        if bytes > self.budget.bytes {
            let (mut most, mut told) = (0, String::new());
            self.for_each_kept(&mut |part, what| {
                if part >= most {
                    (most, told) = (part, format!("{part} bytes are {}", what()));
                }
            });
            return Err(self.spent(
                &format!("it keeps {bytes} bytes, and its budget is {}", self.budget.bytes),
                &told,
                BYTES,
            ));
        }
        self.reserve().map_err(|error| self.no_memory(&error))?;
        self.look_at = self.handled + EVERY.min(self.budget.events - done + 1);
        Ok(())
    }

    /// Room for what is recorded until the next look: a sample of everything, and what as many events give.
    fn reserve(&mut self) -> Result<(), TryReserveError> {
        self.recorder.reserve(EVERY as usize)?;
        let trace = self.observer.as_mut().and_then(|observer| observer.trace.as_mut());
        trace.map_or(Ok(()), |trace| trace.reserve(OF_AN_ACK * EVERY as usize))
    }

    /// What a run ends with that the system gives no more memory.
    pub(crate) fn no_memory(&self, error: &TryReserveError) -> Refused {
        let (now, end) = (self.now.as_secs_f64(), self.run.duration_s);
        let bytes = self.recorder.bytes() + self.trace().map_or(0, Trace::bytes);
        Refused(format!(
            "the run is ended at {now:.3} s of {end} s: the system gives no more memory ({error}), and {bytes} bytes are samples; change sample_interval_s, trace or duration_s"
        ))
    }

    fn spent(&self, what: &str, most: &str, variable: &str) -> Refused {
        let (now, end) = (self.now.as_secs_f64(), self.run.duration_s);
        Refused(format!(
            "the run is ended at {now:.3} s of {end} s: {what}; {most}; change that or duration_s, or set the environment variable {variable} higher"
        ))
    }

    /// What sent most.
    fn busiest(&self) -> String {
        let flows = self.flows.iter().enumerate();
        let flows =
            flows.map(|(i, flow)| (flow.sent_packets(), format!("flows[{i}] ('{}')", flow.spec.name)));
        let probes = self.probes.iter().enumerate();
        let probes =
            probes.map(|(i, probe)| (probe.sent(), format!("probes[{i}].every_s ('{}')", probe.spec.name)));
        match flows.chain(probes).max_by_key(|(packets, _)| *packets) {
            Some((packets, place)) => format!("most is for {place}, which sent {packets} packets"),
            None => "it has no traffic".into(),
        }
    }

    /// Visits what takes memory as the run goes on: how many bytes, and, if that is asked for, what it is.
    fn for_each_kept(&self, visit: &mut dyn FnMut(u64, &dyn Fn() -> String)) {
        visit(self.recorder.bytes(), &|| "samples (sample_interval_s)".into());
        if let Some(observer) = &self.observer {
            let held = observer.stimuli.kept().packets * size_of::<Packet>() as u64;
            visit(held, &|| "packets that stimuli hold (when)".into());
        }
        if let Some(trace) = self.trace() {
            visit(trace.bytes(), &|| "the trace of congestion controls (trace)".into());
        }
        for (i, probe) in self.probes.iter().enumerate() {
            visit(probe.bytes(), &|| format!("requests of probes[{i}] ('{}', every_s)", probe.spec.name));
        }
        for (i, flow) in self.flows.iter().enumerate() {
            visit(flow.bytes(), &|| format!("datagrams of flows[{i}] ('{}', source)", flow.spec.name));
        }
        for (i, interface) in self.interfaces.iter().enumerate() {
            let name = || self.graph.egress_name(i);
            let captured = interface.captures.iter().flatten().map(|capture| capture.bytes()).sum();
            visit(captured, &|| format!("the capture at {} (captures)", name()));
            let mut packets = interface.wire.in_flight.len() as u64;
            for queue in [&interface.egress, &interface.ingress].into_iter().flatten() {
                packets += queue.qlen() as u64;
            }
            packets += interface.card.as_ref().map_or(0, |card| card.waiting.len() as u64);
            packets += interface.shortcuts.delays.as_ref().map_or(0, |delays| delays.len() as u64);
            packets += interface.wire.medium.as_ref().map_or(0, |medium| medium.held().packets);
            let bytes = packets * size_of::<Packet>() as u64;
            visit(bytes, &|| format!("packets that wait at {} (the limits of its queues)", name()));
        }
    }
}
