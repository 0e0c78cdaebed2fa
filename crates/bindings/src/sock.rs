//! What a congestion control in Python sees of a connection: `sk` and `rs`, in Linux's names.

use bakeoff_sim::cc::RateSample;
use bakeoff_sim::cc::sock::{INFINITE_SSTHRESH, Pacing, TcpSock};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A connection. Windows are in packets, times in microseconds, rates in bytes per second.
#[pyclass(name = "TcpSock", module = "bakeoff._sim")]
pub struct Sock(pub TcpSock);

fn within(name: &str, value: u32, least: u32) -> PyResult<u32> {
    if (least..=INFINITE_SSTHRESH).contains(&value) {
        return Ok(value);
    }
    Err(PyValueError::new_err(format!("{name}: {value} is not between {least} and {INFINITE_SSTHRESH}")))
}

/// Properties that modules read (`read`), and those that they may write too, with the least value (`write`).
macro_rules! properties {
    (read { $($name:ident: $type:ty,)* } write { $($field:ident = $set:ident >= $least:literal,)* }) => {
        #[pymethods]
        impl Sock {
            $(#[getter] fn $name(&self) -> $type { self.0.$name })*
            $(
                #[getter] fn $field(&self) -> u32 { self.0.$field }
                #[setter] fn $set(&mut self, value: u32) -> PyResult<()> {
                    self.0.$field = within(stringify!($field), value, $least)?;
                    Ok(())
                }
            )*

            /// State of the congestion machine: `bakeoff.cc.CaState`.
            #[getter] fn ca_state(&self) -> u8 { self.0.ca_state as u8 }
            /// The time of the event being handled, in microseconds.
            #[getter] fn tcp_mstamp(&self) -> u64 { self.0.now.as_us() }
            /// When data was last sent, in microseconds.
            #[getter] fn lsndtime(&self) -> u64 { self.0.last_sent.as_us() }
            /// Payload bytes of a full segment.
            #[getter] fn mss_cache(&self) -> u32 { self.0.mss }
            /// Bytes per second; 2**64 - 1 means unlimited.
            #[getter] fn sk_pacing_rate(&self) -> u64 { self.0.pacing_rate }
            #[setter] fn set_sk_pacing_rate(&mut self, rate: u64) -> PyResult<()> {
                if rate == 0 {
                    return Err(PyValueError::new_err("sk_pacing_rate: 0; expected bytes per second above 0"));
                }
                self.0.pacing_rate = rate.min(self.0.max_pacing_rate);
                Ok(())
            }
            /// Bytes per second; 2**64 - 1 means unlimited.
            #[getter] fn sk_max_pacing_rate(&self) -> u64 { self.0.max_pacing_rate }
            /// Whether packets are paced at `sk_pacing_rate` (`SK_PACING_NEEDED`).
            #[getter] fn sk_pacing_needed(&self) -> bool { self.0.pacing == Pacing::Needed }
            #[setter] fn set_sk_pacing_needed(&mut self, needed: bool) {
                self.0.pacing = if needed { Pacing::Needed } else { Pacing::None };
            }

            /// The kernel's jiffies now.
            fn tcp_jiffies32(&self) -> u64 { self.0.jiffies() }
            /// Packets believed to be in the network.
            fn tcp_packets_in_flight(&self) -> u32 { self.0.packets_in_flight() }
            fn tcp_in_slow_start(&self) -> bool { self.0.in_slow_start() }
            fn tcp_is_cwnd_limited(&self) -> bool { self.0.cwnd_limited() }
            /// Grows by `acked` packets up to the threshold; returns how many are left over.
            fn tcp_slow_start(&mut self, acked: u32) -> PyResult<u32> {
                if !self.0.in_slow_start() {
                    return Err(PyValueError::new_err(format!(
                        "tcp_slow_start: snd_cwnd {} is not below snd_ssthresh {}",
                        self.0.snd_cwnd, self.0.snd_ssthresh
                    )));
                }
                Ok(self.0.slow_start(acked))
            }
            /// One more packet per `w` acknowledged ones.
            fn tcp_cong_avoid_ai(&mut self, w: u32, acked: u32) -> PyResult<()> {
                let (w, acked) = (within("w", w, 1)?, within("acked", acked, 0)?);
                self.0.cong_avoid_ai(w, acked);
                Ok(())
            }

            fn __repr__(&self) -> String {
                let tp = &self.0;
                format!(
                    "<TcpSock at {} us: snd_cwnd {}, snd_ssthresh {}, srtt_us {}, {:?}>",
                    tp.now.as_us(), tp.snd_cwnd, tp.snd_ssthresh, tp.srtt_us, tp.ca_state
                )
            }
        }
    };
}

properties! {
    read {
        hz: u64,
        prior_cwnd: u32,
        packets_out: u32,
        sacked_out: u32,
        lost_out: u32,
        retrans_out: u32,
        max_packets_out: u32,
        is_cwnd_limited: bool,
        snd_una: u64,
        snd_nxt: u64,
        high_seq: u64,
        delivered: u64,
        delivered_ce: u64,
        lost: u64,
        srtt_us: u64,
        min_rtt_us: u64,
        reordering: u32,
        accecn: bool,
        ecn_ok: bool,
    }
    write {
        snd_cwnd = set_snd_cwnd >= 1,
        snd_cwnd_cnt = set_snd_cwnd_cnt >= 0,
        snd_cwnd_clamp = set_snd_cwnd_clamp >= 1,
        snd_ssthresh = set_snd_ssthresh >= 2,
    }
}

/// What the ACK being handled told.
#[pyclass(name = "RateSample", module = "bakeoff._sim", get_all, frozen)]
pub struct Sample {
    acked_sacked: u32,
    delivered_ce: u32,
    is_ece: bool,
    losses: u32,
    rtt_us: Option<u64>,
    delivered: u32,
    interval_us: u64,
    prior_delivered: u64,
    prior_in_flight: u32,
    is_app_limited: bool,
}

impl From<&RateSample> for Sample {
    fn from(rs: &RateSample) -> Sample {
        Sample {
            acked_sacked: rs.acked_sacked,
            delivered_ce: rs.delivered_ce,
            is_ece: rs.ece,
            losses: rs.losses,
            rtt_us: rs.rtt_us,
            delivered: rs.delivered,
            interval_us: rs.interval_us,
            prior_delivered: rs.prior_delivered,
            prior_in_flight: rs.prior_in_flight,
            is_app_limited: rs.is_app_limited,
        }
    }
}
