//! Which packets a filter or a rewriting rule is about: [`run::Match`] compiled to one comparison.
//!
//! The fields of a packet that can be asked for are packed into one integer; a match is the bits
//! that count and their value.

use crate::packet::{Ecn, Flags, Packet, Proto};
use bakeoff_document::run;
use bakeoff_document::tc::parse_minor;

const FLOW: u32 = 0xffff;
const DSCP_SHIFT: u32 = 16;
const ECN_SHIFT: u32 = 22;
const PROTO_SHIFT: u32 = 24;
const SYN_SHIFT: u32 = 27;

/// A [`run::Match`] ready for use on every packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompiledMatch {
    mask: u32,
    value: u32,
}

impl CompiledMatch {
    /// Compiles `spec`; `flow_index` gives [`Packet::flow`] for the name of a flow or probe.
    ///
    /// # Errors
    /// The field, its value and the expected form.
    pub fn compile(spec: &run::Match, flow_index: &dyn Fn(&str) -> Option<u16>) -> Result<Self, String> {
        let mut compiled = CompiledMatch::default();
        if let Some(name) = &spec.flow {
            let index = flow_index(name)
                .ok_or_else(|| format!("flow: '{name}' is not a flow or probe of this run"))?;
            compiled.require(FLOW, u32::from(index));
        }
        if let Some(dscp) = spec.dscp {
            if dscp > 63 {
                return Err(format!("dscp: {dscp} is not a codepoint from 0 to 63"));
            }
            compiled.require(63 << DSCP_SHIFT, u32::from(dscp) << DSCP_SHIFT);
        }
        if let Some(name) = &spec.ecn {
            compiled.require(3 << ECN_SHIFT, (parse_ecn(name)? as u32) << ECN_SHIFT);
        }
        if let Some(name) = &spec.proto {
            compiled.require_proto(parse_proto(name)?);
        }
        if let Some(syn) = spec.syn {
            if spec.proto.as_deref().is_some_and(|proto| proto != "tcp") {
                return Err("syn: only TCP packets have this flag; proto says otherwise".into());
            }
            compiled.require_proto(Proto::Tcp);
            compiled.require(1 << SYN_SHIFT, u32::from(syn) << SYN_SHIFT);
        }
        Ok(compiled)
    }

    /// Whether `packet` is meant.
    pub fn matches(&self, packet: &Packet) -> bool {
        self.means(key(packet))
    }

    fn means(self, key: u32) -> bool {
        key & self.mask == self.value
    }

    fn require(&mut self, mask: u32, value: u32) {
        self.mask |= mask;
        self.value |= value;
    }

    fn require_proto(&mut self, proto: Proto) {
        self.require(7 << PROTO_SHIFT, (proto as u32) << PROTO_SHIFT);
    }
}

/// The fields of a packet that can be asked for.
fn key(packet: &Packet) -> u32 {
    u32::from(packet.flow)
        | u32::from(packet.dscp) << DSCP_SHIFT
        | (packet.ecn as u32) << ECN_SHIFT
        | (packet.proto as u32) << PROTO_SHIFT
        | u32::from(packet.flags.has(Flags::SYN)) << SYN_SHIFT
}

/// What the first filter that means `packet` chooses.
#[inline]
pub fn first_match(filters: &[(CompiledMatch, usize)], packet: &Packet) -> Option<usize> {
    let key = key(packet);
    filters.iter().find(|(meant, _)| meant.means(key)).map(|(_, chosen)| *chosen)
}

/// All filters of `classes` in the order of the document, of which the first that matches decides; `find` gives the
/// place of a class by its minor number.
///
/// # Errors
/// The class, the filter, and what is wrong with it.
pub fn compile_filters(
    classes: &[run::Class],
    flow_names: &[String],
    find: &dyn Fn(u32) -> Option<usize>,
) -> Result<Vec<(CompiledMatch, usize)>, String> {
    let flow_index = |name: &str| {
        let at = flow_names.iter().position(|known| known == name)?;
        u16::try_from(at).ok()
    };
    let mut filters = Vec::new();
    for class in classes {
        let at = parse_minor(&class.id).and_then(find);
        for (i, spec) in class.filters.iter().enumerate() {
            let compiled = CompiledMatch::compile(spec, &flow_index)
                .map_err(|message| format!("class {}: filters[{i}]: {message}", class.id))?;
            filters.extend(at.map(|at| (compiled, at)));
        }
    }
    Ok(filters)
}

/// The ECN field by name.
///
/// # Errors
/// The value and the names.
pub fn parse_ecn(name: &str) -> Result<Ecn, String> {
    match name {
        "not-ect" => Ok(Ecn::NotEct),
        "ect0" => Ok(Ecn::Ect0),
        "ect1" => Ok(Ecn::Ect1),
        "ce" => Ok(Ecn::Ce),
        _ => Err(format!("ecn: '{name}' is not not-ect, ect0, ect1 or ce")),
    }
}

fn parse_proto(name: &str) -> Result<Proto, String> {
    match name {
        "tcp" => Ok(Proto::Tcp),
        "udp" => Ok(Proto::Udp),
        "icmp" => Ok(Proto::Icmp),
        _ => Err(format!("proto: '{name}' is not tcp, udp or icmp")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(spec: &run::Match) -> Result<CompiledMatch, String> {
        CompiledMatch::compile(spec, &|name| (name == "prague").then_some(7))
    }

    fn packet() -> Packet {
        Packet { flow: 7, dscp: 35, ecn: Ecn::Ect1, flags: Flags::SYN.with(Flags::ECE), ..Packet::default() }
    }

    #[test]
    fn an_empty_match_takes_everything() {
        let all = compile(&run::Match::default()).unwrap();
        assert!(all.matches(&packet()));
        assert!(all.matches(&Packet::default()));
    }

    #[test]
    fn each_field_decides_alone() {
        let spec = run::Match {
            proto: Some("tcp".into()),
            dscp: Some(35),
            ecn: Some("ect1".into()),
            syn: Some(true),
            flow: Some("prague".into()),
        };
        let m = compile(&spec).unwrap();
        assert!(m.matches(&packet()));
        let others = [
            Packet { flow: 6, ..packet() },
            Packet { dscp: 34, ..packet() },
            Packet { ecn: Ecn::Ce, ..packet() },
            Packet { proto: Proto::Udp, ..packet() },
            Packet { flags: Flags::ACK, ..packet() },
        ];
        assert!(others.iter().all(|p| !m.matches(p)));
    }

    #[test]
    fn without_syn_means_tcp_packets_without_it() {
        let spec = run::Match { syn: Some(false), ..run::Match::default() };
        let m = compile(&spec).unwrap();
        assert!(!m.matches(&packet()));
        assert!(m.matches(&Packet::default()));
        assert!(!m.matches(&Packet { proto: Proto::Icmp, ..Packet::default() }));
    }

    #[test]
    fn what_cannot_be_is_named() {
        let error = |spec| compile(&spec).unwrap_err();
        let default = run::Match::default;
        assert_eq!(
            error(run::Match { flow: Some("x".into()), ..default() }),
            "flow: 'x' is not a flow or probe of this run"
        );
        assert_eq!(
            error(run::Match { dscp: Some(64), ..default() }),
            "dscp: 64 is not a codepoint from 0 to 63"
        );
        assert_eq!(
            error(run::Match { ecn: Some("ECT0".into()), ..default() }),
            "ecn: 'ECT0' is not not-ect, ect0, ect1 or ce"
        );
        assert_eq!(
            error(run::Match { proto: Some("sctp".into()), ..default() }),
            "proto: 'sctp' is not tcp, udp or icmp"
        );
        assert!(
            error(run::Match { proto: Some("udp".into()), syn: Some(true), ..default() }).starts_with("syn:")
        );
    }
}
