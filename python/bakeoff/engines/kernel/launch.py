"""What runs between the fork and the kernel: `python launch.py SPEC COMMAND…` confines itself and becomes COMMAND.

SPEC is a JSON object: `parent` (process id), `writable` (folders). A program of its own and not a `preexec_fn`,
because boots run side by side in threads. Standard library only; no import of bakeoff, so that it starts in some 20 ms.

* The kernel dies with its parent, even if that was killed with SIGKILL (PR_SET_PDEATHSIG).
* Landlock, where the host's kernel has it: the kernel process and all its helpers can write nowhere but below
`writable`.
  It is the second wall; the first is that the guest mounts the host's files read-only.
"""

import ctypes
import json
import os
import signal
import struct
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
# Landlock's system calls have the same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

# linux/landlock.h: WRITE_FILE (1), REMOVE_DIR and REMOVE_FILE (4, 5), MAKE_* (6 to 12): all since ABI 1.
_WRITE_FILE = 1 << 1
_WRITES = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
# MAKE_CHAR (6), MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM (9 to 12): nobody needs them, and who opens such a file
# afterwards comes to another place than the one that the name says.
_SPECIAL = sum(1 << bit for bit in (6, 9, 10, 11, 12))
_REFER = 1 << 13  # ABI 2
_TRUNCATE = 1 << 14  # ABI 3


def landlock_abi(libc: ctypes.CDLL) -> int:
    """The version of Landlock that this kernel enforces; 0 if none."""
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_RULESET_VERSION))))


def confine(libc: ctypes.CDLL, writable: list[str]) -> bool:
    """Forbid this process and its children every write outside `writable`; False where that is impossible."""
    abi = landlock_abi(libc)
    if abi == 0:
        return False
    handled = _WRITES | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    attribute = struct.pack("=Q", handled)
    ruleset = int(libc.syscall(_CREATE_RULESET, attribute, ctypes.c_size_t(len(attribute)), ctypes.c_uint32(0)))
    if ruleset < 0:
        return False
    for path in [*writable, "/dev/null"]:
        allowed = handled & ~(_SPECIAL | _REFER) if Path(path).is_dir() else handled & (_WRITE_FILE | _TRUNCATE)
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", allowed, parent)
        if (
            libc.syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), rule, ctypes.c_uint32(0))
            != 0
        ):
            raise OSError(ctypes.get_errno(), f"landlock_add_rule {path}")
        os.close(parent)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return int(libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))) == 0


def main(spec: str, command: list[str]) -> None:
    """Confine this process and execute `command` in its place."""
    document = json.loads(spec)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != document["parent"]:
        # The parent was gone before the line above took effect.
        sys.exit(1)
    confine(libc, document["writable"])
    for name, value in document["environment"].items():
        os.environ[name] = value
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
