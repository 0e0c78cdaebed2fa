//! `prio`: bands in strict priority, each with a queue of its own.
//!
//! Source: Linux 7.3 `net/sched/sch_prio.c`; iproute2 `tc/q_prio.c`.
//!
//! Parameters: `bands N` (3; 2 to 16), `priomap P0 … P15`, the band of each priority ([`super::pfifo_fast`]). Band
//! n is the class `n + 1` of the document, with no words of its own, filters (the first that matches decides, else
//! the priomap) and a child (pfifo of txqueuelen).
//!
//! Departures: `change` with fewer bands is refused: the packets of what goes away would be lost.
//!
//! Validation: order, filters, children (tests below); conservation (`tests/conservation.rs`).

use super::pfifo_fast::{PRIOMAP, priority, show_bands};
use super::{Env, Hints, Properties, Qdisc, Queue, Statistics, Tally, Tree};
use crate::base::units::Time;
use crate::packet::Packet;
use crate::packet::matching::{CompiledMatch, compile_filters};
use bakeoff_document::run;
use bakeoff_document::tc::{TcError, Words, parse_minor};

/// Strict priority among bands.
pub struct Prio {
    map: Map,
    bands: Vec<Band>,
    filters: Vec<(CompiledMatch, usize)>,
    bridge: bool,
}

struct Band {
    id: String,
    queue: Queue,
}

#[derive(Clone)]
struct Map {
    bands: usize,
    priomap: [u8; 16],
}

impl Map {
    fn take_all(&mut self, words: &mut Words) -> Result<(), TcError> {
        while let Some(word) = words.next_word() {
            match word {
                "bands" => {
                    self.bands = words.decimal()? as usize;
                    if !(2..=16).contains(&self.bands) {
                        return Err(words.bad("bands", &self.bands.to_string(), "a number from 2 to 16"));
                    }
                }
                "priomap" => {
                    let mut at = 0;
                    while at < 16 && words.next_is_number() {
                        let text = words.next_word().unwrap_or_default();
                        self.priomap[at] =
                            text.parse().map_err(|_| words.bad("priomap", text, "the number of a band"))?;
                        at += 1;
                    }
                }
                _ => return Err(words.unknown(word, &["bands", "priomap"])),
            }
        }
        match self.priomap.iter().find(|band| usize::from(**band) >= self.bands) {
            Some(band) => Err(words.refuse(&format!("priomap: no band {band} of {}", self.bands))),
            None => Ok(()),
        }
    }
}

impl Prio {
    /// `prio [bands N] [priomap P…]` with the classes of its bands.
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let classes = words.classes();
        let mut map = Map { bands: 3, priomap: PRIOMAP };
        map.take_all(words)?;
        let mut bands = Vec::with_capacity(map.bands);
        let number = |class: &run::Class| {
            parse_minor(&class.id).map(|minor| minor as usize).filter(|minor| (1..=map.bands).contains(minor))
        };
        for class in classes {
            if number(class).is_none() {
                let reason = format!("class {}: expected a band from 1 to {:x}", class.id, map.bands);
                return Err(words.refuse(&reason));
            }
            if !class.class.trim().is_empty() || class.parent.is_some() {
                return Err(words.refuse(&format!("class {}: a band has neither words nor parent", class.id)));
            }
        }
        for band in 1..=map.bands {
            let mut given = classes.iter().filter(|class| number(class) == Some(band));
            let spec = given.next();
            if given.next().is_some() {
                return Err(words.refuse(&format!("class {band:x}: duplicate")));
            }
            let id = spec.map_or_else(|| format!("{band:x}"), |class| class.id.clone());
            let env = env.child(&id);
            let pfifo = run::Qdisc::leaf("pfifo");
            let child = spec.and_then(|class| class.child.as_deref()).unwrap_or(&pfifo);
            let queue = Queue::build(child, &env).map_err(|error| error.within(&format!("class {id}")))?;
            bands.push(Band { id, queue });
        }
        let filters = compile_filters(classes, &env.flow_names, &|minor| Some(minor as usize - 1))
            .map_err(|message| words.refuse(&message))?;
        Ok(Prio { map, bands, filters, bridge: env.bridge })
    }

    /// Source: Linux 7.3 `prio_classify`.
    fn classify(&self, packet: &Packet) -> usize {
        let mut matching = self.filters.iter().filter(|(m, _)| m.matches(packet));
        matching
            .next()
            .map_or_else(|| usize::from(self.map.priomap[priority(packet, self.bridge)]), |(_, band)| *band)
    }
}

impl Qdisc for Prio {
    const PROPERTIES: Properties = Properties { measured: false, ..Properties::DEFAULT };

    fn enqueue(&mut self, packet: Packet, now: Time, _tally: &mut Tally) {
        let band = self.classify(&packet);
        self.bands[band].queue.enqueue(packet, now);
    }

    /// The first band that has a packet. Source: Linux 7.3 `prio_dequeue`.
    fn dequeue(&mut self, now: Time, _tally: &mut Tally) -> Option<Packet> {
        self.bands.iter_mut().find_map(|band| band.queue.dequeue(now))
    }

    fn next_event(&self) -> Option<Time> {
        let waiting = self.bands.iter().filter(|band| band.queue.qlen() > 0);
        waiting.map(|band| band.queue.next_event().unwrap_or(Time::ZERO)).min()
    }

    fn qlen(&self) -> usize {
        self.bands.iter().map(|band| band.queue.qlen()).sum()
    }

    fn backlog(&self) -> u64 {
        self.bands.iter().map(|band| band.queue.backlog()).sum()
    }

    /// As tc: bands and priomap go back to their defaults if the line does not have them.
    fn change(&mut self, words: &mut Words, _now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        let mut map = Map { bands: 3, priomap: PRIOMAP };
        map.take_all(words)?;
        if map.bands != self.map.bands {
            return Err(words.refuse("the number of bands cannot change in place"));
        }
        self.map = map;
        Ok(())
    }

    fn hints(&self) -> Hints {
        Hints { eager: self.bands.iter().any(|band| band.queue.is_eager()), ..Hints::default() }
    }

    fn tree(&self) -> Option<&dyn Tree> {
        Some(self)
    }

    fn tree_mut(&mut self) -> Option<&mut dyn Tree> {
        Some(self)
    }
}

impl Statistics for Prio {
    fn show(&self) -> String {
        format!("prio {}", show_bands(self.map.bands, &self.map.priomap))
    }
}

impl Tree for Prio {
    fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&str, &'a Queue)) {
        for band in &self.bands {
            visit(&band.id, &band.queue);
        }
    }

    fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&str, &mut Queue)) {
        for band in &mut self.bands {
            visit(&band.id, &mut band.queue);
        }
    }

    fn show_classes(&self) -> Vec<String> {
        (1..=self.bands.len()).map(|band| format!("class prio 1:{band:x} parent 1:")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(id: &str, child: &str, dscp: Option<u8>) -> run::Class {
        run::Class {
            id: id.into(),
            parent: None,
            class: String::new(),
            filters: dscp
                .map(|d| run::Match { dscp: Some(d), ..run::Match::default() })
                .into_iter()
                .collect(),
            child: (!child.is_empty()).then(|| Box::new(run::Qdisc::leaf(child))),
        }
    }

    fn build(line: &str, classes: Vec<run::Class>) -> Result<Queue, TcError> {
        Queue::build(&run::Qdisc { qdisc: line.into(), classes, child: None }, &Env::default())
    }

    fn frame(dscp: u8) -> Packet {
        Packet { len: 1000, dscp, ..Packet::default() }
    }

    #[test]
    fn a_filter_beats_the_priomap_and_bands_are_strict() {
        let mut q =
            build("prio", vec![class("3", "", Some(4)), class("1", "pfifo limit 1", Some(63))]).unwrap();
        // 4 is interactive, band 0 by the priomap; its filter says band 2
        for dscp in [4, 0, 63, 63] {
            q.enqueue(frame(dscp), Time::ZERO);
        }
        let out: Vec<u8> = std::iter::from_fn(|| q.dequeue(Time::ZERO)).map(|p| p.dscp).collect();
        assert_eq!(out, [63, 0, 4]);
        let mut dropped = 0;
        q.for_each(&mut |handle, queue| {
            if handle == "1" {
                dropped = queue.tally.dropped();
            }
        });
        assert_eq!(dropped, 1);
    }

    #[test]
    fn a_band_that_waits_lets_the_next_one_go() {
        let mut q = build("prio", vec![class("1", "netem delay 5ms", Some(63))]).unwrap();
        q.enqueue(frame(63), Time::ZERO);
        assert_eq!(q.next_event(), Some(Time::from_ms(5)));
        q.enqueue(frame(0), Time::ZERO);
        assert!(q.is_open(Time::ZERO));
        assert_eq!(q.dequeue(Time::ZERO).map(|p| p.dscp), Some(0));
        assert_eq!(q.dequeue(Time::from_ms(5)).map(|p| p.dscp), Some(63));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |line: &str, classes| build(line, classes).map(|q| q.show()).unwrap_err().to_string();
        assert!(error("prio bands 2", vec![]).starts_with("priomap: no band 2 of 2"));
        assert!(error("prio bands 17", vec![]).starts_with("bands: '17' is not a number from 2 to 16"));
        assert!(
            error("prio", vec![class("4", "", None)]).starts_with("class 4: expected a band from 1 to 3")
        );
        let q = build("prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1", vec![]).unwrap();
        assert_eq!(q.show(), "prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1");
    }
}
