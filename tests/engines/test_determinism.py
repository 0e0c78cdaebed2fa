"""The same document gives the same bytes, whoever runs it."""

import json
import re
from pathlib import Path

import numpy as np

from bakeoff import _sim, campaign, results
from bakeoff.campaign import Execution
from bakeoff.scenario import Run
from bakeoff.version import MODEL_EPOCH

DATA = Path(__file__).parents[1] / "data"


def fnv1a(data: bytes) -> int:
    """FNV-1a, 64 bits: as in crates/sim/tests/determinism.rs."""
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


def test_the_extension_gives_the_digest_of_the_rust_tests():
    # The extension is an optimised build (release or ci), the Rust test another one: their digests must agree.
    outcome = _sim.simulate((DATA / "determinism.json").read_text())
    rows = np.rec.fromarrays([outcome["time"], outcome["series"], outcome["value"]], dtype="<f8,<u4,<f8")
    assert f"{fnv1a(rows.tobytes()):016x}" == (DATA / "determinism.digest").read_text().strip()


def test_one_and_two_jobs_give_the_same_series(tmp_path):
    document = json.loads((DATA / "determinism.json").read_text())
    document |= {"duration_s": 2.0, "window_s": [0.5, 2.0]}
    runs = [Run.from_json(json.dumps(document | {"run": f"seed-{seed}", "seed": seed})) for seed in (1, 2, 3)]
    digests = []
    for jobs in (1, 2):
        report = campaign.run(runs, tmp_path / str(jobs), Execution(jobs=jobs))
        assert not report.failed
        digests.append([results.read(path).record.digest for path in results.scan(tmp_path / str(jobs))])
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 3, "the seed reaches RED's draws"


def test_a_changed_digest_is_a_new_model_epoch():
    lines = (DATA / "model-epochs.txt").read_text().splitlines()
    epochs = [(int(epoch), digest) for epoch, digest in (line.split() for line in lines if not line.startswith("#"))]
    assert [epoch for epoch, _ in epochs] == list(range(1, MODEL_EPOCH + 1)), (
        "every epoch up to MODEL_EPOCH of python/bakeoff/version.py has one line in model-epochs.txt"
    )
    assert epochs[-1][1] == (DATA / "determinism.digest").read_text().strip(), (
        "the simulator's numbers moved: raise MODEL_EPOCH in python/bakeoff/version.py and add a line here"
    )


def test_the_changelog_knows_the_epoch():
    headings = re.findall(r"^### Models \(epoch (\d+)\)$", (DATA.parent.parent / "CHANGELOG.md").read_text(), re.M)
    assert int(headings[0]) == MODEL_EPOCH, "CHANGELOG.md's newest heading is '### Models (epoch N)'"
