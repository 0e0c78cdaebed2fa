"""Programs of a scenario: their words, names, files, and the flow or the probe that each of them makes."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from bakeoff import files
from bakeoff.scenario import units
from bakeoff.scenario.error import DocumentError, did_you_mean
from bakeoff.scenario.headers import IP_UDP
from bakeoff.scenario.language import Document, MeasuredFlow, MeasuredProbe, ProgramSpec
from bakeoff.scenario.matrix import PLACEHOLDER
from bakeoff.scenario.run import Bulk, Flow, Probe, Program

WORDS: Final = ("out", "seed")
"""What a placeholder of a command line may name besides nodes."""
_OF_A_SHELL: Final = ("|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "&>")


def resolve_programs(doc: Document, hosts: list[str], folder: Path) -> list[Program]:
    """The programs of `doc`, whose files are named from `folder`; DocumentError names the place of what is wrong.

    `hosts` are the nodes that have an address.
    """
    names = _names(doc.programs)
    programs: list[Program] = []
    for index, spec in enumerate(doc.programs):
        place = f"programs[{index}]"
        name = spec.name or next(names)
        if any(name == other.name for other in programs):
            raise DocumentError(f"{place}.name", f"duplicate name '{name}'; expected unique names")
        if spec.node not in hosts:
            raise DocumentError(
                f"{place}.node", f"'{spec.node}': no such host in the network{did_you_mean(spec.node, hosts)}"
            )
        argv = _argv(spec.run, hosts, f"{place}.run")
        if "/" in argv[0] and not Path(argv[0]).is_absolute():
            # Whether it is there, the engine says: a scenario can be read before its programs are built.
            argv[0] = str(_below(argv[0], folder, f"{place}.run"))
        start, stop = _during(doc, spec, place)
        flow, probe = measured(argv, spec)
        programs.append(
            Program(
                name=name,
                node=spec.node,
                argv=argv,
                start_s=start,
                stop_s=stop,
                exit=spec.exit,
                reads=[str(_file(path, folder, f"{place}.reads[{n}]")) for n, path in enumerate(spec.reads)],
                measures="flow" if flow else "probe" if probe else None,
            )
        )
    return programs


def made(doc: Document, programs: list[Program], hosts: list[str], taken: set[str]) -> tuple[list[Flow], list[Probe]]:
    """The flows and probes that the programs make; DocumentError if a name is `taken` or an end is no host."""
    flows: list[Flow] = []
    probes: list[Probe] = []
    end = round(doc.idle + doc.duration + doc.idle, 9)
    for index, (spec, program) in enumerate(zip(doc.programs, programs, strict=True)):
        if program.measures is None:
            continue
        place = f"programs[{index}]"
        if program.name in taken:
            raise DocumentError(
                f"{place}.name",
                f"duplicate name '{program.name}'; expected unique names among programs, flows and probes",
            )
        flow, probe = measured(program.argv, spec)
        start = program.start_s or 0.0
        stop = min(end, program.stop_s or end)
        if flow is not None:
            sender, receiver = flow.from_ or program.node, flow.to or program.node
            for key, host in (("from", sender), ("to", receiver)):
                if host not in hosts:
                    raise DocumentError(f"{place}.flow.{key}", f"'{host}': unknown host{did_you_mean(host, hosts)}")
            if sender == receiver:
                raise DocumentError(f"{place}.flow", f"from '{sender}' to itself; expected 'to', or 'from'")
            flows.append(
                Flow(
                    name=program.name, from_=sender, to=receiver, cc=flow.cc, transport=flow.transport,
                    start_s=start, stop_s=stop, source=Bulk(),
                )
            )  # fmt: skip
        if probe is not None:
            if probe.to not in hosts:
                raise DocumentError(f"{place}.probe.to", f"'{probe.to}': unknown host{did_you_mean(probe.to, hosts)}")
            if probe.to == program.node:
                raise DocumentError(f"{place}.probe.to", f"from '{probe.to}' to itself; expected another host")
            size = probe.size or (84 if probe.type == "icmp" else 60)
            probes.append(
                Probe(
                    name=program.name, proto=probe.type, from_=program.node, to=probe.to, every_s=probe.every,
                    size=size, start_s=start, stop_s=stop,
                )
            )  # fmt: skip
    return flows, probes


def measured(argv: list[str], spec: ProgramSpec) -> tuple[MeasuredFlow | None, MeasuredProbe | None]:
    """The flow or the probe that a program makes: as the scenario says, or as its command line does."""
    if spec.flow is not None or spec.probe is not None:
        return spec.flow, spec.probe
    name, words = Path(argv[0]).name, argv[1:]
    hosts = [found[1] for word in words if (found := re.fullmatch(r"\{(\w[\w.-]*)\}(?::\d+)?", word))]
    hosts = [host for host in hosts if host not in WORDS]
    if name == "iperf3" and {"-J", "--json"} & set(words) and {"-c", "--client"} & set(words) and hosts:
        back = bool({"-R", "--reverse"} & set(words))
        udp = bool({"-u", "--udp"} & set(words))
        cc = "none" if udp else _after(words, "-C", "--congestion") or "cubic"
        ends = {"from": hosts[0]} if back else {"to": hosts[0]}
        return MeasuredFlow.model_validate({"cc": cc, "transport": "udp" if udp else "tcp", **ends}), None
    if name == "ping" and "-D" in words and hosts:
        every = units.parse_time(f"{_after(words, '-i') or 1}s")
        size = int(_after(words, "-s") or 56) + IP_UDP
        return None, MeasuredProbe.model_construct(to=hosts[-1], type="icmp", every=every, size=size)
    if name == "irtt" and words[:1] == ["client"] and "-o" in words and hosts:
        every = units.parse_time(_after(words, "-i") or "1s")
        return None, MeasuredProbe.model_construct(to=hosts[-1], type="udp", every=every, size=None)
    return None, None


def _after(words: list[str], *options: str) -> str | None:
    """The word behind an option."""
    found = [words[at + 1] for at, word in enumerate(words[:-1]) if word in options]
    return found[0] if found else None


def _names(specs: list[ProgramSpec]) -> Iterator[str]:
    """Names for those without one: what each runs, with a number where that would stand twice."""
    given = {spec.name for spec in specs if spec.name}
    wanted = [
        re.sub(r"[^\w.-]", "_", Path((spec.run.split() or ["program"])[0]).name) for spec in specs if not spec.name
    ]
    numbers = {name: count(1) for name, times in Counter(wanted).items() if times > 1 or name in given}
    for name in wanted:
        numbered = (f"{name}-{number}" for number in numbers.get(name, ()))
        yield next((other for other in numbered if other not in given), name)


def _argv(line: str, hosts: list[str], place: str) -> list[str]:
    try:
        argv = shlex.split(line)
    except ValueError as error:
        raise DocumentError(place, f"'{line}': {error}; expected shell words") from None
    if not argv or not argv[0]:
        raise DocumentError(place, f"'{line}': missing program; expected for example 'iperf3 -s -1'")
    if "\0" in line:
        raise DocumentError(place, "contains a zero byte; expected shell words")
    for word in argv:
        if word in _OF_A_SHELL:
            raise DocumentError(place, f"'{word}' needs a shell; expected \"sh -c '…'\"")
        for found in PLACEHOLDER.finditer(word):
            if found[1] is not None and found[1] not in (*hosts, *WORDS):
                near = did_you_mean(found[1], [*hosts, *WORDS])
                raise DocumentError(place, f"'{{{found[1]}}}': unknown node{near}; a literal brace is '{{{{'")
    return argv


def _file(path: str, folder: Path, place: str) -> Path:
    """A file or folder of the scenario's that is there."""
    whole = _below(path, folder, place)
    if not whole.exists():
        raise DocumentError(place, f"'{path}': no such file {whole}")
    return whole


def _below(path: str, folder: Path, place: str) -> Path:
    """The whole path of what lies in the scenario's folder or below."""
    whole = Path(os.path.realpath(folder / path)) if "\0" not in path else None
    if whole is None or not files.is_below(whole, folder):
        raise DocumentError(place, f"'{path}' is outside {folder.resolve()}; expected a file inside it")
    return whole


def _during(doc: Document, spec: ProgramSpec, place: str) -> tuple[float | None, float | None]:
    """When it starts and when it is ended, in seconds of the run."""
    since = spec.at if spec.at is not None else 0.0
    if since > doc.duration:
        raise DocumentError(f"{place}.at", f"{since:g} s is after the end of the run, {doc.duration:g} s")
    if spec.stop is not None and not since < spec.stop <= doc.duration:
        raise DocumentError(
            f"{place}.stop", f"{spec.stop:g} s; expected a time after the start, within the run of {doc.duration:g} s"
        )
    start = None if spec.at is None else round(doc.idle + spec.at, 9)
    return start, None if spec.stop is None else round(doc.idle + spec.stop, 9)
