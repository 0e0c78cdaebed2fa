"""Programs that a scenario names, as what the agent starts in the nodes' namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bakeoff import files
from bakeoff.engines.lab import tool_output
from bakeoff.engines.lab.plan import Plan, Program
from bakeoff.engines.lab.topology import Topology
from bakeoff.errors import RunError
from bakeoff.results import irtt_json, layout
from bakeoff.scenario import Run
from bakeoff.scenario.matrix import PLACEHOLDER

_PING: Final = re.compile(r"^\[([0-9.]+)\] .*icmp_seq=(\d+) .*time=([0-9.]+) ms", re.MULTILINE)
_PINGED: Final = re.compile(r"^(\d+) packets transmitted, (\d+) received", re.MULTILINE)


def programs(run: Run, net: Topology, folder: str) -> Iterator[Program]:
    """The run's programs; what they write goes below `folder`, the results of the run."""
    for program in run.programs:
        own = f"{layout.PROGRAMS}/{program.name}"

        def filled(word: str, own: str = own) -> str:
            def value(found: re.Match[str]) -> str:
                name = found[1]
                if name is None:
                    return found[0][0]
                if name == "out":
                    return f"{folder}/{own}"
                return str(run.seed) if name == "seed" else net.address(name)

            return PLACEHOLDER.sub(value, word)

        yield Program(
            program.node,
            tuple(filled(word) for word in program.argv),
            net.namespaces[program.node],
            name=program.name,
            file=f"{own}/{layout.PROGRAM_OUT}",
            start_s=program.start_s,
            folder=own,
            stop_s=program.stop_s,
            exit=program.exit,
            reads=tuple(program.reads),
        )


def make_folders(plan: Plan, folder: Path) -> None:
    """The folders that the plan's programs write into, below the results."""
    for program in plan.programs:
        if program.folder:
            (folder / program.folder).mkdir(parents=True, exist_ok=True)


def folders(plan: Plan) -> list[str]:
    """The folders of programs in the results, the outermost first."""
    own = [program.folder for program in plan.programs if program.folder]
    return [layout.PROGRAMS, *own] if own else []


def read(run: Run, folder: Path, started: dict[str, tuple[float, int]], tools: tool_output.ToolOutput) -> None:
    """Take over what the programs tell of their flows and probes; `started` is `tool_output.started`.

    RunError names the output that is not what was expected.
    """
    for index, program in enumerate(run.programs):
        if program.measures is None:
            continue
        file = f"{layout.PROGRAMS}/{program.name}/{layout.PROGRAM_OUT}"
        text = files.plain_text(folder / file)
        started_s, epoch_ns = started[program.name]
        expected = "JSON in iperf3's form" if program.measures == "flow" else "lines of 'ping -D', or irtt's JSON"
        try:
            if program.measures == "flow":
                udp = next(flow.transport == "udp" for flow in run.flows if flow.name == program.name)
                tool_output.iperf3(tool_output.document(text), program.name, started_s, tools, udp=udp)
            elif _PINGED.search(text):
                ping(text, program.name, epoch_ns / 1e9, tools)
            else:
                tool_output.irtt(irtt_json.parse(text[text.index("{") :].encode(), file), program.name, epoch_ns, tools)
            tool_output.need_finite(tools.rows)
        except RunError:
            raise
        except tool_output.NOT_ITS as error:
            raise RunError(
                f"programs[{index}]: '{program.name}': {file}: {error!r}; expected {expected}, for its measure "
                f"{program.measures}"
            ) from error


def ping(text: str, name: str, epoch_s: float, tools: tool_output.ToolOutput) -> None:
    """`ping -D`: a round trip per answer, at the time when the request was sent; and a loss where none came."""
    sent, received = map(int, _PINGED.findall(text)[-1])
    answers = {int(number): (float(at), float(rtt_ms) / 1e3) for at, number, rtt_ms in _PING.findall(text)}
    for at, rtt_s in answers.values():
        tools.rows.append((at - rtt_s - epoch_s, "probe", name, "rtt", rtt_s))
    if len(answers) < received:
        raise ValueError(f"{received} answers, and {len(answers)} lines with a time")
    if answers:
        # Requests leave at even distances: those without an answer left between the others.
        first, last = min(answers), max(answers)
        start, end = (answers[number][0] - answers[number][1] for number in (first, last))
        every = (end - start) / (last - first) if last > first else 1.0
        lost = set(range(1, sent + 1)) - set(answers)
        rows = [(start + (number - first) * every - epoch_s, "probe", name, "lost", 1.0) for number in sorted(lost)]
        tools.rows += rows
    tools.counters["probes"][name] = {"sent": sent, "received": received}
