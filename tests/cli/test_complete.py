"""What a shell completes: all names that there are, without heavy imports, and never a message."""

import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import bakeoff
from bakeoff import _sim
from bakeoff.cli import complete
from bakeoff.plots.kinds import KINDS
from bakeoff.references import load
from bakeoff.results import survey
from bakeoff.scenario import catalog
from bakeoff.tables import results_table

RUN = "l4s-tests/s6-rfc3168/ns-prague-vs-cubic-ecn-fq_codel(1q)-50Mbit-20ms"
HEAVY = ("matplotlib", "numpy", "polars", "pydantic", "rich", "yaml", "bakeoff.scenario", "bakeoff.campaign.schedule")


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
    assert complete.cc("cubic ") == [f"cubic {part}" for part in _sim.congestion_control_parts()]
    assert complete.cc("reno search  v") == ["reno search  validation"]
    assert complete.qdisc("fq_c") == ["fq_codel"]
    assert complete.qdisc("pie,fq_c") == ["pie,fq_codel"]


def test_results_are_completed_part_by_part(made, monkeypatch):
    monkeypatch.chdir(made)
    assert complete.results("") == ["results/a", "results/latest", "l4s-tests/s6-rfc3168"]
    assert complete.results("results/a/l4") == ["results/a/l4s-tests"]
    assert complete.results("l4s-tests/s6-rfc3168/") == [RUN, f"{RUN}~seed2"]
    assert complete.results_or_reference("li") == ["linux", "linux-7.3", "linux-today"]
    assert complete.axis("") == ["other", "ecn", "qdisc"]


@pytest.mark.parametrize("kind", ["runs", "flows", "queues", "probes"])
def test_every_column_of_a_table_is_completed(made, monkeypatch, kind):
    """Of the second flow, queue and probe as of the first; intervals have the name of their number."""
    monkeypatch.chdir(made)
    results = survey(Path("results/a")).results[:1]
    table = pl.read_csv(io.StringIO(results_table.render(results, format="csv", kind=kind)))
    names = {re.sub(r"^(flow|queue|probe)\d+_", r"\g<1>1_", re.sub("_ci95", "", name)) for name in table.columns}
    assert names - set(complete.columns("")) == set()
    assert complete.columns("run,convergen") == ["run,convergence_s"]
    assert complete.order("-convergen") == ["-convergence_s"]


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
        if getattr(of, "__annotations__", {}).get("return") == "list[str]"
        and name[0] != "_"
        and name not in ("columns", "order", "measure")  # the catalogue of measures, which has numpy's types
    ]
    code = f"import sys\nfrom bakeoff.cli import complete\nfor name in {names}: getattr(complete, name)('')\n"
    code += f"print([name for name in {HEAVY} if name in sys.modules])"
    environment = {"PYTHONPATH": str(Path(bakeoff.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=made, env=environment, capture_output=True, text=True, check=True
    )
    assert {"kind", "results", "scenario", "cc", "reference", "kernel", "axis"} <= set(names)
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


ACTS = "!\"#$&'*;<=>?[\\]^`{|}~ \t\n()@+,%:"
"""Characters that bash, zsh or fish act on somewhere in a word."""
HARMLESS = "=~()@+,%:"
"""Those of them that no shell acts on within a word once parentheses are escaped."""


def named(folder, names):
    for name in names:
        (folder / "results" / name).mkdir(parents=True)


def test_what_a_shell_would_act_on_is_not_offered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named(tmp_path, [f"q{c}q" for c in ACTS] + ["--html=x", "qq[^a-z[]*", "qq$(touch PWNED)", "q(e{touch PWNED})"])
    assert complete.results("") == sorted(f"results/q{c}q" for c in HARMLESS)
    monkeypatch.setenv("_BAKEOFF_COMPLETE", "complete_bash")
    assert complete.results("results/q(") == [r"results/q\(q"]
    named(tmp_path / "results/latest", [])
    for name in ("~root", "=cat", "--yes", "~+"):
        (tmp_path / "results/latest" / name / "s").mkdir(parents=True)
    assert not [word for word in complete.results("") if word[0] in "~=-"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("extglob", ["-s", "-u"])
def test_bash_takes_each_completion_for_the_name_that_it_is(tmp_path, extglob):
    """Each reply of the completion function, as a word of a command line. Files that a pattern could mean are there."""
    named(
        tmp_path, [f"q{c}q" for c in ACTS] + ["qq", "q(1q)", "q@(q)", "q[^a-z]*", "q$(touch PWNED)", "q\\(touch PWNED)"]
    )
    script = f"""
        shopt {extglob} extglob
        eval "$(bakeoff --show-completion bash)"
        COMP_WORDS=(bakeoff table results/q) COMP_CWORD=2
        _bakeoff_completion bakeoff
        for word in "${{COMPREPLY[@]}}"; do eval "set -- $word"; echo "$# $1"; done
    """
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    offered = [f"q{c}q" for c in HARMLESS] + ["qq", "q(1q)", "q@(q)"]
    assert sorted(done.stdout.splitlines()) == sorted(f"1 results/{name}" for name in offered)
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
