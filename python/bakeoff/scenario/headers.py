"""Bytes of the headers ahead of a payload."""

from typing import Final

ETHERNET: Final = 14
"""What Linux counts in a frame besides the IP packet (skb->len on egress)."""
IP_UDP: Final = 28
"""IPv4 and UDP, or IPv4 and ICMP."""
UDP_FRAME: Final = ETHERNET + IP_UDP
