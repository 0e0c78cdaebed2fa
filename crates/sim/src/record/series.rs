//! Series: tidy samples of flows, probes and queues (docs/results-folder.md).

use std::borrow::Cow;
use std::collections::TryReserveError;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::base::units::Time;

/// A kind of thing that is sampled, and what is sampled of it.
pub trait Metric: Copy {
    /// What is sampled: `flow`, `probe` or `queue`.
    const KIND: &'static str;
    /// The names of all metrics, in the order of their series.
    const NAMES: &'static [&'static str];
    /// The place of this one among them.
    fn place(self) -> u32;
}

macro_rules! metrics {
    ($(#[$about:meta])* $Metric:ident of $kind:literal { $($(#[$meaning:meta])* $metric:ident: $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub enum $Metric {
            $($(#[$meaning])* $metric,)+
        }

        impl Metric for $Metric {
            const KIND: &'static str = $kind;
            const NAMES: &'static [&'static str] = &[$($name),+];
            #[inline]
            fn place(self) -> u32 {
                self as u32
            }
        }
    };
}

metrics! {
    /// What is sampled of a flow.
    FlowMetric of "flow" {
        /// Bits per second of payload that reached the receiving application in the interval.
        Goodput: "goodput",
        /// Bytes of it so far.
        Received: "received",
        /// Bits per second, as `TCP_INFO` tells.
        DeliveryRate: "delivery_rate",
        /// Seconds.
        Srtt: "srtt",
        /// Packets.
        Cwnd: "cwnd",
        /// Packets.
        Ssthresh: "ssthresh",
        /// Bits per second.
        PacingRate: "pacing_rate",
        /// Packets.
        InFlight: "in_flight",
        /// Packets so far.
        Delivered: "delivered",
        /// Packets so far that were reported with CE.
        DeliveredCe: "delivered_ce",
        /// Packets so far.
        Retransmits: "retrans",
        /// Packets so far.
        Lost: "lost",
    }
}

metrics! {
    /// What is sampled of a probe.
    ProbeMetric of "probe" {
        /// Seconds, at the time of the request.
        Rtt: "rtt",
        /// 1 at the time of a request that was not answered.
        Lost: "lost",
    }
}

metrics! {
    /// What is sampled of a queue.
    QueueMetric of "queue" {
        /// Packets.
        Qlen: "qlen",
        /// Bytes.
        Backlog: "backlog",
        /// Seconds, the mean of what left in the interval.
        Sojourn: "sojourn",
        /// Seconds, the longest of what left in the interval.
        SojournMax: "sojourn_max",
        /// Packets so far.
        Marks: "marks",
        /// Packets so far.
        Drops: "drops",
        /// Bytes so far.
        Sent: "sent",
    }
}

/// The series of one flow, probe or queue.
#[derive(Clone, Copy, Debug)]
pub struct Columns<M> {
    first: u32,
    of: PhantomData<M>,
}

impl<M: Metric> Columns<M> {
    /// The number of a metric's series.
    #[inline]
    pub fn of(self, metric: M) -> u32 {
        self.first + metric.place()
    }
}

/// What a series is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// `flow`, `probe` or `queue`.
    pub kind: &'static str,
    /// Which of them; one text for all of its series.
    pub name: Arc<str>,
    /// What is sampled.
    pub metric: Cow<'static, str>,
}

/// A growing table of samples, in columns.
#[derive(Default)]
pub struct Recorder {
    names: Vec<Name>,
    series: Vec<u32>,
    value: Vec<f64>,
    /// A time, and the first row that has it: most samples are taken together, so that there are few of these.
    times: Vec<(Time, usize)>,
}

/// The finished table, sorted by time; `series[i]` is an index into `names`.
#[derive(Debug, Default, PartialEq)]
pub struct Series {
    /// What each series is of.
    pub names: Vec<Name>,
    /// Seconds.
    pub time: Vec<f64>,
    /// Which series.
    pub series: Vec<u32>,
    /// In the metric's unit.
    pub value: Vec<f64>,
}

impl Recorder {
    /// Registers all metrics of the thing called `name`.
    pub fn columns<M: Metric>(&mut self, name: &str) -> Columns<M> {
        Columns { first: self.register(M::KIND, name, M::NAMES.iter().copied()), of: PhantomData }
    }

    /// Registers metrics that are known by name only; the result is the first one's number.
    pub fn register<T: Into<Cow<'static, str>>>(
        &mut self,
        kind: &'static str,
        name: &str,
        metrics: impl IntoIterator<Item = T>,
    ) -> u32 {
        let first = self.names.len() as u32;
        let name: Arc<str> = name.into();
        self.names.extend(metrics.into_iter().map(|metric| Name {
            kind,
            name: name.clone(),
            metric: metric.into(),
        }));
        first
    }

    /// Adds a sample of series number `series`.
    pub fn push(&mut self, time: Time, series: u32, value: f64) {
        if self.times.last().is_none_or(|last| last.0 != time) {
            self.times.push((time, self.series.len()));
        }
        self.series.push(series);
        self.value.push(value);
    }

    /// Makes room for a sample of each series and for `more` others, without which an allocation that fails would end
    /// the process.
    ///
    /// # Errors
    /// There is no memory.
    pub fn reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        let rows = self.names.len().saturating_add(more);
        self.series.try_reserve(rows)?;
        self.value.try_reserve(rows)?;
        self.times.try_reserve(rows)
    }

    /// Bytes of memory that the samples take.
    pub fn bytes(&self) -> u64 {
        let columns = size_of_val(self.series.as_slice()) + size_of_val(self.value.as_slice());
        (columns + size_of_val(self.times.as_slice())) as u64
    }

    /// The table in order of time, then of recording.
    ///
    /// # Errors
    /// There is no memory.
    pub fn finish(mut self) -> Result<Series, TryReserveError> {
        let rows = self.series.len();
        let ends = self.times.iter().skip(1).map(|next| next.1).chain([rows]);
        let mut runs: Vec<_> =
            self.times.iter().zip(ends).map(|(&(at, start), end)| (at, start..end)).collect();
        if !runs.is_sorted_by_key(|run| run.0) {
            runs.sort_by_key(|run| run.0);
            let order = || runs.iter().flat_map(|run| run.1.clone());
            self.series = order().map(|row| self.series[row]).collect();
            self.value = order().map(|row| self.value[row]).collect();
        }
        let mut time = Vec::new();
        time.try_reserve_exact(rows)?;
        for (at, run) in runs {
            time.resize(time.len() + run.len(), at.as_secs_f64());
        }
        Ok(Series { names: self.names, time, series: self.series, value: self.value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_in_order_of_time() {
        let mut r = Recorder::default();
        let ping = r.columns("ping");
        r.push(Time::from_ms(20), ping.of(ProbeMetric::Rtt), 2.0);
        r.push(Time::from_ms(10), ping.of(ProbeMetric::Lost), 1.0);
        let s = r.finish().unwrap();
        assert_eq!((s.time, s.series, s.value), (vec![0.01, 0.02], vec![1, 0], vec![1.0, 2.0]));
        assert_eq!(s.names[1], Name { kind: "probe", name: "ping".into(), metric: "lost".into() });
    }

    #[test]
    fn room_that_there_is_not_is_an_error() {
        let mut r = Recorder::default();
        let ping = r.columns("ping");
        assert!(r.reserve(100).is_ok());
        // a row takes 4 bytes and 8 bytes: more than an address has bits for
        assert!(r.reserve(usize::MAX / 8).is_err());
        r.push(Time::from_ms(10), ping.of(ProbeMetric::Rtt), 2.0);
        assert_eq!(r.finish().unwrap().value, [2.0]);
    }
}
