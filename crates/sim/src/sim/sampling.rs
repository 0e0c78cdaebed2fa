//! What is written down every sample interval.

use super::Sim;
use crate::record::series::{FlowMetric, QueueMetric};

impl Sim {
    #[inline(never)]
    pub(super) fn sample(&mut self) {
        let interval = self.run.sample_interval_s;
        for (f, flow) in self.flows.iter_mut().enumerate() {
            let series = self.flow_series[f];
            let received = flow.received();
            let mut push = |metric, value: f64| self.recorder.push(self.now, series.of(metric), value);
            if flow.has_begun() {
                push(FlowMetric::Goodput, (received - flow.sampled_received) as f64 * 8.0 / interval);
                push(FlowMetric::Received, received as f64);
                flow.sampled_received = received;
            }
            let Some(sender) = flow.sender() else { continue };
            let info = sender.info();
            let sock = sender.sock();
            if let Some(rate) = info.delivery_rate_bps {
                push(FlowMetric::DeliveryRate, rate);
            }
            push(FlowMetric::Srtt, info.srtt_s);
            push(FlowMetric::Cwnd, f64::from(info.cwnd));
            if let Some(ssthresh) = info.ssthresh {
                push(FlowMetric::Ssthresh, f64::from(ssthresh));
            }
            if let Some(rate) = info.pacing_rate_bps {
                push(FlowMetric::PacingRate, rate);
            }
            push(FlowMetric::InFlight, f64::from(info.in_flight));
            push(FlowMetric::Delivered, sock.delivered as f64);
            push(FlowMetric::DeliveredCe, sock.delivered_ce as f64);
            push(FlowMetric::Retransmits, sender.counters.retransmits as f64);
            push(FlowMetric::Lost, sock.lost as f64);
        }
        let all_series = self.queue_series.iter().zip(&self.sce_series).zip(&self.part_series);
        for (interface, ((queues, marking), dual)) in self.interfaces.iter_mut().zip(all_series) {
            let Some(queue) = &mut interface.egress else { continue };
            let mut series = queues.iter().zip(marking).zip(dual);
            let (recorder, now) = (&mut self.recorder, self.now);
            queue.for_each_mut(&mut |_, leaf| {
                let Some(sojourn) = &mut leaf.sojourn else { return };
                let interval = sojourn.take_interval();
                let Some(((series, sce_marks), parts)) = series.next() else { return };
                let mut push = |metric, value: f64| recorder.push(now, series.of(metric), value);
                push(QueueMetric::Qlen, leaf.qlen() as f64);
                push(QueueMetric::Backlog, leaf.backlog() as f64);
                if let Some(mean) = interval.mean_s() {
                    push(QueueMetric::Sojourn, mean);
                    push(QueueMetric::SojournMax, interval.max_ns as f64 / 1e9);
                }
                push(QueueMetric::Marks, leaf.tally.marks as f64);
                push(QueueMetric::Drops, leaf.tally.dropped() as f64);
                push(QueueMetric::Sent, leaf.tally.sent_bytes as f64);
                if let Some(series) = *sce_marks {
                    recorder.push(now, series, leaf.tally.sce_marks as f64);
                }
                if !parts.is_empty() {
                    for (series, (_, left)) in parts.iter().zip(leaf.take_parts()) {
                        if let Some(mean) = left.mean_s() {
                            recorder.push(now, *series, mean);
                        }
                    }
                }
            });
        }
    }
}
