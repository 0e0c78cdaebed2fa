"""examples/rust-cc: a congestion control in a crate outside of the tree builds, passes its tests and runs a duel."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bakeoff.crate import build
from bakeoff.errors import CrateError
from bakeoff.extension import VARIABLE

ROOT = Path(__file__).parents[2]


def cargo(command: str) -> str:
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    # The tree's own folder and profile: what `make test-rust` compiled of what both depend on is not compiled again.
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    place = ["--manifest-path", str(ROOT / "examples" / "rust-cc" / "Cargo.toml"), "--target-dir", target]
    profile = ["--profile", "ci", "--config", str(ROOT / "Cargo.toml")]
    # The compiler has most of the work here: what it spends on faster code is more than three tests and a duel gain.
    sooner = ["--config", "profile.ci.package.bakeoff-sim.opt-level=0"]
    done = subprocess.run(
        ["cargo", command, "--quiet", "--locked", *place, *profile, *sooner],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.xdist_group("cargo")
def test_the_crate_outside_of_the_tree_tests_and_runs():
    assert "3 passed" in cargo("test")
    lines = cargo("run").splitlines()
    assert [line.partition(":")[0] for line in lines] == ["cubic", "scalable"]
    rates = [float(line.split()[1]) for line in lines]
    # 50 Mbit/s of frames of 1514 bytes with 1448 of payload; an eighth less per loss wins against three tenths less.
    assert sum(rates) < 50 * 1448 / 1514
    assert rates[1] > 2 * rates[0]


@pytest.mark.xdist_group("cargo")
def test_any_command_runs_with_the_crate_of_a_user(tmp_path, monkeypatch):
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # A folder of its own: the settings of PyO3 differ from those of the extension, which would be compiled again.
    target = Path(os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))) / "own"
    config = ["profile.ci.package.bakeoff-sim.opt-level=0"]
    extension = build(ROOT / "examples" / "rust-cc", profile="ci", target=target, config=config)
    done = subprocess.run(
        [sys.executable, "-m", "bakeoff", "duel", "scalable ai 50", "reno", "--duration", "5s", "--json"],
        env=os.environ | {VARIABLE: str(extension)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    # The simulator's own scalable has no parameter.
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_a_folder_without_a_crate_is_refused(tmp_path):
    with pytest.raises(CrateError, match=r"no Cargo\.toml"):
        build(tmp_path)
