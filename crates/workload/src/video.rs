//! An adaptive video player: which quality it fetches next, when, and what its buffer makes of the answers.
//!
//! Source: the throughput rule of the DASH reference player (dash.js 3: `ThroughputRule`, `bandwidthSafetyFactor` 0.9,
//! mean of the last 4 segments) under its guard `InsufficientBufferRule` (half of what would arrive before the buffer
//! runs dry, from the third segment on); Spiteri, Sitaraman, Sparacio, From Theory to Practice: Improving Bitrate
//! Adaptation in the DASH Reference Player, MMSys 2018, which tells both from BOLA.
//!
//! The rule: the first segment has the lowest rate. Then T is the mean of the throughputs of the last 4 segments, each its
//! bits over the time from request to last byte, and the next segment has the highest rate that is at most 0.9 T and, from
//! the third on, at most 0.5 T × level / segment, `level` being the seconds in the buffer; the lowest if none is.
//! A segment is requested at once while it fits into the buffer, else when it will. Playing begins with the first
//! segment, stops when the buffer is empty, and goes on with the next segment.
//!
//! Not modelled: segments of unlike sizes (all have rate × length bits), seeking, abandoned requests.
//!
//! Validation: the unit tests below; runs on a constant capacity in `crates/sim/tests/sources.rs`.

/// Throughputs that are averaged.
const SAMPLES: usize = 4;

/// A segment that was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When it was asked for.
    pub asked: u64,
    /// Its encoding rate in bits per second.
    pub rate_bps: u64,
    /// When its last byte was there.
    pub arrived: u64,
    /// What the buffer held then, itself included, in nanoseconds of video.
    pub level: u64,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask for a segment of so many bytes.
    Fetch(u64),
    /// The buffer is full until then.
    Wait(u64),
    /// A segment is on its way.
    Fetching,
}

/// A player.
#[derive(Clone, Debug)]
pub struct Player {
    /// Ascending.
    rates_bps: Vec<u64>,
    segment: u64,
    buffer: u64,
    opened: u64,
    /// Up to when playing is accounted for.
    at: u64,
    level: u64,
    playing: bool,
    stalled_since: Option<u64>,
    /// When the segment on its way was asked for, its rate, its bytes.
    fetching: Option<(u64, u64, u64)>,
    throughputs_bps: [u64; SAMPLES],
    segments: Vec<Segment>,
    stalls: Vec<(u64, u64)>,
    startup: Option<u64>,
}

impl Player {
    /// A player that is opened at `now`. Lengths are in nanoseconds of video.
    ///
    /// # Errors
    /// What is wrong with the parameters, beginning with the name of one.
    pub fn new(rates_bps: &[u64], segment: u64, buffer: u64, now: u64) -> Result<Player, String> {
        if rates_bps.is_empty() || rates_bps[0] == 0 || !rates_bps.is_sorted() {
            return Err("rates_bps: expected at least one rate above 0, in ascending order".into());
        }
        if segment == 0 {
            return Err("segment_s: expected a time above 0".into());
        }
        if buffer < segment {
            return Err("buffer_s: expected at least segment_s: nothing shorter holds a segment".into());
        }
        Ok(Player {
            rates_bps: rates_bps.to_vec(),
            segment,
            buffer,
            opened: now,
            at: now,
            level: 0,
            playing: false,
            stalled_since: None,
            fetching: None,
            throughputs_bps: [0; SAMPLES],
            segments: Vec::new(),
            stalls: Vec::new(),
            startup: None,
        })
    }

    /// What to do at `now`.
    pub fn next(&mut self, now: u64) -> Next {
        if self.fetching.is_some() {
            return Next::Fetching;
        }
        self.play_until(now);
        let over = (self.level + self.segment).saturating_sub(self.buffer);
        if over > 0 {
            return Next::Wait(now + over);
        }
        let rate = self.choose();
        let bits = u128::from(rate) * u128::from(self.segment) / 1_000_000_000;
        let bytes = ((bits / 8) as u64).max(1);
        self.fetching = Some((now, rate, bytes));
        Next::Fetch(bytes)
    }

    /// The last byte of the segment asked for is there.
    pub fn arrived(&mut self, now: u64) {
        let Some((asked, rate_bps, bytes)) = self.fetching.take() else { return };
        self.play_until(now);
        self.level += self.segment;
        let throughput = u128::from(bytes) * 8_000_000_000 / u128::from((now - asked).max(1));
        self.throughputs_bps[self.segments.len() % SAMPLES] = throughput.min(u128::from(u64::MAX)) as u64;
        self.segments.push(Segment { asked, rate_bps, arrived: now, level: self.level });
        if let Some(since) = self.stalled_since.take() {
            self.stalls.push((since, now - since));
        }
        self.startup.get_or_insert(now - self.opened);
        self.playing = true;
    }

    /// What was fetched, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// From opening to playing; none if that never came.
    pub fn startup(&self) -> Option<u64> {
        self.startup
    }

    /// When each stall began and how long it lasted; one that lasts at `now` lasts until then.
    pub fn stalls(&mut self, now: u64) -> Vec<(u64, u64)> {
        self.play_until(now);
        let last = self.stalled_since.map(|since| (since, now - since));
        self.stalls.iter().copied().chain(last).collect()
    }

    fn play_until(&mut self, now: u64) {
        // A run may end before the player is opened.
        let now = now.max(self.at);
        let elapsed = now - self.at;
        if self.playing && elapsed > self.level {
            self.stalled_since = Some(self.at + self.level);
            self.playing = false;
            self.level = 0;
        } else if self.playing {
            self.level -= elapsed;
        }
        self.at = now;
    }

    fn choose(&self) -> u64 {
        let known = self.segments.len().min(SAMPLES);
        if known == 0 {
            return self.rates_bps[0];
        }
        let sum: u128 = self.throughputs_bps[..known].iter().map(|t| u128::from(*t)).sum();
        let mean = sum / known as u128;
        let mut most = mean * 9 / 10;
        if self.segments.len() >= 2 {
            most = most.min(mean * u128::from(self.level) / u128::from(self.segment) / 2);
        }
        let fits = self.rates_bps.iter().rev().find(|rate| u128::from(**rate) <= most);
        *fits.unwrap_or(&self.rates_bps[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const MBIT: u64 = 1_000_000;

    fn player() -> Player {
        Player::new(&[MBIT, 2 * MBIT, 4 * MBIT, 8 * MBIT], 2 * S, 10 * S, 0).expect("valid")
    }

    /// Fetches one segment that takes `seconds`, from `now` on; returns when it is there.
    fn fetch(player: &mut Player, now: u64, bps: u64) -> u64 {
        let Next::Fetch(bytes) = player.next(now) else { panic!("not ready at {now}") };
        let then = now + bytes * 8 * S / bps;
        player.arrived(then);
        then
    }

    #[test]
    fn the_highest_rate_below_nine_tenths_of_the_throughput() {
        // 5 Mbit/s: 0.9 x 5 = 4.5, so 4 Mbit/s; the guard asks for 2 segments of buffer at least (4.5 = 0.5 x 5 x 1.8).
        let mut p = player();
        let mut now = 0;
        for _ in 0..12 {
            now = match p.next(now) {
                Next::Fetch(bytes) => now + bytes * 8 * S / (5 * MBIT),
                Next::Wait(until) => {
                    assert!(matches!(p.next(until), Next::Fetch(_)));
                    until + 8 * MBIT * S / (5 * MBIT)
                }
                Next::Fetching => panic!("arrived"),
            };
            p.arrived(now);
        }
        let rates: Vec<u64> = p.segments().iter().map(|s| s.rate_bps / MBIT).collect();
        assert_eq!(rates[0], 1);
        assert!(rates[6..].iter().all(|rate| *rate == 4), "{rates:?}");
        assert!(p.stalls(now).is_empty());
        // the first: 2 Mbit at 5 Mbit/s
        assert_eq!(p.startup(), Some(400_000_000));
    }

    #[test]
    fn a_full_buffer_waits_until_a_segment_fits() {
        let mut p = player();
        let mut now = 0;
        // At 1 Gbit/s each takes next to nothing: five of 2 s fill 10 s.
        for _ in 0..5 {
            now = fetch(&mut p, now, 1000 * MBIT);
        }
        let Next::Wait(until) = p.next(now) else { panic!("there is no room") };
        // Full but for what was played since the first arrived: the sixth fits when 2 s of the first were played.
        assert_eq!(until, p.segments()[0].arrived + 2 * S);
        assert_eq!(fetch(&mut p, until, 1000 * MBIT) / S, 2);
    }

    #[test]
    fn an_empty_buffer_is_a_stall_until_the_next_segment() {
        let mut p = player();
        // 1 s for the first segment of 2 Mbit; it is played from 1 s to 3 s. The second, at 0.5 Mbit/s, takes 4 s: to 5 s.
        let now = fetch(&mut p, 0, 2 * MBIT);
        let now = fetch(&mut p, now, MBIT / 2);
        assert_eq!(now, 5 * S);
        assert_eq!(p.stalls(now), [(3 * S, 2 * S)]);
        // ... and one that is not over counts as far as it went: the second is played from 5 s to 7 s.
        assert!(matches!(p.next(now), Next::Fetch(_)));
        assert_eq!(p.stalls(10 * S), [(3 * S, 2 * S), (7 * S, 3 * S)]);
    }

    #[test]
    fn the_guard_takes_half_of_what_arrives_before_the_buffer_is_dry() {
        let mut p = player();
        let mut now = fetch(&mut p, 0, 8 * MBIT);
        now = fetch(&mut p, now, 8 * MBIT);
        // mean 8: 0.9 x 8 = 7.2 allows 4; the second took 1 s (4 Mbit/s x 2 s at 8), so the buffer has 2 - 1 + 2 = 3 s:
        // 0.5 x 8 x 3 / 2 = 6 allows 4.
        assert_eq!(p.segments()[1].rate_bps, 4 * MBIT);
        assert_eq!(p.segments()[1].level, 3 * S);
        fetch(&mut p, now, 2 * MBIT);
        assert_eq!(p.segments()[2].rate_bps, 4 * MBIT);
        // That took 4 s: a stall of 1 s, 2 s in the buffer. Mean (8 + 8 + 2) / 3 = 6: 0.5 x 6 x 2 / 2 = 3 allows 2, where 5.4 allowed 4.
        now = p.segments()[2].arrived;
        fetch(&mut p, now, 2 * MBIT);
        assert_eq!(p.segments()[3].rate_bps, 2 * MBIT);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let refused =
            |rates: &[u64], segment, buffer| Player::new(rates, segment, buffer, 0).expect_err("refused");
        assert!(refused(&[], S, S).starts_with("rates_bps: "));
        assert!(refused(&[2, 1], S, S).starts_with("rates_bps: "));
        assert!(refused(&[1], 0, S).starts_with("segment_s: "));
        assert!(refused(&[1], 2 * S, S).starts_with("buffer_s: "));
    }
}
