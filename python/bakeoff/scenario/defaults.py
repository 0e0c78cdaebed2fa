"""What a scenario has where it says nothing."""

from collections.abc import Mapping
from typing import Final

HOST_SYSCTLS: Final[Mapping[str, int | str]] = {"net.ipv4.tcp_ecn": 3}
"""`hosts.sysctl`: both ends negotiate AccECN (RFC 9768). A duel has the same."""
