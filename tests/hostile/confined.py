"""A program in the place of a kernel that tries to do what no guest needs: `confined.py TARGETS.json ANSWER.json`.

TARGETS: `secret` (a file), `folder` (that file's), `results`, `tcp` (a port), `path` and `abstract` (names of Unix
sockets), `process` (a process id). ANSWER: for each attempt `done`, or the errno by name. Standard library only.
"""

import ctypes
import errno
import json
import os
import socket
import sys
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWUSER = 0x10000000
_PTRACE_SEIZE = 0x4206


def call(*words):
    if libc.syscall(*words) < 0:
        raise OSError(ctypes.get_errno(), "")


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as stream:
        stream.connect(address)


def in_child(what):
    """Its answer in a process of its own, which then may."""
    child = os.fork()
    if child == 0:
        try:
            what()
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, "")


def attempts(target):
    secret, folder, results = target["secret"], Path(target["folder"]), Path(target["results"])
    yield "read", lambda: Path(secret).read_bytes()
    yield "list", lambda: list(folder.iterdir())
    yield "write", lambda: Path(secret).write_text("changed")
    yield "truncate", lambda: os.truncate(secret, 0)
    yield "make", lambda: (folder / "made").write_text("")
    yield "chmod", lambda: Path(secret).chmod(0o777)
    yield "utime", lambda: os.utime(secret, (1, 1))
    yield "chown", lambda: os.chown(secret, os.getuid(), os.getgid())
    yield "setxattr", lambda: os.setxattr(secret, "user.a", b"b")
    yield "link in results", lambda: (results / "l").symlink_to("/")
    yield "folder in results", (results / "d").mkdir
    yield "name in results", lambda: os.link(secret, results / "h")
    yield "tcp", lambda: connect(socket.AF_INET, ("127.0.0.1", target["tcp"]))
    yield "unix", lambda: connect(socket.AF_UNIX, target["path"])
    yield "abstract", lambda: connect(socket.AF_UNIX, "\0" + target["abstract"])
    yield "udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    yield "signal", lambda: os.kill(target["process"], 0)
    yield "ptrace", lambda: call(101, _PTRACE_SEIZE, target["process"], 0, 0)
    yield "environment", lambda: Path(f"/proc/{target['process']}/environ").read_bytes()
    yield "leave the group", lambda: in_child(os.setsid)
    yield "user namespace", lambda: in_child(lambda: call(272, _CLONE_NEWUSER))
    yield "shared memory", lambda: call(29, 0, 4096, 0o1600)
    yield "priority", lambda: os.setpriority(os.PRIO_PROCESS, target["process"], 1)


def main():
    said = {}
    for name, attempt in attempts(json.loads(Path(sys.argv[1]).read_text())):
        try:
            attempt()
            said[name] = "done"
        except OSError as error:
            said[name] = errno.errorcode[error.errno]
    Path(sys.argv[2]).write_text(json.dumps(said))


if __name__ == "__main__":
    main()
