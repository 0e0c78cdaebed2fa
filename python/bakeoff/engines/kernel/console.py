"""What the guest's kernel says on its console when something went wrong that does not stop it."""

from __future__ import annotations

import re
from typing import Final

# What the kernel writes -> what it means for a run.
_SAID: Final = {
    r"page allocation failure": "the guest had no memory for something that it needed",
    r"Out of memory|oom-kill|invoked oom-killer": "the guest ran out of memory",
    r"out of memory -- consider tuning tcp_mem": "TCP came to the limit of its memory",
    r"too many orphaned sockets": "TCP ended connections for want of memory",
    r"Possible SYN flooding": "a listener refused connections",
    r"neighbou?r table overflow": "the table of neighbours was full",
    r"nf_conntrack: .*table full": "the table of connections was full, and packets were dropped",
    r"Dead loop on virtual device": "packets went in a circle, and were dropped",
    r"NETDEV WATCHDOG": "a device's queue stood still",
    r"suspect GRO implementation": "packets came merged that TCP cannot use as they are",
    r"WARNING: |BUG: |kernel BUG at|Oops|general protection fault|UBSAN: ": "the kernel came upon a fault of its own",
    r"BUG \S+ \(.*\): |list_(add|del) corruption": "the kernel spoilt its own memory",
    r"INFO: (trying to register|lockdep is turned off)|turning off the locking": "the kernel disabled its lock checks",
    r"ref_tracker: |unregister_netdevice: waiting": "the kernel lost count of who uses a device or a namespace",
    r"kmemleak: \d+ new suspected": "the kernel lost memory",
    r"rcu: INFO: .*stall|soft lockup|blocked for more than": "a part of the kernel stood still",
}
_KERNELS_OWN: Final = re.compile(r"\[\s*\d+\.\d+\]")


def trouble(text: str) -> str | None:
    """The first line of the kernel's own that tells of trouble, with what it means; None if there is none."""
    for line in text.splitlines():
        if not _KERNELS_OWN.match(line):
            continue
        for pattern, meaning in _SAID.items():
            if re.search(pattern, line):
                return f"{meaning}: {line.strip()!r}"
    return None
