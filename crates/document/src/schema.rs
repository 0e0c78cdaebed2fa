//! The JSON Schema of the resolved run, made from its types ([`crate::run`]) and bounds ([`crate::bounds`]).
//!
//! `schema.json`, beside the crate's `Cargo.toml`, is its text. `tests/scenario/test_run_schema.py` compares that with the Python model that writes
//! the document.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{bounds, run};

/// The schema as text, with a line feed at the end.
///
/// # Errors
/// None in practice: a schema can always be written.
pub fn text() -> Result<String, serde_json::Error> {
    let schema = schemars::schema_for!(run::Run);
    serde_json::to_string_pretty(&schema).map(|text| text + "\n")
}

/// Types that stand in for a field's own, where that does not say what the field may hold.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident => $schema:tt;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

fields! {
    /// [`run::FORMAT`]
    Format => {"type": "integer", "const": run::FORMAT};
    /// A time of the run.
    Seconds => {"type": "number", "minimum": bounds::TIME_S.start(), "maximum": bounds::TIME_S.end()};
    /// A time above 0.
    Duration => {"type": "number", "exclusiveMinimum": bounds::TIME_S.start(), "maximum": bounds::TIME_S.end()};
    /// See [`bounds::SAMPLE_INTERVAL_S`].
    SampleInterval => {
        "type": "number",
        "minimum": bounds::SAMPLE_INTERVAL_S.start(),
        "maximum": bounds::SAMPLE_INTERVAL_S.end()
    };
    /// See [`bounds::DELAY_S`].
    Delay => {"type": "number", "minimum": bounds::DELAY_S.start(), "maximum": bounds::DELAY_S.end()};
    /// See [`bounds::EVERY_S`].
    Every => {"type": "number", "minimum": bounds::EVERY_S.start(), "maximum": bounds::EVERY_S.end()};
    /// See [`bounds::VIDEO_S`].
    Video => {"type": "number", "minimum": bounds::VIDEO_S.start(), "maximum": bounds::VIDEO_S.end()};
    /// See [`bounds::RATE_BPS`].
    Rate => {"type": "integer", "minimum": bounds::RATE_BPS.start(), "maximum": bounds::RATE_BPS.end()};
    /// See [`bounds::BYTES`].
    Bytes => {"type": "integer", "minimum": bounds::BYTES.start(), "maximum": bounds::BYTES.end()};
    /// See [`bounds::WRITE`]; a datagram is shorter, which depends on the transport.
    Write => {"type": "integer", "minimum": bounds::WRITE.start(), "maximum": bounds::WRITE.end()};
    /// See [`bounds::BURST`].
    Burst => {"type": "integer", "minimum": bounds::BURST.start(), "maximum": bounds::BURST.end()};
    /// See [`bounds::PROBE`].
    ProbeSize => {"type": "integer", "minimum": bounds::PROBE.start(), "maximum": bounds::PROBE.end()};
    /// See [`bounds::MTU`].
    Mtu => {"type": "integer", "minimum": bounds::MTU.start(), "maximum": bounds::MTU.end()};
    /// See [`bounds::HZ`].
    Hz => {"type": "integer", "minimum": bounds::HZ.start(), "maximum": bounds::HZ.end()};
    /// See [`bounds::DSCP`].
    Dscp => {"type": "integer", "minimum": bounds::DSCP.start(), "maximum": bounds::DSCP.end()};
    /// From 0 to 1.
    Probability => {"type": "number", "minimum": 0.0, "maximum": 1.0};
    /// An ECN field.
    Ecn => {"type": "string", "enum": ["not-ect", "ect0", "ect1", "ce"]};
    /// A protocol that a filter names.
    Matched => {"type": "string", "enum": ["tcp", "udp", "icmp"]};
    /// A flow's protocol.
    Transport => {"type": "string", "enum": ["tcp", "udp"]};
    /// A probe's protocol.
    Probed => {"type": "string", "enum": ["icmp", "udp"]};
    /// What a tunnel is.
    Tunnelled => {"type": "string", "enum": ["wireguard", "ipsec", "fou", "gre", "vxlan"]};
    /// How IPsec encrypts.
    Cipher => {"type": "string", "enum": ["aes-gcm", "aes-cbc-hmac-sha256"]};
    /// Whose queue changes.
    Side => {"type": "string", "enum": ["egress", "ingress"]};
    /// What is traced.
    Traced => {"type": "string", "enum": ["cc"]};
    /// What makes flows.
    FlowTool => {"type": "string", "enum": ["iperf3", "netperf", "flent"]};
    /// What makes probes.
    ProbeTool => {"type": "string", "enum": ["irtt"]};
    /// What a program's output measures.
    Measured => {"type": "string", "enum": ["flow", "probe"]};
}
