"""Packet captures, written byte by byte."""

import socket
import struct
from collections.abc import Iterable

FIN, SYN, RST, PSH, ACK, ECE, CWR, AE = 1, 2, 4, 8, 16, 64, 128, 256
ETHERNET = 1
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"


def ip(source: str, target: str, protocol: int, payload: bytes, ecn: int = 0) -> bytes:
    """An IPv4 or IPv6 packet, by its addresses."""
    if ":" in source:
        ends = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, target)
        return struct.pack("!IHBB", 6 << 28 | ecn << 20, len(payload) & 0xFFFF, protocol, 64) + ends + payload
    ends = socket.inet_aton(source) + socket.inet_aton(target)
    head = struct.pack("!BBHHHBBH", 0x45, ecn, (20 + len(payload)) & 0xFFFF, 0, 0x4000, 64, protocol, 0)
    return head + ends + payload


def tcp(
    source: tuple[str, int],
    target: tuple[str, int],
    *,
    flags: int = ACK,
    seq: int = 0,
    ack: int = 0,
    payload: int = 0,
    window: int = 65_535,
    options: bytes = b"",
    ecn: int = 0,
) -> bytes:
    """A TCP segment in an IP packet; options are padded."""
    options += b"\0" * (-len(options) % 4)
    words = (5 + len(options) // 4) << 12 | flags
    head = struct.pack("!HHIIHHHH", source[1], target[1], seq % 2**32, ack % 2**32, words, window, 0, 0)
    return ip(source[0], target[0], 6, head + options + b"\0" * payload, ecn)


def udp(source: tuple[str, int], target: tuple[str, int], payload: bytes, ecn: int = 0) -> bytes:
    """A datagram in an IP packet."""
    head = struct.pack("!HHHH", source[1], target[1], (8 + len(payload)) & 0xFFFF, 0)
    return ip(source[0], target[0], 17, head + payload, ecn)


def echo(source: str, target: str, *, reply: bool, identifier: int, sequence: int) -> bytes:
    """An ICMP or ICMPv6 echo."""
    kind = (129 if reply else 128) if ":" in source else (0 if reply else 8)
    head = struct.pack("!BBHHH", kind, 0, 0, identifier, sequence)
    return ip(source, target, 58 if ":" in source else 1, head + b"\0" * 56)


def ethernet(packet: bytes) -> bytes:
    """A frame."""
    return b"\2" * 12 + (b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00") + packet


def pcap(packets: Iterable[tuple[float, bytes]], *, snap: int = 65_535, link_type: int = ETHERNET) -> bytes:
    """A file of IP packets at these times, in seconds since 1970, as Ethernet frames; nanosecond resolution."""
    parts = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, snap, link_type)]
    for time_s, packet in packets:
        frame = ethernet(packet) if link_type == ETHERNET else packet
        ns = round(time_s * 1e9)
        kept = frame[:snap]
        parts.append(struct.pack("<IIII", ns // 10**9 % 2**32, ns % 10**9, len(kept), len(frame)) + kept)
    return b"".join(parts)


def pcapng(packets: Iterable[tuple[float, bytes, int]], interfaces: int = 1) -> bytes:
    """The same as pcapng; the third of each is the number of its interface. A time below 0 is that of 2^64 less."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        length = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + length + body + length

    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    nanoseconds = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    parts += [block(1, struct.pack("<HHI", ETHERNET, 0, 0) + nanoseconds)] * interfaces
    for time_s, packet, interface in packets:
        frame = ethernet(packet)
        high, low = divmod(round(time_s * 1e9) % 2**64, 2**32)
        parts.append(block(6, struct.pack("<IIIII", interface, high, low, len(frame), len(frame)) + frame))
    return b"".join(parts)
