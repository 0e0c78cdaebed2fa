//! What is written down every sample interval.

use super::Sim;
use crate::record::series::FLOW_METRICS;

impl Sim {
    #[inline(never)]
    pub(super) fn sample(&mut self) {
        let interval = self.run.sample_interval_s;
        for (f, flow) in self.flows.iter_mut().enumerate() {
            let first = (f * FLOW_METRICS.len()) as u32;
            let received = flow.received();
            let mut push = |metric: u32, value: f64| self.recorder.push(self.now, first + metric, value);
            if flow.receiver.is_some() || flow.datagrams[0].0 > 0 || flow.short.is_some() {
                push(0, (received - flow.sampled_received) as f64 * 8.0 / interval);
                push(1, received as f64);
                flow.sampled_received = received;
            }
            let Some(sender) = &flow.sender else { continue };
            let info = sender.info();
            let sock = sender.sock();
            if let Some(rate) = info.delivery_rate_bps {
                push(2, rate);
            }
            push(3, info.srtt_s);
            push(4, f64::from(info.cwnd));
            if let Some(ssthresh) = info.ssthresh {
                push(5, f64::from(ssthresh));
            }
            if let Some(rate) = info.pacing_rate_bps {
                push(6, rate);
            }
            push(7, f64::from(info.in_flight));
            push(8, sock.delivered as f64);
            push(9, sock.delivered_ce as f64);
            push(10, sender.counters.retransmits as f64);
            push(11, sock.lost as f64);
        }
        for interface in &mut self.interfaces {
            let Some(queue) = &mut interface.egress else { continue };
            let mut series = interface.leaves.iter();
            let (recorder, now) = (&mut self.recorder, self.now);
            queue.for_each_mut(&mut |_, leaf| {
                let Some(sojourn) = &mut leaf.sojourn else { return };
                let interval = sojourn.take_interval();
                let Some(&first) = series.next() else { return };
                let mut push = |metric: u32, value: f64| recorder.push(now, first + metric, value);
                push(0, leaf.qlen() as f64);
                push(1, leaf.backlog() as f64);
                if let Some(mean) = interval.mean_s() {
                    push(2, mean);
                    push(3, interval.max_ns as f64 / 1e9);
                }
                push(4, leaf.tally.marks as f64);
                push(5, leaf.tally.dropped() as f64);
                push(6, leaf.tally.sent_bytes as f64);
            });
        }
    }
}
