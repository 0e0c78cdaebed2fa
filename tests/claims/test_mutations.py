"""Mistakes made on purpose in a copy of the catalog: `bakeoff verify` ends with 1 and names the claims that turned.

Each is one that the laboratories of the documents made or could have made. Only the claims that the changed files are
about are decided, so that a few seconds of simulation show it.
"""

import shutil
from pathlib import Path

import pytest

from bakeoff.api.do_verify import mutated
from bakeoff.claims.claim import load
from bakeoff.claims.required_runs import required_runs

ROOT = Path(__file__).resolve().parents[2]
BAKEOFF = "suites/sce-l4s-bakeoff"
PROFILE = "profiles/sce-l4s-bakeoff-l4s.yaml"


@pytest.fixture
def verify(tmp_path, monkeypatch, cli):
    """Decides claims with a piece of text in the catalog replaced: the exit code, and the claims that turned."""
    shutil.copytree(ROOT / "catalog", tmp_path / "catalog")
    monkeypatch.setenv("BAKEOFF_CATALOG", str(tmp_path / "catalog"))
    monkeypatch.chdir(tmp_path)

    def run(pattern, name=None, old="", new=""):
        if name is not None:
            path = tmp_path / "catalog" / name
            text = path.read_text()
            assert text.count(old) == 1, f"{name} is not what this test was written for"
            path.write_text(text.replace(old, new))
        code, _, err = cli("verify", pattern, "--quiet", "-j", "1")
        return code, {line.split()[1].rstrip(":") for line in err.splitlines() if line.startswith("differs: ")}

    return run


@pytest.mark.parametrize(
    ("pattern", "name", "old", "new"),
    [
        # DualPI2's coupling: classic packets are marked by the square of p, L4S ones by p instead of 2p.
        pytest.param(
            "l4s-tests/table-1-rate-cubic-20",
            "suites/l4s-tests/s1-rttfair.yaml",
            "line: dualpi2@2020,",
            "line: dualpi2@2020 coupling_factor 1,",
            id="coupling",
        ),
        # Prague's alpha begins at 0, which is what issue 17 was about.
        pytest.param(
            "issue-16-17/alpha-1-removes-it",
            "suites/issue-16-17/issue-17.yaml",
            "prague-alpha-1: {cc: prague@2019-11,",
            "prague-alpha-1: {cc: prague@2020-08 alpha_mode 0,",
            id="alpha",
        ),
        # CoDel's target is 25 ms instead of 5.
        pytest.param(
            "sce-l4s-bakeoff/s2-dctcp-rtt-at-codels-target",
            f"{BAKEOFF}/l4s-s2-fq-codel.yaml",
            "qdisc: fq_codel",
            "qdisc: fq_codel target 25ms",
            id="target",
        ),
        # Every run has an RTT of 10 ms, whatever it is called.
        pytest.param("sce-l4s-bakeoff/s5-prague-spike-duration", PROFILE, 'rtt: "{rtt.label}"', "rtt: 10ms", id="rtt"),
        # The two flows of a pair have each other's congestion control.
        pytest.param(
            "sce-l4s-bakeoff/s3-prague-rate-10ms",
            PROFILE,
            "[{name: cubic-1, cc: cubic@5.4}, {name: prague-2, cc: prague@2019-11, start: 10s}]",
            "[{name: cubic-1, cc: prague@2019-11}, {name: prague-2, cc: cubic@5.4, start: 10s}]",
            id="swapped",
        ),
    ],
)
def test_a_mistake_turns_the_claims_that_rest_on_it(verify, pattern, name, old, new):
    assert verify(pattern) == (0, set())
    assert verify(pattern, name, old, new) == (1, {pattern})


@pytest.mark.parametrize(
    "claim",
    [
        "sce-l4s-bakeoff/s2-dctcp-rtt-at-codels-target",  # another target
        "sce-l4s-bakeoff/s3-prague-rate-10ms",  # a queue for each flow
        "issue-16-17/alpha-1-removes-it",  # with the bug on both sides
    ],
)
def test_a_claim_does_not_hold_under_its_mutation(claim, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    code, out, err = cli("verify", claim, "--mutations", "--quiet", "--seeds", "3", "-j", "1")
    assert code == 0, err
    # One claim, and it does not hold: what is undecided shows nothing.
    assert out.splitlines()[-1].split()[1:] == ["1", "0", "1", "0", "0", "0"]


def test_the_runs_of_all_mutations_are_in_the_catalog():
    several = mutated(load())
    assert len(required_runs(several, 1)) == len(several)
