"""Inventories come from anybody: whatever stands in one, it is an inventory, or one clear message, and soon."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bakeoff.engines.ssh import inventory
from bakeoff.engines.ssh.connection import Connection
from bakeoff.errors import BakeoffError

PLAIN = {
    "config": "ssh_config",
    "nodes": {
        "cli": {"host": "cli.lab", "interfaces": {"mid": "enp1s0"}},
        "mid": {
            "host": "mid.lab",
            "user": "lab",
            "become": "sudo -n",
            "interfaces": {"cli": "enp1s0", "srv": {"device": "enp2s0", "in_use": "allowed"}},
        },
        "srv": {"host": "192.0.2.7", "user": "root", "interfaces": {"mid": "enp1s0"}},
    },
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        [
            "-oProxyCommand=x",
            "a b",
            "",
            "../../etc/passwd",
            "~/x",
            "/dev/zero",
            "/dev/fd/0",
            "'",
            "sudo '",
            "$(id)",
            "\x00",
        ]
    ),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)


def places(value: Any, here: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of every part of a document."""
    inside = value.items() if isinstance(value, dict) else ()
    return [here, *(place for key, each in inside for place in places(each, (*here, key)))]


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """The plain inventory with one to three parts replaced, dropped, renamed or added."""
    made: Any = copy.deepcopy(PLAIN)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(made)))
        if not place:
            continue
        part = made
        for key in place[:-1]:
            part = part[key]
        what = draw(st.sampled_from(["replace", "drop", "rename", "add"]))
        if what == "replace":
            part[place[-1]] = draw(ODD)
        elif what == "add":
            part[draw(st.text(max_size=8))] = draw(ODD)
        else:
            value = part.pop(place[-1])
            if what == "rename":
                part[draw(st.text(max_size=8))] = value
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("beds")
    (made / "ssh_config").write_text("Host *\n")
    return made


def read(folder: Path, content: bytes) -> None:
    """An inventory that can be used as one, or one message without anything that a terminal acts on."""
    file = folder / "bed.yaml"
    file.write_bytes(content)
    try:
        made = inventory.read(file)
        inventory.need_permission(file, made)
    except BakeoffError as error:
        told = str(error)
        assert told.startswith(f"{folder}/")
        assert len(told) < 5000
        return
    for node, machine in made.nodes.items():
        # What ssh gets: no word of the inventory can be an option of it.
        words = Connection(node, machine, made.config, folder)._ssh(after=("true",))
        assert words[-2] == machine.host
        assert not machine.host.startswith("-")
        assert not any("\0" in word for word in words)
        for interface in machine.interfaces.values():
            assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}", interface.device)


CASES = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@CASES
@given(documents())
@example(PLAIN)
@example(PLAIN | {"config": "/dev/zero"})
@example(PLAIN | {"config": "\x00"})
@example(PLAIN | {"config": "x" * 5000})
def test_a_changed_inventory_is_one_or_is_refused(folder, document):
    read(folder, yaml.safe_dump(document, allow_unicode=True).encode(errors="surrogatepass"))


@CASES
@given(
    st.one_of(
        st.binary(max_size=200), st.text(alphabet="{}[]:,-&*!|>'\"%@# \n\tabnodeshost01", max_size=200).map(str.encode)
    )
)
@example(b"[" * 2000)
@example(b"nodes: &a {b: *a}")
@example(b"nodes: {a: {host: h, interfaces: {}}}\nconfig: .")
def test_any_bytes_are_an_inventory_or_are_refused(folder, content):
    read(folder, content)
