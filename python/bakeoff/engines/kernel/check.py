"""What a virtual-time kernel can run of the catalog, what not, and why: from its configuration and by asking it.

One boot tries every qdisc kind, classifier, action, device, tunnel and mangling rule with the host's own `tc`, `ip` and
`nft`, and reads the list of congestion controls. That takes a second or two.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bakeoff import files, jsonfile, tc
from bakeoff.engines import controls
from bakeoff.engines.kernel import config, host_programs, registry
from bakeoff.engines.kernel.boot import boot, python_files
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.lab import agent, departure_times, module_qdiscs
from bakeoff.errors import RefusedError, UnreachableError
from bakeoff.scenario import cc_words

if TYPE_CHECKING:
    from bakeoff.scenario.run import Run


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@cache
def qdiscs() -> Mapping[str, str]:
    """Kind -> the least that tc wants to hear about it."""
    return {kind.name: kind.least_words for kind in tc.kinds().values() if kind.tried}


# What Linux itself had in 7.3: more than this is what a development tree adds.
_MAINLINE_SCH: Final = _words(
    "bpf cake cbs choke codel default drr dualpi2 etf ets fifo fq fq_codel fq_pie gred hfsc hhf htb ingress mqprio "
    "mqprio_lib multiq netem pie plug prio qfq red sfb sfq skbprio taprio tbf teql"
)
_CONTROLS: Final = controls.LINUX.union(controls.MODULES)
# qdisc kind -> symbol, where it is not NET_SCH_ and the kind.
_SCH_SYMBOL: Final = {"bfifo": "NET_SCH_FIFO", "pfifo": "NET_SCH_FIFO", "pfifo_fast": "NET_SCHED"}

_SCE: Final = ("net.ipv4.tcp_sce", "net.ipv4.tcp_sce_pacing")


@cache
def _own() -> Mapping[str, str]:
    """Symbol of a congestion control or a queue -> the module of this repository that has it."""
    return {controls.symbol(name): module for name, module in controls.MODULES.items()} | {
        f"NET_SCH_{kind.upper()}": module for kind, module in module_qdiscs.modules().items()
    }


# Where the guest has it.
_AGENT: Final = f"/tmp/out/{agent.NAME}"  # noqa: S108
_V = "veth0"
_ADD_VETH: Final = [f"ip link add {_V} type veth peer name veth1", f"ip link set {_V} up", "ip link set veth1 up"]
_HTB: Final = [
    *_ADD_VETH,
    f"tc qdisc add dev {_V} root handle 1: htb default 1",
    f"tc class add dev {_V} parent 1: classid 1:1 htb rate 50mbit ceil 50mbit",
]
_PRIO: Final = [*_ADD_VETH, f"tc qdisc add dev {_V} root handle 1: prio"]
_MATCH: Final = f"tc filter add dev {_V} parent 1: protocol ip prio 1"
# Linux's largest replay window.
_SA: Final = "ip xfrm state add src 10.0.0.1 dst 10.0.0.2 proto esp spi 0x1 mode tunnel replay-window 4096"
_KEY: Final = "000102030405060708090a0b0c0d0e0f"
# (kind, name) -> (symbol of the configuration, commands); each group in a namespace of its own
_OTHERS: Final[Mapping[tuple[str, str], tuple[str, list[str]]]] = {
    ("device", "veth"): ("VETH", _ADD_VETH),
    ("device", "bridge"): ("BRIDGE", ["ip link add br0 type bridge"]),
    ("device", "ifb"): ("IFB", ["ip link add ifb0 type ifb"]),
    ("device", "tun"): ("TUN", ["ip tuntap add dev tun0 mode tun"]),
    ("qdisc", "ingress"): ("NET_SCH_INGRESS", [*_ADD_VETH, f"tc qdisc add dev {_V} handle ffff: ingress"]),
    ("filter", "u32"): ("NET_CLS_U32", [*_PRIO, f"{_MATCH} u32 match u32 0 0 flowid 1:1"]),
    ("filter", "flower"): ("NET_CLS_FLOWER", [*_PRIO, f"{_MATCH} flower ip_tos 0x4c/0xfc flowid 1:1"]),
    ("filter", "matchall"): ("NET_CLS_MATCHALL", [*_PRIO, f"{_MATCH} matchall flowid 1:1"]),
    ("filter", "bpf"): ("NET_CLS_BPF", [*_PRIO, f"{_MATCH} bpf bytecode '1,6 0 0 0' flowid 1:1"]),
    ("action", "mirred"): ("NET_ACT_MIRRED", [*_PRIO, f"{_MATCH} matchall action mirred egress redirect dev veth1"]),
    ("action", "pedit"): (
        "NET_ACT_PEDIT",
        [*_PRIO, f"{_MATCH} matchall action pedit ex munge ip dsfield set 0 retain 0x3 pipe action csum ip4h"],
    ),
    ("action", "skbedit"): ("NET_ACT_SKBEDIT", [*_PRIO, f"{_MATCH} matchall action skbedit priority 1:1"]),
    ("tunnel", "wireguard"): ("WIREGUARD", ["ip link add wg0 type wireguard"]),
    ("tunnel", "ipsec aes-gcm"): ("INET_ESP", [f"{_SA} aead rfc4106(gcm(aes)) 0x{_KEY}01020304 128"]),
    ("tunnel", "ipsec aes-cbc-hmac-sha256"): (
        "INET_ESP",
        [f"{_SA} auth-trunc hmac(sha256) 0x{_KEY * 2} 128 enc cbc(aes) 0x{_KEY}"],
    ),
    ("tunnel", "fou"): (
        "NET_FOU",
        [
            "ip fou add port 5556 ipproto 4",
            "ip link add name fou0 type ipip remote 10.0.0.2 local 10.0.0.1 "
            "encap fou encap-sport auto encap-dport 5556",
        ],
    ),
    ("tunnel", "gre"): ("NET_IPGRE", ["ip link add tun0 type gre remote 10.0.0.2 local 10.0.0.1"]),
    ("tunnel", "vxlan"): ("VXLAN", ["ip link add tun0 type vxlan id 1 remote 10.0.0.2 local 10.0.0.1 dstport 4789"]),
    ("mangle", "nftables"): (
        "NF_TABLES",
        [
            "nft add table ip t",
            "nft add chain ip t c { type filter hook forward priority 0 ; }",
            "nft add rule ip t c ip dscp set 0",
        ],
    ),
    ("mangle", "nftables in a bridge"): (
        "NF_TABLES_BRIDGE",
        [
            "nft add table bridge t",
            "nft add chain bridge t c { type filter hook forward priority 0 ; }",
            "nft add rule bridge t c ip ecn set not-ect",
        ],
    ),
}


@dataclass(frozen=True)
class Finding:
    """One thing that the catalog may ask for."""

    kind: str
    """`boot`, `cc`, `qdisc`, `filter`, `action`, `device`, `tunnel`, `mangle` or `clock`."""
    name: str
    ok: bool
    why: str
    """What stands in the way and what would help; empty if `ok`."""


@dataclass(frozen=True)
class Report:
    """What `check` found out about one kernel."""

    kernel: str
    release: str
    fingerprint: str
    findings: tuple[Finding, ...]
    adds: dict[str, list[str]]
    """`cc` and `qdisc` -> names that Linux 7.3 does not have: what a development tree brings."""

    def to_json(self) -> dict[str, object]:
        """The report as plain values."""
        return asdict(self)

    def names(self, kind: str) -> set[str]:
        """What of this kind works."""
        return {finding.name for finding in self.findings if finding.kind == kind and finding.ok}


def check(name_or_path: str | Path) -> Report:
    """Boot the kernel once and report. BakeoffError if there is no such kernel, or no `ip` or `tc` to ask it with."""
    kernel = registry.get(name_or_path)
    return check_kernel(kernel)


def check_kernel(kernel: BuiltKernel) -> Report:
    """`check` of a kernel that was already found.

    UnreachableError if it was stopped because it had used up its wall time: then nobody knows what it has.
    """
    for program in ("ip", "tc"):
        host_programs.need(program)
    with tempfile.TemporaryDirectory(prefix="bakeoff-check-") as name:
        folder = Path(name)
        results = folder / "results"
        results.mkdir()
        (folder / "script.json").write_text(json.dumps(_script(kernel, results)))
        if module_qdiscs.offered(kernel.modules):
            # The guest has a /tmp of its own, with this folder in it.
            shutil.copy2(agent.find(), results / agent.NAME)
        init = folder / "init"
        init.write_text(f"#!{sys.executable} -IS\n{Path(__file__).with_name('probe.py').read_text()}")
        init.chmod(0o755)
        outcome = boot(
            kernel,
            folder / "script.json",
            results=results,
            init=init,
            simulated_s=5,
            seed=1,
            readable=python_files(),
        )
        if outcome.status == "hang":
            raise UnreachableError(
                f"kernel {kernel.name}: it did not report its features before the timeout: {outcome.reason}; try again "
                "on an idle machine"
            )
        answer = results / "probe.json"
        findings = [Finding("boot", "virtual time", outcome.status == "ok", outcome.reason)]
        if outcome.status == "ok" and answer.is_file():
            probed = jsonfile.decoded(files.plain_text(answer), f"kernel {kernel.name}: {answer.name}", _Probed)
            findings += _findings(kernel, probed)
            adds = _adds(kernel, probed.congestion_controls)
        else:
            adds = _adds(kernel, [])
    return Report(kernel.name, kernel.release, kernel.fingerprint, tuple(findings), adds)


def configured(kernel: BuiltKernel) -> Report:
    """What the kernel's configuration and its modules say that it has, without executing it."""

    external = controls.offered(kernel.modules)

    def finding(kind: str, name: str, symbol: str) -> Finding:
        ok = kernel.options.get(symbol, "n") != "n" or (kind == "cc" and name in external)
        return Finding(kind, name, ok, "" if ok else _lacks(kernel, symbol))

    # Every kernel has Reno, and asks about it with no symbol.
    findings = [Finding("cc", "reno", True, "")]
    findings += [finding("cc", name, controls.symbol(name)) for name in sorted(_CONTROLS - {"reno"})]
    findings += [finding("qdisc", kind, _SCH_SYMBOL.get(kind, f"NET_SCH_{kind.upper()}")) for kind in sorted(qdiscs())]
    findings += [finding(kind, name, symbol) for (kind, name), (symbol, _) in _OTHERS.items()]
    adds = _adds(kernel, [controls.named(name) for name in config.names(kernel.options, "TCP_CONG_")])
    return Report(kernel.name, kernel.release, kernel.fingerprint, tuple(findings), adds)


def missing(run: Run, report: Report) -> list[str]:
    """Why this kernel cannot do a resolved run: one line for each place that names what it lacks; empty if it can.

    A version after `@` (`prague@2020-08`) belongs to the simulator: a kernel has the one it was built with.
    """
    reasons = [f"kernel {report.kernel}: {f.why}" for f in report.findings if f.kind == "boot" and not f.ok]
    if reasons:
        # Nobody could ask it for anything else.
        return reasons
    known = {(finding.kind, finding.name): finding for finding in report.findings}

    def look(place: str, kind: str, plain: str) -> None:
        finding = known.get((kind, plain))
        if finding is None:
            if plain not in report.adds.get(kind, []):
                hint = controls.elsewhere(plain, "kernel") if kind == "cc" else ""
                reasons.append(f"{place}: {plain!r} is not in kernel {report.kernel}{hint}")
        elif not finding.ok:
            reasons.append(f"{place}: {plain!r}: {finding.why}")

    for index, flow in enumerate(run.flows):
        if flow.transport == "tcp" and flow.cc:
            look(f"flows[{index}].cc", "cc", cc_words.parse(flow.cc).name)
    has_sce = any(name.endswith("-sce") for name in report.adds.get("cc", []))
    for index, node in enumerate(run.nodes):
        for key in _SCE if not has_sce else ():
            if key in node.sysctls:
                reasons.append(f"nodes[{index}].sysctls: '{key}' is of the SCE tree, and not in kernel {report.kernel}")
    for index, tunnel in enumerate(run.tunnels):
        look(f"tunnels[{index}]", "tunnel", " ".join(filter(None, (tunnel.kind, tunnel.cipher))))
    for at in dict.fromkeys(departure_times.cleared(run).values()):
        look(f"{at}: fq on a node that forwards needs a filter that clears departure times", "filter", "bpf")
    for place, words in run.qdiscs():
        look(place, "qdisc", module_qdiscs.kernel_kind(words, report.names("qdisc")))
    return reasons


def _script(kernel: BuiltKernel, results: Path) -> dict[str, object]:
    by_agent = module_qdiscs.offered(kernel.modules)
    trials = {
        f"qdisc {kind}": [
            *_ADD_VETH,
            f"{_AGENT if kind in by_agent else 'tc'} qdisc add dev {_V} root {kind} {words}",
        ]
        for kind, words in qdiscs().items()
    }
    trials |= {f"{kind} {name}": commands for (kind, name), (_, commands) in _OTHERS.items()}
    return {
        "results": str(results),
        "path": host_programs.search_path(),
        "modules": [str(path) for path in kernel.modules],
        "trials": {name: [shlex.split(command) for command in commands] for name, commands in trials.items()},
        "htb": [command.split() for command in _HTB],
        "htb_show": ["tc", "class", "show", "dev", _V],
    }


class _Probed(msgspec.Struct):
    """What `probe.py` says of the kernel; of a command null if it went well, and otherwise what it said."""

    congestion_controls: list[str]
    htb_class: str
    modules: dict[str, str | None]
    trials: dict[str, str | None]

    def error_of(self, trial: str) -> str | None:
        """The outcome of a trial."""
        return self.trials.get(trial, "it was not tried")


def _findings(kernel: BuiltKernel, probed: _Probed) -> list[Finding]:
    available = set(probed.congestion_controls)
    findings = [Finding("clock", "HZ 1000", *_hz(kernel)), Finding("clock", "htb burst", *_burst(probed.htb_class))]
    findings += [
        Finding("module", Path(path).name, error is None, error or "") for path, error in probed.modules.items()
    ]
    for name in sorted(available.union(_CONTROLS)):
        ok = name in available
        findings.append(Finding("cc", name, ok, "" if ok else _lacks(kernel, controls.symbol(name))))
    for kind in sorted(qdiscs()):
        symbol = _SCH_SYMBOL.get(kind, f"NET_SCH_{kind.upper()}")
        findings.append(_judge(kernel, "qdisc", kind, symbol, probed.error_of(f"qdisc {kind}")))
    for (kind, name), (symbol, _) in _OTHERS.items():
        findings.append(_judge(kernel, kind, name, symbol, probed.error_of(f"{kind} {name}")))
    return findings


def _judge(kernel: BuiltKernel, kind: str, name: str, symbol: str, error: str | None) -> Finding:
    if error is None:
        return Finding(kind, name, True, "")
    if kind == "qdisc" and name in module_qdiscs.offered(kernel.modules):
        return Finding(kind, name, False, error)
    if kernel.options.get(symbol, "n") == "n":
        return Finding(kind, name, False, _lacks(kernel, symbol))
    # The kernel has it: the program that was to ask for it is missing or too old.
    if re.search(r"No such file|Unknown qdisc|What is|unknown|Unknown", error):
        return Finding(
            kind,
            name,
            False,
            f"supported by this kernel but not by the program: {error}; fetch a newer one "
            "with 'bakeoff kernel fetch-programs'",
        )
    return Finding(kind, name, False, error)


def _lacks(kernel: BuiltKernel, symbol: str) -> str:
    if (module := _own().get(symbol)) is not None:
        return f"built without the module {module}; 'bakeoff kernel build' builds it in where the source has AccECN"
    reason = f"CONFIG_{symbol} is not set"
    if symbol in kernel.not_granted:
        return f"{reason}: Linux {kernel.release} does not grant it"
    return f"{reason}: not in Linux {kernel.release} as built; build a tree that has it and name it with --kernel"


def _hz(kernel: BuiltKernel) -> tuple[bool, str]:
    hz = kernel.options.get("HZ", "unknown")
    return hz == "1000", "" if hz == "1000" else f"CONFIG_HZ={hz}: timers of TCP and htb are coarser than in the suites"


def _burst(output: str) -> tuple[bool, str]:
    """htb's default burst at 50 Mbit/s: 1600 bytes (a packet) with high-resolution timers, 7850 and more without."""
    match = re.search(r"\bburst (\S+)", output)
    if match is None:
        return False, f"tc did not show a burst: {output!r}"
    ok = match[1] in {"1600b", "1599b"}
    return ok, "" if ok else f"burst {match[1]} instead of 1600b: timers are not in high resolution"


def _adds(kernel: BuiltKernel, available: list[str]) -> dict[str, list[str]]:
    kinds = set(config.names(kernel.options, "NET_SCH_")) - _MAINLINE_SCH | module_qdiscs.offered(kernel.modules)
    return {"cc": sorted(set(available) - controls.LINUX), "qdisc": sorted(kinds)}


def require(run: Run, report: Report, *, place: str) -> None:
    """BakeoffError with every reason of `missing`, each named by its place in the run."""
    if reasons := missing(run, report):
        raise RefusedError(f"\n{place}: ".join(reasons), place=place)
