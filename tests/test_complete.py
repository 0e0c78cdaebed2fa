"""What a shell completes: all names that there are, without heavy imports, and never a message."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import bakeoff
from bakeoff import _sim
from bakeoff.campaign import place
from bakeoff.cli import complete
from bakeoff.present import tables
from bakeoff.present.kinds import KINDS
from bakeoff.references import load
from bakeoff.results import survey
from bakeoff.scenario import catalog

RUN = "l4s-tests/s6-rfc3168/ns-prague-vs-cubic-ecn-fq_codel(1q)-50Mbit-20ms"
HEAVY = ("matplotlib", "numpy", "polars", "pydantic", "rich", "yaml", "bakeoff.scenario", "bakeoff.campaign")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A working directory with one campaign of one run, which has two seeds."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        bakeoff.run(RUN, seeds=2, out="results/a", jobs=1)
    return folder


def test_scenarios_references_and_kinds_are_those_that_there_are():
    assert sorted(complete.scenario("")) == sorted(f"{one.suite}/{one.scenario}" for one in catalog.scenarios())
    assert complete.scenario("l4s-tests/s6") == ["l4s-tests/s6-rfc3168"]
    assert complete.reference("") == sorted({line.reference for line in load()})
    assert complete.kind("") == [kind.name for kind in KINDS]


def test_controls_and_qdiscs_are_completed_in_lists_too():
    assert complete.cc("") == list(_sim.congestion_controls())
    assert complete.cc("prague,cubic-") == ["prague,cubic-sce"]
    assert complete.qdisc("fq_c") == ["fq_codel"]
    assert complete.qdisc("pie,fq_c") == ["pie,fq_codel"]


def test_results_are_completed_part_by_part(made, monkeypatch):
    monkeypatch.chdir(made)
    assert complete.results("") == ["results/a", "results/latest", "l4s-tests/s6-rfc3168"]
    assert complete.results("results/a/l4") == ["results/a/l4s-tests"]
    assert complete.results("l4s-tests/s6-rfc3168/") == [RUN, f"{RUN}~seed2"]
    assert complete.results_or_reference("li") == ["linux", "linux-7.3"]
    assert complete.axis("") == ["other", "ecn", "qdisc"]
    assert (complete.RESULTS, complete.LATEST) == (place.RESULTS, place.LATEST)


@pytest.mark.parametrize("kind", ["runs", "flows", "queues", "probes"])
def test_every_column_of_a_table_is_completed(made, monkeypatch, kind):
    """Of the second flow, queue and probe as of the first; intervals have the name of their number."""
    monkeypatch.chdir(made)
    results = survey(Path("results/a")).results[:1]
    table = pl.read_csv(io.StringIO(tables.render(results, format="csv", kind=kind)))
    names = {re.sub(r"^(flow|queue|probe)\d+_", r"\g<1>1_", re.sub("_ci95", "", name)) for name in table.columns}
    assert names - set(complete.columns("")) == set()
    assert complete.columns("run,jai") == ["run,jain"]
    assert complete.order("-jai") == ["-jain"]


def test_what_cannot_be_found_out_completes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAKEOFF_CATALOG", "/dev/null")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    run = tmp_path / "results/latest/a/b/c"
    run.mkdir(parents=True)
    for text in ("", "{}", json.dumps({"resolved": {"point": 3}}), "[" * 100_000):
        (run / "run.json").write_text(text)
        assert [of("") for of in (complete.axis, complete.scenario, complete.reference, complete.kernel)] == [[]] * 4
    assert complete.results("\0/") == []


def test_nothing_heavy_is_imported(made):
    names = [
        name
        for name, of in vars(complete).items()
        if getattr(of, "__annotations__", {}).get("return") == "list[str]" and name[0] != "_"
    ]
    code = f"import sys\nfrom bakeoff.cli import complete\nfor name in {names}: getattr(complete, name)('')\n"
    code += f"print([name for name in {HEAVY} if name in sys.modules])"
    environment = {"PYTHONPATH": str(Path(bakeoff.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=made, env=environment, capture_output=True, text=True, check=True
    )
    assert {"kind", "results", "columns", "scenario", "cc", "reference", "kernel", "axis"} <= set(names)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("bakeoff plot --kind ", "heatmap"),
        ("bakeoff table --reference ", "linux-7.3"),
        ("bakeoff duel prague cubic --qdisc ", "fq_codel"),
        ("bakeoff run ", "l4s-tests/s6-rfc3168"),
        ("bakeoff run 'l4s-tests/s6*' --seeds 3 --engine ", "kernel"),
        ("bakeoff table ", "results/latest"),
        ("bakeoff plot results/a results/", "results/latest"),
        ("bakeoff plot --scale ", "fixed"),
        ("bakeoff kernel bu", "build"),
        ("bakeoff ", "duel"),
    ],
)
def test_a_shell_gets_its_words_without_heavy_imports(made, line, word):
    """The whole way that a shell takes, with the modules that the process has imported at its end."""
    code = "import atexit, sys\nfrom bakeoff.cli import main\n"
    code += f"atexit.register(lambda: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr))\n"
    code += "sys.argv = ['bakeoff']\nmain()"
    environment = {"PYTHONPATH": str(Path(bakeoff.__file__).parent.parent), "_BAKEOFF_COMPLETE": "complete_bash"}
    environment |= {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=made, env=environment, capture_output=True, text=True, check=True
    )
    assert word in done.stdout.split("\n")
    assert done.stderr == "[]\n"
