"""Scenarios as text for the tests of the language, and what becomes of them."""

from textwrap import dedent

import pytest

from bakeoff import scenario
from bakeoff.duels import Duel
from bakeoff.errors import BakeoffError
from bakeoff.scenario import expand, load

HEAD = """
duration: 60s
start_jitter: 0s
network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 50mbit, qdisc: fq_codel}}
"""
FLOW = "flows: [{name: a, cc: cubic}]\n"


def write(tmp_path, text, name="x.yaml"):
    path = tmp_path / name
    path.write_text(dedent(text))
    return path


def runs(tmp_path, text, **kwargs):
    return expand(load(write(tmp_path, text)), **kwargs)


def one(tmp_path, text):
    (run,) = runs(tmp_path, text)
    return run


def duel(cc1, cc2, seed=1, **parts):
    """The run of a duel."""
    return scenario.duel(Duel(cc1=cc1, cc2=cc2, **parts), seed=seed)


def interface(run, node, peer):
    return next(i for i in run.interfaces if (i.node, i.peer) == (node, peer))


def refused(tmp_path, text):
    with pytest.raises(BakeoffError) as error:
        runs(tmp_path, text)
    message = str(error.value)
    assert message.startswith(str(tmp_path / "x.yaml") + ": ")
    return message.removeprefix(str(tmp_path / "x.yaml") + ": ")
