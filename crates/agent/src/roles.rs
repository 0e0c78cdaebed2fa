//! What a plan asks for, made: sockets open, bound, connected where that sends nothing. Whatever the kernel refuses, it refuses here, before t = 0.

use std::sync::Arc;

use crate::clock;
use crate::error::Error;
use crate::plan::{self, Answers, Plan, Role};
use crate::probe::{Probe, Reflector};
use crate::program::Running;
use crate::progress::Progress;
use crate::qdisc::Namespace;
use crate::{short, tcp, udp};

/// The roles of one run.
#[derive(Default)]
pub struct Roles {
    /// Sending ends of TCP flows.
    pub tcp_sources: Vec<Arc<tcp::Source>>,
    /// Receiving ends.
    pub tcp_sinks: Vec<Arc<tcp::Sink>>,
    /// Sending ends of short flows.
    pub short_sources: Vec<Arc<short::Source>>,
    /// Receiving ends.
    pub short_sinks: Vec<Arc<short::Sink>>,
    /// Sending ends of UDP flows.
    pub udp_sources: Vec<Arc<udp::Source>>,
    /// Receiving ends.
    pub udp_sinks: Vec<Arc<udp::Sink>>,
    /// UDP and ICMP probes.
    pub probes: Vec<Arc<Probe>>,
    /// Who answers UDP probes.
    pub reflectors: Vec<Arc<Reflector>>,
    /// Queues to sample, by namespace.
    pub queues: Vec<Namespace>,
    /// Programs of others.
    pub programs: Vec<Arc<Running>>,
}

impl Roles {
    /// Makes everything, on a Linux of this major version. An error names the role.
    pub fn prepare(plan: &Plan, kernel_major: u32, progress: &Arc<Progress>) -> Result<Roles, Error> {
        let mut roles = Roles { queues: Namespace::open_all(&plan.queues)?, ..Roles::default() };
        // Differs between probes, and between agents that share a kernel.
        let mut session = (clock::monotonic() as u32) ^ std::process::id() << 16;
        for role in &plan.roles {
            session = session.wrapping_add(1);
            match role {
                Role::TcpSource(role) => match &role.source {
                    plan::Source::Short { objects } => {
                        roles.short_sources.push(short::Source::prepare(role, objects, kernel_major)?);
                    }
                    _ => roles.tcp_sources.push(tcp::Source::prepare(role)?),
                },
                Role::TcpSink(role) if role.answers == Answers::Objects => {
                    roles.short_sinks.push(short::Sink::prepare(role)?);
                }
                Role::TcpSink(role) => roles.tcp_sinks.push(tcp::Sink::prepare(role)?),
                Role::UdpSource(role) => roles.udp_sources.push(udp::Source::prepare(role)?),
                Role::UdpSink(role) => roles.udp_sinks.push(udp::Sink::prepare(role)?),
                Role::UdpProbe(role) => roles.probes.push(Probe::udp(role, session)?),
                Role::IcmpProbe(role) => roles.probes.push(Probe::icmp(role, session)?),
                Role::UdpReflector(role) => {
                    roles.reflectors.push(Arc::new(Reflector::prepare(role)?));
                }
            }
        }
        // Last: what was started has to be ended, whatever is refused above.
        for program in &plan.programs {
            match Running::prepare(program, progress) {
                Ok(running) => roles.programs.push(running),
                Err(error) => {
                    let _ = roles.stop_programs(); // the first error is the one to tell
                    return Err(error);
                }
            }
        }
        Ok(roles)
    }

    /// Ends the servers, and clients that still run.
    pub fn stop_programs(&self) -> Result<(), Error> {
        self.programs.iter().map(|program| program.stop()).fold(Ok(()), Result::and)
    }
}
