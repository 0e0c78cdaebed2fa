"""The results folder: what is written can be read, half-written folders are told apart, the digest is defined."""

import errno
import hashlib
import json
import os
import re
import struct
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bakeoff import measure, results
from bakeoff.errors import BakeoffError
from bakeoff.measure.bottleneck import rates
from bakeoff.measure.delays import base_rtt
from bakeoff.results import Provenance, Result, RunRecord
from bakeoff.results.counters import Counters
from bakeoff.scenario import Run
from bakeoff.scenario.run import Hints

RUN = Run(
    suite="fake", scenario="s1", run="pie", seed=3, duration_s=1.0, sample_interval_s=0.1, window_s=(0.0, 1.0),
    nodes=[], links=[], flows=[],
)  # fmt: skip
RESOLVED = json.loads(RUN.to_json())
COUNTERS = {"events": 7}
MADE = Provenance(
    version="1",
    commit="59f731d",
    dirty=True,
    model_epoch=7,
    date=datetime(2026, 11, 22, 16, 55, tzinfo=UTC),
    command=("bakeoff", "run", "mine.yaml"),
    host="lab",
    note="after the patch",
)
GONE = object()


def frame(*rows: tuple[float, str, str, str, float]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=["time", "kind", "name", "metric", "value"], orient="row")


SAMPLES = frame(
    (0.1, "flow", "prague", "cwnd", 10.0),
    (0.2, "flow", "prague", "cwnd", 20.0),
    (0.1, "queue", "mid>srv", "qlen", 3.0),
)


def fill(folder: Path) -> None:
    results.write_series(folder / "series.parquet", SAMPLES)
    results.write_json(folder / "counters.json", COUNTERS)
    (folder / "setup.log").write_text("pie limit 1000p\n")


def record(**changes) -> RunRecord:
    record = RunRecord(
        run=RUN,
        engine="sim",
        versions={"bakeoff": "1"},
        seed=3,
        digest=results.digest(results.parts(SAMPLES)),
        status="ok",
        wall_s=0.25,
        error=None,
        campaign="c0ffee",
        provenance=MADE,
    )
    return record.model_copy(update=changes)


def write(folder: Path, **changes) -> Path:
    with results.writing(folder) as partial:
        fill(partial)
        results.seal(partial, record(**changes))
    return folder


def change_run_json(folder: Path, **changes) -> None:
    content = json.loads((folder / "run.json").read_text()) | changes
    kept = {key: value for key, value in content.items() if value is not GONE}
    (folder / "run.json").write_text(json.dumps(kept))


def test_what_is_written_is_read_back(tmp_path):
    result = results.read(write(tmp_path / "pie"))
    assert result.run == RUN
    assert result.record.about() == {
        "format": 1,
        "engine": "sim",
        "versions": {"bakeoff": "1"},
        "seed": 3,
        "digest": results.digest(results.parts(SAMPLES)),
        "status": "ok",
        "wall_s": 0.25,
        "error": None,
        "effective": [],
        "order": None,
        "campaign": "c0ffee",
        "provenance": {
            "version": "1",
            "commit": "59f731d",
            "dirty": True,
            "model_epoch": 7,
            "date": "2026-11-22T16:55:00Z",
            "command": ["bakeoff", "run", "mine.yaml"],
            "host": "lab",
            "note": "after the patch",
        },
    }
    assert result.record == record()
    assert result.all_counters() == COUNTERS
    assert result.counters == Counters()
    assert result.summary is None
    assert result.series.equals(SAMPLES)
    assert result.key == "fake/s1/pie~seed3"
    assert [path.name for path in tmp_path.iterdir()] == ["pie"]


def test_a_failed_run_keeps_its_logs_and_its_error_and_no_series(tmp_path):
    folder = write(tmp_path / "pie", status="failed", digest=None, error="1 packet is missing")
    assert sorted(path.name for path in folder.iterdir()) == ["run.json", "setup.log"]
    result = results.read(folder)
    assert not result.ok
    assert result.record.error == "1 packet is missing"
    assert result.record.digest is None
    assert result.counters == Counters()
    with pytest.raises(BakeoffError, match="no series, the run failed: 1 packet is missing"):
        _ = result.series


def test_digest_is_the_sha256_of_its_definition():
    def part(kind: str, name: str, metric: str, time: list[float], value: list[float]) -> bytes:
        words = f"{kind}\0{name}\0{metric}\0".encode()
        count = len(time)
        return words + struct.pack("<Q", count) + struct.pack(f"<{count}d", *time) + struct.pack(f"<{count}d", *value)

    expected = hashlib.sha256(
        part("flow", "prague", "cwnd", [0.1, 0.2], [10.0, 20.0]) + part("queue", "mid>srv", "qlen", [0.1], [3.0])
    ).hexdigest()
    assert results.digest(results.parts(SAMPLES)) == expected
    # The order of the series in the file is no content; the order of rows in a series is.
    assert results.digest(results.parts(SAMPLES[[2, 0, 1]])) == expected
    assert results.digest(results.parts(SAMPLES[[1, 0, 2]])) != expected


@pytest.mark.parametrize("column", ["time", "name", "value"])
def test_digest_sees_a_change_in_any_column(column):
    other = {"time": 0.3, "name": "cubic", "value": 21.0}[column]
    changed = [
        *SAMPLES.rows()[:1],
        tuple(other if c == column else v for c, v in zip(SAMPLES.columns, SAMPLES.row(1), strict=True)),
        SAMPLES.row(2),
    ]
    assert results.digest(results.parts(frame(*changed))) != results.digest(results.parts(SAMPLES))


def test_digest_of_no_samples_is_that_of_nothing():
    assert results.digest(results.parts(SAMPLES.clear())) == hashlib.sha256().hexdigest()


def test_equal_samples_give_equal_files(tmp_path):
    pieces = pl.concat([SAMPLES[:1], SAMPLES[1:]], rechunk=False)
    results.write_series(tmp_path / "a", SAMPLES)
    results.write_series(tmp_path / "b", pieces)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_files_with_different_words_are_read_together_as_strings(tmp_path):
    for name in ("one", "two"):
        samples = {("flow", name, "cwnd"): (np.array([0.1]), np.array([10.0]))}
        results.write_series(tmp_path / f"{name}.parquet", results.table(samples))
    both = pl.read_parquet(tmp_path / "*.parquet")
    assert both.equals(frame((0.1, "flow", "one", "cwnd", 10.0), (0.1, "flow", "two", "cwnd", 10.0)))


def test_a_block_that_raises_leaves_no_folder(tmp_path):
    write(tmp_path / "earlier")

    def broken() -> None:
        with results.writing(tmp_path / "pie") as partial:
            fill(partial)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert results.scan(tmp_path) == [tmp_path / "earlier"]
    assert [path.name for path in tmp_path.iterdir()] == ["earlier"]


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    folder = write(tmp_path / "pie")
    (folder / "note").write_text("of the old result")
    write(folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "counters.json",
        "run.json",
        "series.parquet",
        "setup.log",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["pie"]


def test_an_old_result_survives_a_failed_replacement(tmp_path):
    folder = write(tmp_path / "pie")

    def broken() -> None:
        with results.writing(folder) as partial:
            fill(partial)
            raise OSError(28, "No space left on device")

    with pytest.raises(BakeoffError, match=r"pie: cannot be written: No space left on device; .* earlier results were"):
        broken()
    assert results.read(folder).series.equals(SAMPLES)
    assert [path.name for path in tmp_path.iterdir()] == ["pie"]


def break_run_json(folder: Path) -> None:
    (folder / "run.json").write_text('{"format": 1,')


def cut_series(folder: Path) -> None:
    content = (folder / "series.parquet").read_bytes()
    (folder / "series.parquet").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / "run.json").unlink(), "run.json is missing"),
        (break_run_json, "run.json is invalid JSON"),
        (lambda folder: (folder / "series.parquet").unlink(), "series.parquet is missing or cut off"),
        (lambda folder: (folder / "series.parquet").write_bytes(b""), "series.parquet is missing or cut off"),
        (lambda folder: (folder / "series.parquet").write_bytes(b"PAR1"), "series.parquet is missing or cut off"),
        (cut_series, "series.parquet is missing or cut off"),
        (lambda folder: (folder / "counters.json").unlink(), "counters.json is missing"),
        (lambda folder: folder.rename(folder.with_name(".broken.77.partial")), "its writing was never ended"),
    ],
)
def test_a_half_written_folder_is_named_and_never_a_result(tmp_path, damage, reason):
    whole = write(tmp_path / "s" / "whole")
    damage(write(tmp_path / "s" / "broken"))
    survey = results.survey(tmp_path)
    assert results.scan(tmp_path) == survey.runs == [whole]
    [(path, why)] = survey.half_written
    assert path.name in ("broken", ".broken.77.partial")
    assert reason in why
    assert survey.complaints() == [
        f"skipped incomplete runs: {path} ({why}); do them again with 'bakeoff run … --resume'"
    ]
    if path.name == "broken":
        with pytest.raises(BakeoffError, match=f"broken: half-written: {reason}"):
            results.read(path)


def test_nothing_to_complain_about(tmp_path):
    write(tmp_path / "pie")
    assert results.survey(tmp_path).complaints() == []


def test_a_run_folder_is_found_by_its_own_path(tmp_path):
    folder = write(tmp_path / "pie")
    assert results.scan(folder) == [folder]


def test_plots_and_notes_in_a_campaign_are_no_runs(tmp_path):
    write(tmp_path / "s" / "pie")
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "bars.svg").write_text("<svg/>")
    survey = results.survey(tmp_path)
    assert (survey.runs, survey.half_written, survey.unreadable) == ([tmp_path / "s" / "pie"], [], [])


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(BakeoffError, match="nowhere: no such results folder"):
        results.scan(tmp_path / "nowhere")
    with pytest.raises(BakeoffError, match="nowhere: no such results folder"):
        results.read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": 2}, "run.json is of format 2; this version reads format 1"),
        ({"status": GONE}, "run.json: status: Field required"),
        ({"status": "fine"}, "run.json: status: Input should be 'ok' or 'failed'"),
        ({"wall_s": "1 s"}, "run.json: wall_s: Input should be a valid number"),
        (
            {"resolved": RESOLVED | {"run": 7}},
            "resolved: run: Input should be a valid string",
        ),
        (
            {"resolved": {key: value for key, value in RESOLVED.items() if key != "links"}},
            "resolved: links: Field required",
        ),
        ({"resolved": RESOLVED | {"probes": [{}]}}, "resolved: probes.0.name: Field required"),
        ({"provenance": {"version": "1"}}, "run.json: provenance.commit: Field required"),
    ],
)
def test_a_run_of_another_form_is_told_with_its_place_and_left_out(tmp_path, changes, reason):
    whole = write(tmp_path / "s" / "whole")
    broken = write(tmp_path / "s" / "broken")
    change_run_json(broken, **changes)
    with pytest.raises(BakeoffError, match=rf"broken: .*{re.escape(reason)}"):
        results.read(broken)
    survey = results.survey(tmp_path)
    assert (survey.runs, survey.half_written) == ([whole], [])
    [complaint] = survey.complaints()
    assert complaint.startswith(f"skipped unreadable runs: {broken} (")
    assert reason in complaint


def test_keys_that_older_documents_lack_are_filled_in_and_newer_ones_passed_over(tmp_path):
    folder = write(tmp_path / "pie")
    older = {key: value for key, value in RESOLVED.items() if key not in ("probes", "captures", "point")}
    change_run_json(folder, resolved=older | {"of_tomorrow": 1})
    assert results.read(folder).run == RUN


def test_a_run_from_before_campaigns_had_records_is_readable(tmp_path):
    folder = write(tmp_path / "pie")
    change_run_json(folder, campaign=GONE, provenance=GONE, effective=GONE)
    result = results.read(folder)
    assert (result.ok, result.record.campaign, result.record.provenance) == (True, None, None)


@pytest.mark.parametrize("content", ["[]", '"x"', "{", "nonsense", "\xff"])
def test_counters_of_another_form_are_told(tmp_path, content):
    folder = write(tmp_path / "pie")
    (folder / "counters.json").write_text(content, encoding="latin-1")
    with pytest.raises(BakeoffError, match=r"pie: .*counters.json (is invalid JSON|is not a JSON object)"):
        _ = results.read(folder).counters


def test_a_folder_that_the_system_refuses_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    whole = write(tmp_path / "s" / "pie")
    closed = tmp_path / "closed"
    closed.mkdir()
    scandir = os.scandir

    def refusing(path):
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    survey = results.survey(tmp_path)
    assert survey.runs == [whole]
    assert survey.complaints() == [f"skipped unreadable runs: {closed} (cannot be read: Permission denied)"]
    with pytest.raises(BakeoffError, match="closed: cannot be read: Permission denied"):
        results.survey(closed)


# Model epochs.


def at_epoch(folder: Path, epoch: int | None) -> Result:
    write(folder, provenance=None if epoch is None else MADE.model_copy(update={"model_epoch": epoch}))
    return results.read(folder)


def test_results_of_different_epochs_are_counted_and_told(tmp_path):
    several = [at_epoch(tmp_path / str(i), epoch) for i, epoch in enumerate([2, 1, 2, None])]
    assert results.epochs(several) == {2: 2, 1: 1, None: 1}
    assert results.epoch_warning(several) == (
        "the runs come from different model epochs (1 from an older bakeoff without an epoch, 1 from "
        "epoch 1, 2 from epoch 2): differences may come from the models"
    )
    assert results.epoch_warning([several[0], several[2]]) is None
    assert results.epoch_warning([several[3]]) is None
    assert results.epoch_warning([]) is None


def test_other_columns_are_named(tmp_path):
    folder = write(tmp_path / "pie")
    pl.DataFrame({"time": [0.0], "bytes": [1]}).write_parquet(folder / "series.parquet")
    with pytest.raises(BakeoffError, match="columns time, bytes; expected time, kind, name, metric, value"):
        _ = results.read(folder).series


def test_discard_partials_leaves_whole_runs(tmp_path):
    whole = write(tmp_path / "s" / "pie")
    partial = tmp_path / "s" / ".red.12.partial"
    partial.mkdir()
    assert results.discard_partials(tmp_path) == [partial]
    assert list(tmp_path.rglob("*.partial")) == []
    assert results.scan(tmp_path) == [whole]


def test_not_a_number_is_no_json(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        results.write_json(tmp_path / "x.json", {"ratio": float("nan")})


def test_a_folder_that_an_earlier_version_wrote_is_read_whole():
    """`bakeoff run` of d633c91 wrote it: TCP and UDP, a probe and a timed change of the rate."""
    [result] = results.survey(Path(__file__).parent.parent / "data" / "results-d633c91").results
    written = json.loads((result.path / "run.json").read_text())
    assert json.loads(result.run.to_json()) == written.pop("resolved")
    assert result.record.about() == written
    assert result.record.digest == results.digest(result.parts)
    # 100 kbit/s in datagrams of 200 bytes over the 4 s: 250, each in a frame of 242 bytes.
    call = result.counters.flow("call")
    assert (call.sent_packets, call.sent_bytes) == (250, 250 * 242)
    # 20 ms there and back; the class has 10 Mbit/s until 2.5 s, and 8 Mbit/s from then on.
    assert base_rtt(result.run, result.run.named("ping")) == pytest.approx(0.020)
    assert rates(result.run, "mid>srv", result.run.window_s) == [(2.0, 2.5, 10e6), (2.5, 4.0, 8e6)]
    stored, again = result.summary, measure.summarise(result)
    for name in ("prague", "cubic", "call"):
        assert again.flows[name].steady_state.goodput_bps == stored.flows[name].steady_state.goodput_bps
        assert again.flows[name].srtt_s == stored.flows[name].srtt_s
    assert again.checks == stored.checks


@pytest.mark.parametrize(
    ("present", "reason"),
    [
        ({"colours": 3}, "present.colours: Input should be a valid dictionary"),
        ({"rate_axis_bps": [0]}, "present.rate_axis_bps.1: Field required"),
    ],
)
def test_hints_of_another_form_are_named(present, reason):
    assert RUN.model_copy(update={"present": {"of_tomorrow": 1}}).hints == Hints()
    with pytest.raises(BakeoffError, match=re.escape(reason)):
        _ = RUN.model_copy(update={"present": present}).hints
