//! ICMP and ICMPv6 echo: round-trip times between this point and who replies.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::requests::{RequestCounts, Requests, Samples};
use super::{Bounds, Echo, seconds};
use crate::report::Distribution;

/// Echo requests of one sender to one address with one identifier: one `ping`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EchoReport {
    /// Number of the flow among all that the capture tells, from 1.
    pub number: u64,
    /// Who asks.
    pub client: String,
    /// Who replies.
    pub server: String,
    /// The identifier of the requests.
    pub identifier: u16,
    /// Index of the interface in the capture.
    pub interface: u32,
    /// When the first packet was seen.
    pub start_s: f64,
    /// When the last packet was seen.
    pub end_s: f64,
    /// Requests and replies.
    #[serde(flatten)]
    pub counts: RequestCounts,
    /// From request to reply at this point.
    pub rtt_s: Distribution,
    /// |RTT - RTT before| (RFC 3393).
    pub ipdv_s: Distribution,
    /// Every request, if series were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

#[derive(Debug)]
struct Session {
    client: IpAddr,
    server: IpAddr,
    identifier: u16,
    interface: u32,
    start_ns: i64,
    end_ns: i64,
    requests: Requests,
}

/// All sessions, in order of their first packets.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    sessions: Vec<Session>,
    by_ends: BTreeMap<(IpAddr, IpAddr, u16, u32), usize>,
}

impl Sessions {
    /// Takes a request or a reply; false beyond the bound.
    pub fn echo(&mut self, echo: &Echo, bounds: &mut Bounds) -> bool {
        let (client, server) =
            if echo.reply { (echo.destination, echo.source) } else { (echo.source, echo.destination) };
        let ends = (client, server, echo.identifier, echo.interface);
        let index = match self.by_ends.get(&ends) {
            Some(&index) => index,
            None if self.sessions.len() >= bounds.flows => return false,
            None => {
                self.sessions.push(Session {
                    client,
                    server,
                    identifier: echo.identifier,
                    interface: echo.interface,
                    start_ns: echo.at_ns,
                    end_ns: echo.at_ns,
                    requests: Requests::default(),
                });
                self.by_ends.insert(ends, self.sessions.len() - 1);
                self.sessions.len() - 1
            }
        };
        let session = &mut self.sessions[index];
        session.start_ns = session.start_ns.min(echo.at_ns);
        session.end_ns = session.end_ns.max(echo.at_ns);
        let sequence = session.requests.whole(u32::from(echo.sequence), 16);
        if echo.reply {
            session.requests.reply(sequence, echo.at_ns, 0);
        } else {
            session.requests.request(sequence, echo.at_ns, bounds);
        }
        true
    }

    pub fn finish(self, start_ns: i64, end_ns: i64, bounds: &mut Bounds) -> Vec<EchoReport> {
        self.sessions
            .into_iter()
            .map(|mut session| {
                let (counts, samples) = session.requests.finish(start_ns, end_ns, bounds);
                EchoReport {
                    number: 0,
                    client: session.client.to_string(),
                    server: session.server.to_string(),
                    identifier: session.identifier,
                    interface: session.interface,
                    start_s: seconds(session.start_ns, start_ns),
                    end_s: seconds(session.end_ns, start_ns),
                    counts,
                    rtt_s: session.requests.rtt().distribution(1e-9),
                    ipdv_s: session.requests.ipdv().distribution(1e-9),
                    samples,
                }
            })
            .collect()
    }
}
