"""Drawn files of Flent and iperf3: each is imported as a results folder, or refused with a BakeoffError."""

import bz2
import gzip
import json
import shutil
from pathlib import Path

import pytest
from fuzzing import CHANGES, DAMAGE, changed, damaged, drawn, read_all, refused
from hypothesis import example, given
from hypothesis import strategies as st

from bakeoff.imports.folder import write_all

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

T0 = 1_700_000_000
FLENT = {
    "version": 4,
    "x_values": [0.0, 0.2, 0.4, 0.6],
    "results": {},
    "raw_values": {
        "TCP upload::1": [
            *({"t": T0 + 0.2 * n, "dur": 0.2, "val": 8.0} for n in range(1, 6)),
            *({"t": T0 + 0.2 * n, "tcp_cwnd": 80.0, "tcp_rtt": 30.0, "tcp_delivery_rate": 8.0} for n in range(1, 6)),
        ],
        "Ping (ms) ICMP": [{"t": T0 + 0.2 * n, "seq": n, "val": 20.0} for n in range(1, 6)],
    },
    "metadata": {
        "NAME": "tcp_nup",
        "TITLE": "t",
        "HOST": "h",
        "LOCAL_HOST": "l",
        "T0": "2023-11-14T22:13:20.000000Z",
        "LENGTH": 1,
        "STEP_SIZE": 0.2,
        "FLENT_VERSION": "2.1.1",
        "SYSCTLS": {"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_ecn": 2},
        "EGRESS_INFO": {
            "iface": "eth0",
            "qdiscs": [{"name": "tbf", "id": "8001:", "parent": "root", "params": {"refcnt": "2", "rate": "10Mbit"}}],
        },
        "SERIES_META": {"TCP upload::1": {"UNITS": "Mbits/s", "TCP_RETRANSMIT": "3", "TCP_MSS": 1448}},
    },
}
IPERF3 = {path.name: path for path in sorted((Path(__file__).parent.parent / "data" / "iperf3").glob("*.json"))}
SOME = st.one_of(st.just(([], None)), st.just(([], None)), DAMAGE)


def utf16(text: bytes) -> bytes:
    return text.decode().encode("utf-16")


def by_lines(document: object) -> str:
    """As `iperf3 --json-stream` writes it."""
    if not isinstance(document, dict):
        return json.dumps(document)
    intervals = document.get("intervals")
    events = [("interval", each) for each in (intervals if isinstance(intervals, list) else ())]
    events = [("start", document.get("start")), *events, ("end", document.get("end"))]
    return "\n".join(json.dumps({"event": event, "data": data}) for event, data in events)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("imports")


def use(folder: Path, name: str, content: bytes) -> bool:
    """Import a file, and read everything that was made of it; whether it was taken."""
    path, out = folder / name, folder / "out"
    path.write_bytes(content)
    shutil.rmtree(out, ignore_errors=True)
    if refused(lambda: write_all([path], out)) is None:
        assert not out.exists()
        return False
    read_all(out)
    return True


@drawn
@given(changes=CHANGES, damage=SOME, packed=st.sampled_from([bytes, gzip.compress, bz2.compress, utf16]))
@example(changes=[], damage=([], None), packed=bytes)
def test_a_file_of_flent_is_imported_or_refused(folder, changes, damage, packed):
    text = packed(json.dumps(changed(FLENT, changes)).encode())
    assert use(folder, "x.flent", damaged(text, damage)) or changes != []


@drawn
@given(name=st.sampled_from(list(IPERF3)), changes=CHANGES, damage=SOME, form=st.sampled_from([json.dumps, by_lines]))
@example(name="first-interval.json", changes=[], damage=([], None), form=by_lines)
def test_a_file_of_iperf3_is_imported_or_refused(folder, name, changes, damage, form):
    text = form(changed(json.loads(IPERF3[name].read_text()), changes))
    assert use(folder, "x.json", damaged(text.encode(), damage)) or changes != []
