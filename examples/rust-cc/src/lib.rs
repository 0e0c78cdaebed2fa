//! `scalable`: Scalable TCP, a congestion control outside of bakeoff's tree.
//!
//! Source: T. Kelly, "Scalable TCP: improving performance in highspeed wide area networks", 2003.
//!
//! Parameters: `ai`, packets acknowledged per packet of growth (100 unless given).
//!
//! Departures: below a window of `ai` it grows as Reno does.

use bakeoff_sim::Registry;
use bakeoff_sim::cc::sock::TcpSock;
use bakeoff_sim::cc::{CcError, CcWords, CongestionControl, Reno};

/// The state of one connection.
pub struct Scalable {
    /// Packets acknowledged per packet of growth.
    ai: u32,
}

impl Scalable {
    /// From the words after the name.
    ///
    /// # Errors
    /// An unknown parameter, or a value that is none.
    pub fn parse(words: &mut CcWords) -> Result<Self, CcError> {
        let mut scalable = Scalable { ai: 100 };
        while words.parameter(&["ai"])?.is_some() {
            scalable.ai = words.number(1..=1_000_000)?;
        }
        Ok(scalable)
    }
}

impl CongestionControl for Scalable {
    /// Seven eighths, at least 2.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        (tp.snd_cwnd - tp.snd_cwnd / 8).max(2)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if tp.in_slow_start() {
            Reno::grow(tp, acked);
        } else if tp.cwnd_limited() {
            tp.cong_avoid_ai(tp.snd_cwnd.min(self.ai), acked);
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("ai", self.ai.into())]
    }
}

/// Makes `scalable` known to runs.
pub fn register(registry: &mut Registry) {
    registry.register("scalable", |words, _env| Scalable::parse(words));
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUEL: &str = include_str!("../duel.json");

    #[test]
    fn an_eighth_less_and_a_hundredth_more() {
        let (mut cc, mut tp) = (Scalable { ai: 100 }, TcpSock::new(1448, 250));
        (tp.snd_cwnd, tp.snd_ssthresh, tp.is_cwnd_limited) = (400, 300, true);
        assert_eq!(cc.ssthresh(&mut tp), 350);
        cc.cong_avoid(&mut tp, 400);
        assert_eq!(tp.snd_cwnd, 404);
    }

    #[test]
    fn the_simulator_knows_it_by_name_and_refuses_what_it_does_not_know() {
        let mut registry = Registry::default();
        register(&mut registry);
        assert!(bakeoff_sim::check_with(DUEL, &registry).is_ok());
        // The simulator has a `scalable` of its own, without parameters; a registered name stands before it.
        let alone = bakeoff_sim::check(DUEL).unwrap_err().to_string();
        assert!(alone.starts_with("flows[0].cc: cc 'scalable ai 100': unknown parameter 'ai'"), "{alone}");
        let wrong =
            bakeoff_sim::check_with(&DUEL.replace("ai 100", "ai 0"), &registry).unwrap_err().to_string();
        assert_eq!(wrong, "flows[0].cc: cc 'scalable ai 0': ai: '0' is not a whole number from 1 to 1000000");
    }

    #[test]
    fn a_run_is_traced_and_repeats_itself() {
        let mut registry = Registry::default();
        register(&mut registry);
        let outcome = bakeoff_sim::simulate_with(DUEL, &registry).unwrap();
        let trace = outcome.trace.as_ref().unwrap();
        let ai = trace.names.iter().position(|n| &*n.name == "scalable" && n.metric == "cc.ai").unwrap();
        let rows: Vec<f64> = trace
            .series
            .iter()
            .zip(&trace.value)
            .filter(|(s, _)| **s as usize == ai)
            .map(|(_, v)| *v)
            .collect();
        assert!(rows.len() > 1000 && rows.iter().all(|v| *v == 100.0));
        assert_eq!(outcome.series, bakeoff_sim::simulate_with(DUEL, &registry).unwrap().series);
    }
}
