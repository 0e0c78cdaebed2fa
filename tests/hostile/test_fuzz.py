"""Drawn scenarios, arrivals and files of results: each is read, or refused with a BakeoffError; nothing else, soon."""

import json
import shutil

import pytest
import yaml
from fuzzing import ANY, CHANGES, changed, drawn, read_all
from hypothesis import example, given
from hypothesis import strategies as st

from bakeoff import engines, replay
from bakeoff.errors import BakeoffError
from bakeoff.scenario import bounds, expand, load
from bakeoff.scenario.yaml_file import parse_value

# A case that holds a long text is long when it is told.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

SCENARIO = {
    "scenario": "s",
    "title": "t {start}",
    "duration": "2s",
    "network": {
        "path": ["cli", "mid", "srv"],
        "rtt": "10ms",
        "bottleneck": {"at": "mid", "rate": "10mbit", "qdisc": "fq_codel flows 1"},
        "links": [{"ends": ["cli", "mid"], "delay": "1ms", "loss": "1%", "mtu": 1500}],
        "tunnels": [{"name": "tun", "kind": "ipsec", "replay_window": 64}],
    },
    "hosts": {"sysctl": {"net.ipv4.tcp_ecn": 3}},
    "flows": [
        {"name": "f", "cc": "reno", "start": "{start}", "dscp": 0x13, "tunnel": "tun"},
        {"name": "g-{n}", "cc": ["cubic", "bbr"], "count": 2, "source": {"rate": "1mbit", "size": "1200B"}},
    ],
    "probes": [{"name": "ping", "type": "icmp", "every": "50ms"}],
    "changes": [{"at": "1s", "rate": "5mbit"}],
    "vary": {"start": {"now": "0s", "later": "100ms"}},
    "measure": {"steady_state": {"window": "1s", "ends": "at end"}},
    "present": {"colours": {"f": "teal"}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@drawn
@given(changes=CHANGES)
@example(changes=[(293, "twice", "9" * 5000)])
@example(changes=[(6658, "twice", "9" * 5000)])
def test_a_scenario_is_expanded_or_refused(folder, changes):
    path = folder / "x.yaml"
    path.write_bytes(yaml.safe_dump(changed(SCENARIO, changes), allow_unicode=True).encode(errors="surrogatepass"))
    try:
        runs = expand(load(path))
        assert all(run.key.isprintable() and ".." not in run.key.split("/") for run in runs)
        engines.get("sim").check(runs[0])
    except BakeoffError as error:
        assert len(str(error)) < 5000  # noqa: PT017 (either is right)


@drawn
@given(
    text=st.one_of(
        st.text(alphabet="[]{}:-,?&*!|>'\"#%@`ab1 \n\t\0<", max_size=200),
        st.tuples(st.sampled_from(["[", "{a: ", "- ", "? ", "&a [", "!!set {", "<<: {"]), st.integers(1, 5000)).map(
            lambda drawn: drawn[0] * drawn[1]
        ),
        st.text(max_size=100),
    )
)
def test_yaml_is_plain_data_or_refused(text):
    try:
        data = parse_value(text, "x")
    except BakeoffError:
        return
    assert bounds.too_much_text(data) is None
    assert isinstance(data, (dict, list, str, int, float, bool, type(None)))


@drawn
@given(
    rows=st.lists(st.lists(st.one_of(ANY.map(str), st.sampled_from(["0", "60", "ce", "1e400", "nan"])), max_size=5)),
    raw=st.binary(max_size=50),
)
def test_arrivals_are_read_or_refused(folder, rows, raw):
    path = folder / "a.csv"
    text = "time_s,bytes,flow,ecn\n0,60,0,ce\n" + "".join(",".join(row) + "\n" for row in rows)
    path.write_bytes(text.encode(errors="surrogatepass") + raw)
    try:
        assert replay.arrivals.read(path).packets
    except BakeoffError as error:
        assert len(str(error)) < 1000  # noqa: PT017 (either is right)


@drawn
@given(name=st.sampled_from(["run.json", "summary.json", "counters.json"]), changes=CHANGES, cut=st.integers(0, 2000))
@example(
    name="run.json", changes=[(2690, "twice", 619143), (263, "twice", "æœÆŒﬀʤʨß"), (4796, "drop", -1960020)], cut=221
)
@example(name="run.json", changes=[(61, "value", "\u0088x"), (458, "value", 1)], cut=0)
def test_a_results_folder_is_read_or_refused(done, folder, name, changes, cut):
    root = folder / "c"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(done, root)
    [path] = root.rglob(name)
    text = json.dumps(changed(json.loads(path.read_text()), changes))
    path.write_text(text[: -(cut % len(text))] if cut % 7 == 0 and cut else text, errors="surrogatepass")
    read_all(root)


@drawn
@given(at=st.integers(0, 100_000), value=st.binary(min_size=1, max_size=8))
def test_samples_are_read_or_refused(done, folder, at, value):
    root = folder / "c"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(done, root)
    [path] = root.rglob("series.parquet")
    content = bytearray(path.read_bytes())
    # The footer and the heads of pages are what decides; half of the cases hit the footer.
    at = len(content) - 1 - at % 2000 if at % 2 else at % len(content)
    content[at : at + len(value)] = value
    path.write_bytes(content)
    read_all(root)
