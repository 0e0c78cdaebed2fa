//! What `reno-sce` and `dctcp-sce` share: a window that bytes are earned for and taken from.
//!
//! Source: chromi/sce `net/ipv4/tcp_reno_sce.c` (its later form), `tcp_dctcp_sce.c` (09cf5620); docs/models/sce.md describes them.
//!
//! Departures: `in_ack_event` runs after the retransmit queue was cleaned, not before.
//!
//! Validation: the tests of [`super::reno_sce`] and [`super::dctcp_sce`]; `sce/module.rs` (the same integers as the kernel module `tcp_sce`).

#[cfg(test)]
mod module;

use std::cmp::Ordering;

use super::{CaEvent, CcError};
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// Least window in packets.
pub const MIN_CWND: u32 = 2;
/// `rcv_mss` of a socket that has received no data: `TCP_MSS_DEFAULT` bytes at most.
const RCV_MSS: u32 = 536;

/// What the words of all three modules may say.
pub const PARAMETERS: &[&str] = &["mss", "pacing"];

/// See [`PARAMETERS`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SceOptions {
    /// A segment is `rcv_mss`, not `mss_cache`.
    rcv_mss: bool,
    /// Whether to pace, whatever `tcp_sce_pacing` says.
    pacing: Option<bool>,
}

impl SceOptions {
    /// From the words after the name, of a module that has no other parameters.
    pub fn parsed(words: &mut CcWords) -> Result<Self, CcError> {
        let mut options = SceOptions::default();
        while let Some(parameter) = words.parameter(PARAMETERS)? {
            options.parse(parameter, words)?;
        }
        Ok(options)
    }

    /// The value of one of [`PARAMETERS`].
    pub fn parse(&mut self, parameter: &str, words: &mut CcWords) -> Result<(), CcError> {
        if parameter == "mss" {
            self.rcv_mss = words.one_of(&["mss_cache", "rcv_mss"])? == "rcv_mss";
            return Ok(());
        }
        self.pacing = match words.one_of(&["sysctl", "on", "off"])? {
            "sysctl" => None,
            word => Some(word == "on"),
        };
        Ok(())
    }

    /// Bytes that the module takes for a segment.
    pub fn mss(self, tp: &TcpSock) -> u32 {
        if self.rcv_mss { tp.mss.min(RCV_MSS) } else { tp.mss }
    }

    /// A connection begins.
    pub fn start_pacing(self, tp: &mut TcpSock) {
        if self.pacing.unwrap_or(tp.sce_pacing) {
            tp.request_pacing();
        }
    }
}

/// Bytes that an ACK acknowledges, as these modules count them.
#[derive(Clone, Debug, Default)]
pub struct AckedBytes {
    prior_una: u64,
}

impl AckedBytes {
    /// A connection begins.
    pub fn start(&mut self, tp: &TcpSock) {
        self.prior_una = tp.snd_una;
    }

    /// Of the ACK being handled: a duplicate that is no window update counts as a segment of `mss` bytes.
    pub fn take(&mut self, tp: &TcpSock, mss: u32) -> i64 {
        let bytes = tp.snd_una - self.prior_una;
        self.prior_una = tp.snd_una;
        if bytes == 0 && !tp.win_update { mss.into() } else { bytes.cast_signed() }
    }
}

/// Which tree the module is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tree {
    /// November 2019: a mark sets ssthresh to half of the window.
    Of2019,
    /// The later one: a mark never lowers ssthresh.
    #[default]
    Later,
}

/// When CE takes its part of the window: a quarter, or an eighth while SCE is recent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CePart {
    /// At the end of a reduction to ssthresh.
    #[default]
    AtTheEnd,
    /// As the round trip's bytes are acknowledged, and nothing else.
    ProRata,
}

/// State of the window.
#[derive(Clone, Debug, Default)]
pub struct SceWindow {
    tree: Tree,
    ce_part: CePart,
    options: SceOptions,
    /// The ACK being handled has ECE.
    ece: bool,
    acked: AckedBytes,
    /// Bytes earned towards the next packet, or owed if negative.
    cnt: i64,
    /// What the module takes for the window's square root: 1 at the start, and one nearer to it with each step.
    pub(super) root: u32,
    /// The window before reductions.
    loss_cwnd: u32,
    /// ACKs for which an SCE mark counts as recent.
    recent_sce: u32,
}

impl SceWindow {
    /// The window of a module of that tree that answers CE so.
    pub fn new(tree: Tree, ce_part: CePart, options: SceOptions) -> Self {
        SceWindow { tree, ce_part, options, root: 1, ..SceWindow::default() }
    }

    /// A connection begins.
    pub fn start(&mut self, tp: &mut TcpSock) {
        *self = SceWindow::new(self.tree, self.ce_part, self.options);
        self.acked.start(tp);
        self.options.start_pacing(tp);
    }

    /// An ACK; `cut` gives the bytes that one with ESCE takes, of those it acknowledges, the window and its root.
    pub fn on_ack(&mut self, tp: &mut TcpSock, ece: bool, cut: impl Fn(i64, u32, u32) -> i64) {
        let acked = self.acked.take(tp, self.options.mss(tp));
        self.ece = ece;
        if acked > 0 {
            if tp.esce && !ece {
                self.cnt -= cut(acked, tp.snd_cwnd, self.root);
                self.loss_cwnd = tp.snd_cwnd;
                tp.snd_ssthresh = match self.tree {
                    Tree::Of2019 => (self.loss_cwnd / 2).max(MIN_CWND),
                    Tree::Later => self.floor(tp),
                };
                self.recent_sce = tp.snd_cwnd + 1;
            } else if !tp.in_slow_start() && tp.cwnd_limited() {
                self.cnt += acked;
                self.loss_cwnd = self.loss_cwnd.max(tp.snd_cwnd);
            }
            self.step(tp);
        }
        self.recent_sce = self.recent_sce.saturating_sub(1);
    }

    /// Slow start; a `share`-th of what is left over counts as earned.
    pub fn slow_start(&mut self, tp: &mut TcpSock, acked: u32, share: i64) {
        if tp.in_slow_start() && tp.cwnd_limited() {
            let left = tp.slow_start(acked);
            self.cnt += i64::from(left) * i64::from(self.options.mss(tp)) / share;
        }
    }

    /// Where PRR takes the window: with [`CePart::ProRata`] what CE leaves, else never lower than it is, nor than half
    /// of the window before reductions.
    pub fn ssthresh(&self, tp: &TcpSock) -> u32 {
        if self.ece && self.ce_part == CePart::ProRata {
            self.after_ce(tp.snd_cwnd).max(MIN_CWND)
        } else {
            self.floor(tp)
        }
    }

    fn floor(&self, tp: &TcpSock) -> u32 {
        tp.snd_ssthresh.max(self.loss_cwnd / 2).max(MIN_CWND)
    }

    fn after_ce(&self, cwnd: u32) -> u32 {
        let part = if self.recent_sce > 0 { cwnd / 8 } else { cwnd / 4 };
        (cwnd - part.max(1).min(cwnd)).max(MIN_CWND.min(cwnd))
    }

    /// The end of a reduction takes CE's part, unless that is gone; it and an RTO set ssthresh to half.
    pub fn on_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        let cwnd = match event {
            CaEvent::CompleteCwr if self.ce_part == CePart::ProRata => tp.prior_cwnd,
            CaEvent::CompleteCwr | CaEvent::Loss => tp.snd_cwnd,
            CaEvent::TxStart | CaEvent::CwndRestart => return,
        };
        if event == CaEvent::CompleteCwr && self.ce_part == CePart::AtTheEnd {
            tp.snd_cwnd = self.after_ce(cwnd);
        }
        self.loss_cwnd = cwnd;
        tp.snd_ssthresh = (cwnd / 2).max(MIN_CWND);
        self.cnt = 0;
    }

    fn step(&mut self, tp: &mut TcpSock) {
        let mss = i64::from(self.options.mss(tp));
        let packet = |cwnd: u32| mss * i64::from(cwnd);
        while self.cnt <= -packet(tp.snd_cwnd) {
            self.cnt += packet(tp.snd_cwnd);
            if tp.snd_cwnd > MIN_CWND {
                tp.snd_cwnd -= 1;
                self.follow(tp.snd_cwnd);
            }
        }
        while self.cnt >= packet(tp.snd_cwnd) {
            self.cnt -= packet(tp.snd_cwnd);
            tp.snd_cwnd = tp.snd_cwnd.saturating_add(1).min(tp.snd_cwnd_clamp);
            self.follow(tp.snd_cwnd);
        }
    }

    /// The window took a step of its own. What slow start and reductions do to it the root learns from later steps only.
    fn follow(&mut self, cwnd: u32) {
        match self.root.cmp(&cwnd.isqrt()) {
            Ordering::Less => self.root += 1,
            Ordering::Equal => {}
            Ordering::Greater => self.root -= 1,
        }
    }

    /// For traces.
    pub fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("cnt", self.cnt as f64),
            ("loss_cwnd", self.loss_cwnd.into()),
            ("recent_sce", self.recent_sce.into()),
        ]
    }
}
