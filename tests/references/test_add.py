"""Somebody's table as a reference: what it takes, and what it refuses."""

from __future__ import annotations

import pytest

from bakeoff import references
from bakeoff.errors import BakeoffError
from bakeoff.scenario import catalog

MINE = """
scenario: mine
duration: 2s
network: {path: [a, m, b], rtt: 10ms, bottleneck: {rate: 10mbit, qdisc: "{qdisc}"}}
flows: [{name: "prague{n}", count: 2, cc: prague}, {name: cubic, cc: cubic}]
vary: {qdisc: [fq_codel, dualpi2]}
"""
HEAD = "run,flow,measure,value,unit,sd,n"


@pytest.fixture
def add(tmp_path):
    (tmp_path / "mine.yaml").write_text(MINE)
    runs = catalog.select(str(tmp_path / "mine.yaml"))

    def added(*lines, head=HEAD, source="Doe 2025", **given):
        (tmp_path / "cells.csv").write_text("\n".join((head, *lines)) + "\n")
        return references.add(tmp_path / "cells.csv", runs, tmp_path / "r" / "doe.csv", source=source, **given)

    added.to = tmp_path / "r" / "doe.csv"
    return added


def test_numbers_are_converted_to_base_units(add):
    lines = add("fq_codel,cubic,goodput,4.5,Mbit/s,0.1,10", "fq_codel,,little_delay_p99,25,ms,,", licence="MIT")
    assert [(line.value, line.unit, line.sd, line.n, line.licence) for line in lines] == [
        (4.5e6, "bit/s", 1e5, 10, "MIT"),
        (0.025, "s", None, 1, "MIT"),
    ]
    assert references.named(str(add.to)) == lines
    assert {(line.reference, line.suite, line.scenario, line.source) for line in lines} == {
        ("doe", "local", "mine", "Doe 2025")
    }


def test_a_line_has_its_own_source(add):
    [line] = add("fq_codel,prague*,goodput,4.5,Mbit/s,Roe 2024", head="run,flow,measure,value,unit,source")
    assert (line.flow, line.source) == ("prague*", "Roe 2024")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fq_codl,cubic,goodput,4,Mbit/s,,", "cells.csv:2: run: unknown 'fq_codl'; did you mean 'fq_codel'?"),
        ("fq_codel,bbr,goodput,4,Mbit/s,,", "cells.csv:2: flow: 'bbr' for goodput; expected one of prague1, prague2"),
        ("fq_codel,,goodput,4,Mbit/s,,", "cells.csv:2: flow: '' for goodput; expected one of prague1"),
        ("fq_codel,cubic,marks,4,packet,,", "cells.csv:2: flow: 'cubic' for marks; expected no flow"),
        ("fq_codel,cubic,speed,4,Mbit/s,,", "cells.csv:2: measure: unknown 'speed'; expected one of delivery_rate"),
        ("fq_codel,cubic,goodput,4,ms,,", "cells.csv:2: unit: unknown 'ms'; expected one of bit/s, kbit/s"),
        ("fq_codel,cubic,goodput,fast,Mbit/s,,", "cells.csv:2: could not convert string to float: 'fast'"),
        ("fq_codel,cubic,goodput,0,Mbit/s,,", "doe.csv:2: value: '0'; expected a number above zero"),
    ],
)
def test_mistakes_are_named_and_nothing_is_left(add, line, message):
    with pytest.raises(BakeoffError) as error:
        add(line)
    assert message in str(error.value)
    assert not add.to.exists()


def test_a_source_is_asked_for(add):
    with pytest.raises(BakeoffError, match=r"cells.csv:2: source: missing; expected who measured this"):
        add("fq_codel,cubic,goodput,4,Mbit/s,,", source="")


def test_an_existing_reference_is_kept(add):
    add("fq_codel,cubic,goodput,4,Mbit/s,,")
    with pytest.raises(BakeoffError, match=r"doe.csv: exists; choose another name"):
        add("fq_codel,cubic,goodput,5,Mbit/s,,")
    assert references.named(str(add.to))[0].value == 4e6


def test_the_command(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(MINE)
    (tmp_path / "cells.csv").write_text(f"{HEAD}\nfq_codel,cubic,goodput,4.5,Mbit/s,0.1,10\n")
    code, out, _ = cli("reference", "add", "cells.csv", "--scenario", "mine.yaml", "--source", "Doe 2025")
    assert code == 0
    assert "references/cells.csv: 1 numbers of 1 runs, 1 with the scatter of trials" in out
    assert references.named("references/cells.csv")[0].value == 4.5e6
