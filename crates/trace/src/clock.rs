//! The clock of an interface, which goes on where somebody set it.
//!
//! Packets that several queues or files bring out of order are a little late, and keep their times. A clock that is set
//! back, or far ahead as a machine without a battery does once it knows the date, would make rates and intervals of
//! nothing: its times are moved so that no time passes at the step, for how much did is not known.

/// A longer step back is one of the clock. NTP steps a clock that is off by 128 ms, and slews it otherwise.
const STEP_BACK_NS: i64 = 100_000_000;
/// A longer step ahead (three years) is one of the clock.
const STEP_AHEAD_NS: i64 = 100_000_000_000_000_000;
/// Offsets that are remembered, and for how many packets one can return to them: the clocks of several machines may
/// take turns in a file, and a single packet may have a wrong time.
const OFFSETS: usize = 8;
const RETURN: u64 = 16;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// By how much the clock was set.
    pub by_ns: i64,
    /// Where that was, in the times that are told.
    pub at_ns: i64,
}

/// One interface's.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Time of the packet before.
    last_ns: i64,
    /// What is added to the times of the file now, and what was added before.
    offset_ns: i64,
    known: Vec<i64>,
    /// Packets since the last step.
    packets: u64,
}

impl Clock {
    /// Begins with a packet at `raw_ns` of the file, while the file is at `now_ns`.
    pub fn new(raw_ns: i64, now_ns: i64) -> Clock {
        let far = raw_ns.saturating_sub(now_ns).saturating_abs() > STEP_AHEAD_NS;
        let known = if far { vec![now_ns.saturating_sub(raw_ns)] } else { vec![0] };
        let offset_ns = known[0];
        Clock { last_ns: raw_ns.saturating_add(offset_ns), offset_ns, known, packets: RETURN }
    }

    /// The time of a packet at `raw_ns` of the file, and the step before it if the clock was set anew.
    pub fn read(&mut self, raw_ns: i64) -> (i64, Option<Step>) {
        let ahead = |offset: i64| raw_ns.saturating_add(offset).saturating_sub(self.last_ns);
        let fits = |offset: &i64| (-STEP_BACK_NS..=STEP_AHEAD_NS).contains(&ahead(*offset));
        let here = fits(&self.offset_ns);
        self.packets += 1;
        let mut step = None;
        if !here || self.packets < RETURN {
            let best = |offset: &i64| (ahead(*offset).max(0), *offset != self.offset_ns);
            let back = self.known.iter().copied().filter(fits).min_by_key(best);
            if let Some(offset_ns) = back {
                self.turn(offset_ns);
            } else {
                let offset_ns = self.last_ns.saturating_sub(raw_ns);
                step = Some(Step { by_ns: self.offset_ns.saturating_sub(offset_ns), at_ns: self.last_ns });
                self.known.truncate(OFFSETS - 1);
                self.known.insert(0, offset_ns);
                self.turn(offset_ns);
            }
        }
        self.last_ns = raw_ns.saturating_add(self.offset_ns);
        (self.last_ns, step)
    }

    /// Goes on with another offset.
    fn turn(&mut self, offset_ns: i64) {
        if offset_ns != self.offset_ns {
            self.offset_ns = offset_ns;
            self.packets = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const YEAR_MS: i64 = 365 * 86_400 * 1000;

    /// The times that are told of packets at these times in ms, and how often and by how much the clock was set.
    fn read(raw_ms: &[i64]) -> (Vec<i64>, Vec<i64>) {
        let mut clock = Clock::new(raw_ms[0] * MS, raw_ms[0] * MS);
        let (times, steps): (Vec<_>, Vec<_>) = raw_ms.iter().map(|ms| clock.read(ms * MS)).unzip();
        (
            times.iter().map(|ns| ns / MS).collect(),
            steps.iter().flatten().map(|step| step.by_ns / MS).collect(),
        )
    }

    #[test]
    fn a_clock_that_is_set_goes_on() {
        assert_eq!(read(&[0, 10, 5, 20]), (vec![0, 10, 5, 20], vec![]), "out of order, not set");
        assert_eq!(read(&[9000, 9010, 4000, 4010]), (vec![9000, 9010, 9010, 9020], vec![-5010]));
        let now = 50 * YEAR_MS;
        assert_eq!(read(&[0, 10, now, now + 5]), (vec![0, 10, 10, 15], vec![now - 10]));
        assert_eq!(read(&[0, YEAR_MS]), (vec![0, YEAR_MS], vec![]), "a year may pass");
    }

    /// One packet has a wrong time, or every other is of a machine whose clock is an hour behind.
    #[test]
    fn the_clock_before_is_found_again() {
        assert_eq!(
            read(&[10_000, 9000, 10_020, 10_030]),
            (vec![10_000, 10_000, 10_020, 10_030], vec![-1000])
        );
        let hour = 3_600_000;
        let raw = [hour, 5, hour + 10, 15, hour + 20, 25];
        assert_eq!(read(&raw), ([0, 0, 10, 10, 20, 20].map(|ms| hour + ms).to_vec(), vec![5 - hour]));
    }

    /// Once it has gone on for a while it does not go back: 100 packets at 10 ms, then a pause of 6 s.
    #[test]
    fn a_pause_is_not_taken_for_the_clock_before() {
        let mut raw = vec![100_000];
        raw.extend((0..100).map(|i| 90_000 + 10 * i));
        raw.push(raw[100] + 6000);
        let (times, _) = read(&raw);
        assert_eq!(times[101] - times[100], 6000);
    }

    #[test]
    fn another_interface_joins_in() {
        let mut clock = Clock::new(50 * YEAR_MS * MS, 7 * MS);
        assert_eq!(clock.read((50 * YEAR_MS + 1) * MS).0, 8 * MS);
        let mut clock = Clock::new(3_600_000 * MS, 7 * MS);
        assert_eq!(clock.read(3_600_001 * MS).0, 3_600_001 * MS, "an hour later is an hour later");
        assert!(Clock::new(i64::MAX, i64::MIN).read(i64::MIN).1.is_some(), "no overflow");
    }
}
