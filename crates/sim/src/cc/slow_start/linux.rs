//! `hystart`: Linux's HyStart, for a control that has none.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_cubic.c` ([`crate::cc::hystart`]), whose least RTT is that of the connection (`cubictcp_acked`).
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `hystart` | | `on` or 1; `off` or 0: the control as it is |
//! | `hystart_detect`, `hystart_low_window`, `hystart_ack_delta_us` | 3, 16, 2000 | as of [`crate::cc::Cubic`] |
//!
//! Departures: RTTs right after a recovery count too; only CUBIC has an epoch to leave them out.

use super::Part;
use crate::cc::CcError;
use crate::cc::hystart::{HyStart, Kernel};
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// HyStart and the least RTT in microseconds.
pub(super) struct Linux {
    hystart: HyStart,
    delay_min: u64,
}

impl Linux {
    /// From the words after `hystart`; none if it is off.
    pub fn parse(words: &mut CcWords) -> Result<Option<Self>, CcError> {
        let on = words.switch()?;
        let mut hystart = HyStart::new(Kernel::V7_3);
        let known = ["hystart_detect", "hystart_low_window", "hystart_ack_delta_us"];
        while let Some(parameter) = words.parameter(&known)? {
            match parameter {
                "hystart_detect" => hystart.detect = words.number(0..=3)?,
                "hystart_low_window" => hystart.low_window = words.number(0..=u32::MAX)?,
                _ => hystart.ack_delta = words.number(0..=1_000_000)?.into(),
            }
        }
        Ok(on.then_some(Linux { hystart, delay_min: u64::MAX }))
    }
}

impl Part for Linux {
    fn init(&mut self, tp: &mut TcpSock) {
        self.hystart.restart(tp);
    }

    fn timeout(&mut self, tp: &mut TcpSock) {
        self.delay_min = u64::MAX;
        self.hystart.restart(tp);
    }

    fn on_sample(&mut self, tp: &mut TcpSock, rtt_us: u64) {
        let delay = self.hystart.delay(rtt_us);
        self.delay_min = self.delay_min.min(delay);
        self.hystart.on_sample(tp, delay, self.delay_min);
    }

    fn before(&mut self, _tp: &mut TcpSock, acked: u32) -> u32 {
        acked
    }
}
