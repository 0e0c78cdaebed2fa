"""X25519 (RFC 7748): WireGuard's public keys, so that a plan can state them without running a program.

In plain integers, not in constant time: the keys of a laboratory follow from the run's seed and are no secret.
"""

from __future__ import annotations

from typing import Final

_P: Final = 2**255 - 19
_A24: Final = 121665
_BASE: Final = 9


def clamp(key: bytes) -> bytes:
    """32 bytes as a private key (RFC 7748, section 5: decodeScalar25519)."""
    return bytes([key[0] & 248, *key[1:31], key[31] & 127 | 64])


def public(private: bytes) -> bytes:
    """The public key of a private key of 32 bytes."""
    return multiply(private, _BASE.to_bytes(32, "little"))


def multiply(scalar: bytes, point: bytes) -> bytes:
    """X25519(scalar, u): the Montgomery ladder of RFC 7748, section 5."""
    k = int.from_bytes(clamp(scalar), "little")
    x1 = int.from_bytes(point, "little") % 2**255 % _P
    x2, z2, x3, z3 = 1, 0, x1, 1
    swapped = 0
    for t in reversed(range(255)):
        bit = k >> t & 1
        if swapped ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swapped = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a, b * b, d * a, c * b
        e = aa - bb
        x3, z3 = pow(da + cb, 2, _P), x1 * pow(da - cb, 2, _P) % _P
        x2, z2 = aa * bb % _P, e * (aa + _A24 * e) % _P
    if swapped:
        x2, z2 = x3, z3
    return (x2 * pow(z2, _P - 2, _P) % _P).to_bytes(32, "little")
