//! What is done to a flow when its sender comes into a state: part of the resolved run ([`crate::run`]).

use serde::{Deserialize, Serialize};

use crate::bounds::{self, BURST, DELAY_S, TIME_S, within};
use crate::error::Refused;
use crate::run::{Action, Source};
#[cfg(feature = "schema")]
use crate::schema;

/// Something done to a flow when its sender comes into a state.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Stimulus {
    /// Unique name.
    pub name: String,
    /// The flow, which has one TCP connection.
    pub flow: String,
    /// All must hold, after an ACK or a retransmission timeout, and not have held after the one before.
    pub state: Vec<Term>,
    /// From then until the effect begins, in seconds.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Seconds"))]
    pub after_s: f64,
    /// How long the effect lasts, in seconds; none: until the run ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Seconds>"))]
    pub for_s: Option<f64>,
    /// Whether it happens each time, and not only the first.
    #[serde(default)]
    pub each: bool,
    /// What is done.
    pub effect: Effect,
}

/// A comparison of a traced variable with a number. It does not hold while there is no such variable.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// As the trace names it (`cc.cwnd`), or `time`, in seconds.
    pub variable: String,
    /// How it is compared.
    pub is: Comparison,
    /// With what.
    pub value: f64,
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl Comparison {
    /// Whether `value` is so to `other`.
    #[must_use]
    pub fn holds(self, value: f64, other: f64) -> bool {
        match self {
            Comparison::Eq => value.total_cmp(&other).is_eq(),
            Comparison::Ne => value.total_cmp(&other).is_ne(),
            Comparison::Lt => value < other,
            Comparison::Le => value <= other,
            Comparison::Gt => value > other,
            Comparison::Ge => value >= other,
        }
    }
}

/// What a stimulus does. The first four are done where packets with data arrive, to those that were sent meanwhile.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Packets are lost.
    Drop {
        /// Each `every`-th.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Burst"))]
        every: u32,
        /// No more than so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Burst>"))]
        most: Option<u32>,
    },
    /// ECN-capable packets are marked CE.
    Mark {
        /// Each `every`-th.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Burst"))]
        every: u32,
        /// No more than so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Burst>"))]
        most: Option<u32>,
    },
    /// Packets arrive later, by so much: later ones overtake them.
    Delay {
        /// In seconds.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Delay"))]
        delay_s: f64,
    },
    /// Packets do not arrive before the effect ends, and then in order.
    Hold {},
    /// The application has this source instead of its own. What it wrote and TCP did not send is dropped.
    Source {
        /// None: it writes nothing.
        source: Option<Source>,
    },
    /// The network changes.
    Change {
        /// When the effect begins.
        begin: Vec<Placed>,
        /// When it ends.
        #[serde(default)]
        end: Vec<Placed>,
    },
}

/// A change of the interface of `node` towards `peer`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// The interface: its node.
    pub node: String,
    /// The interface: its peer.
    pub peer: String,
    /// What.
    pub action: Action,
}

impl Stimulus {
    /// The changes of the network that it makes, each with its place in the document.
    pub fn changes(&self, place: &str) -> Vec<(String, &Placed)> {
        let Effect::Change { begin, end } = &self.effect else { return Vec::new() };
        let all = [("begin", begin), ("end", end)];
        let placed = |(key, list): (&str, &'_ Vec<Placed>)| {
            (0..list.len()).map(|n| format!("{place}.effect.{key}[{n}]")).collect::<Vec<_>>()
        };
        let places = all.into_iter().flat_map(placed);
        places.zip(begin.iter().chain(end)).collect()
    }

    /// Checks its numbers.
    pub(crate) fn check(&self, place: &str) -> Result<(), Refused> {
        bounds::time(&format!("{place}.after_s"), self.after_s, &TIME_S)?;
        bounds::time(&format!("{place}.for_s"), self.for_s.unwrap_or_default(), &TIME_S)?;
        if self.state.is_empty() {
            return Err(Refused(format!("{place}.state: empty; expected a comparison")));
        }
        if let Some(n) = self.state.iter().position(|term| !term.value.is_finite()) {
            return Err(Refused(format!("{place}.state[{n}].value: not a number")));
        }
        match &self.effect {
            Effect::Drop { every, most } | Effect::Mark { every, most } => {
                within(&format!("{place}.effect.every"), *every, &BURST)?;
                within(&format!("{place}.effect.most"), most.unwrap_or(1), &BURST)
            }
            Effect::Delay { delay_s } => bounds::time(&format!("{place}.effect.delay_s"), *delay_s, &DELAY_S),
            Effect::Hold {} if self.for_s.is_none() => {
                Err(Refused(format!("{place}: 'hold' without an end; expected for_s")))
            }
            Effect::Source { source: Some(Source::Short { .. } | Source::Video { .. }) } => {
                Err(Refused(format!("{place}.effect.source: expected bulk, bytes, rate or periodic")))
            }
            Effect::Source { source: Some(source) } => {
                bounds::source(source, "tcp", &format!("{place}.effect.source")).map(|_| ())
            }
            Effect::Change { .. } => self
                .changes(place)
                .into_iter()
                .try_for_each(|(place, change)| bounds::action(&change.action, &place)),
            Effect::Hold {} | Effect::Source { source: None } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_compared_in_each_way() {
        use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
        let holding = |value: f64| [Eq, Ne, Lt, Le, Gt, Ge].map(|is| is.holds(value, 2.0)).map(u8::from);
        assert_eq!(holding(1.0), [0, 1, 1, 1, 0, 0]);
        assert_eq!(holding(2.0), [1, 0, 0, 1, 0, 1]);
        assert_eq!(holding(3.0), [0, 1, 0, 0, 1, 1]);
    }
}
