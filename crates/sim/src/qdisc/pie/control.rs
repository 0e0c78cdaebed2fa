//! PIE's controller: the drop probability from the delay and its trend; `pie` has one, `fq_pie` one per flow.
//!
//! Source: RFC 8033; Linux 7.3 `include/net/pie.h`, `net/sched/sch_pie.c`.

use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::qdisc::timer::Timer;
use bakeoff_document::tc::{TcError, Words, show};

/// The kernel's scheduler tick is 64 ns.
pub const TICK_SHIFT: u32 = 6;
pub const TICKS_PER_S: u64 = 1_000_000_000 >> TICK_SHIFT;
pub const BURST_ALLOWANCE: u64 = ticks(Time::from_ms(150));
const LONG_DELAY: u64 = ticks(Time::from_ms(250));
/// Bytes that must stand for a measurement of the departure rate, and that must leave to end it.
const RATE_THRESHOLD: u64 = 16_384;
/// Fixed point of the departure rate (bytes per tick).
pub const RATE_SHIFT: u32 = 8;
pub const fn ticks(t: Time) -> u64 {
    t.as_ns() >> TICK_SHIFT
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Mainline,
    V5_4,
}

impl Version {
    /// The integer that means probability one.
    pub const fn max_prob(self) -> u64 {
        match self {
            Version::Mainline => u64::MAX >> 8,
            Version::V5_4 => u64::MAX,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Params {
    pub version: Version,
    pub limit: u32,
    /// In scheduler ticks.
    pub target: u64,
    pub tupdate: Time,
    pub alpha: u32,
    pub beta: u32,
    pub ecn: bool,
    pub bytemode: bool,
    pub rate_estimator: bool,
}

/// The controller's variables; times in scheduler ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vars {
    pub prob: u64,
    pub burst: u64,
    pub qdelay: u64,
    pub qdelay_old: u64,
    /// Probability summed since the last decision to drop.
    pub accu: u128,
    /// Start of a measurement cycle (rate mode), last dequeue (timestamp mode).
    pub dq_stamp: Option<u64>,
    /// Bytes that left in this measurement cycle.
    pub dq_count: Option<u64>,
    /// Bytes per tick times 256; 0 before the first measurement.
    pub avg_dq_rate: u64,
}

impl Vars {
    pub fn new() -> Self {
        let mut vars = Vars::default();
        vars.reset();
        vars
    }

    /// Ready for the next burst. Source: RFC 8033, section 4.4; Linux 7.3 `pie_vars_init`.
    fn reset(&mut self) {
        self.burst = BURST_ALLOWANCE;
        self.accu = 0;
        self.dq_stamp = None;
        self.dq_count = None;
        self.avg_dq_rate = 0;
    }

    /// One tick of the controller with `backlog` bytes standing.
    /// Source: RFC 8033, section 4.2; Linux 7.3 `pie_calculate_probability`.
    pub fn update(&mut self, params: &Params, backlog: u64) {
        let one = params.version.max_prob();
        let qdelay = match (params.rate_estimator, self.avg_dq_rate) {
            (false, _) => self.qdelay,
            (true, 0) => 0,
            (true, rate) => (backlog << RATE_SHIFT) / rate,
        };
        let qdelay_old = if params.rate_estimator {
            self.qdelay_old = self.qdelay;
            self.qdelay
        } else {
            self.qdelay_old
        };
        // A delay of zero with packets standing is a queue too short to measure.
        let mut decay = qdelay == 0 && qdelay_old == 0 && backlog == 0;

        // RFC 8033, section 4.2: below 10 % the gains shrink with the probability, by 2 and then by 4 for each factor
        // of 10.
        let mut alpha = (u64::from(params.alpha) * (one / TICKS_PER_S)) >> 4;
        let mut beta = (u64::from(params.beta) * (one / TICKS_PER_S)) >> 4;
        if self.prob < one / 10 {
            alpha >>= 1;
            beta >>= 1;
            let mut power = 100;
            while power <= 1_000_000 && self.prob < one / power {
                alpha >>= 2;
                beta >>= 2;
                power *= 10;
            }
        }

        let error = i128::from(qdelay) - i128::from(params.target);
        let change = i128::from(qdelay) - i128::from(qdelay_old);
        let mut delta = i128::from(alpha) * error + i128::from(beta) * change;
        // RFC 8033, section 5.5: no step above 2 % once the probability is 10 %.
        if delta > i128::from(one / 50) && self.prob >= one / 10 {
            delta = i128::from(one / 100 * 2);
        }
        // Linux 7.3 `pie_calculate_probability`: 2 % more per update while the delay is above 250 ms.
        if qdelay > LONG_DELAY {
            delta += i128::from(one / 50);
        }
        // Only 64 bits bound it: after long overload it stands above one, and takes as long to come down.
        self.prob = match i128::from(self.prob) + delta {
            prob if prob > i128::from(u64::MAX) => {
                decay = false;
                one
            }
            prob => prob.max(0) as u64,
        };
        // RFC 8033, section 4.2: the probability decays while nothing waits, there by 2 %.
        if decay {
            self.prob = match params.version {
                Version::Mainline => self.prob - self.prob / 64,
                Version::V5_4 => self.prob / 100 * 98,
            };
        }

        self.qdelay = qdelay;
        // RFC 8033, section 4.4: the next burst is let through once congestion is over.
        let low = params.target / 2;
        if qdelay < low
            && self.qdelay_old < low
            && self.prob == 0
            && (!params.rate_estimator || self.avg_dq_rate > 0)
        {
            self.reset();
        }
        if !params.rate_estimator {
            self.qdelay_old = qdelay;
        }
    }

    /// A packet of `len` bytes that waited `sojourn` left `backlog` bytes behind.
    /// Source: RFC 8033, sections 4.3 and 4.4; Linux 7.3 `pie_process_dequeue`.
    pub fn departed(&mut self, params: &Params, len: u64, sojourn: u64, backlog: u64, now: u64) {
        let spent = if params.rate_estimator {
            self.measure_rate(len, backlog, now)
        } else {
            self.qdelay = if backlog == 0 { 0 } else { sojourn };
            self.dq_stamp.replace(now).map_or(0, |last| now - last)
        };
        self.burst = self.burst.saturating_sub(spent);
    }

    /// Runs the measurement cycles of the departure rate; the length of the cycle that ended.
    /// Source: RFC 8033, section 5.2; Linux 7.3 `pie_process_dequeue`.
    fn measure_rate(&mut self, len: u64, backlog: u64, now: u64) -> u64 {
        if backlog >= RATE_THRESHOLD && self.dq_count.is_none() {
            self.dq_stamp = Some(now);
            self.dq_count = Some(0);
        }
        let (Some(count), Some(start)) = (self.dq_count, self.dq_stamp) else {
            return 0;
        };
        let count = count + len;
        self.dq_count = Some(count);
        let length = now - start;
        if count < RATE_THRESHOLD || length == 0 {
            return 0;
        }
        let rate = (count << RATE_SHIFT) / length;
        self.avg_dq_rate = match self.avg_dq_rate {
            0 => rate,
            avg => avg - (avg >> 3) + (rate >> 3),
        };
        if backlog < RATE_THRESHOLD {
            self.dq_count = None;
        } else {
            self.dq_count = Some(0);
            self.dq_stamp = Some(now);
        }
        length
    }

    /// Whether a packet of `len` bytes that arrives at a queue of `backlog` bytes is chosen.
    /// Source: RFC 8033, sections 4.1, 4.4 and 5.4; Linux 7.3 `pie_drop_early`.
    pub fn drop_early(
        &mut self,
        params: &Params,
        len: u64,
        backlog: u64,
        mtu: u64,
        rng: &mut Stream,
    ) -> bool {
        let one = params.version.max_prob();
        // RFC 8033, section 4.1: never in a burst, at a low delay and probability, or with less than two packets'
        // worth of bytes.
        if self.burst > 0 || (self.qdelay < params.target / 2 && self.prob < one / 5) || backlog < 2 * mtu {
            return false;
        }
        let prob = if params.bytemode && len <= mtu { len * (self.prob / mtu) } else { self.prob };
        if prob == 0 {
            self.accu = 0;
        }
        self.accu += u128::from(prob);
        // RFC 8033, section 5.4: never before the probabilities add up to 0.85, always from 8.5 on.
        if self.accu < u128::from(one / 100 * 85) {
            return false;
        }
        let (certain, draw) = match params.version {
            Version::Mainline => (self.accu >= u128::from(one / 2) * 17, rng.u64() >> 8),
            // The 64-bit sum and its count of overflows are here one number.
            Version::V5_4 => (self.accu >> 64 == 8 && self.accu as u64 >= one / 2, rng.u64()),
        };
        if certain {
            return true;
        }
        let chosen = draw < prob;
        if chosen {
            self.accu = 0;
        }
        chosen
    }
}

impl Params {
    /// The words that `pie` and `fq_pie` share.
    pub const WORDS: [&str; 11] = [
        "limit",
        "target",
        "tupdate",
        "alpha",
        "beta",
        "ecn",
        "noecn",
        "bytemode",
        "nobytemode",
        "dq_rate_estimator",
        "no_dq_rate_estimator",
    ];

    /// Linux's defaults.
    pub fn new(version: Version, limit: u32) -> Self {
        Params {
            version,
            limit,
            target: ticks(Time::from_ms(15)),
            tupdate: Time::from_ms(15),
            alpha: 2,
            beta: 20,
            ecn: false,
            bytemode: false,
            rate_estimator: version == Version::V5_4,
        }
    }

    /// Takes `word` and its value if it is one of [`Self::WORDS`]; false if it is not.
    pub fn take(&mut self, word: &str, words: &mut Words) -> Result<bool, TcError> {
        match word {
            "limit" => self.limit = words.u32()?,
            "target" => self.target = ticks(words.time()?),
            "tupdate" => self.tupdate = words.time()?,
            "alpha" => self.alpha = gain(words, word)?,
            "beta" => self.beta = gain(words, word)?,
            "ecn" | "noecn" => self.ecn = word == "ecn",
            "bytemode" | "nobytemode" => self.bytemode = word == "bytemode",
            "dq_rate_estimator" | "no_dq_rate_estimator" => {
                self.rate_estimator = word == "dq_rate_estimator";
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `target 15ms tupdate 16ms alpha 2 beta 20`
    pub fn show(&self, timer: &Timer) -> String {
        let tupdate = match timer.asked() {
            Time::NEVER => Time::ZERO,
            period => period,
        };
        format!(
            "target {} tupdate {} alpha {} beta {}",
            show::time(Time(self.target << TICK_SHIFT).as_us()),
            show::time(tupdate.as_us()),
            self.alpha,
            self.beta,
        )
    }

    /// ` ecn bytemode dq_rate_estimator`, or less.
    pub fn show_modes(&self) -> String {
        let estimates = self.rate_estimator && self.version == Version::Mainline;
        [(self.ecn, " ecn"), (self.bytemode, " bytemode"), (estimates, " dq_rate_estimator")]
            .into_iter()
            .filter_map(|(on, word)| on.then_some(word))
            .collect()
    }
}

/// `alpha` and `beta` above this are refused by tc.
const GAIN_MAX: u32 = 32;

fn gain(words: &mut Words, key: &str) -> Result<u32, TcError> {
    let value = words.u32()?;
    if value > GAIN_MAX {
        return Err(words.bad(key, &value.to_string(), "a number from 0 to 32"));
    }
    Ok(value)
}
