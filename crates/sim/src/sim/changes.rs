//! The timed changes of a run: of links, classes and qdiscs.

use std::sync::Arc;

use super::Sim;
use crate::base::error::Refused;
use crate::base::rng::threshold;
use crate::base::units::{Rate, Time};
use crate::network::capturing;
use crate::network::queue::{env, queue};
use crate::qdisc::{Env, Queue};
use bakeoff_document::run::Action;

impl Sim {
    /// Applies the change number `index` of the run.
    ///
    /// # Errors
    /// What tc would refuse.
    pub(crate) fn change(&mut self, index: usize) -> Result<(), Refused> {
        let change = self.run.changes[index].clone();
        self.apply(&change.node, &change.peer, &change.action, &format!("changes[{index}]"))
    }

    /// Applies the change at `place` to the interface of `node` towards `peer`.
    ///
    /// # Errors
    /// What tc would refuse.
    pub(super) fn apply(
        &mut self,
        node: &str,
        peer: &str,
        action: &Action,
        place: &str,
    ) -> Result<(), Refused> {
        let i = self.graph.interface(node, peer, place)?;
        let now = self.now();
        match action {
            Action::Link { rate_bps, delay_s, loss, up } => {
                let wire = &mut self.interfaces[i].wire;
                wire.rate = rate_bps.map(Rate).or(wire.rate);
                wire.delay = delay_s.map_or(wire.delay, Time::from_secs_f64);
                wire.loss = loss.map_or(wire.loss, threshold);
                wire.up = up.unwrap_or(wire.up);
            }
            Action::ClassChange { side, id, class } => {
                let queue = self.side(i, side, place)?;
                queue.change_class(id, class).map_err(|e| Refused(format!("{place}: {e}")))?;
            }
            Action::QdiscChange { side, handle, qdisc } => {
                let queue = self.side(i, side, place)?;
                let mut result = Ok(());
                if !queue.at(handle, &mut |at| result = at.change(qdisc, now)) {
                    return Err(Refused(format!("{place}: no qdisc '{handle}'")));
                }
                result.map_err(|e| Refused(format!("{place}: {e}")))?;
            }
            Action::QdiscReplace { side, handle, qdisc } => {
                let traffic: Arc<[String]> = self
                    .flows
                    .iter()
                    .map(|f| f.spec.name.clone())
                    .chain(self.probes.iter().map(|p| p.spec.name.clone()))
                    .collect();
                let node = &self.run.nodes[usize::from(self.graph.node_of[i])];
                let name = format!(
                    "{}/{handle}@{}",
                    self.graph.egress_name(i),
                    place.trim_start_matches("changes[").trim_end_matches(']')
                );
                let made = env(
                    &self.run,
                    name,
                    node,
                    (self.interfaces[i].tx_queue_len, self.run.links[i / 2].mtu),
                    &traffic,
                    &self.charges,
                );
                let made = Env { replaced: Some(now), ..made };
                let mut other = queue(&self.run, qdisc, &made, place)?;
                let queue = self.side(i, side, place)?;
                if !queue.at(handle, &mut |at| std::mem::swap(at, &mut other)) {
                    return Err(Refused(format!("{place}: no qdisc '{handle}'")));
                }
                self.count_replaced(i, &other);
                capturing::number_queues(&self.graph, &mut self.interfaces);
            }
        }
        self.find_fast_paths_at(i);
        self.serve(i as u16);
        Ok(())
    }

    fn side(&mut self, i: usize, side: &str, place: &str) -> Result<&mut Queue, Refused> {
        let interface = &mut self.interfaces[i];
        let queue = if side == "egress" { &mut interface.egress } else { &mut interface.ingress };
        queue.as_mut().ok_or_else(|| Refused(format!("{place}: no {side} qdisc to change")))
    }
}
