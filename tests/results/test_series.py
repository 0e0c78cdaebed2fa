"""series.parquet in row groups: written and read a group at a time, whatever the series are."""

import errno
import io
import os

import numpy as np
import polars as pl
import pytest

from bakeoff.cli import main
from bakeoff.errors import BakeoffError
from bakeoff.results import parts, series, table, write_parts, write_series
from bakeoff.results.series import batches, read_parts, read_series

LENGTHS = {"cwnd": 25, "srtt": 1, "retrans": 0, "goodput": 10, "lost": 9}


def known():
    """45 samples of four series, in row groups of 10 rows: 10 10 5+1+4 6+4 5."""
    draw = np.random.default_rng(1)
    return {
        ("flow", "a", metric): (np.arange(length) / 20, draw.random(length))
        for metric, length in LENGTHS.items()
        if length
    }


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    monkeypatch.setattr(series, "_ROWS_PER_GROUP", 10)


def same(one, other):
    assert list(one) == list(other)
    for key in one:
        assert all(np.array_equal(a, b) for a, b in zip(one[key], other[key], strict=True))


def written(path, of):
    write_parts(path, of)
    return path


def test_groups_of_several_series_and_series_of_several_groups_come_back(tmp_path):
    path = written(tmp_path / "x.parquet", known())
    same(read_parts(path), known())
    same(parts(read_series(path)), known())
    assert [batch.height for batch in batches(path)] == [10, 10, 10, 10, 5]
    assert list(read_parts(path, {"srtt", "lost"})) == [("flow", "a", "srtt"), ("flow", "a", "lost")]


def test_the_bytes_are_those_of_the_table(tmp_path):
    write_parts(tmp_path / "parts", known())
    write_series(tmp_path / "table", table(known()))
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "table").read_bytes()


def test_a_run_without_samples_has_an_empty_table(tmp_path):
    path = written(tmp_path / "x.parquet", {})
    assert read_parts(path) == {}
    assert read_series(path).columns == ["time", "kind", "name", "metric", "value"]


@pytest.mark.parametrize("groups", [1, 7, 45, 100])
def test_row_groups_of_any_size_are_read(tmp_path, groups):
    table(known()).cast({pl.Enum: pl.String}).write_parquet(tmp_path / "x", row_group_size=groups)
    same(read_parts(tmp_path / "x"), known())


def test_time_that_goes_back_from_one_group_to_the_next_is_refused(tmp_path):
    time = np.arange(20) / 10
    time[10] = 0.05  # the first row of the second group, after 0.9 s
    path = written(tmp_path / "x.parquet", {("flow", "a", "cwnd"): (time, time)})
    with pytest.raises(BakeoffError, match=r"holds 'flow' 'a' 'cwnd' at 0.05 s after 0.9 s"):
        read_parts(path)


def test_a_footer_that_names_more_rows_than_there_are(tmp_path, monkeypatch):
    path = written(tmp_path / "x.parquet", known())
    monkeypatch.setattr(series.parquet, "groups", lambda _: [10, 50])
    with pytest.raises(BakeoffError, match="holds 45 rows, fewer than its footer states"):
        read_parts(path)


def test_memory_that_the_system_does_not_give_is_an_error_before_anything_is_read(tmp_path, monkeypatch):
    path = written(tmp_path / "x.parquet", known())

    def refused(_, size):
        # 45 samples of 24 bytes, and 128 MB
        assert size == 45 * 24 + (128 << 20)
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(series.mmap, "mmap", refused)
    with pytest.raises(BakeoffError, match="needs 128 MB of memory for its samples: Cannot allocate memory"):
        read_parts(path)


def test_a_command_that_runs_out_of_memory_ends_with_a_message(monkeypatch, capsys):
    def app(**_):
        raise MemoryError("Unable to allocate 3 MiB")

    monkeypatch.setattr("bakeoff.cli.app.app", app)
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "bakeoff: not enough memory: Unable to allocate 3 MiB\n"
