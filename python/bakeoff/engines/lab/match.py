"""Which packets, in the words of tc's u32: bits of the IPv4 header without options, and of what follows it."""

from __future__ import annotations

from typing import Final

from bakeoff.errors import RefusedError
from bakeoff.scenario.run import Match

PROTOCOLS: Final = {"icmp": 1, "tcp": 6, "udp": 17}
ECN: Final = {"not-ect": 0, "ect1": 1, "ect0": 2, "ce": 3}
_SYN: Final = "0x02"
# 20 bytes of IPv4, and the flags are byte 13 of TCP (RFC 9293, 3.1).
TCP_FLAGS_AT: Final = 33


def words(match: Match, flows: dict[str, list[str]], place: str) -> list[str]:
    """`match ip dsfield 0x4c 0xfc …`; `flows` gives the words for the packets of each flow or probe by name."""
    found: list[str] = []
    if match.syn is not None and match.proto not in (None, "tcp"):
        raise RefusedError(f"{place}.syn: not valid with proto '{match.proto}'; expected 'tcp'")
    proto = "tcp" if match.syn is not None else match.proto
    if proto is not None:
        found += ["match", "ip", "protocol", str(PROTOCOLS[proto]), "0xff"]
    value = (match.dscp or 0) << 2 | (ECN[match.ecn] if match.ecn is not None else 0)
    mask = (0xFC if match.dscp is not None else 0) | (0x03 if match.ecn is not None else 0)
    if mask:
        found += ["match", "ip", "dsfield", f"0x{value:02x}", f"0x{mask:02x}"]
    if match.syn is not None:
        found += ["match", "u8", _SYN if match.syn else "0x00", _SYN, "at", str(TCP_FLAGS_AT)]
    if match.flow is not None:
        if match.flow not in flows:
            raise RefusedError(
                f"{place}.flow: '{match.flow}': not a flow or probe outside tunnels; expected one of {', '.join(flows)}"
            )
        found += flows[match.flow]
    return found or ["match", "u32", "0", "0"]
