//! Set-associative hashing: which queue a flow gets, and which hosts it counts for.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c` (`cake_hash`).

use super::tin::{Host, QUEUES, Set, Tin};
use bakeoff_document::qdisc::cake::Isolation;

const WAYS: usize = 8;

/// What identifies a packet's flow and hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hashes {
    pub flow: u32,
    pub src: u32,
    pub dst: u32,
}

/// The eight places for a hash: its own first, then the others of its set.
fn places(hash: u32) -> impl Iterator<Item = usize> + Clone + use<> {
    let home = hash as usize % QUEUES;
    let set = home - home % WAYS;
    (0..WAYS).map(move |i| set + (home + i) % WAYS)
}

/// The place of a host: its own, else one without bulk flows, else its home.
fn find_host(hosts: &mut [Host], hash: u32) -> u16 {
    let mut places = places(hash);
    let home = hash as usize % QUEUES;
    let place = places
        .clone()
        .find(|&at| hosts[at].tag == hash)
        .or_else(|| places.find(|&at| hosts[at].bulk_flows == 0))
        .unwrap_or(home);
    hosts[place].tag = hash;
    place as u16
}

impl Tin {
    /// The queue for a packet, which from now on is that flow's. Source: Linux 7.3 `cake_hash`.
    pub(super) fn classify(&mut self, hashes: Hashes, isolation: Isolation) -> usize {
        if !(isolation.flows || isolation.src || isolation.dst) {
            return 0;
        }
        let home = hashes.flow as usize % QUEUES;
        let (queue, is_new) = self.find_queue(hashes.flow, home);
        self.flows[queue].tag = hashes.flow;
        if is_new {
            let is_bulk = self.flows[queue].set == Set::Bulk;
            if is_bulk {
                self.host_loses(queue, isolation);
            }
            if isolation.by_src() {
                self.flows[queue].src = find_host(&mut self.sources, hashes.src);
            }
            if isolation.by_dst() {
                self.flows[queue].dst = find_host(&mut self.destinations, hashes.dst);
            }
            if is_bulk {
                self.host_gains(queue, isolation);
            }
        }
        queue
    }

    /// A queue that holds the flow, else an idle one, else the home, shared with who is there; and whether
    /// its hosts must be looked up.
    fn find_queue(&mut self, hash: u32, home: usize) -> (usize, bool) {
        let mut places = places(hash);
        if let Some(at) = places.clone().find(|&at| self.flows[at].tag == hash) {
            let idle = self.flows[at].set == Set::None;
            self.stats.way_hits += u32::from(at != home);
            return (at, idle);
        }
        if let Some(at) = places.find(|&at| self.flows[at].set == Set::None) {
            self.stats.way_misses += 1;
            return (at, true);
        }
        self.stats.way_collisions += 1;
        (home, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIPLE: Isolation = Isolation { flows: true, src: true, dst: true };

    fn of(flow: u32) -> Hashes {
        Hashes { flow, src: 1, dst: 2 }
    }

    #[test]
    fn eight_flows_of_one_set_do_not_collide_and_the_ninth_shares_its_home() {
        let mut tin = Tin::new();
        // hashes with the same home, 3: places 3, 4, 5, 6, 7, 0, 1, 2
        for i in 0..9 {
            let queue = tin.classify(of(3 + 1024 * (i + 1)), TRIPLE);
            assert_eq!(queue, [3, 4, 5, 6, 7, 0, 1, 2, 3][i as usize]);
            tin.flows[queue].set = Set::Sparse;
        }
        assert_eq!((tin.stats.way_misses, tin.stats.way_collisions, tin.stats.way_hits), (8, 1, 0));
        // the second is found again, away from home
        assert_eq!(tin.classify(of(3 + 2048), TRIPLE), 4);
        assert_eq!(tin.stats.way_hits, 1);
    }

    #[test]
    fn hosts_are_looked_up_only_where_flows_share_by_them() {
        let mut tin = Tin::new();
        let dual = Isolation { flows: true, src: true, dst: false };
        let queue = tin.classify(Hashes { flow: 5, src: 77, dst: 99 }, dual);
        assert_eq!((tin.flows[queue].src, tin.flows[queue].dst), (77, 0));
        let flowblind = Isolation { flows: false, src: false, dst: false };
        assert_eq!(tin.classify(Hashes { flow: 5, src: 77, dst: 99 }, flowblind), 0);
    }

    #[test]
    fn a_bulk_queue_that_is_taken_over_counts_for_its_new_host() {
        let mut tin = Tin::new();
        for i in 0..8 {
            let queue = tin.classify(Hashes { flow: 1024 * (i + 1), src: 7, dst: 8 }, TRIPLE);
            tin.flows[queue].set = Set::Bulk;
            tin.host_gains(queue, TRIPLE);
        }
        assert_eq!((tin.sources[7].bulk_flows, tin.destinations[8].bulk_flows), (8, 8));
        tin.classify(Hashes { flow: 1024 * 9, src: 9, dst: 8 }, TRIPLE);
        assert_eq!((tin.sources[7].bulk_flows, tin.sources[9].bulk_flows), (7, 1));
        assert_eq!(tin.destinations[8].bulk_flows, 8);
    }
}
