"""The results folder: what is written can be read, half-written folders are told apart, the digest is defined."""

import hashlib
import json
import struct
from pathlib import Path

import polars as pl
import pytest

from bakeoff import results
from bakeoff.errors import BakeoffError

RESOLVED = {"suite": "fake", "scenario": "s1", "run": "pie", "seed": 3}
COUNTERS = {"events": 7}


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


def write(folder: Path, error: str | None = None) -> Path:
    results.write(folder, fill, resolved=RESOLVED, engine="sim", versions={"bakeoff": "1"}, wall_s=0.25, error=error)
    return folder


def test_what_is_written_is_read_back(tmp_path):
    result = results.read(write(tmp_path / "pie"))
    assert result.resolved == RESOLVED
    assert result.meta == {
        "format": 1,
        "engine": "sim",
        "versions": {"bakeoff": "1"},
        "seed": 3,
        "digest": results.digest(SAMPLES),
        "status": "ok",
        "wall_s": 0.25,
        "error": None,
    }
    assert result.counters == COUNTERS
    assert result.summary is None
    assert result.series.equals(SAMPLES)
    assert result.key == "fake/s1/pie~seed3"
    assert [path.name for path in tmp_path.iterdir()] == ["pie"]


def test_a_failed_run_keeps_its_logs_and_its_error_and_no_series(tmp_path):
    folder = write(tmp_path / "pie", error="1 packet is missing")
    assert sorted(path.name for path in folder.iterdir()) == ["run.json", "setup.log"]
    result = results.read(folder)
    assert not result.ok
    assert result.meta["error"] == "1 packet is missing"
    assert result.meta["digest"] is None
    assert result.counters == {}
    with pytest.raises(BakeoffError, match="has no series: 1 packet is missing"):
        _ = result.series


def test_digest_is_the_sha256_of_its_definition():
    def part(kind: str, name: str, metric: str, time: list[float], value: list[float]) -> bytes:
        words = f"{kind}\0{name}\0{metric}\0".encode()
        count = len(time)
        return words + struct.pack("<Q", count) + struct.pack(f"<{count}d", *time) + struct.pack(f"<{count}d", *value)

    expected = hashlib.sha256(
        part("flow", "prague", "cwnd", [0.1, 0.2], [10.0, 20.0]) + part("queue", "mid>srv", "qlen", [0.1], [3.0])
    ).hexdigest()
    assert results.digest(SAMPLES) == expected
    # The order of the series in the file is no content; the order of rows in a series is.
    assert results.digest(SAMPLES[[2, 0, 1]]) == expected
    assert results.digest(SAMPLES[[1, 0, 2]]) != expected


@pytest.mark.parametrize("column", ["time", "name", "value"])
def test_digest_sees_a_change_in_any_column(column):
    other = {"time": 0.3, "name": "cubic", "value": 21.0}[column]
    changed = [
        *SAMPLES.rows()[:1],
        tuple(other if c == column else v for c, v in zip(SAMPLES.columns, SAMPLES.row(1), strict=True)),
        SAMPLES.row(2),
    ]
    assert results.digest(frame(*changed)) != results.digest(SAMPLES)


def test_digest_of_no_samples_is_that_of_nothing():
    assert results.digest(SAMPLES.clear()) == hashlib.sha256().hexdigest()


def test_equal_samples_give_equal_files(tmp_path):
    pieces = pl.concat([SAMPLES[:1], SAMPLES[1:]], rechunk=False)
    results.write_series(tmp_path / "a", SAMPLES)
    results.write_series(tmp_path / "b", pieces)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


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

    def broken(partial: Path) -> None:
        fill(partial)
        raise OSError(28, "No space left on device")

    with pytest.raises(BakeoffError, match=r"pie: cannot be written: No space left on device; .* earlier results were"):
        results.write(folder, broken, resolved=RESOLVED, engine="sim", versions={})
    assert results.read(folder).series.equals(SAMPLES)
    assert [path.name for path in tmp_path.iterdir()] == ["pie"]


def break_run_json(folder: Path) -> None:
    (folder / "run.json").write_text('{"format": 1,')


def forget_status(folder: Path) -> None:
    run = json.loads((folder / "run.json").read_text())
    del run["status"]
    (folder / "run.json").write_text(json.dumps(run))


def cut_series(folder: Path) -> None:
    content = (folder / "series.parquet").read_bytes()
    (folder / "series.parquet").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / "run.json").unlink(), "run.json is missing"),
        (break_run_json, "run.json is no JSON"),
        (forget_status, "run.json has no status"),
        (lambda folder: (folder / "series.parquet").unlink(), "series.parquet is missing or cut off"),
        (lambda folder: (folder / "series.parquet").write_bytes(b""), "series.parquet is missing or cut off"),
        (lambda folder: (folder / "series.parquet").write_bytes(b"PAR1"), "series.parquet is missing or cut off"),
        (cut_series, "series.parquet is missing or cut off"),
        (lambda folder: (folder / "counters.json").unlink(), "counters.json is missing"),
        (lambda folder: (folder / "counters.json").write_text("[]"), "counters.json holds no JSON object"),
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
    assert f"left out as half-written: {path} ({why})" in survey.complaint()
    if path.name == "broken":
        with pytest.raises(BakeoffError, match=f"broken: half-written: {reason}"):
            results.read(path)


def test_nothing_to_complain_about(tmp_path):
    write(tmp_path / "pie")
    assert results.survey(tmp_path).complaint() is None


def test_a_run_folder_is_found_by_its_own_path(tmp_path):
    folder = write(tmp_path / "pie")
    assert results.scan(folder) == [folder]


def test_plots_and_notes_in_a_campaign_are_no_runs(tmp_path):
    write(tmp_path / "s" / "pie")
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "bars.svg").write_text("<svg/>")
    assert results.survey(tmp_path) == results.Survey([tmp_path / "s" / "pie"], [])


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(BakeoffError, match="nowhere: no such results folder"):
        results.scan(tmp_path / "nowhere")
    with pytest.raises(BakeoffError, match="nowhere: no such results folder"):
        results.read(tmp_path / "nowhere")


def test_a_newer_format_is_refused_by_its_number(tmp_path):
    folder = write(tmp_path / "pie")
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(run | {"format": 2}))
    with pytest.raises(BakeoffError, match="format 2; this version reads format 1"):
        results.read(folder)


def test_other_columns_are_named(tmp_path):
    folder = write(tmp_path / "pie")
    pl.DataFrame({"time": [0.0], "bytes": [1]}).write_parquet(folder / "series.parquet")
    with pytest.raises(BakeoffError, match="has the columns time, bytes; expected time, kind, name, metric, value"):
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
