"""The same document gives the same bytes, whoever runs it."""

import json
from pathlib import Path

import numpy as np

from bakeoff import _sim, campaign, results
from bakeoff.scenario import Run

DATA = Path(__file__).parent / "data"


def fnv1a(data: bytes) -> int:
    """FNV-1a, 64 bits: as in crates/sim/tests/determinism.rs."""
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


def test_the_extension_gives_the_digest_of_the_rust_tests():
    # The extension is a release build, the Rust test another one: their digests must agree.
    outcome = _sim.simulate((DATA / "determinism.json").read_text())
    rows = np.rec.fromarrays([outcome["time"], outcome["series"], outcome["value"]], dtype="<f8,<u4,<f8")
    assert f"{fnv1a(rows.tobytes()):016x}" == (DATA / "determinism.digest").read_text().strip()


def test_one_and_two_jobs_give_the_same_series(tmp_path):
    document = json.loads((DATA / "determinism.json").read_text())
    document |= {"duration_s": 2.0, "window_s": [0.5, 2.0]}
    runs = [Run.from_json(json.dumps(document | {"run": f"seed-{seed}", "seed": seed})) for seed in (1, 2, 3)]
    digests = []
    for jobs in (1, 2):
        report = campaign.run(runs, tmp_path / str(jobs), jobs=jobs)
        assert not report.failed
        digests.append([results.read(path).meta["digest"] for path in results.scan(tmp_path / str(jobs))])
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 3, "the seed reaches RED's draws"
