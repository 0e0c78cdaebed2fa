//! Whether the run is still within its budget, and what it spends most on if it is not.

use super::Sim;
use crate::base::budget::{BYTES, EVENTS};
use crate::base::error::Refused;
use crate::packet::Packet;

/// Events from one look at the budget to the next: so many that a look costs nothing.
const EVERY: u64 = 1 << 16;

impl Sim {
    /// Looks at the budget.
    ///
    /// # Errors
    /// It is spent: on what, and what to change.
    #[cold]
    pub(super) fn check_budget(&mut self) -> Result<(), Refused> {
        let done = self.handled + self.burst;
        if done > self.budget.events {
            return Err(self.spent(
                &format!("{done} events are handled, and its budget is {}", self.budget.events),
                &self.busiest(),
                EVENTS,
            ));
        }
        let parts = self.kept();
        let bytes: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
        if bytes > self.budget.bytes {
            let most = parts.into_iter().max_by_key(|(_, bytes)| *bytes);
            let most = most.map(|(what, bytes)| format!("{bytes} bytes are {what}"));
            return Err(self.spent(
                &format!("it keeps {bytes} bytes, and its budget is {}", self.budget.bytes),
                &most.unwrap_or_default(),
                BYTES,
            ));
        }
        self.look_at = self.handled + EVERY.min(self.budget.events - done + 1);
        Ok(())
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

    /// What takes memory as the run goes on, and how many bytes.
    fn kept(&self) -> Vec<(String, u64)> {
        let mut parts = vec![("samples (sample_interval_s)".to_owned(), self.recorder.bytes())];
        if let Some(trace) = &self.trace {
            parts.push(("the trace of congestion controls (trace)".into(), trace.bytes()));
        }
        for (i, probe) in self.probes.iter().enumerate() {
            parts.push((format!("requests of probes[{i}] ('{}', every_s)", probe.spec.name), probe.bytes()));
        }
        for (i, flow) in self.flows.iter().enumerate() {
            parts.push((format!("datagrams of flows[{i}] ('{}', source)", flow.spec.name), flow.bytes()));
        }
        for (i, interface) in self.interfaces.iter().enumerate() {
            let name = self.graph.egress_name(i);
            let captured = interface.captures.iter().flatten().map(|capture| capture.bytes()).sum();
            parts.push((format!("the capture at {name} (captures)"), captured));
            let mut packets = interface.wire.in_flight.len() as u64;
            for queue in [&interface.egress, &interface.ingress].into_iter().flatten() {
                packets += queue.qlen() as u64;
            }
            packets += interface.wire.medium.as_ref().map_or(0, |medium| medium.held().packets);
            let bytes = packets * size_of::<Packet>() as u64;
            parts.push((format!("packets that wait at {name} (the limits of its queues)"), bytes));
        }
        parts
    }
}
