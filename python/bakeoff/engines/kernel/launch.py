"""What runs between the fork and the kernel: `python launch.py SPEC COMMAND…` confines itself and becomes COMMAND.

SPEC is a JSON object: `parent` (process id), `core` (the number of a processor core, or null for all), `environment`,
and the paths `results` (a folder), `writable` (folders) and `readable` (files and folders). A program of its own and
not a `preexec_fn`, because boots run side by side in threads. Standard library only; no import of bakeoff, so that it
starts in some 20 ms.

The kernel and all its helpers are confined, whoever built it; the other wall is that the guest mounts the host's files
read-only. `docs/kernel-engine.md`, Confinement, says what is left.

* They die with their parent, even if that was killed with SIGKILL (PR_SET_PDEATHSIG), and cannot leave their process
  group, which is killed at the end of a boot.
* Capabilities: none but CAP_DAC_OVERRIDE, and that only where the user has it.
* Landlock, where the host's kernel has it: what they can open is what SPEC names and the system's folders.
* seccomp: what Landlock has no word for. The filter is for x86-64, the only processor of User-Mode Linux here.
"""

import contextlib
import ctypes
import errno
import json
import os
import platform
import resource
import signal
import struct
import sys

_PR_SET_PDEATHSIG, _PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 21, 22, 24, 38
_SECCOMP_MODE_FILTER = 2
_CAP_DAC_OVERRIDE = 1
_LAST_CAP = 63
_LINUX_CAPABILITY_VERSION_3 = 0x20080522
# Landlock's system calls have the same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

# linux/landlock.h
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REG = 1 << 7, 1 << 8
_TRUNCATE = 1 << 14
# Bits that each version added to what it can refuse: MAKE_SYM is the last of version 1 (bit 12), REFER is bit 13,
# TRUNCATE bit 14, IOCTL_DEV bit 15. What is granted nowhere has no name here: special files, links, REFER, IOCTL_DEV.
_FILES_SINCE = {1: (1 << 13) - 1, 2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}
_NET_SINCE = {4: 0b11}  # BIND_TCP, CONNECT_TCP
_SCOPES_SINCE = {6: 0b11}  # abstract Unix sockets, signals

_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _MAKE_REG | _REMOVE_FILE
_OWN = _WRITE | _EXECUTE | _MAKE_DIR | _REMOVE_DIR

# What programs of any kind need. No home folder, no /var, /run, /srv, /opt, /root; of /etc single files; of /proc the
# kernel process itself, because what a guest draws from a seed must not depend on whether the host has Landlock.
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc/cpuinfo", "/proc/self"),
    *(
        f"/etc/{name}"
        for name in (
            *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "localtime", "locale.alias"),
            *("nsswitch.conf", "passwd", "group", "hosts", "host.conf", "protocols", "services", "ethertypes"),
            *("mime.types", "iproute2", "modprobe.d", "ssl/openssl.cnf"),
        )
    ),
)

_AUDIT_ARCH_X86_64 = 0xC000003E
_X32 = 0x40000000
_CLONE_NAMESPACES = 0x7E020000
_SET_ATTRIBUTES = (0x40086602, 0x401C5820)  # FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR
_TYPE_INTO_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
# Numbers of x86-64's system calls that are refused, by what they would do.
_REFUSED = {
    "modes, owners, times and attributes of files": (
        *(90, 268, 452),  # chmod, fchmodat, fchmodat2
        *(92, 93, 94, 260),  # chown, fchown, lchown, fchownat
        *(132, 235, 261, 280),  # utime, utimes, futimesat, utimensat
        *(188, 189, 190, 197, 198, 199, 463, 466, 469),  # setxattr and removexattr, file_setattr
    ),
    "sockets of any kind; io_uring makes them too": (41, 425),
    "leaving the process group": (109, 112),  # setpgid, setsid
    "System V and POSIX memory, semaphores and queues": (29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 220, 240, 241),
    "keys of the user": (248, 249, 250),  # add_key, request_key, keyctl
    "priorities and processors of other processes": (141, 142, 144, 203, 251, 314),
    "watching files": (253, 294, 300),  # inotify_init, inotify_init1, fanotify_init
    "namespaces": (272, 308),  # unshare, setns
    "large attack surfaces": (298, 321, 323),  # perf_event_open, bpf, userfaultfd
}
_IOCTL, _CLONE, _FCHMOD, _PRLIMIT64, _CLONE3 = 16, 56, 91, 302, 435


def landlock_abi(libc: ctypes.CDLL) -> int:
    """The version of Landlock that this kernel enforces; 0 if none."""
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_RULESET_VERSION))))


def has_seccomp(libc: ctypes.CDLL) -> bool:
    """Whether this kernel filters system calls, and this module has a filter for its processor."""
    return platform.machine() == "x86_64" and int(libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0)) >= 0


def restrict_files(libc: ctypes.CDLL, results: str, writable: list[str], readable: list[str]) -> bool:
    """Landlock: this process and its children open nothing else; False where that is impossible.

    Paths of `readable` that do not exist are left out. OSError if the kernel refuses a rule.
    """
    abi = landlock_abi(libc)
    if abi == 0:
        return False
    handled, network, scopes = (
        sum(bits for since, bits in added.items() if since <= abi)
        for added in (_FILES_SINCE, _NET_SINCE, _SCOPES_SINCE)
    )
    # What an older kernel does not know of has to be zero at the end.
    attribute = struct.pack("=QQQ", handled, network, scopes)
    ruleset = int(libc.syscall(_CREATE_RULESET, attribute, ctypes.c_size_t(len(attribute)), ctypes.c_uint32(0)))
    if ruleset < 0:
        return False
    granted = [(path, _READ) for path in (*SYSTEM, *readable)]
    granted += [("/dev/null", _OF_FILES), (results, _WRITE), *((path, _OWN) for path in writable)]
    for path, rights in granted:
        try:
            parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            if rights == _READ:
                continue
            raise
        allowed = handled & rights & (-1 if os.path.isdir(path) else _OF_FILES)  # noqa: PTH112 (imports nothing more)
        rule = struct.pack("=Qi", allowed, parent)
        words = ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), rule, ctypes.c_uint32(0)
        if libc.syscall(_ADD_RULE, *words) != 0:
            raise OSError(ctypes.get_errno(), f"landlock_add_rule {path}")
        os.close(parent)
    return int(libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))) == 0


def restrict_calls(libc: ctypes.CDLL) -> bool:
    """seccomp: this process and its children are refused the system calls above; False where that is impossible."""
    if not has_seccomp(libc):
        return False
    program = b"".join(_filter())
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    return int(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, head, 0, 0)) == 0


def _filter() -> list[bytes]:
    """The filter as BPF (linux/filter.h), over struct seccomp_data: number at 0, architecture at 4, arguments at 16.

    What the guest's own programs call is not concerned: User-Mode Linux catches that, by a filter with the stronger
    action TRAP or by ptrace, before this one has an effect.
    """
    load, equal, at_least, any_of, answer = 0x20, 0x15, 0x35, 0x45, 0x06

    def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("HBBI", code, then, otherwise, value)

    allow = step(answer, 0x7FFF0000)
    refuse, succeed, unknown = (step(answer, 0x00050000 | number) for number in (errno.EPERM, 0, errno.ENOSYS))
    steps = [step(load, 4), step(equal, _AUDIT_ARCH_X86_64, 1, 0), refuse]
    steps += [step(load, 0), step(at_least, _X32, 0, 1), refuse]
    for numbers in _REFUSED.values():
        for number in numbers:
            steps += [step(equal, number, 0, 1), refuse]
    # Older kernels insist on setting a mode that the file behind the guest's memory does not need.
    steps += [step(equal, _FCHMOD, 0, 1), succeed]
    # Its flags are in memory, where no filter can look; C libraries then take clone.
    steps += [step(equal, _CLONE3, 0, 1), unknown]
    steps += [step(equal, _CLONE, 0, 4), step(load, 16), step(any_of, _CLONE_NAMESPACES, 0, 1), refuse, allow]
    # Of this process only.
    steps += [step(equal, _PRLIMIT64, 0, 4), step(load, 16), step(equal, 0, 1, 0), refuse, allow]
    requests = [*_SET_ATTRIBUTES, *_TYPE_INTO_TERMINAL]
    steps += [step(equal, _IOCTL, 0, 1 + 2 * len(requests)), step(load, 24)]
    for request in requests:
        steps += [step(equal, request, 0, 1), refuse]
    return [*steps, allow]


def drop_capabilities(libc: ctypes.CDLL) -> None:
    """Keep what lets root write into other users' folders, which Landlock bounds; everything else goes for good."""
    for capability in range(_LAST_CAP + 1):
        if capability != _CAP_DAC_OVERRIDE:
            libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("=Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    held = ctypes.create_string_buffer(24)
    if libc.capget(header, held) == 0:
        effective, permitted = struct.unpack_from("=II", held.raw)
        keep = 1 << _CAP_DAC_OVERRIDE
        libc.capset(header, struct.pack("=6I", effective & keep, permitted & keep, 0, 0, 0, 0))


def main(spec: str, command: list[str]) -> None:
    """Confine this process and execute `command` in its place."""
    document = json.loads(spec)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != document["parent"]:
        # The parent was gone before the line above took effect.
        sys.exit(1)
    # Before restrict_calls, after which nothing here can move to other cores again.
    if document["core"] is not None:
        with contextlib.suppress(OSError):  # the core may have been taken away in the meantime
            os.sched_setaffinity(0, {document["core"]})
    # A core dump would lie where the system wants it, with the guest's memory in it.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    drop_capabilities(libc)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    restrict_files(libc, document["results"], document["writable"], document["readable"])
    restrict_calls(libc)
    for name, value in document["environment"].items():
        os.environ[name] = value
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
