//! Which timer runs, and when it fires: RTO, tail loss probe, in whole jiffies.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_set_xmit_timer`, `tcp_rearm_rto`), `tcp_output.c`
//! (`tcp_schedule_loss_probe`), `kernel/time/time.c` (`usecs_to_jiffies`).
//!
//! Departures: a timer that is set exactly on a tick fires a tick earlier than the kernel's wheel.
//!
//! Validation: the tests of `recovery.rs`, the kernel's packetdrill scripts.

use super::recovery::TIMEOUT_MIN_US;
use super::sender::{Sender, Timer};
use crate::base::units::Time;
use crate::cc::sock::CaState;

impl Sender {
    /// `tcp_set_xmit_timer`: a loss probe if one may be scheduled, else the RTO.
    pub(super) fn set_xmit_timer(&mut self) {
        if !self.schedule_loss_probe(true) {
            self.rearm_rto();
        }
    }

    /// `tcp_rearm_rto`.
    /// Source: RFC 6298, section 5, rule 5.3.
    pub(super) fn rearm_rto(&mut self) {
        if self.tp.packets_out == 0 {
            self.timer = None;
            return;
        }
        let rto = self.rtt.rto_us();
        let wait = match self.timer {
            // The probe's or RACK's wait counts against the timeout.
            Some((Timer::LossProbe | Timer::Reorder, ..)) => {
                let head = self.board.front().map_or(self.tp.now, |s| s.sent);
                (head + Time::from_us(rto) - self.tp.now).as_us().max(1)
            }
            _ => rto,
        };
        self.set_timer(Timer::Rto, wait);
    }

    /// Starts the timer for `us` microseconds.
    pub(super) fn set_timer(&mut self, timer: Timer, us: u64) {
        self.timer = Some((timer, self.tp.now, us));
    }

    /// When the timer fires, if it runs: it waits for whole jiffies (`usecs_to_jiffies` rounds up), and then for the tick
    /// that follows.
    pub(super) fn timer_at(&self) -> Option<Time> {
        let (_, set, us) = self.timer?;
        let hz = self.setup.hz;
        Some(set.tick(hz).plus(Time::from_us(us).tick(hz)))
    }

    /// `tcp_schedule_loss_probe`; `from_now` when the RTO would start now too. Source: RFC 8985, section 7.2.
    pub(super) fn schedule_loss_probe(&mut self, from_now: bool) -> bool {
        let tp = &self.tp;
        if self.tp.no_sack || tp.packets_out == 0 || !matches!(tp.ca_state, CaState::Open | CaState::Cwr) {
            return false;
        }
        let mut wait_us = tp.srtt_us >> 2;
        // A lone segment's ACK may be delayed by the peer.
        wait_us += if tp.packets_out == 1 { super::rtt::RTO_MIN_US } else { TIMEOUT_MIN_US };
        let rto_us = self.rtt.rto_us();
        let until_rto = if from_now {
            rto_us
        } else {
            let head = self.board.front().map_or(tp.now, |s| s.sent);
            (head.plus(Time::from_us(rto_us)) - tp.now).as_us()
        };
        if until_rto > 0 {
            wait_us = wait_us.min(until_rto);
        }
        self.set_timer(Timer::LossProbe, wait_us);
        true
    }
}
